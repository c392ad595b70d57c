"""The Spark benchmark on a small workload: its passes and all joins find the same pairs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tocsin.bench.spark import measure_spark
from tocsin.bench.workloads import WORKLOADS
from tocsin.matcher import Matcher
from tocsin.space import Space


@pytest.mark.slow
def test_matching_and_all_joins_find_the_same_pairs(spark: SparkSession) -> None:
    figures = measure_spark(spark, 20_000, 2_000, repetitions=1, join_seconds=1000)
    workload = WORKLOADS["W0"]
    matcher = Matcher(Space.from_arrow(workload.events(1).schema))
    matcher.subscribe_many(workload.expressions(20_000))
    expected = len(matcher.match_batch(workload.events(2_000)))
    assert figures.pairs == expected > 0
    assert [(join.events, join.pairs) for join in figures.joins] == [(2_000, expected)] * 4
    assert figures.index_bytes > 0
    assert len(figures.as_rows()) > 10
