"""What plain Spark SQL can do with a table of equalities: four ways to join it with events.

From the most general to the most particular. The first works for any table of bounds. The others need to know that all
subscriptions are equalities; the third, that some columns are tested by all of them; the fourth, that each tests at
least one column more, by which events are spread over as many rows as they have columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.workloads import Workload

FILE_ROWS = 250_000


class Join(NamedTuple):
    """A formulation: the most events it was given, its rate on those, the seconds they took and the pairs it found."""

    name: str
    events: int
    rate: float
    seconds: float
    pairs: int


def measure_joins(
    session: Any,
    workload: Workload,
    subscriptions: int,
    frame: Any,
    folder: Path,
    seconds: float,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Join, ...]:
    """Return what each formulation did: it is given more and more events until they take so many seconds, or until all
    are joined. What eight events take is what it costs to read and hash the subscriptions, and does not count."""
    axes = [f"a{axis}" for axis in range(workload.axes)]
    common = _write_tables(workload, subscriptions, folder)
    for name in ("tocsin_columns", "tocsin_tests"):
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    rows = frame.count()
    found = []
    for name, query in _queries(axes, common).items():
        say(f"joining: {name}")
        found.append(_measured(session, name, query, frame, rows, axes, seconds))
    return tuple(found)


def _queries(axes: list[str], common: list[str]) -> dict[str, str]:
    """Return the formulations by name."""
    rest = " AND ".join(f"(s.{name} IS NULL OR s.{name} = e.{name})" for name in axes)
    keys = " AND ".join(f"s.{name} = e.{name}" for name in common)
    others = " AND ".join(f"(s.{name} IS NULL OR s.{name} = e.{name})" for name in axes if name not in common)
    few = ", ".join(["event", "all", *common])
    queries = {
        "nested loop: every subscription with every event": (
            f"SELECT /*+ BROADCAST(e) */ count(*) FROM tocsin_columns s JOIN tocsin_events e ON {rest}"
        ),
        "join on each test, count those that hold": (
            "WITH p AS (SELECT id, explode(tests) AS t FROM tocsin_tests), "
            f"v AS (SELECT event, posexplode(all) AS (axis, value) FROM (SELECT {few} FROM tocsin_events)) "
            "SELECT count(*) FROM (SELECT event, id, count(*) AS got FROM v JOIN p ON v.axis = p.t.axis AND "
            "v.value = p.t.value GROUP BY event, id) JOIN tocsin_tests USING (id) WHERE got = size(tests)"
        ),
    }
    if common:
        queries["hash join on the columns that all test"] = (
            f"SELECT /*+ BROADCAST(s) */ count(*) FROM tocsin_events e JOIN tocsin_columns s ON {keys} AND {others}"
        )
        queries["hash join on those and one more, events spread"] = (
            f"WITH v AS (SELECT {few}, posexplode(all) AS (axis, value) FROM tocsin_events) "
            f"SELECT /*+ BROADCAST(s) */ count(*) FROM v e JOIN tocsin_tests s ON {keys} AND e.axis = s.axis "
            "AND e.value = s.value AND forall(s.others, t -> e.all[t.axis] = t.value)"
        )
    return queries


def _measured(session: Any, name: str, query: str, frame: Any, rows: int, axes: list[str], seconds: float) -> Join:
    asked = min(8, rows)
    _joined(session, query, frame, asked, rows, axes)  # compiles the plan
    fixed = 0.0
    while True:
        started = time.perf_counter()
        pairs = _joined(session, query, frame, asked, rows, axes)
        took = time.perf_counter() - started
        if asked == rows or (fixed and took >= fixed + seconds):
            return Join(name, asked, round(asked / max(took - fixed, 0.001), 1), round(took, 1), pairs)
        fixed = fixed or took
        asked = min(rows, int(asked * min(8.0, max(2.0, 1.5 * seconds / max(took - fixed, 0.001)))))


def _joined(session: Any, query: str, frame: Any, asked: int, rows: int, axes: list[str]) -> int:
    """Return the number of pairs that a formulation finds for so many of the events."""
    some = frame if asked == rows else frame.limit(asked).repartition(2)
    numbered = some.selectExpr("monotonically_increasing_id() AS event", f"array({', '.join(axes)}) AS all", "*")
    numbered.createOrReplaceTempView("tocsin_events")
    return int(session.sql(query).collect()[0][0])


def _write_tables(workload: Workload, count: int, folder: Path) -> list[str]:
    """Write subscriptions as columns (NULL where a column is not tested) and as lists of tests; return the columns
    that all of them test."""
    numbers, boxes = workload.boxes(count)
    each = len(boxes.axis) // count
    axis, value = boxes.axis.reshape(count, each), boxes.low.reshape(count, each)
    uses = np.bincount(boxes.axis, minlength=workload.axes)
    common = np.flatnonzero(uses == count)
    for start in range(0, count, FILE_ROWS):
        rows = slice(start, min(count, start + FILE_ROWS))
        ids = pa.array(numbers[rows], pa.int64())
        columns: dict[str, pa.Array] = {"id": ids}
        for number in range(workload.axes):
            here = axis[rows] == number
            held = np.where(here, value[rows], 0).sum(axis=1)
            columns[f"a{number}"] = pa.array(held, mask=~here.any(axis=1))
        _write(folder / "tocsin_columns", start, pa.table(columns))
        free = ~np.isin(axis[rows], common)
        first = np.argmax(free, axis=1)
        tests = {"id": ids, "tests": _lists(axis[rows], value[rows], np.ones_like(free))}
        tests |= {f"a{number}": columns[f"a{number}"] for number in common}
        chosen = np.arange(len(ids)), first
        tests |= {"axis": pa.array(axis[rows][chosen]), "value": pa.array(value[rows][chosen])}
        free[chosen] = False
        tests["others"] = _lists(axis[rows], value[rows], free)
        _write(folder / "tocsin_tests", start, pa.table(tests))
    return [f"a{number}" for number in common]


def _lists(axis: Any, value: Any, wanted: Any) -> pa.Array:
    """Return the tests that are wanted of each subscription, as lists of axis and value."""
    offsets = np.concatenate([[0], np.cumsum(wanted.sum(axis=1))]).astype(np.int32)
    tests = pa.StructArray.from_arrays([pa.array(axis[wanted]), pa.array(value[wanted])], ["axis", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), tests)


def _write(folder: Path, start: int, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f"{start // FILE_ROWS:04}.parquet")
