"""`ts.match` on batches: what comes out, what is refused, what is said."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import tocsin
from tocsin import spark as ts
from tocsin.errors import MissingColumnError, SavedIndexError, SparkError, SubscriptionError

OFFERS = [
    Row(item="lamp", price=30.0, city="Lyon"),
    Row(item="sofa", price=400.0, city=None),
    Row(item="tent", price=None, city="Porto"),
]
OFFER = "item string, price double, city string"


@pytest.fixture
def offers(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(OFFERS, OFFER)


def table(spark: SparkSession, *rows: tuple[object, str | None], kind: str = "string") -> DataFrame:
    return spark.createDataFrame(list(rows), f"id {kind}, expression string")


def pairs(frame: DataFrame) -> list[tuple[str, object]]:
    return sorted((row["item"], row["subscription"]) for row in frame.collect())


def test_pairs_have_the_columns_of_the_event_and_the_id(spark: SparkSession, offers: DataFrame) -> None:
    found = ts.match(offers, table(spark, ("cheap", "price < 100"), ("any", "item IS NOT NULL"), ("no", "price < 0")))
    assert found.columns == ["item", "price", "city", "subscription"]
    assert pairs(found) == [("lamp", "any"), ("lamp", "cheap"), ("sofa", "any"), ("tent", "any")]


def test_arrays_have_one_row_an_event(spark: SparkSession, offers: DataFrame) -> None:
    subscriptions = table(spark, (7, "price < 100"), (8, "item = 'lamp'"), (9, "item = 'tent'"), kind="int")
    found = ts.match(offers, subscriptions, output="array", column="ids")
    assert found.schema["ids"].dataType.simpleString() == "array<int>"
    assert {row["item"]: sorted(row["ids"]) for row in found.collect()} == {"lamp": [7, 8], "sofa": [], "tent": [9]}


@pytest.mark.parametrize("kind", ["string", "int", "bigint", "date", "decimal(12,2)"])
def test_ids_keep_their_type(spark: SparkSession, offers: DataFrame, kind: str) -> None:
    ids = spark.sql(
        f"SELECT CAST({'DATE' if kind == 'date' else ''} '{'2026-01-02' if kind == 'date' else '12'}' AS {kind}) AS id"
    )
    found = ts.match(offers, ids.selectExpr("id", "'price < 100' AS expression"))
    assert found.schema["subscription"].dataType.simpleString() == kind
    assert [row["subscription"] for row in found.collect()] == [row["id"] for row in ids.collect()]


def test_nested_and_repeated_columns_and_those_without_an_axis_pass(spark: SparkSession) -> None:
    events = spark.sql(
        "SELECT 1 AS n, named_struct('city', 'Lyon', 'zip', 69001) AS place, array('a', NULL, 'b') AS tags, "
        "array(named_struct('sku', 5), named_struct('sku', 9)) AS lines, map('k', 1) AS attributes, "
        "CAST('xy' AS BINARY) AS raw, INTERVAL 1 DAY AS term, CAST(1.5 AS FLOAT) AS rate, CAST(3 AS TINYINT) AS tiny"
    )
    rows = [
        ("nested", "place.city = 'Lyon' AND place.zip > 69000"),
        ("repeated", "tags = 'b'"),
        ("within", "lines.sku = 9"),
        ("float", "rate = 1.5 AND tiny = 3"),
        ("other", "lines.sku = 7"),
    ]
    found = ts.match(events, table(spark, *rows)).collect()
    assert sorted(row["subscription"] for row in found) == ["float", "nested", "repeated", "within"]
    assert found[0]["attributes"] == {"k": 1}
    assert bytes(found[0]["raw"]) == b"xy"
    assert found[0]["lines"] == [Row(sku=5), Row(sku=9)]


def test_columns_of_any_name_and_type_are_matched_or_carried(spark: SparkSession) -> None:
    events = spark.sql("""SELECT CAST(1.10 AS DECIMAL(10, 2)) AS d, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS ntz, 'v' AS
        `Upper Name`, 5 AS `dot.ted`, 6 AS dot_ted, CAST(NULL AS INT) AS nothing, NULL AS untyped, map('k', 1) AS m,
        INTERVAL '1' DAY AS i, array(named_struct('a', 1, 'x.y', 2)) AS list, named_struct('x y', 3, 'e.f', 4) AS s,
        named_struct('only.dots', 1) AS o""")
    held = ["d = 1.1", "ntz >= '2024-01-01'", "`upper name` = 'v'", "dot_ted = 6", "nothing IS NULL", "s.`x y` = 3"]
    subscriptions = table(spark, *((str(number), text) for number, text in enumerate([*held, "list.a = 2"])))
    quarantine = ts.Quarantine()
    found = ts.match(events, subscriptions, quarantine=quarantine)
    assert found.columns == [*events.columns, "subscription"]
    rows = found.collect()
    assert sorted(row["subscription"] for row in rows) == [str(number) for number in range(len(held))]
    assert [tuple(row)[:-1] for row in rows] == [tuple(events.first() or ())] * len(held)
    assert quarantine.events.columns == [*events.columns, "reason"] and quarantine.events.count() == 0


def test_what_is_no_dataframe_is_told(spark: SparkSession, offers: DataFrame) -> None:
    rules = table(spark, ("a", "price < 1"))
    with pytest.raises(SparkError, match=r"^events is to be a DataFrame of Spark, not builtins.list; make one with"):
        ts.match([{"price": 3}], rules)  # type: ignore[arg-type]
    with pytest.raises(SparkError, match=r"^subscriptions \(or the path of an index\) is to be a DataFrame"):
        ts.match(offers, {"a": "price < 1"})  # type: ignore[arg-type]
    with pytest.raises(SparkError, match=r"^subscriptions is to be a DataFrame of Spark, not pyarrow.lib.Table"):
        ts.build_index(pa.table({"id": [1]}), "nowhere", events_sample=offers)


def test_no_subscriptions_and_no_events(spark: SparkSession, offers: DataFrame) -> None:
    none = table(spark)
    assert ts.match(offers, none).collect() == []
    assert [row["subscription"] for row in ts.match(offers, none, output="array").collect()] == [[], [], []]
    assert ts.match(offers.limit(0), table(spark, ("a", "price > 1"))).collect() == []


def test_timestamps_without_a_zone_are_read_in_the_zone_of_the_session(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        events = spark.sql("SELECT TIMESTAMP '2026-07-01 12:00:00' AS t")
        rows = [("noon", "t = TIMESTAMP '2026-07-01 12:00:00'"), ("utc", "t = TIMESTAMP '2026-07-01 16:00:00Z'")]
        assert sorted(row["subscription"] for row in ts.match(events, table(spark, *rows)).collect()) == ["noon", "utc"]
        assert events.where(rows[0][1]).count() == events.where(rows[1][1]).count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_bad_events_go_to_the_quarantine_with_the_reason(spark: SparkSession) -> None:
    events = spark.createDataFrame([("10.0.0.1", 1), ("nowhere", 2), (None, 3), ("::1", 4)], "ip string, n int")
    space = tocsin.Space({"ip": tocsin.Address(), "n": tocsin.Number("int64")})
    quarantine = ts.Quarantine()
    subscriptions = table(spark, ("all", "n > 0"), ("ten", "ip = '10.0.0.1'"))
    found = ts.match(events, subscriptions, space=space, quarantine=quarantine)
    assert sorted((row["n"], row["subscription"]) for row in found.collect()) == [
        (1, "all"),
        (1, "ten"),
        (3, "all"),
        (4, "all"),
    ]
    assert quarantine.counts == {"matches": 4, "refused": 1, "failed": 0}
    (bad,) = quarantine.events.collect()
    assert (bad["ip"], bad["n"]) == ("nowhere", 2)
    assert bad["reason"].startswith("field ip: ")
    assert quarantine.subscriptions.count() == 0


def test_many_bad_events_among_good_ones(spark: SparkSession) -> None:
    events = spark.range(0, 3000, 1, 2).selectExpr("id AS n", "IF(id % 3 = 0, 'no address', '10.0.0.1') AS ip")
    space = tocsin.Space({"ip": tocsin.Address(), "n": tocsin.Number("int64")})
    quarantine = ts.Quarantine()
    subscriptions = table(spark, ("ten", "ip = '10.0.0.1' AND n >= 0"))
    found = ts.match(events, subscriptions, space=space, quarantine=quarantine, output="array")
    assert sorted(row["n"] for row in found.collect() if row["subscription"]) == [n for n in range(3000) if n % 3]
    assert sorted(row["n"] for row in quarantine.events.collect()) == list(range(0, 3000, 3))
    assert quarantine.counts["refused"] == 1000


def test_bad_subscriptions_are_left_out_with_a_warning_and_kept(spark: SparkSession, offers: DataFrame) -> None:
    rows = [("good", "price < 100"), ("absent", "prise < 100"), ("broken", "price <"), ("null", None)]
    quarantine = ts.Quarantine()
    with pytest.warns(ts.TocsinWarning, match="3 of 4 subscriptions are bad and were left out"):
        found = ts.match(offers, table(spark, *rows), quarantine=quarantine)
    assert pairs(found) == [("lamp", "good")]
    refused = {row["id"]: row["reason"] for row in quarantine.subscriptions.collect()}
    assert set(refused) == {"absent", "broken", "null"}
    assert "there is no field 'prise'; did you mean price?" in refused["absent"]
    with pytest.raises(SubscriptionError, match="did you mean price"):
        ts.match(offers, table(spark, *rows), bad="error")


def test_an_id_that_stands_twice_is_refused(spark: SparkSession, offers: DataFrame) -> None:
    rows = [(f"id{n % 5}", "price > 1") for n in range(6)]
    with pytest.raises(SubscriptionError, match="'id0' stands in row"):
        ts.match(offers, table(spark, *rows), bad="error")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("ident string, expression string", "need a column id; there is expression, ident"),
        ("id string, expr string", "need a column expression; there is expr, id"),
        ("id string, expression int", "expression holds int"),
        ("id array<int>, expression string", r"id holds array<int>"),
    ],
)
def test_a_table_that_is_no_table_of_subscriptions(
    spark: SparkSession, offers: DataFrame, columns: str, message: str
) -> None:
    with pytest.raises((MissingColumnError, SubscriptionError), match=message):
        ts.match(offers, spark.createDataFrame([], columns))


def test_columns_that_clash(spark: SparkSession, offers: DataFrame) -> None:
    one = table(spark, ("a", "price > 1"))
    with pytest.raises(SparkError, match="have a column subscription already"):
        ts.match(offers.withColumnRenamed("city", "Subscription"), one)
    with pytest.raises(SparkError, match="two columns named price"):
        ts.match(offers.selectExpr("price", "item", "city AS price"), one)


def test_an_index_wants_the_events_it_was_built_for(spark: SparkSession, offers: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    built = ts.build_index(table(spark, ("a", "price > 1")), path, events_sample=offers)
    assert (built.version, built.subscriptions, built.refused) == (1, 1, 0)
    assert pairs(ts.match(offers.drop("city"), path)) == [("lamp", "a"), ("sofa", "a")]
    with pytest.raises(MissingColumnError, match="no column price, which subscriptions test; did you mean prize"):
        ts.match(offers.withColumnRenamed("price", "prize"), path)
    with pytest.raises(SparkError, match=r"price of the events is text, but the index was built for number \(double\)"):
        ts.match(offers.withColumn("price", offers["price"].cast("string")), path)
    assert ts.match(offers.drop("price"), path, missing="unspecified").collect() == []
    with pytest.raises(SavedIndexError, match="holds version 1 of an index"):
        ts.build_index(table(spark, ("a", "price > 1")), path, events_sample=offers)


def test_paths_without_a_readable_index(spark: SparkSession, offers: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(SavedIndexError, match="does not exist; build one"):
        ts.match(offers, str(tmp_path / "none"))
    with pytest.raises(SavedIndexError, match="holds no index"):
        ts.match(offers, tmp_path)
    with pytest.raises(SavedIndexError, match="mount the store"):
        ts.match(offers, "s3a://bucket/index")
    path = tmp_path / "index"
    ts.build_index(table(spark, ("a", "price > 1")), str(path), events_sample=offers)
    manifest = path / "versions" / "00000001.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"tocsin_index": 2', '"tocsin_index": 1'))
    with pytest.raises(SavedIndexError, match="an index of format 1, this is a Tocsin for format 2"):
        ts.match(offers, path)
    manifest.write_text(good[:-10])
    with pytest.raises(SavedIndexError, match="is not the manifest of an index"):
        ts.match(offers, path)


def test_an_abandoned_build_leaves_nothing(spark: SparkSession, offers: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with pytest.raises(SubscriptionError, match="1 of the subscriptions are bad; no index was built"):
        ts.build_index(table(spark, ("a", "price >"), ("b", "price > 1")), str(path), events_sample=offers, bad="error")
    assert not path.exists()


def test_the_library_and_spark_agree_when_nothing_warns(spark: SparkSession, offers: DataFrame) -> None:
    rows = [(f"s{n}", f"price > {n} AND city IN ('Lyon', 'Porto') OR price < {n}") for n in range(50)]
    matcher = tocsin.Matcher(tocsin.Space({"item": tocsin.Text(), "price": tocsin.Number(), "city": tocsin.Text()}))
    matcher.subscribe_many(pa.table({"id": [id for id, _ in rows], "expression": [text for _, text in rows]}))
    expected = sorted((offer.item, id) for offer in OFFERS for id in matcher.match(offer.asDict()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ts.TocsinWarning)
        assert pairs(ts.match(offers, table(spark, *rows))) == expected
