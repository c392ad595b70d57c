"""What a quarantine counts, arguments that are refused on the driver, and tables without a good subscription."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

import tocsin
from tests.spark.test_streaming import run
from tocsin import spark as ts
from tocsin.errors import OptionError, SparkError, SubscriptionError, UnknownEngineError

SPACE = tocsin.Space({"n": tocsin.Number("int64"), "ip": tocsin.Address()})
EVENTS = [(n, "?" if n == 3 else "::1") for n in range(8)]


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS, "n bigint, ip string").coalesce(1)


def subscriptions(spark: SparkSession, *texts: str) -> DataFrame:
    return spark.createDataFrame(list(enumerate(texts)), "id int, expression string")


def test_counts_are_of_the_whole_result_whatever_was_done_with_it(spark: SparkSession, events: DataFrame) -> None:
    held, expected = subscriptions(spark, "n >= 0", "ip = '::1' AND n < 4"), {"matches": 10, "refused": 1, "failed": 0}
    quarantine = ts.Quarantine()
    with pytest.raises(SparkError, match="belongs to no match yet"):
        quarantine.counts  # noqa: B018
    found = ts.match(events, held, space=SPACE, quarantine=quarantine)
    failing = found.select(F.raise_error(F.lit("no")))
    for act in (lambda: found.limit(1).collect(), lambda: failing.collect(), lambda: found.where("false").collect()):
        other = ts.Quarantine()
        other._fill(quarantine._events, quarantine._subscriptions, quarantine._counting)  # type: ignore[arg-type]
        try:
            act()
        except PySparkException as error:
            assert "no" in str(error)
        assert other.counts == expected
    assert quarantine.counts == expected, "no action was its own"


def failing() -> Any:
    """Return an operator that fails for two events, made here so that it travels by value."""

    def picky(n: int) -> bool:
        if n % 4 == 2:
            raise ValueError("not this one")
        return True

    return tocsin.operator(picky, reads=["n"], on_failure="false", parameters=[])


def test_failed_calls_of_operators_are_counted(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    held, path = subscriptions(spark, "picky() AND n >= 0"), str(tmp_path / "index")
    for shards in (1, 2):
        ts.build_index(held, f"{path}{shards}", space=SPACE, shards=shards, operators=[failing()])
        for output in ("pairs", "array"):
            quarantine = ts.Quarantine()
            found = ts.match(
                events.drop("ip"),
                f"{path}{shards}",
                output=output,  # type: ignore[arg-type]
                operators=[failing()],
                quarantine=quarantine,
            )
            assert found.count() == (6 if output == "pairs" else 8)
            counts = {"matches": found.count(), "refused": 0, "failed": 2}
            assert (quarantine.counts, quarantine.events.count()) == (counts, 0)
    events.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / "events"))
    progress: Any = run(ts.match(stream, f"{path}1", operators=[failing()]), tmp_path)
    assert next(iter(json.loads(json.dumps(progress[-1]))["observedMetrics"].values()))["failed"] == 2
    quarantine = ts.Quarantine()
    turned = ts.transitions(events.drop("ip"), f"{path}1", key="n", operators=[failing()], quarantine=quarantine)
    assert turned.count() == 6
    assert quarantine.counts == {"transitions": 6, "refused": 0, "failed": 2, "ignored": 0}


def test_arguments_are_checked_before_anything_runs(spark: SparkSession, events: DataFrame) -> None:
    held, calls = subscriptions(spark, "n > 0"), (ts.match, lambda *a, **k: ts.transitions(*a, key="n", **k))
    for call in calls:
        with pytest.raises(OptionError, match="missing is 'error' or 'unspecified', not 'foo'"):
            call(events, held, missing="foo")
        with pytest.raises(SparkError, match=r"version=99 is of an index at a path; .* have no versions"):
            call(events, held, version=99)
        for version in (0, -1, True, "3"):
            with pytest.raises(OptionError, match="version is the number of a version of the index, 1 or more"):
                call(events, "/nowhere", version=version)


ASKED = [
    ({"column": ""}, "column is the name of the column that holds the ids of subscriptions, not ''"),
    ({"column": None}, "column is the name of the column that holds the ids of subscriptions, not None"),
    ({"bad": "skip"}, "bad is 'quarantine' or 'error', not 'skip'"),
    ({"missing": ["error"]}, r"missing is 'error' or 'unspecified', not \['error'\]"),
    ({"space": {"n": int}}, "space is a tocsin.Space, not {'n'"),
    ({"quarantine": []}, r"quarantine is a tocsin.spark.Quarantine\(\), not \[\]"),
    ({"operators": ["nearby"]}, "operators are a list of what tocsin.operator has declared; 'nearby' is none"),
    ({"operators": 5}, "operators are a list of what tocsin.operator has declared; 5 is none"),
    ({"records": ""}, "a path is expected, not an empty text"),
    ({"scratch": ""}, "a path is expected, not an empty text"),
]
BUILT = [
    ({"segment_rows": 0}, "segment_rows is a whole number of at least 1, not 0"),
    ({"segment_rows": 2.5}, "segment_rows is a whole number of at least 1, not 2.5"),
    ({"shards": True}, "shards is a whole number of at least 1, not True"),
    ({"overwrite": "no"}, "overwrite is True or False, not 'no'"),
    ({"bad": "skip"}, "bad is 'quarantine' or 'error', not 'skip'"),
    ({"space": "n"}, "space is a tocsin.Space, not 'n'"),
]
CHANGED = [
    ({"order": ""}, "order is the name of a column, not ''"),
    ({"source": "", "batch": 1}, "source is the name of where changes come from, not ''"),
    ({"source": "s", "batch": 1.0}, "batch is a whole number of at least 0, not 1.0"),
    ({"bad": "skip"}, "bad is 'quarantine' or 'error', not 'skip'"),
    ({"operators": [None]}, "operators are a list of what tocsin.operator has declared; None is none"),
]
MOVED = [
    ({"partial": "yes"}, "partial is True or False, not 'yes'"),
    ({"order": ""}, "order is the name of a column, not ''"),
    ({"deleted": 3}, "deleted is the name of a column, not 3"),
    ({"key": None}, "key is the name of a column, not None"),
    ({"state": "/nowhere/state", "batch": True}, "batch is a whole number of at least 0, not True"),
    ({"state": "/nowhere/state", "batch": 1, "buckets": "8"}, "buckets is a whole number of at least 1, not '8'"),
]


def test_every_option_is_checked_on_the_driver(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    held, path = subscriptions(spark, "n > 0"), str(tmp_path / "index")
    calls: list[tuple[Callable[..., Any], list[tuple[dict[str, Any], str]]]] = [
        (lambda **given: ts.match(events, held, **given), [*ASKED, ({"output": None}, "output is 'pairs' or 'array'")]),
        (lambda **given: ts.transitions(events, held, **({"key": "n"} | given)), [*ASKED, *MOVED]),
        (lambda **given: ts.build_index(held, path, **({"space": SPACE} | given)), BUILT),
        (lambda **given: ts.update_index(held, path, **given), CHANGED),
    ]
    for call, cases in calls:
        for given, message in cases:
            with pytest.raises(OptionError, match=message):
                call(**given)
    with pytest.raises(UnknownEngineError, match="there is no engine 'fast'"):
        ts.build_index(held, path, space=SPACE, engine="fast")
    assert not (tmp_path / "index").exists()


def test_a_table_whose_only_subscription_is_bad_matches_nothing(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    quarantine = ts.Quarantine()
    with pytest.warns(ts.TocsinWarning, match="1 of 1 subscriptions are bad"):
        found = ts.match(events, subscriptions(spark, "m < 3"), space=SPACE, quarantine=quarantine)
    assert found.collect() == [] and [row["id"] for row in quarantine.subscriptions.collect()] == [0]
    with pytest.warns(ts.TocsinWarning, match="1 of 1 subscriptions are bad"):
        made = ts.build_index(subscriptions(spark, "m < 3"), str(tmp_path / "index"), space=SPACE, shards=2)
    assert (made.subscriptions, made.refused) == (0, 1)
    assert ts.match(events, str(tmp_path / "index")).collect() == []
    with pytest.raises(SubscriptionError, match="1 of the subscriptions are bad; no index was built"):
        ts.build_index(subscriptions(spark, "m < 3"), str(tmp_path / "none"), space=SPACE, bad="error")
    assert not (tmp_path / "none").exists()
