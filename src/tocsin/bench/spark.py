"""Matching on Spark against what bounds it: a pass through Python that does nothing, and what plain Spark SQL can do.

All in one run and on the same rows, so that the ratios hold on a busy machine too.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.spark_joins import FILE_ROWS, Join, measure_joins
from tocsin.bench.workloads import WORKLOADS

EVENTS_TO_OPEN = 16_384
"""Events that a worker matches before its memory is measured."""


@dataclass(frozen=True)
class SparkFigures:
    """What one run measured. Rates are rows of events a second, from Parquet to a count."""

    workload: str
    subscriptions: int
    events: int
    cores: int
    pairs: int
    build_seconds: float
    bare_rate: float
    match_rate: float
    share_of_bare: float
    share_in_our_code: float
    joins: tuple[Join, ...]
    open_milliseconds: float
    index_bytes: int
    own_bytes: int
    resident_share: float

    @property
    def times_the_joins(self) -> list[float]:
        """How many times the rate of each join the rate of matching is."""
        return [round(self.match_rate / join.rate, 1) for join in self.joins]

    def as_rows(self) -> list[tuple[str, object]]:
        """Return names and values for a table."""
        rows = [(name.replace("_", " "), value) for name, value in asdict(self).items() if name != "joins"]
        for join, times in zip(self.joins, self.times_the_joins, strict=True):
            size = f"{join.events:,} events in {join.seconds:,} s"
            rows.append((join.name, f"{join.rate:,} events/s ({size}); matching is {times:,} times that"))
        return rows


def measure_spark(
    session: Any,
    subscriptions: int = 1_000_000,
    events: int = 2_000_000,
    cores: int = 2,
    workload: str = "W0",
    repetitions: int = 5,
    join_seconds: float = 30.0,
    segment_rows: int | None = None,
    shards: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> SparkFigures:
    """Measure a workload of equalities on a session of so many cores; each rate is of the median time.

    Each join is given more events until it takes ``join_seconds``; with 0 there are none.
    """
    from tocsin import spark as ts

    chosen = WORKLOADS[workload]
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder:
        say("writing events and subscriptions as Parquet")
        _write(Path(folder) / "events", (chosen.events(events)), FILE_ROWS)
        _write(Path(folder) / "subscriptions", chosen.expressions(subscriptions), FILE_ROWS)
        frame = session.read.parquet(f"{folder}/events")
        say("building the index")
        started = time.perf_counter()
        table = session.read.parquet(f"{folder}/subscriptions")
        path = f"{folder}/index"
        ts.build_index(table, path, events_sample=frame, segment_rows=segment_rows, shards=shards)
        build = time.perf_counter() - started
        opened, size, own, resident = _opening(session, frame, path)
        say("passing rows through Python, and matching them, in turn")
        passes = {
            "bare": lambda: frame.mapInArrow(count_rows, "n bigint").count(),
            "matched": lambda: ts.match(frame, f"{folder}/index").count(),
        }
        seconds, found = _in_turn(repetitions, passes)
        bare, matched, pairs = seconds["bare"], seconds["matched"], found["matched"]
        inside = _seconds_inside(session, frame, path)
        joined: tuple[Join, ...] = ()
        if join_seconds:
            joined = measure_joins(session, chosen, subscriptions, frame, Path(folder), join_seconds, say)
    return SparkFigures(
        workload=workload,
        subscriptions=subscriptions,
        events=events,
        cores=cores,
        pairs=pairs,
        build_seconds=round(build, 2),
        bare_rate=round(events / bare),
        match_rate=round(events / matched),
        share_of_bare=round(bare / matched, 3),
        share_in_our_code=round(inside / (cores * matched), 3),
        joins=joined,
        open_milliseconds=round(opened * 1000, 1),
        index_bytes=size,
        own_bytes=own,
        resident_share=round(resident / size, 3),
    )


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take every batch and give back its number of rows: the least that a pass through Python can do."""
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": pa.array([batch.num_rows], pa.int64())})


def _write(folder: Path, table: pa.Table, rows: int) -> None:
    folder.mkdir()
    for number, start in enumerate(range(0, len(table), rows)):
        pq.write_table(table.slice(start, rows), folder / f"{number:04}.parquet")


def _in_turn(repetitions: int, actions: dict[str, Callable[[], int]]) -> tuple[dict[str, float], dict[str, int]]:
    """Return the median seconds of each action, and what it returned, after two runs of all that warm up.

    The actions take turns: one that ran before the other would meet a colder Java and another load of the machine.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    found = {}
    for _ in range(repetitions + 2):
        for name, action in actions.items():
            started = time.perf_counter()
            found[name] = action()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(each[2:]) for name, each in times.items()}, found


def _seconds_inside(session: Any, frame: Any, path: str) -> float:
    """Return the seconds that all tasks together spend in our code during one match."""
    from tocsin.spark.index import read_index
    from tocsin.spark.quarantine import manifest_id_type
    from tocsin.spark.schema import arrow_type
    from tocsin.spark.workers import Matching, Version

    manifest = read_index(session, path)
    kind = arrow_type(manifest_id_type(manifest))
    matching = Matching(Version(path, manifest.version, manifest.id_type), kind, "subscription", False, "error")

    def timed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outside = 0.0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal outside
            waiting = time.perf_counter()
            for batch in batches:
                outside += time.perf_counter() - waiting
                yield batch
                waiting = time.perf_counter()
            outside += time.perf_counter() - waiting

        started = time.perf_counter()
        for _ in matching(counted()):
            pass
        yield pa.RecordBatch.from_pydict({"seconds": [time.perf_counter() - started - outside]})

    return float(sum(row["seconds"] for row in frame.mapInArrow(timed, "seconds double").collect()))


def _opening(session: Any, frame: Any, path: str) -> tuple[float, int, int, int]:
    """Return the seconds a worker takes to open an index, the index's bytes, and by how many the worker has grown when
    it has matched some events: of its own, and with the pages of mapped files that it shares with others."""
    from tocsin.spark.index import read_index
    from tocsin.spark.remote import ask
    from tocsin.spark.segments import open_matcher

    manifest = read_index(session, path)
    some = frame.limit(EVENTS_TO_OPEN).toArrow()

    def opened() -> list[float]:
        def held() -> list[Any]:
            return [open_matcher(path, segment) for segment in manifest.segments]

        def used(matchers: list[Any]) -> list[Any]:
            for matcher in matchers:
                matcher.match_batch(some)
            return matchers

        first = used(held())  # reads the kernels; it stays, so that what it used is not used again
        before = memory()
        started = time.perf_counter()
        second = held()
        seconds = time.perf_counter() - started
        used(second)
        own, resident = (after - start for start, after in zip(before, memory(), strict=True))
        del first, second
        files = [file for file in Path(path).glob("segments/*/matcher/**/*") if file.is_file()]
        return [seconds, sum(file.stat().st_size for file in files), own, resident]

    seconds, size, own, resident = ask(session, opened)
    return seconds, int(size), int(own), int(resident)


def memory() -> tuple[int, int]:
    """Return the bytes of this process that no file backs, and all that are resident."""
    lines = Path(f"/proc/{os.getpid()}/smaps_rollup").read_text().splitlines()
    found = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines[1:] if len(line.split()) > 1}
    return found["Anonymous:"], found["Rss:"]
