"""What Spark SQL can do with a table of equalities: three plain joins with events, and an index by hand.

From the most general to the most particular. The first works for any table of bounds. The second needs to know that all
subscriptions are equalities; the third, that some columns are tested by all of them. These three are plain: their text
says which pairs are wanted, and Spark chooses how to find them.

The fourth is no plain join. Its text is an access path of our own engine: it makes keys of the two common columns and
one more by arithmetic, for the table beforehand and for every event once a column that is not common, so that an event
becomes thirty rows. Whoever writes it has planned an index for how this one workload was drawn.
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
from tocsin.index import Boxes

FEW = 8
"""Events whose join costs what it costs to read and hash the subscriptions."""

LONG_ENOUGH = 5.0
"""Seconds after which a rate is believed; and they are at least half of what reading and hashing takes."""

NESTED = "nested loop: every subscription with every event"
COUNTING = "join on each test, count those that hold"
COMMON = "hash join on the columns that all test"
BY_HAND = "no plain join: an index by hand, events spread over its keys"

PLAIN = (NESTED, COUNTING, COMMON)


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

    @property
    def is_plain(self) -> bool:
        """Whether its text says what is wanted rather than how to find it."""
        return self.name in PLAIN


class Joins:
    """The subscriptions of a workload of equalities as tables, and the formulations that join them with events."""

    def __init__(self, session: Any, workload: Workload, subscriptions: int, folder: Path, wide: bool) -> None:
        self._session, self._subscriptions = session, subscriptions
        self._axes = [f"a{axis}" for axis in range(workload.axes)]
        numbers, first = next(workload.chunks(subscriptions))  # as drawn there as anywhere else
        self._common = np.flatnonzero(np.bincount(first.axis, minlength=workload.axes) == len(numbers))
        self._top, each = int(first.low.max()) + 1, len(first.axis) // len(numbers)
        for file, (numbers, boxes) in enumerate(workload.chunks(subscriptions)):
            self._write(folder, file, numbers, boxes, wide)
        for name in ("tocsin_tests", *(["tocsin_columns"] if wide else [])):
            session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
        self.queries = self._queries([self._axes[number] for number in self._common], each - len(self._common), wide)

    def measured(self, name: str, frame: Any, rows: int, wanted: int, seconds: float, warm: bool) -> Join | str:
        """Return what a formulation did with the wanted number of events, or more if they are joined at once; why it
        did not finish, where each attempt has so many seconds. ``warm`` says that its plan is compiled already."""
        query, asked = self.queries[name], min(wanted, rows)
        try:
            for _ in range(1 if warm else 2):
                fixed, _ = self._joined(query, frame, min(FEW, rows), rows, seconds)
            believed = max(LONG_ENOUGH, fixed.seconds / 2)
            while True:
                cost, pairs = self._joined(query, frame, asked, rows, seconds)
                free = cost.without(fixed)
                if asked == rows or free.seconds >= believed:
                    break
                asked = min(rows, round(asked * min(32, max(2, 1.5 * believed / free.seconds))))
        except Exception as error:  # out of memory, interrupted or lost, through Py4J: many kinds
            from tocsin.spark.session import reason_of_failure

            return f"within {seconds:g} s: {reason_of_failure(error)[:200]}"
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
        """Return the cost of a formulation for so many of the events, and the number of pairs that it finds.

        It raises TimeoutError, or whatever an interrupted job raises, when it takes longer than it may.
        """
        some = frame if asked == rows else frame.limit(asked).repartition(2)
        numbered = some.selectExpr(
            "monotonically_increasing_id() AS event", f"array({', '.join(self._axes)}) AS all", "*"
        )
        numbered.createOrReplaceTempView("tocsin_events")
        done = threading.Event()

        def interrupt() -> None:
            wait = seconds
            while not done.wait(wait):
                self._session.interruptAll()  # again and again: a query may have several jobs, one after another
                wait = 1.0

        alarm = threading.Thread(target=interrupt, daemon=True)
        alarm.start()
        try:
            cost, found = timed(lambda: int(self._session.sql(query).collect()[0][0]))
        finally:
            done.set()
            alarm.join()
        if cost.seconds > seconds:
            raise TimeoutError(f"it took {cost.seconds:.0f} s")
        return cost, found

    def _write(self, folder: Path, file: int, numbers: Any, boxes: Boxes, wide: bool) -> None:
        """Write some subscriptions: a row of tests each, and where ``wide``, a row of a column for every axis."""
        axis, value = (side.reshape(len(numbers), -1) for side in (boxes.axis, boxes.low))
        tests = self._tests(numbers, axis, value)
        tables = {"tocsin_tests": tests}
        if wide:
            columns = {name: _column(axis, value, number) for number, name in enumerate(self._axes)}
            tables["tocsin_columns"] = {"id": tests["id"]} | columns
        for name, found in tables.items():
            (folder / name).mkdir(exist_ok=True)
            pq.write_table(pa.table(found), folder / name / f"{file:05}.parquet")

    def _tests(self, numbers: Any, axis: Any, value: Any) -> dict[str, pa.Array]:
        """Return columns: all tests as a list; the values of the common columns as one number, ``first``; that with
        one test more, ``second``; the axis and the value of each test of another column."""
        free = ~np.isin(axis, self._common)
        axes, values = (side[free].reshape(len(numbers), -1) for side in (axis, value))
        first = self._packed(value[~free].reshape(len(numbers), -1).T) if not free.all() else np.zeros(len(numbers))
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
        found[BY_HAND] = (
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
