"""`tocsin bench subjects`: figures 11 to 14 of the subject-space paper.

50 dimensions of whole numbers 0 to 99 in a space that reads an unspecified dimension as any; publications constrain 20
of them (insertion) or 25 (updates) to one value, subscriptions 2. A dimension that a publication leaves open overlaps
everything, so that an insertion matches a third of all subscriptions, and a new subscription a third of all
publications. Times are of single calls through the Python interface, results as Arrow tables included; of the same in
batches; and of batches whose results are dictionary columns (encoded), which touch a third of the memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.space import Number, Space
from tocsin.subjects import Subjects

SEED = 13
DIMENSIONS = [f"d{number}" for number in range(50)]
SPACE = Space({name: Number("int64") for name in DIMENSIONS}, unspecified="any")
SIZES = (10, 100, 1_000, 10_000, 100_000)
CALLS = 40
"""How many single calls are timed."""

BATCH = 500
"""How many updates come together."""

BATCHES = 5
"""How many batches of updates are timed."""

INSERTED = 100
"""How many insertions do: each may bring tens of thousands of transitions."""

UPDATED = 20
"""How many publications figure 14 updates."""

TURNS = 8
"""How often it updates them: the turn whose median is lowest counts, as the others were disturbed."""

OPERATIONS = 10
"""How many measurements there are of each number of publications and of subscriptions."""

WIDTHS = (0, 1, 2, 4, 7, 10, 15, 20, 30, 40, 60, 80)
"""How wide the ranges are that the updates of figure 14 make of single values."""

PAPER = {("insert", 100_000, 10): 172.0, ("insert", 100_000, 100_000): 776.0}
"""What the paper states in numbers: (operation, publications, subscriptions) to milliseconds."""


def subscriptions(first: int, last: int, random: np.random.Generator) -> pa.Table:
    """Return subscriptions of two equalities, numbered from ``first`` up to ``last``."""
    count = last - first
    one = random.integers(0, 50, count)
    other = (one + random.integers(1, 50, count)) % 50
    values = random.integers(0, 100, (count, 2))
    texts = [f"d{a} = {u} AND d{b} = {v}" for a, b, (u, v) in zip(one, other, values, strict=True)]
    return pa.table({"id": np.arange(first, last), "expression": texts})


def publications(count: int, constraints: int, random: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return values int64[count, 50], -1 where a publication leaves a dimension open."""
    values = random.integers(0, 100, (count, 50))
    order = np.argsort(random.random((count, 50)), axis=1)
    np.put_along_axis(values, order[:, constraints:], -1, axis=1)
    return values


def as_table(keys: Any, values: Any) -> pa.Table:
    """Return publications as a table."""
    columns = {name: pa.array(values[:, place], mask=values[:, place] < 0) for place, name in enumerate(DIMENSIONS)}
    return pa.table({"key": keys, **columns})


def as_dictionary(values: Any) -> dict[str, int]:
    """Return one publication as a dictionary."""
    return {DIMENSIONS[place]: int(values[place]) for place in np.flatnonzero(values >= 0)}


def nearby(values: Any, random: np.random.Generator) -> Any:
    """Return every value one higher or lower."""
    return np.where(values < 0, -1, np.abs(values + random.choice([-1, 1], values.shape)))


def anywhere(values: Any, random: np.random.Generator) -> Any:
    """Return every value drawn anew."""
    return np.where(values < 0, -1, random.integers(0, 100, values.shape))


def figures(
    sizes: tuple[int, ...] = SIZES, held: tuple[int, ...] | None = None, engine: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a measurement for each operation, number of publications and number of subscriptions."""
    for count in held or sizes:
        random = np.random.default_rng(SEED)
        subjects = Subjects(SPACE, engine=engine)
        for start in range(0, count, 20_000):
            some = min(20_000, count - start)
            subjects.put_many(as_table(np.arange(start, start + some), publications(some, 20, random)))
        there = 0
        for size in sizes:
            subjects.subscribe_many(subscriptions(there, size, random), tell=False)
            there = size
            for found in _operations(subjects, random):
                yield {"publications": count, "subscriptions": size, "engine": engine or "default", **found}


def _operations(subjects: Subjects, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield insertions and both kinds of updates, one by one and in a batch; all of them are taken back."""
    new = publications(CALLS, 20, random)
    keys = [10_000_000 + place for place in range(CALLS)]
    yield _timed("insert", CALLS, lambda i: subjects.publish(keys[i], as_dictionary(new[i])))
    subjects.delete_many(keys)
    batch = [20_000_000 + place for place in range(BATCH)]
    tables = [as_table(batch[:INSERTED], publications(INSERTED, 20, random)) for _ in range(3)]
    for name, encoded in (("insert in batches", False), ("insert in batches, encoded", True)):
        found = []
        for table in tables:
            found.append(_timed(name, 1, lambda _, t=table: subjects.put_many(t), INSERTED, encoded))  # type: ignore[misc]
            subjects.delete_many(batch[:INSERTED])
        yield min(found, key=lambda one: one["thread_ms"])
    yield from _subscribing(subjects, random)
    for kind, change in (("random", anywhere), ("incremental", nearby)):
        values = publications(CALLS, 25, random)
        for key, each in zip(keys, values, strict=True):
            subjects.publish(key, as_dictionary(each))
        for each in (change(values, random), change(values, random)):  # the first moves warm up
            changes = [as_dictionary(one) for one in each]
            measured = _timed(f"{kind} update", CALLS, lambda i, c=changes: subjects.update(keys[i], c[i]))  # type: ignore[misc]
        yield measured
        subjects.delete_many(keys)
        values = publications(BATCH, 25, random)
        subjects.put_many(as_table(batch, values))
        tables = [as_table(batch, change(values, random)) for _ in range(1 + BATCHES)]
        subjects.put_many(tables[0])  # warms up
        yield _timed(f"{kind} update in batches", BATCHES, lambda i, t=tables: subjects.put_many(t[i + 1]), BATCH)  # type: ignore[misc]
        subjects.delete_many(batch)


def _subscribing(subjects: Subjects, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield new subscriptions, one by one, in a table, and in a table whose answer is encoded; they are taken back."""
    first = 30_000_000
    new = subscriptions(first, first + INSERTED, random)
    texts = new["expression"].to_pylist()
    subjects.subscribe_many(new)  # the first time may sort the publications
    for id in new["id"].to_pylist():
        subjects.unsubscribe(id)
    yield _timed("subscribe", CALLS, lambda i: subjects.subscribe(first + i, texts[i]))
    for place in range(CALLS):
        subjects.unsubscribe(first + place)
    for name, encoded in (("subscribe in batches", False), ("subscribe in batches, encoded", True)):
        yield _timed(name, 1, lambda _: subjects.subscribe_many(new), INSERTED, encoded)
        for id in new["id"].to_pylist():
            subjects.unsubscribe(id)


def _timed(
    operation: str, calls: int, call: Callable[[int], Any], rows: int = 1, encoded: bool = False
) -> dict[str, Any]:
    """Return the median milliseconds of a call and of its thread, for each row, and the transitions for each."""
    wall, thread, told = [], [], 0
    for place in range(calls):
        began, used = time.perf_counter(), time.thread_time()
        found = call(place)
        found.to_arrow(encoded=encoded)
        wall.append(time.perf_counter() - began)
        thread.append(time.thread_time() - used)
        told += len(found)
    return {
        "operation": operation,
        "ms": round(float(np.median(wall)) * 1e3 / rows, 5),
        "thread_ms": round(float(np.median(thread)) * 1e3 / rows, 5),
        "transitions": round(told / calls / rows, 1),
    }


def by_matches(size: int = 100_000, engine: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield matches and milliseconds of updates that make ranges, wider and wider, of 25 values: figure 14."""
    random = np.random.default_rng(SEED)
    subjects = Subjects(SPACE, engine=engine)
    subjects.subscribe_many(subscriptions(0, size, random), tell=False)
    single = [as_dictionary(each) for each in publications(UPDATED, 25, random)]
    for place, values in enumerate(single):
        subjects.publish(place, values)
    for width in WIDTHS:
        ranges = [{name: (value, value + width) for name, value in values.items()} for values in single]
        turns = []
        for _ in range(TURNS):  # the first moves warm up
            turns.append(_timed("update to ranges", UPDATED, lambda i, r=ranges: subjects.update(i, r[i])))  # type: ignore[misc]
            for place, values in enumerate(single):
                subjects.update(place, values)
        one = min(turns, key=lambda turn: turn["thread_ms"])
        yield {"width": width, "matches": one["transitions"], **one}


def line_of(matches: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Return the milliseconds that an update costs at all, those that each match adds, and how much of the variance
    that line explains.

    >>> [round(each, 3) for each in line_of([{"matches": n, "thread_ms": 0.5 + n / 1000} for n in (0, 10, 90)])]
    [0.5, 0.001, 1.0]
    """
    x, y = (np.array([one[name] for one in matches], float) for name in ("matches", "thread_ms"))
    slope, fixed = np.polyfit(x, y, 1)
    return float(fixed), float(slope), float(np.corrcoef(x, y)[0, 1] ** 2)
