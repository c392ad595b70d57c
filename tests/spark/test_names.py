"""Columns of any name: dots, spaces, backticks, words of SQL and names that we use inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, types

from tests.spark.test_transitions import run
from tocsin import spark as ts
from tocsin.errors import MissingColumnError, SparkError
from tocsin.space import Number, Repeated, Space, Text
from tocsin.spark.schema import space_of

KEY, ORDER, GONE, CLEAR, COLUMN = "truck id.x`y", "at.t", "gone?.", "cl ear`", "sub.scr`"
TESTED = [
    "pos x",
    "a`b",
    "change",
    "key",
    "event",
    "row",
    "#",
    "@",
    "=",
    "!",
    "@pos x",
    "SELECT",
    "`",
    "``",
    "-- x",
    "'",
]
CARRIED = ["pos.x", "é.ü", "a.", ".", "__tocsin_column_0"]
SCHEMA = types.StructType(
    [
        types.StructField(KEY, types.StringType()),
        types.StructField(ORDER, types.LongType()),
        *(types.StructField(name, types.LongType()) for name in (*TESTED, *CARRIED)),
        types.StructField(GONE, types.BooleanType()),
        types.StructField(CLEAR, types.ArrayType(types.StringType())),
    ]
)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def row(key: str | None, at: int, value: int | None, gone: bool | None = None, clear: Any = None) -> tuple[Any, ...]:
    return (key, at, *([value] * len(TESTED)), *([at] * len(CARRIED)), gone, clear)


FIRST = [row("a", 1, 7), row("a", 2, None, clear=["a`b", "pos.x"]), row("b", 1, 7), row(None, 1, 7)]
SECOND = [row("b", 2, None, gone=True), row("a", 3, 8), row("c", 1, None, clear=["a.b"])]
ENTERED = [(key, 1, name, "enter") for key in "ab" for name in TESTED]
EXPECTED = sorted(
    [*ENTERED, ("a", 2, "a`b", "leave")]
    + [("b", 2, name, "leave") for name in TESTED]
    + [("a", 3, name, "leave") for name in TESTED if name != "a`b"]
)


@pytest.fixture
def subscriptions(spark: SparkSession) -> DataFrame:
    rows = [(name, f"{quoted(name)} = 7") for name in TESTED]
    return spark.createDataFrame(rows, "id string, expression string")


def turns(frame: DataFrame) -> list[tuple[Any, ...]]:
    rows = frame.select(*map(quoted, (KEY, ORDER, COLUMN, "transition"))).collect()
    return sorted(tuple(each) for each in rows)


OPTIONS: dict[str, Any] = {
    "key": KEY, "order": ORDER, "deleted": GONE, "clear": CLEAR, "partial": True, "column": COLUMN
}  # fmt: skip


def test_transitions_of_a_batch_have_columns_of_any_name(spark: SparkSession, subscriptions: DataFrame) -> None:
    quarantine = ts.Quarantine()
    updates = spark.createDataFrame([*FIRST, *SECOND], SCHEMA)
    result = ts.transitions(updates, subscriptions, quarantine=quarantine, **OPTIONS)
    published = [name for name in updates.columns if name not in (GONE, CLEAR)]
    assert result.columns == [*published, COLUMN, "transition", "batch"]
    assert turns(result) == EXPECTED
    shown = {each[KEY]: each for each in result.where(f"{quoted(ORDER)} = 2").collect()}
    assert (shown["a"]["a`b"], shown["a"]["pos.x"], shown["a"]["é.ü"], shown["a"]["pos x"]) == (None, None, 2, 7)
    assert quarantine.events.columns == [*updates.columns, "reason"]
    refused = sorted((each[KEY] or "", each["reason"]) for each in quarantine.events.collect())
    known = ", ".join([*TESTED, *CARRIED])
    assert refused == [
        ("", f"the key {KEY} is NULL"),
        ("c", f"{CLEAR} names 'a.b', which is no column to clear; there is {known}"),
    ]


def test_transitions_of_a_stream_have_columns_of_any_name(
    spark: SparkSession, subscriptions: DataFrame, tmp_path: Path
) -> None:
    plain = [f"c{number}" for number in range(len(SCHEMA))]  # Parquet refuses some of these names
    kinds = types.StructType(
        [types.StructField(name, field.dataType) for name, field in zip(plain, SCHEMA, strict=True)]
    )
    for rows in (FIRST, SECOND):
        spark.createDataFrame(rows, kinds).coalesce(1).write.mode("append").parquet(str(tmp_path / "updates"))
    stream = spark.readStream.schema(kinds).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "updates"))
    updates = stream.toDF(*SCHEMA.names)
    result = ts.transitions(updates, subscriptions, state=tmp_path / "state", buckets=2, **OPTIONS)
    columns = result.columns
    run(result.toDF(*(f"c{number}" for number in range(len(columns)))), tmp_path)
    assert turns(spark.read.parquet(str(tmp_path / "out")).toDF(*columns)) == EXPECTED


@pytest.mark.parametrize("shards", [1, 2])
def test_matches_have_columns_of_any_name(
    spark: SparkSession, subscriptions: DataFrame, tmp_path: Path, shards: int
) -> None:
    events = spark.createDataFrame([row("a", 1, 7), row("b", 1, 8)], SCHEMA)
    quarantine = ts.Quarantine()
    index = str(tmp_path / "index")
    ts.build_index(subscriptions, index, events_sample=events, shards=shards)
    found = ts.match(events, index, column=COLUMN, quarantine=quarantine)
    assert found.columns == [*events.columns, COLUMN]
    assert sorted((each[KEY], each[COLUMN]) for each in found.collect()) == [("a", name) for name in sorted(TESTED)]
    assert quarantine.events.columns == [*events.columns, "reason"]


def test_names_that_the_result_has_itself_are_refused_with_the_way_out(
    spark: SparkSession, subscriptions: DataFrame
) -> None:
    def updates(name: str) -> DataFrame:
        return spark.createDataFrame([("a", 1)], types.StructType().add("truck", "string").add(name, "long"))

    with pytest.raises(
        SparkError, match=r"a column subscription already, .*; rename it, or pass column='...' for ours"
    ):
        ts.transitions(updates("Subscription"), subscriptions, key="truck")
    for name in ("transition", "batch", "__tocsin_hash"):
        with pytest.raises(SparkError, match=f"a column {name} already, which the result is to have; rename it$"):
            ts.transitions(updates(name), subscriptions, key="truck")
    with pytest.raises(SparkError, match="column='Batch' is the name of another column of the result"):
        ts.transitions(updates("x"), subscriptions, key="truck", column="Batch")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SparkError, match="two columns named truck, as case does not tell names apart"):
            ts.transitions(updates("Truck"), subscriptions, key="truck")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


NASTY_NAMES = [
    ("größe", "GRÖSSE"), ("ß", "ẞ"), ("ſ", "s"), ("ı", "I"), ("İ", "i"), ("İ", "i̇"), ("\u212a", "k"), ("σ", "ς"),
    ("ΣΑΣ", "σας"), ("µ", "Μ"), ("ϐ", "Β"), ("ϴ", "θ"), ("ﬁ", "FI"), ("ŉ", "ʼN"), ("\u212b", "å"), ("É", "é"),
    ("É", "e\u0301"), ("Ǆ", "ǅ"), ("ᾳ", "ᾼ"), ("𐐀", "𐐨"), ("Ა", "ა"), ("Ⅷ", "ⅷ"), ("CITY", "city"),
]  # fmt: skip


def test_a_name_means_the_column_and_the_field_that_spark_resolves(spark: SparkSession) -> None:
    names = [f"{name}{number}" for number, (name, _) in enumerate(NASTY_NAMES)]
    inner = types.StructType([types.StructField(name, types.LongType()) for name in names])
    schema = types.StructType([*inner.fields, types.StructField("q", inner)])
    frame, space = spark.createDataFrame([], schema), space_of(schema)
    for number, (name, other) in enumerate(NASTY_NAMES):
        for path in ((f"{other}{number}",), ("q", f"{other}{number}")):
            try:
                frame.select(".".join(map(quoted, path))).schema  # noqa: B018 - over Spark Connect, this resolves it
                resolved = True
            except AnalysisException:
                resolved = False
            assert (space.find(path) is not None) == resolved, (name, path)


def test_an_index_finds_columns_whatever_their_case(spark: SparkSession, tmp_path: Path) -> None:
    space = Space({"x": Number("int64"), "s": {"city": Text(), "parts": {"sku": Repeated(Text())}}})
    rows = [(n, "o", ("NYC" if n % 2 else None, [("a", n)])) for n in range(4)]
    events = spark.createDataFrame(
        rows, "X bigint, o string, S struct<City: string, Parts: array<struct<SKU: string, n: int>>>"
    )
    texts = ["x > 1", "s.city = 'NYC'", "s.city IS NULL AND x < 2"]
    subscriptions = spark.createDataFrame([*enumerate(texts), (9, "S.PARTS.sku = 'a'")], "id int, expression string")
    for shards in (1, 2):
        index = str(tmp_path / f"index{shards}")
        ts.build_index(subscriptions, index, space=space, shards=shards)
        for missing in ("error", "unspecified"):
            matched = ts.match(events, index, missing=missing)  # type: ignore[arg-type]
            assert matched.schema.fields[:3] == events.schema.fields
            found = sorted((row["X"], row["subscription"]) for row in matched.collect())
            wanted = [(row["X"], id) for id, text in enumerate(texts) for row in events.where(text).collect()]
            assert found == sorted([*wanted, *((n, 9) for n in range(4))])
    with pytest.raises(
        SparkError, match=r"S.CITY and S.City of the events are one name, as case does not tell names apart"
    ):
        ts.match(spark.createDataFrame([], "x bigint, S struct<City: string, CITY: string>"), index)
    with pytest.raises(SparkError, match="the column X of the updates is x in the index; rename it"):
        ts.transitions(events, index, key="o", missing="unspecified")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(MissingColumnError, match=r"the events have no column s\.city"):
            ts.match(events, index)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
