"""A driver killed with -9 at random points and started again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tocsin
from tests.spark.killing import batch_files, run_with_kills
from tests.spark.oracle import frame_of, numbered_events, seeded
from tocsin import spark as ts
from tocsin.spark.manifest import read_manifest
from tocsin.spark.segments import read_subscriptions

FILES, ROWS = 12, 40


def expected(folder: Path, events: pa.Table) -> list[tuple[int, int]]:
    """Return the pairs of every batch with the version of the index that it recorded."""
    (query,) = (folder / "index" / "streams").iterdir()
    found = []
    for record in query.iterdir():
        manifest = read_manifest(str(folder / "index"), int(record.read_text().split()[0]))
        matcher = tocsin.Matcher(manifest.read_space())
        for segment in manifest.segments:
            matcher.subscribe_many(read_subscriptions(str(folder / "index"), segment))
        for batch in batch_files(folder, int(record.name)):
            rows = pq.read_table(batch, columns=["n"])["n"].to_pylist()
            table = events.take(pa.array(rows))
            pairs = matcher.match_batch(table)
            found += zip(table["n"].take(pairs["event"]).to_pylist(), pairs["subscription"].to_pylist(), strict=True)
    return sorted(found)


def check(spark: SparkSession, folder: Path, kills: int, seed: int) -> None:
    pick = random.Random(seed)
    generator = seeded("kills", seed)
    events = numbered_events(generator, FILES * ROWS)
    frame = frame_of(spark, events)
    (folder / "events").mkdir()
    for number in range(FILES):
        pq.write_table(events.slice(number * ROWS, ROWS), folder / "events" / f"{number:02}.parquet")
    rows = [(n, generator.expression().spark) for n in range(40)]
    index = str(folder / "index")
    ts.build_index(spark.createDataFrame(rows, "id bigint, expression string"), index, events_sample=frame)

    def change() -> None:
        row = pick.randrange(40), generator.expression().spark
        ts.update_index(spark.createDataFrame([row], "id bigint, expression string"), index)

    run_with_kills("tests.spark.stream_driver", folder, kills, pick, change)
    found = spark.read.parquet(str(folder / "out")).select("n", "subscription").collect()
    pairs = sorted((row["n"], row["subscription"]) for row in found)
    wanted = expected(folder, events)
    assert len({n for n, _ in wanted}) > FILES * ROWS // 2
    assert pairs == wanted, f"seed {seed}: {len(pairs)} pairs, {len(wanted)} expected"


def test_two_kills_lose_nothing_and_double_nothing(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_eighteen_kills_lose_nothing_and_double_nothing(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, 3, seed)
