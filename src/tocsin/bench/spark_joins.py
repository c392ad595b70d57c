"""What plain Spark SQL can do with a table of equalities: four ways to join it with events.

From the most general to the most particular. The first works for any table of bounds. The others need to know that all
subscriptions are equalities; the third, that some columns are tested by all of them; the fourth, that each tests at
least one column more, by which events are spread over as many rows as they have such columns.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.spark_cost import Cost, timed
from tocsin.bench.workloads import Workload

FILE_ROWS = 250_000
FEW = 8
"""Events whose join costs what it costs to read and hash the subscriptions."""

LONG_ENOUGH = 5.0
"""Seconds after which a rate is believed."""

NESTED = "nested loop: every subscription with every event"
COUNTING = "join on each test, count those that hold"
COMMON = "hash join on the columns that all test"
SPREAD = "hash join on those and one more, events spread"


class Join(NamedTuple):
    """A formulation at a size that it finished: its rate on so many events, and the pairs it found.

    What it costs to read and hash the subscriptions is in ``seconds`` only: a job would pay that once.
    """

    name: str
    subscriptions: int
    events: int
    seconds: float
    rate: float
    processor: float
    """Microseconds of processors an event."""
    pairs: int


class Joins:
    """The subscriptions of a workload of equalities as tables, and the formulations that join them with events."""

    def __init__(self, session: Any, workload: Workload, subscriptions: int, folder: Path, wide: bool) -> None:
        self._session, self._subscriptions = session, subscriptions
        self._axes = [f"a{axis}" for axis in range(workload.axes)]
        numbers, boxes = workload.boxes(subscriptions)
        each = len(boxes.axis) // subscriptions
        axis, value = boxes.axis.reshape(subscriptions, each), boxes.low.reshape(subscriptions, each)
        common = np.flatnonzero(np.bincount(boxes.axis, minlength=workload.axes) == subscriptions)
        self._top = int(value.max()) + 1
        for start in range(0, subscriptions, FILE_ROWS):
            part = slice(start, min(subscriptions, start + FILE_ROWS))
            tests = self._tests(numbers[part], axis[part], value[part], common)
            _write(folder / "tocsin_tests", start, pa.table(tests))
            if wide:
                columns = {"id": tests["id"]} | {
                    name: _column(axis[part], value[part], number) for number, name in enumerate(self._axes)
                }
                _write(folder / "tocsin_columns", start, pa.table(columns))
        for name in ("tocsin_tests", *(["tocsin_columns"] if wide else [])):
            session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
        self.queries = self._queries([self._axes[number] for number in common], each - len(common), wide)

    def measured(self, name: str, frame: Any, rows: int, wanted: int, seconds: float) -> Join | str:
        """Return what a formulation did with the wanted number of events, or more if they are joined at once; why it
        did not finish, where each attempt has so many seconds."""
        query, asked = self.queries[name], min(wanted, rows)
        try:
            self._joined(query, frame, min(FEW, rows), rows, seconds)  # compiles the plan
            fixed, _ = self._joined(query, frame, min(FEW, rows), rows, seconds)
            while True:
                cost, pairs = self._joined(query, frame, asked, rows, seconds)
                if asked == rows or cost.without(fixed).seconds >= LONG_ENOUGH:
                    break
                asked = min(rows, 8 * asked)
        except Exception as error:  # out of memory, interrupted or lost, through Py4J: many kinds
            from tocsin.spark.session import reason_of_failure

            return f"within {seconds:g} s, or at all: {reason_of_failure(error)[:200]}"
        free = cost.without(fixed)
        return Join(
            name,
            self._subscriptions,
            asked,
            round(cost.seconds, 1),
            round(asked / free.seconds, 1),
            round(1e6 * free.processor / asked, 1),
            pairs,
        )

    def _joined(self, query: str, frame: Any, asked: int, rows: int, seconds: float) -> tuple[Cost, int]:
        """Return the cost of a formulation for so many of the events, and the number of pairs that it finds."""
        some = frame if asked == rows else frame.limit(asked).repartition(2)
        numbered = some.selectExpr(
            "monotonically_increasing_id() AS event", f"array({', '.join(self._axes)}) AS all", "*"
        )
        numbered.createOrReplaceTempView("tocsin_events")
        alarm = threading.Timer(seconds, self._session.interruptAll)
        alarm.start()
        try:
            return timed(lambda: int(self._session.sql(query).collect()[0][0]))
        finally:
            alarm.cancel()
            alarm.join()

    def _tests(self, numbers: Any, axis: Any, value: Any, common: Any) -> dict[str, pa.Array]:
        """Return columns: all tests as a list; the values of the common columns as one number, ``first``; that with
        one test more, ``second``; the axis and the value of each test of another column."""
        free = ~np.isin(axis, common)
        axes, values = (side[free].reshape(len(numbers), -1) for side in (axis, value))
        first = self._packed(value[~free].reshape(len(numbers), -1).T) if len(common) else np.zeros(len(numbers))
        found = {"id": pa.array(numbers, pa.int64()), "tests": _lists(axis, value), "first": pa.array(first)}
        for place in range(axes.shape[1]):
            found |= {f"x{place}": pa.array(axes[:, place]), f"v{place}": pa.array(values[:, place])}
        if axes.shape[1]:
            found["second"] = pa.array((first * len(self._axes) + axes[:, 0]) * self._top + values[:, 0])
        return found

    def _packed(self, values: Any) -> Any:
        number = values[0]
        for line in values[1:]:
            number = number * self._top + line
        return number

    def _queries(self, common: list[str], free: int, wide: bool) -> dict[str, str]:
        """Return the formulations by name."""
        found = {}
        if wide:
            each = " AND ".join(f"(s.{name} IS NULL OR s.{name} = e.{name})" for name in self._axes)
            found[NESTED] = f"SELECT /*+ BROADCAST(e) */ count(*) FROM tocsin_columns s JOIN tocsin_events e ON {each}"
        found[COUNTING] = (
            "WITH p AS (SELECT id, explode(tests) AS t FROM tocsin_tests), "
            "v AS (SELECT event, posexplode(all) AS (axis, value) FROM (SELECT event, all FROM tocsin_events)) "
            "SELECT count(*) FROM (SELECT event, id, count(*) AS got FROM v JOIN p ON v.axis = p.t.axis AND "
            "v.value = p.t.value GROUP BY event, id) JOIN tocsin_tests USING (id) WHERE got = size(tests)"
        )
        if not common or not free:
            return found
        key = common[0]
        for name in common[1:]:
            key = f"({key} * {self._top} + {name})"
        tests = [f"e.all[s.x{place}] = s.v{place}" for place in range(free)]
        found[COMMON] = (
            f"SELECT /*+ BROADCAST(s) */ count(*) FROM (SELECT all, {key} AS k FROM tocsin_events) e "
            f"JOIN tocsin_tests s ON {' AND '.join(['e.k = s.first', *tests])}"
        )
        keys = ", ".join(
            f"({key} * {len(self._axes)} + {number}) * {self._top} + {name}"
            for number, name in enumerate(self._axes)
            if name not in common
        )
        found[SPREAD] = (
            f"SELECT /*+ BROADCAST(s) */ count(*) FROM (SELECT all, explode(array({keys})) AS k FROM tocsin_events) e "
            f"JOIN tocsin_tests s ON {' AND '.join(['e.k = s.second', *tests[1:]])}"
        )
        return found


def _column(axis: Any, value: Any, number: int) -> pa.Array:
    """Return the value that each subscription wants on an axis, NULL where it does not test it."""
    here = axis == number
    return pa.array(np.where(here, value, 0).sum(axis=1), mask=~here.any(axis=1))


def _lists(axis: Any, value: Any) -> pa.Array:
    """Return the tests of each subscription, as lists of axis and value."""
    offsets = np.arange(len(axis) + 1, dtype=np.int32) * axis.shape[1]
    tests = pa.StructArray.from_arrays([pa.array(axis.ravel()), pa.array(value.ravel())], ["axis", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), tests)


def _write(folder: Path, start: int, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f"{start // FILE_ROWS:04}.parquet")
