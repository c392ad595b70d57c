"""The leg of the models over Spark, on cases whose answers are plain to see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import tocsin
from tests.spark.model_leg import Case, match_on_spark, refused_on_spark, transitions_on_spark

PRICES = tocsin.Space({"price": tocsin.Number("int64"), "ip": tocsin.Address()})
KINDS = tocsin.Space({"kind": tocsin.Concept({"thing": ["lamp", "sofa"]}), "x": tocsin.Number()})


def test_cases_of_several_spaces_are_matched_in_one_job(spark: SparkSession, tmp_path: Path) -> None:
    cases = [
        Case(
            PRICES,
            {0: "price < 5", 7: "price = 9 OR ip = '::1'"},
            pa.table({"price": pa.array([3, 9, None], pa.int64()), "ip": ["?", None, "::1"]}),
        ),
        Case(KINDS, {1: "is_a(kind, 'thing')", 2: "kind = 'sofa'"}, pa.table({"kind": ["lamp", "sofa"]})),
    ]
    assert match_on_spark(spark, tmp_path, cases) == [{(1, 7), (2, 7)}, {(0, 1), (1, 1), (1, 2)}]
    refused = refused_on_spark(spark, tmp_path, cases)
    assert [list(each) for each in refused] == [[0], []] and refused[0][0].startswith("field ip:")


def test_cases_of_updates_are_told_in_one_job(spark: SparkSession, tmp_path: Path) -> None:
    updates = pa.table({"key": ["a", "b", "a"], "at": [1, 1, 2], "x": [1.0, 9.0, 9.0], "gone": [False, False, True]})
    ranges = pa.array([{"low": 1.0, "high": 4.0}, {"low": 5.0, "high": 6.0}])
    cases = [
        Case(tocsin.Space({"x": tocsin.Number()}), {0: "x < 5", 1: "x > 5"}, updates),
        Case(tocsin.Space({"x": tocsin.Number()}), {0: "x = 3"}, pa.table({"key": [1, 1], "at": [1, 2], "x": ranges})),
    ]
    assert transitions_on_spark(spark, tmp_path, cases) == [
        Counter({("a", 1, 0, "enter"): 1, ("b", 1, 1, "enter"): 1, ("a", 2, 0, "leave"): 1}),
        Counter({("1", 1, 0, "enter"): 1, ("1", 2, 0, "leave"): 1}),
    ]
