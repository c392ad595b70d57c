"""Matching beside joins in SQL at one size after another, up to the largest that the best of them finishes.

The work of a join for an event grows with the number of subscriptions, that of matching hardly does: how many times as
fast matching is depends on the size, and the largest that a join can finish is where the two belong side by side.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.spark_cost import Cost, in_turn
from tocsin.bench.spark_joins import NESTED, Join, Joins
from tocsin.bench.workloads import Workload

FILE_ROWS = 250_000
FAR_BEHIND = 10
"""A join so many times slower than the best plain one is not tried with more subscriptions: it cannot become the best
there, as the work of both grows with them."""

Say = Callable[[str], None]


class Limits(NamedTuple):
    """How far sizes go: a join finishes a size if it joins so many events in so many seconds; after the standard size
    come these, each larger than the last; none is begun when so many minutes have passed."""

    events: int = 100
    seconds: float = 180.0
    larger: tuple[int, ...] = (5_000_000, 20_000_000)
    minutes: float = 12.0


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
    options: dict[str, Any],
    started: float,
    say: Say,
) -> tuple[Size, ...]:
    """Return the standard size with the joins that finish it, then larger ones as long as the best plain join does.

    ``started`` is when the run was, by `time.perf_counter`.
    """
    sizes = [_joined(session, workload, standard, events, folder, limits, None, say)]
    for count in limits.larger:
        before = sizes[-1].joins
        plain = [join.rate for join in before if join.is_plain]
        if not plain or not _is_alive(session):
            break
        if time.perf_counter() - started > 60 * limits.minutes:
            say(f"{count:,} subscriptions are not begun: {limits.minutes:g} minutes have passed")
            break
        near = [join for join in before if join.rate * FAR_BEHIND >= max(plain)]
        try:
            size = _matched(session, workload, count, events, folder, options, say)
            sizes.append(_joined(session, workload, size, events, folder, limits, near, say))
        except Exception as error:  # what was measured so far is kept, whatever a machine too small for this size does
            say(f"{count:,} subscriptions: not measured: {str(error)[:200]}")
            break
    return tuple(sizes)


def _matched(
    session: Any, workload: Workload, count: int, events: Events, folder: Path, options: dict[str, Any], say: Say
) -> Size:
    """Return a size larger than the standard one: its index built, all events matched."""
    from tocsin import spark as ts

    place = folder / f"size-{count}"
    place.mkdir()
    say(f"{count:,} subscriptions: building the index and matching")
    seconds = build(session, workload, count, events, place, **options)
    path = f"{place}/index"
    costs, pairs = in_turn(2, 1, {"match": lambda: ts.match(events.frame, path).count()})
    size = size_of(count, seconds, Path(path), events, costs["match"], pairs["match"])
    say(size.told())
    shutil.rmtree(place)
    return size


def _joined(
    session: Any,
    workload: Workload,
    size: Size,
    events: Events,
    folder: Path,
    limits: Limits,
    before: list[Join] | None,
    say: Say,
) -> Size:
    """Return a size with the joins that finish it: all, or those of a smaller size, which say how many events take
    long enough."""
    place = folder / f"joins-{size.subscriptions}"
    place.mkdir()
    joins = Joins(
        session, workload, size.subscriptions, place, before is None or NESTED in [one.name for one in before]
    )
    wanted = dict.fromkeys(joins.queries, limits.events)
    if before is not None:
        wanted = {one.name: one.events * one.subscriptions // size.subscriptions for one in before}
    found: list[Join] = []
    unfinished = []
    for name, asked in wanted.items():
        say(f"{size.subscriptions:,} subscriptions: {name}")
        least = max(asked, limits.events)
        answer = joins.measured(name, events.frame, events.rows, least, limits.seconds, before is not None)
        say(size.compared(answer) if isinstance(answer, Join) else f"not finished: {answer}")
        if isinstance(answer, Join):
            found.append(answer)
        else:
            unfinished.append((name, answer))
    shutil.rmtree(place)
    return size._replace(joins=tuple(found), unfinished=tuple(unfinished))


def largest(sizes: tuple[Size, ...]) -> list[tuple[Size, Join]]:
    """Return each join that finished any size, with the largest that it finished."""
    found: dict[str, tuple[Size, Join]] = {}
    for size in sorted(sizes):
        found |= {join.name: (size, join) for join in size.joins}
    return list(found.values())


def best_plain(sizes: tuple[Size, ...]) -> tuple[Size, Join] | None:
    """Return the best plain join at the largest size that any plain join finishes."""
    found = [(size, join) for size in sizes for join in size.joins if join.is_plain]
    return max(found, key=lambda each: (each[0].subscriptions, each[1].rate), default=None)


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
