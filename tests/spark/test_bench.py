"""The Spark benchmark on a small workload: its passes and all joins find the same pairs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tocsin.bench.draws import clusters, uniform_events
from tocsin.bench.spark import measure_spark
from tocsin.bench.spark_joins import BY_HAND, COMMON, COUNTING, NESTED
from tocsin.bench.spark_report import targets
from tocsin.bench.spark_sizes import Limits, best_plain, largest
from tocsin.bench.workloads import Workload
from tocsin.matcher import Matcher
from tocsin.space import Space

SMALL = Workload(
    "small", "W0 with 8 axes of 4 values", 8, clusters(2, 3, pool=range(8), top=4, first_top=4), uniform_events(8, 4)
)
ALL = [NESTED, COUNTING, COMMON, BY_HAND]


def expected(subscriptions: int, events: int) -> int:
    matcher = Matcher(Space.from_arrow(SMALL.events(1).schema))
    matcher.subscribe_many(SMALL.expressions(subscriptions))
    return len(matcher.match_batch(SMALL.events(events)))


@pytest.mark.slow
def test_matching_and_all_joins_find_the_same_pairs(spark: SparkSession) -> None:
    limits = Limits(1_000, 1000, (4_000, 6_000), 1000)
    figures = measure_spark(spark, 2_000, 1_000, workload=SMALL, repetitions=1, limits=limits)
    assert [size.subscriptions for size in figures.sizes] == [2_000, 4_000, 6_000]
    assert [join.name for join in figures.standard.joins] == ALL
    for size in figures.sizes:
        assert size.pairs == expected(size.subscriptions, 1_000) > 1_000
        assert {(join.events, join.pairs) for join in size.joins} == {(1_000, size.pairs)}
        assert size.index_bytes > 0 and not size.unfinished
    assert {join.name for _, join in largest(figures.sizes)} == set(ALL)
    best = best_plain(figures.sizes)
    assert best is not None and best[0].subscriptions == 6_000 and best[1].is_plain
    workers = figures.workers
    assert (workers.workers, workers.index_bytes) == (2, figures.standard.index_bytes)
    assert 0 < figures.share_in_our_code < 1 and figures.bare_rate > 0
    assert len(figures.to_json()["sizes"]) == 3 and len(targets(figures)) == 4


@pytest.mark.slow
def test_joins_that_do_not_finish_are_told_and_end_the_climb(spark: SparkSession) -> None:
    figures = measure_spark(
        spark, 1_000, 1_000, workload=SMALL, repetitions=1, limits=Limits(1_000, 0.0, (2_000,), 1000)
    )
    (size,) = figures.sizes
    assert not size.joins and [name for name, _ in size.unfinished] == ALL
    assert size.pairs == expected(1_000, 1_000)


@pytest.mark.slow
def test_no_size_is_begun_when_the_time_is_up(spark: SparkSession) -> None:
    told: list[str] = []
    figures = measure_spark(
        spark, 1_000, 1_000, workload=SMALL, repetitions=1, limits=Limits(10, 1000, (2_000,), 0.0), say=told.append
    )
    assert [size.subscriptions for size in figures.sizes] == [1_000] and len(figures.standard.joins) == 4
    assert told[-1] == "2,000 subscriptions are not begun: 0 minutes have passed"
