"""Matching on Spark against what bounds it: a pass through Python that does nothing, and what plain Spark SQL can do.

All in one run and on the same rows, so that the ratios hold on a busy machine too.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.workloads import WORKLOADS, Workload

FILE_ROWS = 250_000
JOIN_SECONDS = 30.0
"""A join is given four times as many events until it takes at least this long: a small one would be charged for
reading its table of subscriptions."""


class Join(NamedTuple):
    """A formulation in plain SQL: the most events it was given, its rate on those, and the pairs it found."""

    name: str
    events: int
    rate: float
    pairs: int


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
    times_the_best_join: float
    open_milliseconds: float
    index_bytes: int
    private_bytes: int

    def as_rows(self) -> list[tuple[str, object]]:
        """Return names and values for a table."""
        return [(name.replace("_", " "), value) for name, value in asdict(self).items()]


def measure_spark(
    session: Any,
    subscriptions: int = 1_000_000,
    events: int = 2_000_000,
    cores: int = 2,
    workload: str = "W0",
    repetitions: int = 5,
    joins: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> SparkFigures:
    """Measure a workload of equalities on a session of so many cores; each rate is of the median time."""
    from tocsin import spark as ts

    chosen = WORKLOADS[workload]
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder:
        say("writing events and subscriptions as Parquet")
        _write(Path(folder) / "events", (chosen.events(events)), FILE_ROWS)
        _write(Path(folder) / "subscriptions", chosen.expressions(subscriptions), FILE_ROWS)
        frame = session.read.parquet(f"{folder}/events")
        say("building the index")
        started = time.perf_counter()
        ts.build_index(session.read.parquet(f"{folder}/subscriptions"), f"{folder}/index", events_sample=frame)
        build = time.perf_counter() - started
        opened, size, private = _opening(session, f"{folder}/index")
        say("passing rows through Python, and matching them, in turn")
        passes = {
            "bare": lambda: frame.mapInArrow(count_rows, "n bigint").count(),
            "matched": lambda: ts.match(frame, f"{folder}/index").count(),
        }
        seconds, found = _in_turn(repetitions, passes)
        bare, matched, pairs = seconds["bare"], seconds["matched"], found["matched"]
        inside = _seconds_inside(session, frame, f"{folder}/index")
        joined: tuple[Join, ...] = ()
        if joins:
            say("joining in plain SQL")
            table = _columns(chosen, subscriptions)
            _write(Path(folder) / "boxes", table, FILE_ROWS)
            session.read.parquet(f"{folder}/boxes").createOrReplaceTempView("tocsin_boxes")
            joined = _joins(session, table, frame)
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
        times_the_best_join=round(events / matched / max((each.rate for each in joined), default=math.nan), 1),
        open_milliseconds=round(opened * 1000, 1),
        index_bytes=size,
        private_bytes=private,
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


def _opening(session: Any, path: str) -> tuple[float, int, int]:
    """Return the seconds a worker takes to open an index, its bytes, and the private memory it grows by."""
    from tocsin.spark.index import read_index
    from tocsin.spark.remote import ask
    from tocsin.spark.segments import open_matcher

    manifest = read_index(session, path)

    def opened() -> list[float]:
        before = private_bytes()
        started = time.perf_counter()
        held = [open_matcher(path, segment) for segment in manifest.segments]
        seconds = time.perf_counter() - started
        files = [file for file in Path(path).glob("segments/*/matcher/**/*") if file.is_file()]
        return [seconds, sum(file.stat().st_size for file in files), private_bytes() - before, len(held)]

    ask(session, opened)
    seconds, size, private, _ = ask(session, opened)
    return seconds, int(size), int(private)


def private_bytes() -> int:
    """Return the memory that only this process uses: what it shares with others through mapped files is not counted."""
    lines = Path(f"/proc/{os.getpid()}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _joins(session: Any, table: pa.Table, frame: Any) -> tuple[Join, ...]:
    """Return what two formulations did: one that knows which columns all subscriptions test, one that does not."""
    frame_rows = frame.count()
    axes = [name for name in table.column_names if name != "id"]
    always = [name for name in axes if table[name].null_count == 0]
    rest = " AND ".join(f"(s.{name} IS NULL OR s.{name} = e.{name})" for name in axes if name not in always)
    keys = " AND ".join([f"s.{name} = e.{name}" for name in always] or ["TRUE"])
    hashed = f"SELECT count(*) FROM tocsin_events e JOIN tocsin_boxes s ON {keys} AND {rest}"
    stack = ", ".join(f"'{name}', {name}" for name in axes)
    unpivot = f"SELECT {{key}}, stack({len(axes)}, {stack}) AS (axis, value) FROM {{table}}"
    counting = (
        f"WITH p AS (SELECT * FROM ({unpivot.format(key='id', table='tocsin_boxes')}) WHERE value IS NOT NULL), "
        "n AS (SELECT id, count(*) AS wanted FROM p GROUP BY id), "
        f"v AS ({unpivot.format(key='event', table='tocsin_events')}) "
        "SELECT count(*) FROM (SELECT event, p.id, count(*) AS got FROM v JOIN p ON v.axis = p.axis AND "
        "v.value = p.value GROUP BY event, p.id) JOIN n USING (id) WHERE got = wanted"
    )
    found = []
    for name, query in (("hash join on the common columns", hashed), ("join and count", counting)):
        rows, seconds, pairs = 2, 0.0, 0
        while seconds < JOIN_SECONDS and rows < frame_rows:
            rows *= 4
            some = frame.limit(rows).selectExpr("monotonically_increasing_id() AS event", "*").repartition(2)
            some.createOrReplaceTempView("tocsin_events")
            started = time.perf_counter()
            pairs = session.sql(query).collect()[0][0]
            seconds = time.perf_counter() - started
        asked = min(rows, frame_rows)
        found.append(Join(name, asked, round(asked / seconds, 1), pairs))
    return tuple(found)


def _columns(workload: Workload, count: int) -> pa.Table:
    """Return the subscriptions of a workload of equalities as columns, NULL where a column is not tested."""
    numbers, boxes = workload.boxes(count)
    owner = numbers.repeat(boxes.offsets[1:] - boxes.offsets[:-1])
    columns: dict[str, pa.Array] = {"id": pa.array(numbers, pa.int64())}
    for axis in range(workload.axes):
        there = boxes.axis == axis
        values = [None] * count
        for row, value in zip(owner[there].tolist(), boxes.low[there].tolist(), strict=True):
            values[row] = value
        columns[f"a{axis}"] = pa.array(values, pa.int64())
    return pa.table(columns)
