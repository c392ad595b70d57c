"""`ts.redundancy`: the subscriptions that do the work of all, whatever the partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tocsin import Matcher, Number, Space, Text
from tocsin import spark as ts
from tocsin.bench.searches import SPACE, offers, searches
from tocsin.errors import MissingColumnError, SparkError


def test_roots_stand_for_all_and_match_where_any_does(spark: SparkSession) -> None:
    table = searches(600, np.random.default_rng(3))
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    frame = spark.createDataFrame(rows, "id string, expression string")
    found = ts.redundancy(frame.repartition(3), SPACE).collect()
    assert sum(row["stands_for"] for row in found) == 600
    assert len(found) < 400
    whole, roots = Matcher(SPACE), Matcher(SPACE)
    whole.subscribe_many(table)
    roots.subscribe_many(pa.table({name: [row[name] for row in found] for name in ("id", "expression")}))
    events = offers(800, np.random.default_rng(4))
    matched, kept = (set(one.match_batch(events)["event"].to_pylist()) for one in (whole, roots))
    assert matched == kept and matched


def test_bad_and_impossible_rows_stand_for_nothing(spark: SparkSession) -> None:
    rows = [(1, "price < 9"), (2, "price <"), (3, None), (4, "price < 1 AND price > 2")]
    rows += [(5, "price < 3"), (6, "price < 9.0")]
    frame = spark.createDataFrame(rows, "id int, expression string")
    found = ts.redundancy(frame, Space({"price": Number(), "city": Text()})).collect()
    assert [(row["expression"] in ("price < 9", "price < 9.0"), row["stands_for"]) for row in found] == [(True, 3)]
    assert ts.redundancy(frame.limit(0), Space({"price": Number()})).collect() == []


def test_what_is_no_table_of_subscriptions_is_refused(spark: SparkSession) -> None:
    space = Space({"price": Number()})
    with pytest.raises(MissingColumnError, match="expression"):
        ts.redundancy(spark.createDataFrame([(1, "x")], "id int, expresion string"), space)
    with pytest.raises(SparkError, match="stream"):
        rate = spark.readStream.format("rate").load()
        ts.redundancy(rate.selectExpr("value AS id", "'price < 1' AS expression"), space)
