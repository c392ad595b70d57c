"""An index that another has replaced under the same path: nothing answers from the one that is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tests.spark.test_streaming import run
from tocsin import spark as ts
from tocsin.errors import SavedIndexError
from tocsin.spark.manifest import read_manifest
from tocsin.spark.records import version_of_batch

SPACE = tocsin.Space({"n": tocsin.Number("int64")})


def subscriptions(spark: SparkSession, kind: str, *ids: object) -> DataFrame:
    return spark.createDataFrame([(id, "n >= 0") for id in ids], f"id {kind}, expression string")


def events(spark: SparkSession) -> DataFrame:
    return spark.range(2).withColumnRenamed("id", "n").coalesce(1)


def found(frame: DataFrame) -> list[object]:
    return sorted({row["subscription"] for row in frame.collect()})


@pytest.mark.parametrize("shards", [1, 2])
def test_a_directory_built_anew_or_swapped_is_answered_from(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    path, other = str(tmp_path / "index"), str(tmp_path / "other")
    ts.build_index(subscriptions(spark, "bigint", 1, 2), path, space=SPACE, shards=shards)
    ts.build_index(subscriptions(spark, "bigint", 5, 6), other, space=SPACE, shards=shards)
    assert found(ts.match(events(spark), path)) == [1, 2]
    made_before = ts.match(events(spark), path)
    Path(path).rename(tmp_path / "old")
    Path(other).rename(path)
    assert found(ts.match(events(spark), path)) == [5, 6]
    shutil.rmtree(path)
    made = ts.build_index(subscriptions(spark, "string", "a", "b"), path, space=SPACE, shards=shards)
    assert made.version == 1
    assert found(ts.match(events(spark), path)) == ["a", "b"]
    try:  # a worker that still has the old one open gives its rows, another says that it is gone
        assert found(made_before) == [1, 2]
    except PySparkException as error:
        assert f"the index {path} was replaced by another" in str(error)


def test_a_stream_refuses_an_index_that_took_the_place_of_its_own_and_goes_on_when_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "index")
    ts.build_index(subscriptions(spark, "bigint", 1), path, space=SPACE)
    events(spark).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema("n bigint").parquet(str(tmp_path / "events"))
    matched = ts.match(stream, path)
    run(matched, tmp_path)
    events(spark).write.mode("append").parquet(str(tmp_path / "events"))
    shutil.rmtree(path)
    ts.build_index(subscriptions(spark, "string", "a"), path, space=SPACE)
    with pytest.raises(PySparkException, match=f"SavedIndexError: the index {path} was replaced by another"):
        run(matched, tmp_path)
    shutil.rmtree(path)
    ts.build_index(subscriptions(spark, "bigint", 7), path, space=SPACE)
    run(ts.match(stream, path), tmp_path)
    assert found(spark.read.parquet(str(tmp_path / "out"))) == [1, 7]


def test_a_build_over_an_index_is_a_version_that_a_stream_takes_at_its_next_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "index")
    ts.build_index(subscriptions(spark, "bigint", 1), path, space=SPACE)
    first = read_manifest(path)
    assert version_of_batch(path, first.build, "query", 0) == first.pin
    ts.build_index(subscriptions(spark, "bigint", 2), path, space=SPACE, overwrite=True)
    second = read_manifest(path)
    assert version_of_batch(path, first.build, "query", 0) == first.pin
    assert version_of_batch(path, first.build, "query", 1) == second.pin
    with pytest.raises(SavedIndexError, match="was replaced by another"):
        read_manifest(path, 2, first.identity)


def test_stored_publications_say_that_their_index_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    options = {"key": "n", "state": tmp_path / "state", "buckets": 1}
    ts.build_index(subscriptions(spark, "bigint", 1), path, space=SPACE)
    assert ts.transitions(events(spark), path, batch=0, **options).count() == 2  # type: ignore[arg-type]
    shutil.rmtree(path)
    ts.build_index(subscriptions(spark, "bigint", 9), path, space=SPACE)
    with pytest.raises(PySparkException, match=r"last matched with version 1 of .*was replaced by another"):
        ts.transitions(events(spark), path, batch=1, **options).collect()  # type: ignore[arg-type]


def test_a_directory_that_is_no_index_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    events(spark).write.parquet(path)
    for overwrite in (True, False):
        with pytest.raises(SavedIndexError, match=r"holds something else than an index \(.*\); nothing was written"):
            ts.build_index(subscriptions(spark, "bigint", 1), path, space=SPACE, overwrite=overwrite)
    assert spark.read.parquet(path).count() == 2
    with pytest.raises(SavedIndexError, match="is no directory"):
        ts.build_index(subscriptions(spark, "bigint", 1), __file__, space=SPACE, overwrite=True)
    (tmp_path / "empty").mkdir()
    assert ts.build_index(subscriptions(spark, "bigint", 1), str(tmp_path / "empty"), space=SPACE).version == 1
