"""The same rows from the library, a batch, a stream, and from an index of shards: on many random spaces at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tests.spark.spaces import Spaces, seeded_spaces
from tocsin import spark as ts
from tocsin.spark.manifest import read_manifest

SEED = int(os.environ.get("TOCSIN_SEED", "4"))
SPACES, EXPRESSIONS, ROWS = 8, 180, 80

Pair = tuple[int, int]


def pairs(frame: DataFrame) -> list[Pair]:
    table = frame.select("n", "subscription").toArrow()
    return sorted(zip(table["n"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def library_pairs(space: tocsin.Space, events: pa.Table, held: dict[int, str]) -> list[Pair]:
    matcher = tocsin.Matcher(space)
    matcher.subscribe_many(pa.table({"id": list(held), "expression": list(held.values())}))
    found = matcher.match_batch(events)
    numbers = events["n"].take(found["event"]).to_pylist()
    return sorted(zip(numbers, found["subscription"].to_pylist(), strict=True))


def drawn_subscriptions(spaces: Spaces, space: tocsin.Space, count: int) -> dict[int, str]:
    """Return expressions that the space takes; nearly all that are drawn must be among them."""
    texts = [spaces.expression() for _ in range(count)]
    problems: list[tocsin.matcher.Problem] = []
    tocsin.Matcher(space).subscribe_many(pa.table({"id": range(count), "expression": texts}), problems=problems)
    assert len(problems) < count // 20, problems[0].error
    refused = {problem.row for problem in problems}
    return {number: text for number, text in enumerate(texts) if number not in refused}


def table_of(spark: SparkSession, rows: dict[int, str | None]) -> DataFrame:
    kinds = [("id", pa.int64()), ("expression", pa.string())]
    return spark.createDataFrame(
        pa.table(
            {name: pa.array(list(side), kind) for (name, kind), side in zip(kinds, (rows, rows.values()), strict=True)}
        )
    )


def streamed(matched: DataFrame, folder: Path) -> int:
    """Run a stream to the end of what there is; return how many matches its progress counts."""
    query = (
        matched.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    steps = [json.loads(step.json) for step in query.recentProgress]
    return sum(metrics["matches"] for step in steps for metrics in (step["observedMetrics"] or {}).values())


def check(spark: SparkSession, folder: Path, seed: object) -> None:
    spaces = seeded_spaces("same rows", seed, count=SPACES)
    events = spaces.events(ROWS)
    space = tocsin.Space.from_arrow(events.schema)
    held = drawn_subscriptions(spaces, space, EXPRESSIONS)
    frame = spark.createDataFrame(events, spaces.ddl).coalesce(2).cache()
    plain, shards = str(folder / "plain"), str(folder / "shards")
    half = {id: text for id, text in held.items() if id % 2}
    for path, options in ((plain, {"segment_rows": 100}), (shards, {"shards": 3})):
        ts.build_index(table_of(spark, dict(half)), path, events_sample=frame, bad="error", **options)  # type: ignore[arg-type]
    assert {segment.shard for segment in read_manifest(shards).segments} == {0, 1, 2}
    expected = library_pairs(space, events, half)
    assert len(expected) > EXPRESSIONS
    assert pairs(ts.match(frame, plain)) == expected
    assert pairs(ts.match(frame, shards)) == expected

    changes: dict[int, str | None] = dict.fromkeys(list(half)[::7])
    changes |= {id: text for id, text in held.items() if not id % 2}
    changes |= {id: held[id - 1] for id in list(half)[1::7] if id - 1 in held}
    now = {id: text for id, text in (half | changes).items() if text is not None}
    later = library_pairs(space, events, now)
    stream = None
    for path in (plain, shards):
        assert ts.update_index(table_of(spark, changes), path, bad="error").subscriptions == len(now)
        if stream is None:
            frame.write.parquet(str(folder / "events"))
            stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/events")
        assert streamed(ts.match(stream, path), Path(f"{path}-stream")) == len(later)
        assert pairs(spark.read.parquet(f"{path}-stream/out")) == later
    arrays = ts.match(frame, shards, output="array").select("n", "subscription").toArrow().to_pylist()
    assert len(arrays) == ROWS
    assert sorted((row["n"], id) for row in arrays for id in row["subscription"]) == later
    assert pairs(ts.match(frame, shards, version=1)) == expected
    frame.unpersist()


def test_library_batch_stream_and_shards_give_the_same_pairs(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_more_spaces_give_the_same_pairs(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed)
