"""Events and subscriptions as strangers have them: odd names, types that nothing tests or that Python never sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin import spark as ts
from tocsin.errors import SpaceError, SparkError, SubscriptionError


def table(spark: SparkSession, *expressions: str) -> DataFrame:
    return spark.createDataFrame(list(enumerate(expressions)), "id int, expression string")


def found(frame: DataFrame) -> list[int]:
    return sorted(row["subscription"] for row in frame.collect())


def test_names_in_backticks_are_fields_and_come_back_as_they_were(spark: SparkSession) -> None:
    names = ["c d", "id", "Ünï", "select", "x-y", "1st", 'q"uote', "new\nline", "expression", "event"]
    events = spark.range(1).toDF("a.b")
    quoted = [f"`{name}`" for name in names]
    for number, name in enumerate(quoted):
        events = events.selectExpr("*", f"{number} AS {name}")
    events = events.selectExpr("*", "-1 AS `e``f`")
    quarantine = ts.Quarantine()
    matched = ts.match(
        events, table(spark, *(f"{name} = {n}" for n, name in enumerate(quoted))), column="to.ld", quarantine=quarantine
    )
    assert matched.columns == ["a.b", *names, "e`f", "to.ld"]
    rows = [tuple(row) for row in matched.collect()]
    assert sorted(rows) == [(0, *range(len(names)), -1, number) for number in range(len(names))]
    assert quarantine.events.columns == ["a.b", *names, "e`f", "reason"] and quarantine.counts["refused"] == 0


def test_columns_that_are_only_carried_are_told_where_a_subscription_names_one(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS n, map('k', 1) AS m, CAST('x' AS BINARY) AS raw, 2 AS `a.b`")
    with pytest.warns(ts.TocsinWarning) as told:
        assert found(ts.match(events, table(spark, "m.k = 1", "n = 1"))) == [1]
    (said,) = (str(each.message) for each in told if each.category is ts.TocsinWarning)
    assert "there is no field 'm.k'" in said
    assert "columns of the events that cannot be tested: m (map<string,int>), raw (binary), a.b (by its name)" in said
    with pytest.raises(SubscriptionError, match=r"columns of the events that cannot be tested: m \(map"):
        ts.match(events, table(spark, "m.k = 1"), bad="error")
    with pytest.raises(
        SpaceError, match=r"no column that a subscription can test; cannot be tested: m \(map<string,int>"
    ):
        ts.match(events.select("m"), table(spark, "m.k = 1"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("make_interval(1, 2)", "v of the events holds interval, which PySpark does not pass to Python; cast it"),
        ("INTERVAL '1' YEAR", r"v of the events holds interval year.*leave it out with events.drop\('v'\)"),
        ("array(named_struct('i', INTERVAL '1' MONTH))", "v of the events holds interval month"),
        ("array()", "v of the events holds elements without a type"),
        ("map()", "v of the events holds elements without a type"),
    ],
)
def test_types_that_never_reach_python_are_told_at_once(spark: SparkSession, value: str, message: str) -> None:
    events = spark.sql(f"SELECT 1 AS n, {value} AS v")
    with pytest.raises(SparkError, match=message):
        ts.match(events, table(spark, "n = 1"))
    assert found(ts.match(events.drop("v"), table(spark, "n = 1"))) == [0]


def test_a_table_with_two_columns_of_one_name_is_told(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS n")
    for columns in ("1 AS id, 2 AS id, 'n = 1' AS expression", "1 AS id, 'n = 1' AS expression, 'n = 2' AS Expression"):
        with pytest.raises(SubscriptionError, match="the subscriptions have two columns named"):
            ts.match(events, spark.sql(f"SELECT {columns}"))


def test_columns_in_capitals_are_those_of_a_table_of_subscriptions(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS n")
    assert found(ts.match(events, spark.sql("SELECT 7 AS ID, 'n = 1' AS Expression"))) == [7]


def test_a_stream_of_subscriptions_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    events, index = spark.sql("SELECT 1 AS n"), str(tmp_path / "index")
    table(spark, "n = 1").write.parquet(str(tmp_path / "rules"))
    stream = spark.readStream.schema("id int, expression string").parquet(str(tmp_path / "rules"))
    with pytest.raises(SparkError, match=r"is a streaming DataFrame, where a table is expected; read it with"):
        ts.match(events, stream)
    with pytest.raises(SparkError, match=r"^subscriptions is a streaming DataFrame"):
        ts.build_index(stream, index, events_sample=events)
    with pytest.raises(SparkError, match=r"^changes is a streaming DataFrame"):
        ts.update_index(stream, index)


def test_lists_that_are_null_are_those_of_spark(spark: SparkSession) -> None:
    rows = [
        (0, None, None), (1, ([], "x"), []), (2, (None, "x"), [None]), (3, ([None], "x"), [(None, [])]),
        (4, ([(None, 1)], None), [("a", None)]), (5, ([("a", 1)], "x"), [("a", ["b"]), None]),
    ]  # fmt: skip
    inner = "s struct<items: array<struct<sku: string, q: int>>, t: string>"
    events = spark.createDataFrame(rows, f"n int, {inner}, l array<struct<v: string, w: array<string>>>")
    texts = [
        "s.items.sku IS NULL",
        "s.items.q IS NOT NULL",
        "s.t IS NULL",
        "l.v IS NULL",
        "l.w IS NULL",
        "NOT (l.w IS NULL)",
    ]
    matched = ts.match(events, table(spark, *texts)).select("n", "subscription").collect()
    wanted = [(row["n"], id) for id, text in enumerate(texts) for row in events.where(text).collect()]
    assert sorted(map(tuple, matched)) == sorted(wanted)
    with pytest.raises(
        SubscriptionError, match=r"there is no field 's.items'; it holds other fields, test one of those"
    ):
        ts.match(events, table(spark, "s.items IS NULL"), bad="error")
