"""The Spark benchmark on a small workload: its passes and all joins find the same pairs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tocsin.bench.spark import measure_spark
from tocsin.bench.spark_sizes import Limits, largest
from tocsin.bench.workloads import WORKLOADS
from tocsin.matcher import Matcher
from tocsin.space import Space


@pytest.mark.slow
def test_matching_and_all_joins_find_the_same_pairs(spark: SparkSession) -> None:
    figures = measure_spark(spark, 20_000, 2_000, repetitions=1, limits=Limits(2_000, 1000, 2, 40_000))
    workload = WORKLOADS["W0"]
    assert [size.subscriptions for size in figures.sizes] == [20_000, 40_000]
    for size in figures.sizes:
        matcher = Matcher(Space.from_arrow(workload.events(1).schema))
        matcher.subscribe_many(workload.expressions(size.subscriptions))
        expected = len(matcher.match_batch(workload.events(2_000)))
        assert size.pairs == expected > 0
        assert [(join.events, join.pairs) for join in size.joins] == [(2_000, expected)] * 4
        assert size.index_bytes > 0
    assert [size.subscriptions for size, _ in largest(figures.sizes)] == [40_000] * 4
    workers = figures.workers
    assert (workers.workers, workers.index_bytes) == (2, figures.standard.index_bytes)
    assert workers.host_bytes <= workers.resident_bytes
    assert len(figures.as_rows()) > 20 and len(figures.to_json()["sizes"]) == 2


@pytest.mark.slow
def test_joins_that_do_not_finish_go_down_to_sizes_that_they_finish(spark: SparkSession) -> None:
    figures = measure_spark(spark, 4_000, 1_000, repetitions=1, limits=Limits(1_000, 0.0, 2, 4_000))
    assert [size.subscriptions for size in figures.sizes] == [4_000, 2_000, 1_000]
    assert all(not size.joins and len(size.unfinished) == 4 for size in figures.sizes)
