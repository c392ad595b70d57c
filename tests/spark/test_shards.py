"""Indexes of shards on Spark: what they refuse, what they keep apart, and that nothing half-written stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

import tocsin
from tocsin import spark as ts
from tocsin.errors import FileError, SavedIndexError, SubscriptionError
from tocsin.spark.manifest import read_manifest
from tocsin.spark.sharding import PART, Routing, routed
from tocsin.spark.workers import Version

SPACE = tocsin.Space({"n": tocsin.Number("int64"), "ip": tocsin.Address()})
ROWS = [(n, f"n = {n}") for n in range(40)] + [(100, "ip = '10.0.0.1'"), (101, "ip = '10.0.0.2' AND n > 3")]


def table(spark: SparkSession, rows: list[tuple[int, str | None]]) -> DataFrame:
    return spark.createDataFrame(rows, "id bigint, expression string")


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 2).selectExpr("id AS n", "IF(id = 7, '?', IF(id % 2 = 0, '10.0.0.1', NULL)) AS ip")


def test_bad_events_and_bad_subscriptions_are_those_of_an_index_without_shards(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    rows = [*ROWS, (3, "n = 5"), (200, "m = 1"), (201, None)]
    found = []
    for shards in (1, 3):
        path = str(tmp_path / f"index{shards}")
        with pytest.warns(ts.TocsinWarning, match="3 of 45 subscriptions are bad"):
            made = ts.build_index(table(spark, list(rows)), path, events_sample=events, space=SPACE, shards=shards)
        quarantine = ts.Quarantine()
        pairs = ts.match(events, path, quarantine=quarantine).select("n", "subscription").collect()
        refused = [tuple(row) for row in quarantine.events.collect()]
        reasons = sorted((row["id"], row["reason"][:20]) for row in quarantine.subscriptions.collect())
        found.append((made.subscriptions, sorted(map(tuple, pairs)), refused, quarantine.counts, reasons))
    assert found[0] == found[1]
    assert found[0][2][0][:2] == (7, "?")
    arrays = ts.match(events, str(tmp_path / "index3"), output="array").collect()
    assert sorted((row["n"], id) for row in arrays for id in row["subscription"]) == found[0][1]


def test_a_partition_holds_events_of_one_shard(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    ts.build_index(table(spark, list(ROWS)), path, events_sample=events, space=SPACE, shards=4)
    manifest = read_manifest(path)
    assert {segment.shard for segment in manifest.segments} == {0, 1, 2, 3}
    routing = Routing(Version(path, manifest.build, manifest.pin, manifest.id_type), 3, "error")
    rows = routed(events, routing, 4).select(F.spark_partition_id().alias("here"), PART, "n").collect()
    assert all(row["here"] == row[PART] for row in rows)
    assert len({row["here"] for row in rows}) > 4
    assert len(rows) < 60 * 4 / 2, "an event goes to the shards that can match it, not to all"


def test_an_abandoned_build_or_change_of_shards_leaves_nothing(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    with pytest.raises(SubscriptionError, match="1 of the subscriptions are bad; no index was built"):
        ts.build_index(
            table(spark, [*ROWS, (300, "n <")]), str(path), events_sample=events, space=SPACE, shards=2, bad="error"
        )
    assert not path.exists()
    ts.build_index(table(spark, list(ROWS)), str(path), events_sample=events, space=SPACE, shards=2)
    before = sorted(file.name for file in (path / "segments").iterdir())
    with pytest.raises(SubscriptionError, match="1 of the changes are bad; none was made"):
        ts.update_index(table(spark, [(1, "n = 99"), (2, "n <"), (100, "n = 5")]), str(path), bad="error")
    assert sorted(file.name for file in (path / "segments").iterdir()) == before
    with pytest.raises(ValueError, match="shards is a whole number of at least 1, not 0"):
        ts.build_index(table(spark, list(ROWS)), str(path), space=SPACE, shards=0, overwrite=True)


def test_places_that_are_no_directories_are_told(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SavedIndexError, match="file"):
        ts.match(events, tmp_path / "file")
    with pytest.raises(FileError, match=r"file/index/.*: cannot be written: Not a directory"):
        ts.build_index(table(spark, list(ROWS)), str(tmp_path / "file" / "index"), space=SPACE)


def test_what_refuses_an_event_in_one_shard_refuses_it_in_all(spark: SparkSession, tmp_path: Path) -> None:
    """A field that only a program looks at, and an operator whose failure is an error of the event."""

    def inverse(n: int) -> bool:
        return 1 / n > 0

    strict = tocsin.operator(inverse, reads=["n"], parameters=[], on_failure="error")
    space = tocsin.Space({"n": tocsin.Number("int64"), "nums": tocsin.Repeated(tocsin.Number("int64"))})
    events = spark.createDataFrame([(n, [n / 2]) for n in range(6)], "n bigint, nums array<double>")
    tests = [(n, f"n = {n}") for n in range(6)]
    for name, last in (("program", f"nums > {-(2**63)}"), ("operator", "n < 2 AND inverse()")):
        found = []
        for shards, output in ((1, "pairs"), (2, "pairs"), (2, "array")):
            path, quarantine = str(tmp_path / f"{name}{shards}"), ts.Quarantine()
            if output == "pairs":
                ts.build_index(table(spark, [*tests, (9, last)]), path, space=space, shards=shards, operators=[strict])
            matched = ts.match(events, path, output=output, quarantine=quarantine, operators=[strict])  # type: ignore[arg-type]
            rows = [(row["n"], row["subscription"]) for row in matched.collect()]
            pairs = rows if output == "pairs" else [(n, id) for n, ids in rows for id in ids]
            found.append((sorted(pairs), sorted((row["n"], row["reason"]) for row in quarantine.events.collect())))
        assert found[0] == found[1] == found[2]
        assert [n for n, _ in found[0][1]] == ([1, 3, 5] if name == "program" else [0])
