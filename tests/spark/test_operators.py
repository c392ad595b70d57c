"""Operators on Spark: they travel to the workers, and give there what they give in the library."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin import spark as ts
from tocsin.errors import MissingColumnError


def vectorised() -> Any:
    """Return a vector operator with a resource, made here so that it travels by value."""

    def load() -> dict[str, int]:
        return {"a": 1, "b": 2, "c": 3}

    def place_of(letters: Any, name: Any) -> Any:
        return [letters.get(each) for each in name]

    return tocsin.operator(
        place_of, reads=["name"], outputs={"r": int}, form="vector", resource=load, parameters=[], version="7"
    )


def test_a_batch_on_spark_gives_what_the_library_gives(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(at, "abcd"[at % 4], float(at)) for at in range(40)]
    texts = [
        ("high", "place_of(:r) AND :r > 1"),
        ("both", "place_of(:r) AND :r < 3 AND price > 10"),
        ("none", "NOT place_of(:r)"),
        ("box", "within(price, price, 'POLYGON ((5 5, 20 5, 20 20, 5 20, 5 5))') OR price > 38"),
    ]
    events = spark.createDataFrame(rows, "event long, name string, price double")
    subscriptions = spark.createDataFrame(texts, "id string, expression string")
    space = tocsin.Space({"name": tocsin.Text(), "price": tocsin.Number()})
    matcher = tocsin.Matcher(space, operators=[vectorised()])
    matcher.subscribe_many(pa.table({"id": [id for id, _ in texts], "expression": [text for _, text in texts]}))
    table = pa.table({"name": [name for _, name, _ in rows], "price": [price for *_, price in rows]})
    wanted = {(row["event"], row["subscription"]) for row in matcher.match_batch(table).to_pylist()}
    assert len({id for _, id in wanted}) == len(texts)
    found = ts.match(events, subscriptions, operators=[vectorised()])
    assert {(row.event, row.subscription) for row in found.collect()} == wanted
    path = str(tmp_path / "index")
    ts.build_index(subscriptions, path, events_sample=events, operators=[vectorised()])
    ts.update_index(
        spark.createDataFrame([("none", "place_of(:r) AND :r = 1")], "id string, expression string"),
        path,
        operators=[vectorised()],
    )
    matcher.subscribe("none", "place_of(:r) AND :r = 1", duplicates="replace")
    wanted = {(row["event"], row["subscription"]) for row in matcher.match_batch(table).to_pylist()}
    again = ts.match(events, path, operators=[vectorised()])
    assert {(row.event, row.subscription) for row in again.collect()} == wanted
    shards = str(tmp_path / "shards")
    ts.build_index(subscriptions, shards, events_sample=events, operators=[vectorised()], shards=2)
    spread = ts.match(events, shards, operators=[vectorised()])
    matcher.subscribe("none", "NOT place_of(:r)", duplicates="replace")
    wanted = {(row["event"], row["subscription"]) for row in matcher.match_batch(table).to_pylist()}
    assert {(row.event, row.subscription) for row in spread.collect()} == wanted


ISOLATED = """
import os
import time
import tocsin

def load():
    with open(PATH, "a") as loaded:
        loaded.write(f"{os.getppid()}\\n")
    return {"a": 1, "b": 2, "c": 3}

@tocsin.operator(reads=["name"], outputs={"r": int}, resource=load, isolate="process", limit=6.0)
def careful_place(letters, name):
    while name == "endless":
        time.sleep(1)
    if name == "deadly":
        os._exit(3)
    return letters.get(name)
"""


def test_operators_in_processes_of_their_own_run_beside_the_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, loaded = tmp_path / "careful_operators.py", tmp_path / "loaded"
    module.write_text(ISOLATED.replace("PATH", repr(str(loaded))))
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.addArtifact(str(module), pyfile=True)
    operator = importlib.import_module("careful_operators").careful_place
    names = ["a", "endless", "b", "c", "deadly", "d", "c", "a"]
    texts = [("high", "careful_place(:r) AND :r > 1"), ("none", "NOT careful_place(:r)"), ("any", "name <> ''")]
    subscriptions = spark.createDataFrame(texts, "id string, expression string")
    matcher = tocsin.Matcher(tocsin.Space({"name": tocsin.Text()}), operators=[operator])
    matcher.subscribe_many(pa.table({"id": [id for id, _ in texts], "expression": [text for _, text in texts]}))
    wanted = {(at, id) for at, name in enumerate(names) for id in matcher.match({"name": name})}
    assert {(2, "high"), (5, "none"), (1, "any")} <= wanted
    assert not {(1, "high"), (1, "none"), (4, "high"), (4, "none")} & wanted, "what failed is neither true nor false"
    for _ in range(2):
        events = spark.createDataFrame(list(enumerate(names)), "event long, name string").repartition(2, "event")
        found = ts.match(events, subscriptions, operators=[operator])
        assert {(row.event, row.subscription) for row in found.collect()} == wanted
    workers = loaded.read_text().split()
    assert len(workers) == len(set(workers)) > 1, "it is loaded once for each worker, and for the driver"


def test_operators_receive_on_spark_what_they_receive_of_a_dictionary(spark: SparkSession) -> None:
    """The operator says type and value of what it gets; subscriptions want those that the documentation lists."""
    space = tocsin.Space(
        {
            "double": tocsin.Number(),
            "whole": tocsin.Number("int64"),
            "short": tocsin.Number("decimal(6, 2)"),
            "mass": tocsin.Number(unit="kg"),
            "flag": tocsin.Boolean(),
            "country": tocsin.Text(synonyms={"US": "United States"}),
            "target": tocsin.Concept({"computer": ["laptop"]}, synonyms={"notebook": "laptop"}),
            "host": tocsin.Address(),
            "at": tocsin.Time(),
            "day": tocsin.Time("date"),
            "tags": tocsin.Repeated(tocsin.Text()),
            "total": tocsin.Derived("double * 2", tocsin.Number()),
        }
    )
    at = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
    event: dict[str, Any] = {
        "double": 5.5, "whole": 2**53 + 1, "short": Decimal("1.5"), "mass": "2 t", "flag": True, "country": "US",
        "target": "notebook", "host": "::ffff:10.0.0.1", "at": at, "day": at.date(), "tags": ["a", None],
    }  # fmt: skip
    wanted = {
        "double": 5.5, "whole": 2**53 + 1, "short": Decimal("1.50"), "mass": 2000.0, "flag": True,
        "country": "United States", "target": "laptop", "host": "10.0.0.1", "at": at, "day": at.date(),
        "tags": ["a", None], "total": 11.0,
    }  # fmt: skip
    told = tocsin.operator(
        lambda value: f"{type(value).__name__} {value!r}".replace("'", '"'), name="told", outputs=["t"]
    )
    texts = [(name, f"told({name}, :t) AND :t = '{told.function(value)}'") for name, value in wanted.items()]
    texts += [
        ("lower", "told(lower(country), :t) AND :t = 'str \"united states\"'"),
        ("word", "mentions(country, 'states')"),
    ]
    matcher = tocsin.Matcher(space, operators=[told])
    matcher.subscribe_many(pa.table({"id": [id for id, _ in texts], "expression": [text for _, text in texts]}))
    assert set(matcher.match(event)) == {id for id, _ in texts}
    schema = "double double, whole long, short decimal(6, 2), mass string, flag boolean, country string, "
    schema += "target string, host string, at timestamp, day date, tags array<string>"
    events = spark.createDataFrame([tuple(event.values()), (None,) * len(event)], schema)
    subscriptions = spark.createDataFrame(texts, "id string, expression string")
    found = ts.match(events, subscriptions, space=space, operators=[told])
    assert sorted(row.subscription for row in found.collect()) == sorted(id for id, _ in texts)


def test_every_call_is_answered_by_the_operators_that_it_brings(spark: SparkSession, tmp_path: Path) -> None:
    def above(limit: int) -> Any:
        def is_above(price: float) -> bool:
            return price > limit

        return tocsin.operator(is_above, reads=["price"], parameters=[], version="1")

    events = spark.createDataFrame([(float(at),) for at in range(10)], "price double").coalesce(1)
    subscriptions = spark.createDataFrame([("a", "is_above()")], "id string, expression string")
    path = str(tmp_path / "index")
    ts.build_index(subscriptions, path, events_sample=events, operators=[above(0)])
    assert [ts.match(events, path, operators=[above(limit)]).count() for limit in (3, 7, 3)] == [6, 2, 6]


def test_events_that_lack_a_column_which_only_operators_receive_are_refused_on_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    pictured = tocsin.operator(lambda picture: len(picture) > 1, name="pictured", reads=["picture"], parameters=[])
    space = tocsin.Space({"n": tocsin.Number("int64"), "title": tocsin.Text()})
    events = spark.createDataFrame([(1, "a lamp", bytearray(b"..."))], "n bigint, title string, picture binary")
    first = spark.createDataFrame([("n", "n = 1"), ("word", "mentions(title, 'lamp')")], "id string, expression string")
    index = str(tmp_path / "index")
    ts.build_index(first, index, space=space, operators=[pictured])
    assert ts.match(events.drop("picture"), index).count() == 2
    with pytest.raises(MissingColumnError, match="the events have no column title, which subscriptions test"):
        ts.match(events.drop("title"), index)
    assert ts.match(events.drop("title"), index, missing="unspecified").count() == 1
    later = spark.createDataFrame([("pictured", "pictured()")], "id string, expression string")
    ts.update_index(later, index, operators=[pictured])
    assert ts.match(events, index, operators=[pictured]).count() == 3
    for call in (ts.match, lambda *given, **more: ts.transitions(*given, key="n", **more)):
        with pytest.raises(MissingColumnError, match="the events have no column picture, which subscriptions test"):
            call(events.drop("picture"), index, operators=[pictured])
