"""Matching on Spark against what bounds it: a pass through Python that does nothing, and what plain Spark SQL can do.

All in one run and on the same rows, so that the ratios hold on a busy machine too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.bench.spark_cost import in_turn
from tocsin.bench.spark_sizes import Events, Limits, Say, Size, build, largest, measure_sizes, size_of, write_table
from tocsin.bench.spark_workers import Workers, measure_workers
from tocsin.bench.workloads import WORKLOADS, Workload


@dataclass(frozen=True)
class SparkFigures:
    """What one run measured. Rates are events a second, from Parquet to a count."""

    workload: str
    events: int
    cores: int
    bare_rate: float
    bare_processor: float
    share_of_bare: float
    share_in_our_code: float
    workers: Workers
    sizes: tuple[Size, ...]
    """The first is the standard one."""
    seconds: float
    """How long all of it took."""

    @property
    def standard(self) -> Size:
        """The size at which all was measured."""
        return self.sizes[0]

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["workers"] = self.workers._asdict() | {"host_share": self.workers.host_share}
        plain["sizes"] = [
            size._asdict()
            | {"joins": [join._asdict() | {"matching_is_times": size.times(join)} for join in size.joins]}
            for size in self.sizes
        ]
        return plain

    def as_rows(self) -> list[tuple[str, object]]:
        """Return names and values for a table."""
        at, workers = self.standard, self.workers
        rows: list[tuple[str, object]] = [
            ("workload", self.workload),
            ("events", self.events),
            ("cores", self.cores),
            ("subscriptions", at.subscriptions),
            ("pairs", at.pairs),
            ("seconds to build the index", at.build_seconds),
            ("bare pass, events/s", self.bare_rate),
            ("matching, events/s", at.rate),
            ("bare pass, processors' µs an event", self.bare_processor),
            ("matching, processors' µs an event", at.processor),
            ("matching as a share of the bare pass", self.share_of_bare),
            ("share of the processors' time in our code", self.share_in_our_code),
            ("index, bytes", workers.index_bytes),
            ("a worker opens it in, ms", workers.open_milliseconds),
            ("of those on a processor, ms", workers.open_processor_milliseconds),
            ("a worker grows by, private bytes", workers.own_bytes),
            (f"{workers.workers} workers grow by, bytes", workers.host_bytes),
            ("their growth as a share of the index", workers.host_share),
        ]
        for size in self.sizes:
            rows.append((f"{size.subscriptions:,} subscriptions", size.told()))
            rows += [(f"  {join.name}", size.compared(join)) for join in size.joins]
            rows += [(f"  {join}", f"did not finish: {why}") for join, why in size.unfinished]
        rows += [
            (f"largest finished, {join.name}", f"{size.subscriptions:,} subscriptions; {size.compared(join)}")
            for size, join in largest(self.sizes)
        ]
        return [*rows, ("seconds for all of this", self.seconds)]


def measure_spark(
    session: Any,
    subscriptions: int = 1_000_000,
    events: int = 2_000_000,
    cores: int = 2,
    workload: Workload = WORKLOADS["W0"],
    repetitions: int = 3,
    limits: Limits | None = None,
    segment_rows: int | None = None,
    shards: int = 1,
    say: Say = lambda text: None,
) -> SparkFigures:
    """Measure a workload of equalities on a session of so many cores; each cost is the median.

    With ``limits``, joins in SQL are measured too, at this size and at larger ones.
    """
    from tocsin import spark as ts

    started = time.perf_counter()
    options = {"segment_rows": segment_rows, "shards": shards}
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as name:
        folder = Path(name)
        say("writing events as Parquet")
        write_table(folder / "events", workload.events(events))
        given = Events(session.read.parquet(f"{folder}/events"), events)
        say("building the index")
        seconds = build(session, workload, subscriptions, given, folder, **options)
        path = f"{folder}/index"
        say("opening it in all workers at once")
        workers = measure_workers(session, given, path, cores)
        say("passing rows through Python, and matching them, in turn")
        passes = {
            "bare": lambda: given.frame.mapInArrow(count_rows, "n bigint").count(),
            "matched": lambda: ts.match(given.frame, path).count(),
        }
        costs, found = in_turn(repetitions, 2, passes)
        bare, matched = costs["bare"], costs["matched"]
        inside = _seconds_inside(session, given.frame, path)
        sizes: tuple[Size, ...] = (size_of(subscriptions, seconds, Path(path), given, matched, found["matched"]),)
        say(f"a bare pass {round(events / bare.seconds):,} events/s, {sizes[0].told()}, {workers}")
        if limits is not None:
            sizes = measure_sizes(session, workload, sizes[0], given, folder, limits, options, started, say)
    return SparkFigures(
        workload=workload.name,
        events=events,
        cores=cores,
        bare_rate=round(events / bare.seconds),
        bare_processor=round(1e6 * bare.processor / events, 2),
        share_of_bare=round(bare.seconds / matched.seconds, 3),
        share_in_our_code=round(inside / matched.processor, 3),
        workers=workers,
        sizes=sizes,
        seconds=round(time.perf_counter() - started, 1),
    )


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take every batch and give back its number of rows: the least that a pass through Python can do."""
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": pa.array([batch.num_rows], pa.int64())})


def _seconds_inside(session: Any, frame: Any, path: str) -> float:
    """Return the seconds of processors that all tasks together spend in our code during one match."""
    from tocsin.spark.index import read_index
    from tocsin.spark.quarantine import manifest_id_type
    from tocsin.spark.schema import arrow_type
    from tocsin.spark.workers import Matching, Version

    manifest = read_index(session, path)
    kind = arrow_type(manifest_id_type(manifest))
    version = Version(path, manifest.build, manifest.pin, manifest.id_type)
    matching = Matching(version, kind, "subscription", False, "error")

    def timed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outside = 0.0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal outside
            waiting = time.process_time()
            for batch in batches:
                outside += time.process_time() - waiting
                yield batch
                waiting = time.process_time()
            outside += time.process_time() - waiting

        started = time.process_time()
        for _ in matching(counted()):
            pass
        yield pa.RecordBatch.from_pydict({"seconds": [time.process_time() - started - outside]})

    return float(sum(row["seconds"] for row in frame.mapInArrow(timed, "seconds double").collect()))
