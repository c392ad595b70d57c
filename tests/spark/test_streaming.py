"""Streams: the rows of a batch over the same data, subscriptions that change between batches, recovery."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tests.spark.oracle import EVENT_COLUMNS, frame_of, numbered_events, seeded
from tocsin import spark as ts
from tocsin.errors import SparkError

Pair = tuple[int, int]


def pairs(frame: DataFrame) -> list[Pair]:
    return sorted((row["n"], row["subscription"]) for row in frame.select("n", "subscription").collect())


def run(matched: DataFrame, folder: Path) -> list[dict[str, object]]:
    """Run a stream to the end of what there is; return its progress."""
    query = (
        matched.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def library_pairs(events: pa.Table, subscriptions: dict[int, str]) -> list[Pair]:
    matcher = tocsin.Matcher(tocsin.Space.from_arrow(events.schema))
    table = {
        "id": pa.array(list(subscriptions), pa.int64()),
        "expression": pa.array(list(subscriptions.values()), pa.string()),
    }
    matcher.subscribe_many(pa.table(table))
    found = matcher.match_batch(events)
    numbers = events["n"].take(found["event"]).to_pylist()
    return sorted(zip(numbers, found["subscription"].to_pylist(), strict=True))


def changes(spark: SparkSession, rows: dict[int, str | None]) -> DataFrame:
    return spark.createDataFrame(list(rows.items()), "id bigint, expression string")


def test_a_change_takes_effect_at_the_next_batch_and_a_replay_repeats_the_old_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    generator = seeded("changes")
    events = numbered_events(generator, 40)
    frame = frame_of(spark, events)
    index = str(tmp_path / "index")
    held: dict[int, str] = {1: "n >= 0", 2: "i IS NULL", 3: "n < 30"}
    ts.build_index(changes(spark, dict(held)), index, events_sample=frame)
    frame.where("n < 20").coalesce(1).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(EVENT_COLUMNS).parquet(str(tmp_path / "events"))
    run(ts.match(stream, index), tmp_path)
    first = library_pairs(events.slice(0, 20), held)
    assert pairs(spark.read.parquet(str(tmp_path / "out"))) == first

    version = ts.update_index(changes(spark, {2: None, 3: "n % 2 = 0", 4: "b", 5: "n = 25"}), index)
    assert (version.version, version.refused) == (2, 1)
    changed = {1: "n >= 0", 3: "n < 30", 4: "b", 5: "n = 25"}
    frame.where("n >= 20").coalesce(1).write.mode("append").parquet(str(tmp_path / "events"))
    run(ts.match(stream, index), tmp_path)
    both = sorted(first + library_pairs(events.slice(20), changed))
    assert pairs(spark.read.parquet(str(tmp_path / "out"))) == both

    # The commit of the second batch is lost, as if the driver had died before it; the index has moved on since.
    ts.update_index(changes(spark, {1: None, 6: "n > 20"}), index)
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "out")
    run(ts.match(stream, index), tmp_path)
    replayed = pa.concat_tables([pq.read_table(file) for file in (tmp_path / "out").glob("*.parquet")])
    found = zip(replayed["n"].to_pylist(), replayed["subscription"].to_pylist(), strict=True)
    assert sorted(found) == library_pairs(events.slice(20), changed)


def test_an_empty_stream_ends_with_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    stream = spark.readStream.schema(EVENT_COLUMNS).parquet(str(tmp_path / "events"))
    ts.build_index(changes(spark, {1: "n > 0"}), str(tmp_path / "index"), events_sample=stream)
    run(ts.match(stream, str(tmp_path / "index")), tmp_path)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_stream_of_another_schema_is_refused_on_restart(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    source = spark.readStream.schema("n bigint, price double").parquet(str(tmp_path / "events"))
    ts.build_index(changes(spark, {1: "price > 0"}), str(tmp_path / "index"), events_sample=source)
    run(ts.match(source, str(tmp_path / "index")), tmp_path)
    other = spark.readStream.schema("n bigint, price string").parquet(str(tmp_path / "events"))
    with pytest.raises(SparkError, match="price of the events is text, but the index was built for number"):
        ts.match(other, str(tmp_path / "index"))


def test_subscriptions_of_a_dataframe_are_taken_as_they_are_now(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(5).withColumnRenamed("id", "n")
    frame.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema("n bigint").parquet(str(tmp_path / "events"))
    run(ts.match(stream, changes(spark, {1: "n > 2", 2: "n = 0"})), tmp_path)
    assert pairs(spark.read.parquet(str(tmp_path / "out"))) == [(0, 2), (3, 1), (4, 1)]


def test_refused_events_of_a_stream_have_a_stream_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([(1, "10.0.0.1"), (2, "?")], "n bigint, ip string").write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema("n bigint, ip string").parquet(str(tmp_path / "events"))
    space = tocsin.Space({"n": tocsin.Number("int64"), "ip": tocsin.Address()})
    quarantine = ts.Quarantine()
    matched = ts.match(stream, changes(spark, {1: "ip = '10.0.0.1'"}), space=space, quarantine=quarantine)
    progress = run(matched, tmp_path)
    assert next(iter(progress[-1]["observedMetrics"].values())) == {"matches": 1, "refused": 1, "failed": 0}  # type: ignore[attr-defined]
    run(quarantine.events, tmp_path / "refused")
    (row,) = spark.read.parquet(str(tmp_path / "refused" / "out")).collect()
    assert (row["n"], row["reason"][:9]) == (2, "field ip:")
    with pytest.raises(SparkError, match="in its progress"):
        quarantine.counts  # noqa: B018
