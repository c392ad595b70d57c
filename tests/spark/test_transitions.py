"""Transitions on Spark: batch, batches of a state and streams against the definition; what is refused and why."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

import tocsin
from tests.spark.transitions_oracle import COLUMNS, UPDATES, Oracle, Row, Rule, Turn, random_rows, rules
from tocsin import spark as ts
from tocsin.errors import MissingColumnError, OptionError, SparkError

NAMES = ("truck", "at", *COLUMNS, "gone", "clear")


def frame_of(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row[name] for name in NAMES) for row in rows], UPDATES)


def table_of(spark: SparkSession, changes: dict[int, Rule | None]) -> DataFrame:
    rows = [(id, rule and rule.text) for id, rule in changes.items()]
    return spark.createDataFrame(rows, "id bigint, expression string")


def turns(frame: DataFrame) -> Counter[Turn]:
    rows = frame.select("truck", "at", "subscription", "transition").collect()
    return Counter((row["truck"], row["at"], row["subscription"], row["transition"]) for row in rows)


def append(spark: SparkSession, rows: list[Row], folder: Path) -> None:
    frame_of(spark, rows).coalesce(1).write.mode("append").parquet(str(folder / "updates"))


def run(result: DataFrame, folder: Path) -> list[Any]:
    """Run a stream to the end of what there is, appending to ``out``; return its progress."""
    query = (
        result.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def stream_of(spark: SparkSession, folder: Path, schema: str = UPDATES) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "updates"))


def options(partial: bool) -> dict[str, Any]:
    return {"key": "truck", "order": "at", "deleted": "gone"} | ({"partial": True, "clear": "clear"} if partial else {})


@pytest.mark.parametrize("partial", [False, True])
def test_a_batch_and_batches_of_a_state_and_a_stream_give_the_transitions_of_the_definition(
    spark: SparkSession, tmp_path: Path, partial: bool
) -> None:
    pick = random.Random(f"agree {partial}")
    rows = random_rows(pick, 60, late=False, ties=False)
    # A repeated row may come long after its first, but rows of an order come after those of lower orders.
    held = {number: rules(pick) for number in range(12)}
    oracle = Oracle(partial)
    oracle.subscribe(dict(held))
    expected = Counter(oracle.batch(rows))
    assert len(expected) > 50
    subscriptions = table_of(spark, dict(held))
    quarantine = ts.Quarantine()
    whole = ts.transitions(frame_of(spark, rows), subscriptions, quarantine=quarantine, **options(partial))
    assert turns(whole) == expected
    assert quarantine.counts["transitions"] == expected.total()
    assert quarantine.counts["ignored"] == oracle.ignored
    by_order = sorted(rows, key=lambda row: row["at"])
    parts = [by_order[:20], by_order[20:45], by_order[45:]]
    for part in parts:
        append(spark, part, tmp_path)
    found: Counter[Turn] = Counter()
    for number, part in enumerate(parts if partial else []):
        result = ts.transitions(
            frame_of(spark, part),
            subscriptions,
            state=tmp_path / "state",
            batch=number,
            buckets=None if number else 2,
            **options(partial),
        )
        of_batch = turns(result)
        if number == 1:
            assert turns(result.coalesce(1)) == of_batch, "read again, a batch gives the same"
        found += of_batch
    assert found == expected or not partial
    streamed = ts.transitions(
        stream_of(spark, tmp_path), subscriptions, state=tmp_path / "streamed", buckets=3, **options(partial)
    )
    progress = run(streamed.coalesce(1), tmp_path)
    assert turns(spark.read.parquet(str(tmp_path / "out"))) == expected
    counted = [next(iter(step["observedMetrics"].values())) for step in progress if step["numInputRows"]]
    assert sum(step["transitions"] for step in counted) == expected.total()
    assert {row["batch"] for row in spark.read.parquet(str(tmp_path / "out")).collect()} == {0, 1, 2}


def test_subscriptions_that_change_between_batches_ring_for_stored_publications_and_a_replay_repeats(
    spark: SparkSession, tmp_path: Path
) -> None:
    pick = random.Random("changes")
    rows = random_rows(pick, 48, late=True, ties=False)
    index = str(tmp_path / "index")
    held: dict[int, Rule | None] = {number: rules(pick) for number in range(6)}
    ts.build_index(table_of(spark, held), index, events_sample=frame_of(spark, rows).drop("gone", "clear"))
    oracle = Oracle(True)
    expected = Counter(oracle.subscribe(held))
    for number in range(3):
        if number:
            changes = {pick.randint(0, 9): pick.choice([None, rules(pick), rules(pick)]) for _ in range(4)}
            ts.update_index(table_of(spark, changes), index)
            of_changes = oracle.subscribe(changes)
            assert of_changes
            expected += Counter(of_changes)
        part = rows[16 * number : 16 * (number + 1)]
        expected += Counter(oracle.batch(part))
        append(spark, part, tmp_path)
        result = ts.transitions(
            stream_of(spark, tmp_path),
            index,
            state=tmp_path / "state",
            buckets=2 if not number else None,
            **options(True),
        )
        run(result, tmp_path)
        assert turns(spark.read.parquet(str(tmp_path / "out"))) == expected
    # The commit of the last batch is lost, as if the driver had died before it; the index has moved on since.
    before = turns(spark.read.parquet(*map(str, (tmp_path / "out").glob("*.parquet"))))
    ts.update_index(table_of(spark, {0: rules(pick), 1: None, 2: None}), index)
    for name in ("2", ".2.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    files = set((tmp_path / "out").glob("*.parquet"))
    last = (tmp_path / "out" / "_spark_metadata" / "2").read_text()
    for name in ("2", ".2.crc"):
        (tmp_path / "out" / "_spark_metadata" / name).unlink()
    run(result, tmp_path)
    again = set((tmp_path / "out").glob("*.parquet")) - files
    replaced = {file for file in files if file.name in last}
    after = turns(spark.read.parquet(*map(str, (files - replaced) | again)))
    assert before == after == expected


def test_a_table_of_subscriptions_is_taken_anew_when_a_stream_starts_again(spark: SparkSession, tmp_path: Path) -> None:
    def run_with(table: dict[int, str]) -> list[tuple[Any, ...]]:
        frame = spark.createDataFrame(list(table.items()), "id bigint, expression string")
        stream = stream_of(spark, tmp_path, "truck int, x double")
        run(ts.transitions(stream, frame, key="truck", state=tmp_path / "state", buckets=2), tmp_path)
        found = spark.read.parquet(str(tmp_path / "out")).orderBy("batch", "truck", "subscription").collect()
        return [(row["batch"], row["truck"], row["x"], row["subscription"], row["transition"]) for row in found]

    def come(truck: int, x: float) -> None:
        frame = spark.createDataFrame([(truck, x)], "truck int, x double").coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "updates"))

    come(1, 5.0)
    first = run_with({1: "x > 1", 2: "x > 2"})
    assert first == [(0, 1, 5.0, 1, "enter"), (0, 1, 5.0, 2, "enter")]
    come(2, 1.5)
    second = run_with({1: "x > 1", 2: "x > 2"})
    assert second == [*first, (1, 2, 1.5, 1, "enter")]
    come(2, 1.75)
    third = run_with({2: "x > 2.0", 3: "x < 9"})
    assert third == [
        *second,
        *[(2, 1, 5.0, 1, "leave"), (2, 1, 5.0, 3, "enter"), (2, 2, 1.5, 1, "leave"), (2, 2, 1.5, 3, "enter")],
    ]
    versions = sorted(file.name for file in (tmp_path / "state" / "subscriptions" / "versions").glob("*.json"))
    assert versions == ["00000001.json", "00000002.json"]


def test_rows_that_cannot_be_applied_are_in_the_quarantine_and_the_others_are_applied(spark: SparkSession) -> None:
    rows = [
        (None, 1, "10.0.0.1", None, False),
        ("a", None, "10.0.0.1", None, False),
        ("a", -(2**63), "10.0.0.1", None, False),
        ("a", 1, "?", None, False),
        ("a", 2, None, ["prize", "ip"], None),
        ("a", 3, "10.0.0.2", [], None),
        ("b", 1, "?", None, True),
        ("c", 1, None, ["at"], None),
    ]
    updates = spark.createDataFrame(rows, "host string, at bigint, ip string, clear array<string>, gone boolean")
    space = tocsin.Space({"host": tocsin.Text(), "at": tocsin.Number("int64"), "ip": tocsin.Address()})
    subscriptions = spark.createDataFrame(
        [("net", "ip BETWEEN '10.0.0.0' AND '10.0.0.9'"), ("odd", "pi = 3")], "id string, expression string"
    )
    quarantine = ts.Quarantine()
    with pytest.warns(ts.TocsinWarning, match="1 of 2 subscriptions are bad"):
        result = ts.transitions(
            updates,
            subscriptions,
            key="host",
            order="at",
            clear="clear",
            deleted="gone",
            partial=True,
            space=space,
            quarantine=quarantine,
        )
    assert [tuple(row) for row in result.collect()] == [("a", 3, "10.0.0.2", "net", "enter", 0)]
    refused = {(row["host"], row["at"]): row["reason"] for row in quarantine.events.collect()}
    assert refused == {
        (None, 1): "the key host is NULL",
        ("a", None): "the order at is NULL",
        ("a", -(2**63)): "the order at is the lowest number there is, which no update may have",
        ("a", 1): "field ip: '?' is no IP address; an IP address is expected",
        ("a", 2): "clear names 'prize', which is no column to clear; there is ip",
        ("c", 1): "clear names 'at', which is no column to clear; there is ip",
    }
    assert quarantine.counts == {"transitions": 1, "refused": 6, "ignored": 0, "failed": 0}
    assert [row["id"] for row in quarantine.subscriptions.collect()] == ["odd"]


def test_without_an_order_a_batch_has_one_row_a_key_and_later_batches_are_newer(
    spark: SparkSession, tmp_path: Path
) -> None:
    subscriptions = spark.createDataFrame([(1, "x > 1"), (2, "x IS NULL")], "id bigint, expression string")
    found = []
    refused = []
    for batch, rows in enumerate([[(1, 2.0), (2, 5.0), (2, 6.0)], [(1, 0.5), (2, None)], [(1, 3.0)]]):
        quarantine = ts.Quarantine()
        updates = spark.createDataFrame(rows, "truck bigint, x double")
        result = ts.transitions(
            updates,
            subscriptions,
            key="truck",
            state=tmp_path / "state",
            batch=batch,
            buckets=2 if not batch else None,
            quarantine=quarantine,
        )
        found += [(row["batch"], row["truck"], row["subscription"], row["transition"]) for row in result.collect()]
        refused += [(batch, row["truck"], row["x"], row["reason"]) for row in quarantine.events.collect()]
    assert sorted(found) == [(0, 1, 1, "enter"), (1, 1, 1, "leave"), (1, 2, 2, "enter"), (2, 1, 1, "enter")]
    reason = "a batch has several rows of this truck, and no order says which is the last; name order=..."
    assert sorted(refused) == [(0, 2, 5.0, reason), (0, 2, 6.0, reason)]


def test_columns_of_all_types_are_carried_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    schema = (
        "id decimal(10,2), seen timestamp, day date, place struct<x: double, name: string>, tags array<string>, "
        "more map<string, int>, raw binary"
    )
    noon = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    rows: list[Any] = [
        (Decimal("1.50"), noon, dt.date(2024, 5, 1), (1.0, "é"), ["a", None], {"k": 1}, bytearray(b"\0")),
        (Decimal("1.50"), noon + dt.timedelta(microseconds=1), None, (7.0, None), None, None, None),
        (Decimal("2.00"), noon, None, None, ["b"], {}, None),
    ]
    subscriptions = spark.createDataFrame(
        [("x", "place.x > 2"), ("tag", "tags = 'a'"), ("day", "day > DATE '2024-01-01'"), ("id", "id = 1.5")],
        "id string, expression string",
    )
    found = []
    for batch, row in enumerate(rows):
        updates = spark.createDataFrame([row], schema)
        result = ts.transitions(
            updates,
            subscriptions,
            key="id",
            order="seen",
            partial=True,
            state=tmp_path / "state",
            batch=batch,
            buckets=2 if not batch else None,
        )
        assert result.columns == [*updates.columns, "subscription", "transition", "batch"]
        found += result.collect()
    got = sorted((row["batch"], row["subscription"], row["transition"]) for row in found)
    assert got == [(0, "day", "enter"), (0, "id", "enter"), (0, "tag", "enter"), (1, "x", "enter")]
    (second,) = [row for row in found if row["batch"] == 1]
    assert second["more"] == {"k": 1}
    assert second["tags"] == ["a", None]
    assert second["raw"] == bytearray(b"\0")
    assert second["place"]["name"] is None
    assert (second["day"], second["id"]) == (dt.date(2024, 5, 1), Decimal("1.50"))
    assert second["seen"].astimezone(dt.UTC) == noon + dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"key": "lorry"}, MissingColumnError, r"no column lorry \(key=...\)"),
        ({"order": "att"}, MissingColumnError, r"no column att \(order=...\); did you mean at\?"),
        ({"order": "y"}, SparkError, r"the column y \(order=...\) holds double; a whole number, a date or a timestamp"),
        ({"key": "y"}, SparkError, r"the column y \(key=...\) holds double; text"),
        ({"deleted": "x"}, SparkError, r"the column x \(deleted=...\) holds bigint; a boolean"),
        ({"clear": "s", "partial": True}, SparkError, r"the column s \(clear=...\) holds string; an array"),
        ({"clear": "clear"}, SparkError, "pass partial=True"),
        ({"order": "truck"}, SparkError, r"the column truck \(order=...\) holds string"),
        ({"batch": 1}, SparkError, "belong to a state"),
        ({"state": "here"}, SparkError, "pass batch=N too"),
        ({"state": "here", "batch": -1}, OptionError, "batch is a whole number of at least 0, not -1"),
        ({"state": "here", "batch": "2"}, OptionError, "batch is a whole number of at least 0, not '2'"),
        ({"key": None}, OptionError, "key is the name of a column, not None"),
        ({"column": "x"}, SparkError, "have a column x already"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_runs(
    spark: SparkSession, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    subscriptions = spark.createDataFrame([(1, "x > 1")], "id bigint, expression string")
    with pytest.raises(error, match=message):
        ts.transitions(frame_of(spark, []), subscriptions, **({"key": "truck"} | given))


def test_what_is_no_dataframe_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match="the updates are a DataFrame, batch or streaming, not list"):
        ts.transitions([{"truck": 1}], "index", key="truck")  # type: ignore[arg-type]
    with pytest.raises(SparkError, match="a path is expected, or a DataFrame where it is of subscriptions, not list"):
        ts.transitions(frame_of(spark, []), [(1, "x > 1")], key="truck")  # type: ignore[arg-type]


def test_a_state_of_other_updates_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    subscriptions = spark.createDataFrame([(1, "x > 1")], "id bigint, expression string")
    updates = spark.createDataFrame([(1, 1, 2.0)], "truck bigint, at bigint, x double")
    (tmp_path / "updates").mkdir()
    stream = stream_of(spark, tmp_path, "truck bigint, at bigint, x double")
    with pytest.raises(SparkError, match="a stream keeps its publications"):
        ts.transitions(stream, subscriptions, key="truck")
    with pytest.raises(SparkError, match="a stream numbers its batches itself"):
        ts.transitions(stream, subscriptions, key="truck", state=tmp_path / "state", batch=3)
    made = {"key": "truck", "order": "at", "state": tmp_path / "state", "batch": 0}
    ts.transitions(updates, subscriptions, buckets=2, **made)
    text = updates.withColumn("x", F.col("x").cast("string"))
    with pytest.raises(SparkError, match="was made with columns x double, not x string; start again with a new state"):
        ts.transitions(text, subscriptions, **made)
    with pytest.raises(SparkError, match="was made with columns z left out, not z int"):
        ts.transitions(updates.withColumn("z", F.lit(1)), subscriptions, **made)
    with pytest.raises(SparkError, match="was made with order 'at', not None"):
        ts.transitions(updates, subscriptions, **{**made, "order": None})
    with pytest.raises(SparkError, match="has 2 buckets, not 5"):
        ts.transitions(updates, subscriptions, buckets=5, **made)


@pytest.mark.parametrize("kept", ["false", "x > 100"])
def test_a_batch_without_any_update_tells_of_changed_subscriptions(
    spark: SparkSession, tmp_path: Path, kept: str
) -> None:
    updates = spark.createDataFrame([(f"t{number}", number) for number in range(9)], "truck string, x int")
    index, options = str(tmp_path / "index"), {"key": "truck", "state": str(tmp_path / "state"), "buckets": 2}
    space = tocsin.Space({"x": tocsin.Number("int64")})
    ts.build_index(spark.createDataFrame([(1, "x < 0")], "id int, expression string"), index, space=space)
    assert ts.transitions(updates, index, batch=0, **options).count() == 0  # type: ignore[arg-type]
    ts.update_index(spark.createDataFrame([(2, "x >= 0")], "id int, expression string"), index)
    for _ in range(2):  # a batch that is run again gives what it gave
        turned = ts.transitions(updates.where(kept), index, batch=1, **options)  # type: ignore[arg-type]
        assert Counter((row["subscription"], row["transition"]) for row in turned.collect()) == {(2, "enter"): 9}
    assert ts.transitions(updates.where("x = 3"), index, batch=2, **options).count() == 0  # type: ignore[arg-type]


def test_a_batch_whose_result_was_never_read_stops_the_next(spark: SparkSession, tmp_path: Path) -> None:
    updates = spark.createDataFrame([(1, 5)], "truck int, x int")
    index, options = str(tmp_path / "index"), {"key": "truck", "state": str(tmp_path / "state"), "buckets": 1}
    space = tocsin.Space({"x": tocsin.Number("int64")})
    ts.build_index(spark.createDataFrame([(1, "x > 0")], "id int, expression string"), index, space=space)
    first = ts.transitions(updates, index, batch=0, **options)  # type: ignore[arg-type]
    second = ts.transitions(updates.selectExpr("truck", "-1 AS x"), index, batch=1, **options)  # type: ignore[arg-type]
    with pytest.raises(PySparkException, match="the result of batch 0 was not read to its end"):
        second.collect()
    assert first.where("false").collect() == []
    with pytest.raises(PySparkException, match=r"run that batch again and read it all, or remove .*/asked/0 to go on"):
        second.collect()
    assert [row["transition"] for row in (*first.collect(), *second.collect())] == ["enter", "leave"]
