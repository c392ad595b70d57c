"""Matching beside joins in plain SQL at one size after another, up to the largest that each join finishes.

The work of a join for an event grows with the number of subscriptions, that of matching hardly does: how many times as
fast matching is depends on the size, and the largest that a join can finish is where the two belong side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.spark_cost import Cost, in_turn
from tocsin.bench.spark_joins import FILE_ROWS, NESTED, Join, Joins
from tocsin.bench.workloads import Workload

LEAST_SIZE = 1_000
Say = Callable[[str], None]


class Limits(NamedTuple):
    """How far sizes go: a join finishes a size if it joins so many events in so many seconds; the next size is so many
    times the last; none has more than so many subscriptions."""

    events: int = 100_000
    seconds: float = 120.0
    step: float = 2.0
    most: int = 8_000_000


class Size(NamedTuple):
    """So many subscriptions: what it took to index them, how fast events are matched, and the joins that finished."""

    subscriptions: int
    build_seconds: float
    index_bytes: int
    rate: float
    processor: float
    """Microseconds of processors an event."""
    pairs: int
    joins: tuple[Join, ...] = ()
    unfinished: tuple[tuple[str, str], ...] = ()
    """Names of joins that did not finish here, and why."""

    def times(self, join: Join) -> tuple[float, float]:
        """Return how many times as fast as a join matching is: by the clock, and by the processors' time."""
        return round(self.rate / join.rate, 1), round(join.processor / self.processor, 1)

    def compared(self, join: Join) -> str:
        """Return a join in words, beside matching."""
        clock, processor = self.times(join)
        return (
            f"{join.rate:,} events/s, {join.processor:,} µs an event ({join.events:,} events in {join.seconds:,} s); "
            f"matching is {clock:,} times as fast by the clock, {processor:,} by the processors' time"
        )

    def told(self) -> str:
        """Return in words what it took to index and to match."""
        return (
            f"built in {self.build_seconds:,} s, {self.index_bytes / 1e6:,.0f} MB; matching {self.rate:,} events/s, "
            f"{self.processor} µs of processors an event"
        )


class Events(NamedTuple):
    """Events as Spark reads them, and how many they are."""

    frame: Any
    rows: int


def build(session: Any, workload: Workload, count: int, events: Events, folder: Path, **options: Any) -> float:
    """Write the subscriptions of a workload as a table, index them at ``folder/index``; return the seconds that the
    index took."""
    from tocsin import spark as ts

    write_table(folder / "subscriptions", workload.expressions(count))
    started = time.perf_counter()
    table = session.read.parquet(f"{folder}/subscriptions")
    ts.build_index(table, f"{folder}/index", events_sample=events.frame, **options)
    return round(time.perf_counter() - started, 2)


def size_of(count: int, seconds: float, path: Path, events: Events, cost: Cost, pairs: int) -> Size:
    """Return a size whose index and matching have been measured."""
    rate, processor = round(events.rows / cost.seconds), round(1e6 * cost.processor / events.rows, 2)
    return Size(count, seconds, index_bytes(path), rate, processor, pairs)


def measure_sizes(
    session: Any,
    workload: Workload,
    standard: Size,
    events: Events,
    folder: Path,
    limits: Limits,
    repetitions: int,
    options: dict[str, Any],
    say: Say,
) -> tuple[Size, ...]:
    """Return the standard size with the joins that finish it, then larger sizes as long as any does, then smaller ones
    for those that did not finish the standard one."""
    from tocsin import spark as ts

    def joined(size: Size, names: list[str] | None) -> Size:
        place = folder / f"joins-{size.subscriptions}"
        place.mkdir()
        joins = Joins(session, workload, size.subscriptions, place, names is None or NESTED in names)
        found: list[Join] = []
        unfinished = []
        for name in joins.queries if names is None else names:
            say(f"{size.subscriptions:,} subscriptions: {name}")
            answer = joins.measured(name, events.frame, events.rows, limits.events, limits.seconds)
            say(size.compared(answer) if isinstance(answer, Join) else f"not finished: {answer}")
            if isinstance(answer, Join):
                found.append(answer)
            else:
                unfinished.append((name, answer))
        return size._replace(joins=tuple(found), unfinished=tuple(unfinished))

    def measured(count: int, names: list[str]) -> Size:
        place = folder / f"size-{count}"
        place.mkdir()
        say(f"{count:,} subscriptions: building the index and matching")
        seconds = build(session, workload, count, events, place, **options)
        path = f"{place}/index"
        costs, pairs = in_turn(repetitions, {"match": lambda: ts.match(events.frame, path).count()})
        size = size_of(count, seconds, Path(path), events, costs["match"], pairs["match"])
        say(size.told())
        return joined(size, names)

    sizes = [joined(standard, None)]
    for names, factor in (
        ([join.name for join in sizes[0].joins], limits.step),
        ([name for name, _ in sizes[0].unfinished], 1 / limits.step),
    ):
        count, left = round(standard.subscriptions * factor), names
        while left and LEAST_SIZE <= count <= limits.most and _is_alive(session):
            sizes.append(measured(count, left))
            finished = [join.name for join in sizes[-1].joins]
            left = finished if factor > 1 else [name for name in left if name not in finished]
            count = round(count * factor)
    return tuple(sizes)


def largest(sizes: tuple[Size, ...]) -> list[tuple[Size, Join]]:
    """Return each join that finished any size, with the largest that it finished."""
    found: dict[str, tuple[Size, Join]] = {}
    for size in sorted(sizes):
        found |= {join.name: (size, join) for join in size.joins}
    return list(found.values())


def index_bytes(path: Path) -> int:
    """Return the bytes of the files that workers map."""
    return sum(file.stat().st_size for file in path.glob("segments/*/matcher/**/*") if file.is_file())


def write_table(folder: Path, table: pa.Table) -> None:
    """Write a table as a directory of Parquet files."""
    folder.mkdir()
    for number, start in enumerate(range(0, len(table), FILE_ROWS)):
        pq.write_table(table.slice(start, FILE_ROWS), folder / f"{number:04}.parquet")


def _is_alive(session: Any) -> bool:
    """Return whether a session still answers: a join that uses up the memory of Java may end it."""
    try:
        return bool(session.range(1).count())
    except Exception:  # what a lost Java raises comes through Py4J in many kinds
        return False
