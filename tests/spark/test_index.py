"""Indexes on disk: versions, changes, merges, and writers that meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin import spark as ts
from tocsin.errors import (
    DuplicateSubscriptionError,
    MissingColumnError,
    OptionError,
    SavedIndexError,
    SpaceError,
    SparkError,
    SubscriptionError,
)
from tocsin.spark.changes import MOST_SEGMENTS, apply_changes
from tocsin.spark.manifest import Manifest, commit, read_manifest, succeed
from tocsin.spark.records import version_of_batch

SPACE = tocsin.Space({"n": tocsin.Number("int64")})


def changes(spark: SparkSession, *rows: tuple[object, ...], columns: str = "id bigint, expression string") -> DataFrame:
    return spark.createDataFrame(list(rows), columns)


def ids(spark: SparkSession, path: str, n: int, version: int | None = None) -> list[int]:
    found = ts.match(spark.range(n, n + 1).withColumnRenamed("id", "n"), path, version=version)
    return sorted(row["subscription"] for row in found.collect())


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    ts.build_index(changes(spark, (1, "n > 0"), (2, "n > 10"), (3, "n < 5")), str(tmp_path / "index"), space=SPACE)
    return str(tmp_path / "index")


def test_changes_make_a_new_version_and_leave_the_old_one(spark: SparkSession, path: str) -> None:
    made = ts.update_index(changes(spark, (1, None), (2, "n = 7"), (4, "n = 3"), (99, None)), path)
    assert (made.version, made.subscriptions) == (2, 3)
    assert ids(spark, path, 7) == [2]
    assert ids(spark, path, 3) == [3, 4]
    assert ids(spark, path, 7, version=1) == [1]
    with pytest.raises(SavedIndexError, match="has no version 9"):
        ids(spark, path, 7, version=9)


def test_a_bad_change_leaves_what_was_there(spark: SparkSession, path: str) -> None:
    with pytest.warns(ts.TocsinWarning, match="1 of 2 subscriptions are bad"):
        made = ts.update_index(changes(spark, (1, "m > 0"), (4, "n = 1")), path)
    assert (made.version, made.subscriptions, made.refused) == (2, 4, 1)
    assert ids(spark, path, 1) == [1, 3, 4]
    with pytest.raises(SubscriptionError, match="1 of the changes are bad; none was made"):
        ts.update_index(changes(spark, (1, "m > 0"), (4, None)), path, bad="error")
    assert ids(spark, path, 1) == [1, 3, 4]


def test_several_changes_of_one_id_need_an_order(spark: SparkSession, path: str) -> None:
    rows = changes(
        spark,
        (1, "n = 1", 3),
        (1, None, 1),
        (2, "n = 2", 1),
        (2, None, 2),
        columns="id bigint, expression string, at int",
    )
    with pytest.raises(DuplicateSubscriptionError, match="several changes of one id: 1"):
        ts.update_index(rows, path)
    ts.update_index(rows, path, order="at")
    assert (ids(spark, path, 1), ids(spark, path, 20)) == ([1, 3], [])


def test_a_change_without_its_order_is_refused(spark: SparkSession, path: str) -> None:
    columns = "id bigint, expression string, at int"
    for rows in [((1, "n = 1", None),), ((1, "n = 1", None), (1, None, 2)), ((1, "n = 1", 2), (1, None, None))]:
        with pytest.raises(SubscriptionError, match="1 ids have changes that are NULL in the column which orders them"):
            ts.update_index(changes(spark, *rows, columns=columns), path, order="at")
    with pytest.raises(MissingColumnError, match="the changes have no column when; there is at, expression, id"):
        ts.update_index(changes(spark, (1, "n = 1", 1), columns=columns), path, order="when")
    assert ids(spark, path, 7) == [1]


def test_of_changes_of_one_order_the_one_that_subscribes_counts(spark: SparkSession, path: str) -> None:
    columns = "id bigint, expression string, at int"
    same = ((1, None, 4), (1, "n = 1", 4), (1, None, 4), (1, "n = 1", 4), (2, "n = 7", 3), (2, None, 4), (2, None, 4))
    ts.update_index(changes(spark, *same, columns=columns), path, order="at")
    assert (ids(spark, path, 1), ids(spark, path, 7)) == ([1, 3], [])
    with pytest.raises(DuplicateSubscriptionError, match="several changes of one id and one order: 1; the column"):
        ts.update_index(changes(spark, (1, "n = 2", 5), (1, "n = 3", 5), columns=columns), path, order="at")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch": 3}, SparkError, "source and batch go together"),
        ({"source": "alerts"}, SparkError, "source and batch go together"),
        ({"source": "alerts", "batch": -1}, OptionError, "batch is a whole number of at least 0, not -1"),
    ],
)
def test_half_of_what_names_a_batch_is_refused(
    spark: SparkSession, path: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ts.update_index(changes(spark, (5, "n = 5")), path, **arguments)


def test_a_batch_of_changes_is_applied_once(spark: SparkSession, path: str) -> None:
    for _ in range(2):
        ts.update_index(changes(spark, (5, "n = 5")), path, source="alerts", batch=0)
    assert ts.update_index(changes(spark, (5, None)), path, source="alerts", batch=0).version == 2
    assert ts.update_index(changes(spark, (5, None)), path, source="alerts", batch=1).version == 3
    assert ids(spark, path, 5) == [1]


def test_many_changes_are_merged_and_nothing_is_lost(spark: SparkSession, path: str) -> None:
    added = range(100, 100 + MOST_SEGMENTS + 2)
    for id in added:
        change = pa.table({"id": pa.array([id], pa.int64()), "expression": ["n = 5"]})
        apply_changes(path, read_manifest(path), change, all_or_none=False, applied={})
    manifest = read_manifest(path)
    assert len(manifest.segments) <= MOST_SEGMENTS
    expected = [1, *added]
    assert ids(spark, path, 5) == expected
    ts.update_index(changes(spark, *((id, None) for id in expected)), path)
    assert (ids(spark, path, 5), ids(spark, path, 4)) == ([], [3])


def test_ids_of_another_type_are_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(SubscriptionError, match=r"ids of the changes are string, those of .* are long"):
        ts.update_index(changes(spark, ("a", "n = 1"), columns="id string, expression string"), path)


def test_of_two_writers_the_second_is_told(path: str) -> None:
    manifest = succeed(read_manifest(path))
    commit(path, manifest)
    with pytest.raises(SavedIndexError, match="was changed by another writer"):
        commit(path, manifest)


def test_a_build_may_replace_an_index_in_a_new_version(spark: SparkSession, path: str) -> None:
    made = ts.build_index(changes(spark, (8, "n = 8")), path, space=SPACE, overwrite=True)
    assert (made.version, made.subscriptions) == (2, 1)
    assert (ids(spark, path, 8), ids(spark, path, 8, version=1)) == ([8], [1])
    with pytest.raises(SpaceError, match="needs events_sample"):
        ts.build_index(changes(spark, (8, "n = 8")), path, overwrite=True)


def test_a_batch_keeps_the_version_it_began_with(path: str) -> None:
    first = read_manifest(path)
    assert version_of_batch(path, first.build, "query", 7) == first.pin
    second = commit(path, succeed(first))
    assert (second.build, second.version) == (first.build, 2)
    assert version_of_batch(path, first.build, "query", 7) == first.pin
    assert version_of_batch(path, first.build, "query", 8) == second.pin


def test_a_manifest_is_read_as_it_was_written(path: str) -> None:
    manifest = read_manifest(path)
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert manifest.tested == ("n",)
