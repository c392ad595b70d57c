"""What meaning costs through `Matcher`: a hierarchy of real size, several parents, growth below stored subscriptions,
units, and the paper's workload on the engines that `tocsin bench concepts` compares by arrays alone.

The hierarchy has one root and grows geometrically down to its depth; a concept's first parent is drawn from the level
above it, further parents from any level above. Rates are of one core: the processor time of the thread that matches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.bench.concept_trees import NUMERIC, TREES, ConceptWorkload
from tocsin.bench.concepts import DisagreementError
from tocsin.bench.targets import Target
from tocsin.matcher import Matcher
from tocsin.space import Concept, Hierarchy, Number, Rates, Space, Text, Units
from tocsin.space.quantities import times

SEED = 6
CITIES = 1000
_SHRINK = 1.9

ENGINES = ("bitmap", "adaptive")
"""The engines that hold the paper's workload."""

LEAST = 50_000
"""The events a second that a hierarchy of real size must allow, on one core."""


class Drawn(NamedTuple):
    """A hierarchy drawn from a seed, and where its levels begin among the rows."""

    hierarchy: Hierarchy
    levels: npt.NDArray[np.int64]


class Figure(NamedTuple):
    """One thing measured."""

    part: str
    what: str
    value: float
    unit: str

    def to_json(self) -> dict[str, Any]:
        """Return the figure as JSON values."""
        return self._asdict()


SHAPES: dict[str, str] = {
    "is_a": "is_a(target, '{}')",
    "is_a, price": "is_a(target, '{}') AND price <= {}",
    "is_a, price, city": "is_a(target, '{}') AND price <= {} AND city = 'city {}'",
    "NOT is_a, city": "NOT is_a(target, '{}') AND price <= {} AND city = 'city {}'",
}
"""The subscriptions measured: the concept is any of the hierarchy."""


def draw_hierarchy(concepts: int, depth: int, further: float, rng: np.random.Generator) -> Drawn:
    """Return a hierarchy of so many concepts; a share of them has a second parent.

    >>> drawn = draw_hierarchy(1000, 5, 0.1, np.random.default_rng(1))
    >>> len(drawn.hierarchy), drawn.hierarchy.is_tree, len(drawn.levels)
    (1000, False, 7)
    """
    weights = _SHRINK ** np.arange(depth + 1)
    sizes = np.maximum(1, (weights / weights.sum() * concepts).astype(np.int64))
    sizes[0] = 1
    sizes[-1] += concepts - sizes.sum()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    names = [f"concept {row:07d}" for row in range(concepts)]
    parents: list[tuple[int, ...]] = [()]
    for level in range(1, depth + 1):
        first = rng.integers(starts[level - 1], starts[level], sizes[level])
        second = rng.integers(0, starts[level], sizes[level])
        has = rng.random(sizes[level]) < further
        both = zip(first.tolist(), second.tolist(), has.tolist(), strict=True)
        parents += [(one, other) if more and one != other else (one,) for one, other, more in both]
    return Drawn(Hierarchy(names, parents, {}), starts)


def subscriptions(shape: str, drawn: Drawn, count: int, rng: np.random.Generator) -> pa.Table:
    """Return so many subscriptions of a shape."""
    names = pa.array(drawn.hierarchy.names).take(pa.array(rng.integers(0, len(drawn.hierarchy), count)))
    prices = pa.array(rng.integers(0, 100_000, count) / 100).cast(pa.string())
    cities = pa.array(rng.integers(0, CITIES, count)).cast(pa.string())
    pieces = SHAPES[shape].split("{}")
    joined = pieces[0]
    for value, piece in zip([names, prices, cities][: len(pieces) - 1], pieces[1:], strict=True):
        joined = pc.binary_join_element_wise(joined, value, piece, "")
    return pa.table({"id": np.arange(count), "expression": joined})


def events(drawn: Drawn, count: int, rng: np.random.Generator) -> pa.Table:
    """Return so many events: any concept, any price, any city."""
    return pa.table(
        {
            "target": pa.array(drawn.hierarchy.names).take(pa.array(rng.integers(0, len(drawn.hierarchy), count))),
            "price": rng.random(count) * 1000,
            "city": pa.array([f"city {city}" for city in range(CITIES)]).take(pa.array(rng.integers(0, CITIES, count))),
        }
    )


def loaded(shape: str, drawn: Drawn, count: int, engine: str) -> tuple[Matcher, float]:
    """Return a matcher with so many subscriptions, and the seconds that loading took."""
    space = Space({"target": Concept(drawn.hierarchy), "price": Number(), "city": Text()})
    matcher = Matcher(space, engine)
    table = subscriptions(shape, drawn, count, np.random.default_rng(SEED))
    matcher.subscribe_many(table.slice(0, 1))  # compiles, or reads the cache
    started = time.perf_counter()
    matcher.subscribe_many(table.slice(1))
    return matcher, time.perf_counter() - started


def matching(matcher: Matcher, table: pa.Table, seconds: float) -> tuple[float, float]:
    """Return the events a second of processor time, the median of five, and the matches of an event."""
    matcher.match_batch(table.slice(0, 1024))
    rows = 1024
    while _cpu(matcher.match_batch, table.slice(0, rows))[0] < seconds / 2 and rows < len(table):
        rows = min(len(table), rows * 4)
    found = [_cpu(matcher.match_batch, table.slice(0, rows)) for _ in range(5)]
    return rows / statistics.median(spent for spent, _ in found), len(found[0][1]) / rows


def real_size(concepts: int, depth: int, count: int, engine: str) -> Iterator[Figure]:
    """Measure a hierarchy of real size with every shape of subscription, and growth below the last but one."""
    drawn = draw_hierarchy(concepts, depth, 0.0, np.random.default_rng(SEED))
    table = events(drawn, 200_000, np.random.default_rng(SEED + 1))
    for shape in SHAPES:
        matcher, took = loaded(shape, drawn, count, engine)
        rate, matches = matching(matcher, table, 0.5)
        part = f"{concepts:,} concepts, depth {depth}, {count:,} x {shape}"
        yield Figure(part, "loading", count / took, "subscriptions/s")
        yield Figure(part, "matching", rate, "events/s")
        yield Figure(part, "matches", matches, "an event")
        if shape == "is_a, price, city":
            yield from growth(matcher, drawn, part)


def growth(matcher: Matcher, drawn: Drawn, part: str) -> Iterator[Figure]:
    """Measure what it takes to add concepts while subscriptions are stored."""
    rng = np.random.default_rng(SEED + 2)
    names = drawn.hierarchy.names
    single = []
    for number in range(50):
        parent = names[int(rng.integers(0, len(names)))]
        single.append(_wall(matcher, {parent: [f"new {number}"]}))
    yield Figure(part, "growth, one concept", statistics.median(single) * 1e3, "ms")
    below = {names[int(row)]: [f"many {number}"] for number, row in enumerate(rng.integers(0, len(names), 1000))}
    yield Figure(part, "growth, 1,000 concepts at once", _wall(matcher, below) * 1e3, "ms")
    leaf = names[-1]
    further = [_wall(matcher, {names[len(names) // 2]: [leaf]})]
    further.append(_wall(matcher, {names[len(names) // 3]: [leaf]}))
    yield Figure(part, "growth, a further parent", statistics.median(further) * 1e3, "ms")
    longest, at = 0.0, leaf
    for number in range(12):  # a line downwards runs out of room
        longest, at = max(longest, _wall(matcher, {at: [f"line {number}"]})), f"line {number}"
    yield Figure(part, "growth, numbered anew", longest * 1e3, "ms")


def several_parents(concepts: int, depth: int, count: int, engine: str) -> Iterator[Figure]:
    """Measure what second parents cost: intervals a concept, loading, matching."""
    for share in (0.0, 0.1, 0.3):
        drawn = draw_hierarchy(concepts, depth, share, np.random.default_rng(SEED))
        table = events(drawn, 100_000, np.random.default_rng(SEED + 1))
        matcher, took = loaded("is_a, price, city", drawn, count, engine)
        rate, matches = matching(matcher, table, 0.3)
        codec = next(codec for _, codec in matcher._state.axes.concepts())
        widths = np.diff(codec.known.elsewhere.offsets[:-1]) + 1
        part = f"{concepts:,} concepts, {share:.0%} with a second parent, {count:,} subscriptions"
        yield Figure(part, "intervals a concept, mean", float(widths.mean()), "")
        yield Figure(part, "intervals a concept, most", float(widths.max()), "")
        yield Figure(part, "loading", count / took, "subscriptions/s")
        yield Figure(part, "matching", rate, "events/s")
        yield Figure(part, "matches", matches, "an event")


def paper_space(workload: ConceptWorkload) -> Space:
    """Return the six attributes of the paper's Table 1: four with a tree of concepts, two numbers.

    >>> list(paper_space(ConceptWorkload(1)))
    ['tree 0', 'tree 1', 'tree 2', 'tree 3', 'number 0', 'number 1']
    """
    names = [f"concept {number}" for number in range(workload.tree.size)]
    parents = [(above,) if above >= 0 else () for above in workload.tree.parent.tolist()]
    tree = Hierarchy(names, parents, {})
    trees = {f"tree {number}": Concept(tree) for number in range(TREES)}
    return Space({**trees, **{f"number {number}": Number("int64") for number in range(NUMERIC)}})


def paper_subscriptions(workload: ConceptWorkload, count: int) -> pa.Table:
    """Return as expressions what `ConceptWorkload.boxes` returns as boxes."""
    drawn = workload.draw(count)
    joined: Any = ""
    for number in range(TREES):
        written = pa.array(drawn.concepts[:, number]).cast(pa.string())
        joined = pc.binary_join_element_wise(joined, f"is_a(`tree {number}`, 'concept ", written, "') AND ", "")
    for number in range(NUMERIC):
        low, high = (pa.array(side[:, number]).cast(pa.string()) for side in (drawn.low, drawn.high))
        end = " AND " if number + 1 < NUMERIC else ""
        joined = pc.binary_join_element_wise(joined, f"`number {number}` BETWEEN ", low, " AND ", high, end, "")
    return pa.table({"id": np.arange(count), "expression": joined})


def paper_events(workload: ConceptWorkload, count: int) -> pa.Table:
    """Return as a table what `ConceptWorkload.queries` returns as codes."""
    names = pa.array([f"concept {number}" for number in range(workload.tree.size)])
    codes = workload.queries(count).low
    trees = {f"tree {number}": names.take(pa.array(codes[number])) for number in range(TREES)}
    return pa.table({**trees, **{f"number {number}": codes[TREES + number] for number in range(NUMERIC)}})


def paper(height: int, count: int) -> Iterator[Figure]:
    """Measure the paper's workload on each engine; all must find as many pairs."""
    workload, pairs = ConceptWorkload(height), {}
    table, texts = paper_events(workload, 32_768), paper_subscriptions(workload, count)
    for engine in ENGINES:
        matcher = Matcher(paper_space(workload), engine)
        started = time.perf_counter()
        matcher.subscribe_many(texts)
        took = time.perf_counter() - started
        rate, pairs[engine] = matching(matcher, table, 0.3)
        part = f"Table 1, height {height}, {count:,} subscriptions, {engine}"
        yield Figure(part, "loading", count / took, "subscriptions/s")
        yield Figure(part, "matching", rate, "events/s")
        pairs[engine] = len(matcher.match_batch(table.slice(0, 1024)))
    if len(set(pairs.values())) > 1:
        raise DisagreementError(f"height {height}, {count:,} subscriptions: pairs of the same events differ: {pairs}")


def targets(found: Sequence[Figure]) -> list[Target]:
    """Hold the figures against what is asked of them."""
    held = []
    matches = {one.part: one.value for one in found if one.what == "matches"}
    for one in found:
        if one.what == "matching" and " x " in one.part:
            said = f"{one.value:,.0f} events/s, {matches.get(one.part, 0.0):,.3g} matches each"
            wanted = not one.part.endswith("NOT is_a, city")
            name = f"{one.part}: {LEAST:,} events/s" if wanted else f"{one.part} (no target)"
            held.append(Target(name, said, one.value >= LEAST if wanted else None))
    rates = {one.part: one.value for one in found if one.what == "matching"}
    for part, rate in rates.items():
        if part.endswith(", adaptive") and (other := rates.get(part.replace(", adaptive", ", bitmap"))):
            said = f"{rate / other:.2f}x ({rate:,.0f} to {other:,.0f} events/s)"
            held.append(Target(f"{part}: as fast as bitmap, through the matcher", said, rate >= other))
    return held


def units(rows: int) -> Iterator[Figure]:
    """Measure how fast values are converted on their way in."""
    rng = np.random.default_rng(SEED)
    values = rng.random(rows) * 1000
    money = Units(rates=Rates("USD", [("EUR", "1.08"), ("GBP", "1.27")]))
    matcher = Matcher(Space({"price": Number(unit="USD", unit_field="currency")}, units=money))
    matcher.subscribe("cheap", "price <= quantity('9 EUR')")
    named = pa.array(["EUR", "GBP", "USD"]).take(pa.array(rng.integers(0, 3, rows)))
    written = pc.binary_join_element_wise(pa.array(np.round(values)).cast(pa.string()), named, " ")
    beside = pa.table({"price": values, "currency": named})
    cases: dict[str, Callable[[], Any]] = {
        "a factor applied, exact": lambda: times(values, Fraction(27, 25)),
        "numbers with a companion currency": lambda: matcher.match_batch(beside),
        "texts such as '350 EUR'": lambda: matcher.match_batch(pa.table({"price": written}), missing="unspecified"),
    }
    for what, case in cases.items():
        case()
        yield Figure("units", what, rows / statistics.median(_cpu(case)[0] for _ in range(3)), "values/s")


def _cpu(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    started = time.thread_time()
    found = call(*arguments)
    return max(time.thread_time() - started, 1e-9), found


def _wall(matcher: Matcher, additions: dict[str, list[str]]) -> float:
    started = time.perf_counter()
    matcher.grow("target", additions)
    return time.perf_counter() - started
