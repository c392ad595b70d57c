"""Operators in transitions: what they say of a publication before and after makes it enter and leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tocsin
from tests.spark.test_operators import vectorised
from tocsin import spark as ts
from tocsin.errors import SparkError

TEXTS = {
    "high": "place_of(:r) AND :r > 1",
    "both": "place_of(:r) AND :r < 3 AND price > 10",
    "none": "NOT place_of(:r)",
    "box": "within(price, price, 'POLYGON ((5 5, 20 5, 20 20, 5 20, 5 5))') OR price > 38",
}
LATER = {"none": "place_of(:r) AND :r = 1", "far": "NOT within(price, price, 'POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))')"}
SPACE = tocsin.Space({"name": tocsin.Text(), "price": tocsin.Number()})


def matching(texts: dict[str, str], states: dict[int, dict[str, Any]]) -> set[tuple[int, str]]:
    """Return the pairs by the library."""
    matcher = tocsin.Matcher(SPACE, operators=[vectorised()])
    for id, text in texts.items():
        matcher.subscribe(id, text)
    return {(key, id) for key, state in states.items() for id in matcher.match(state)}


def test_operators_decide_who_enters_and_leaves_also_when_subscriptions_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    index = str(tmp_path / "index")
    rows = spark.createDataFrame(list(TEXTS.items()), "id string, expression string")
    ts.build_index(rows, index, space=SPACE, operators=[vectorised()])
    states: dict[int, dict[str, Any]] = {}
    texts = dict(TEXTS)
    pairs: set[tuple[int, str]] = set()
    for batch in range(3):
        if batch == 2:
            changes = spark.createDataFrame(list(LATER.items()), "id string, expression string")
            ts.update_index(changes, index, operators=[vectorised()])
            texts |= LATER
        moved = {key: {"name": "abcd"[(key + batch) % 4], "price": key * (batch + 1.0)} for key in range(batch, 24)}
        updates = spark.createDataFrame(
            [(key, state["name"], state["price"]) for key, state in moved.items()], "key int, name string, price double"
        )
        result = ts.transitions(
            updates,
            index,
            key="key",
            operators=[vectorised()],
            state=tmp_path / "state",
            batch=batch,
            buckets=None if batch else 2,
        )
        before = matching(texts, states)
        turned = {(*pair, "leave") for pair in pairs - before} | {(*pair, "enter") for pair in before - pairs}
        states |= moved
        pairs = matching(texts, states)
        turned |= {(*pair, "leave") for pair in before - pairs} | {(*pair, "enter") for pair in pairs - before}
        found = sorted((row["key"], row["subscription"], row["transition"]) for row in result.collect())
        assert set(found) == turned
        assert len({id for _, id, _ in found}) >= 4


def test_an_operator_whose_failure_is_an_error_is_refused(spark: SparkSession) -> None:
    strict = tocsin.operator(lambda price: price > 1, name="strict", reads=["price"], on_failure="error")
    updates = spark.createDataFrame([], "key int, price double")
    subscriptions = spark.createDataFrame([("a", "strict()")], "id string, expression string")
    with pytest.raises(SparkError, match=r"strict has on_failure='error'.*declare it with on_failure='false'"):
        ts.transitions(updates, subscriptions, key="key", operators=[strict])
