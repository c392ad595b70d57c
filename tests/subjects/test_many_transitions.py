"""Batches that match very much tell the same as single insertions do, however and whenever they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Number, Space, Subjects
from tocsin.index.marks import Marks

SPACE = Space({name: Number("int64") for name in "abcdef"}, unspecified="any")


def subscriptions(random: np.random.Generator, name: Callable[[int], Any], first: int, last: int) -> pa.Table:
    """Return subscriptions of two equalities."""
    texts = []
    for _ in range(first, last):
        one, other = random.choice(list("abcdef"), 2, replace=False)
        texts.append(f"{one} = {random.integers(0, 5)} AND {other} = {random.integers(0, 5)}")
    return pa.table({"id": [name(number) for number in range(first, last)], "expression": texts})


def publications(random: np.random.Generator, first: int, count: int) -> pa.Table:
    """Return publications, half of whose dimensions are open."""
    columns: dict[str, Any] = {"key": list(range(first, first + count))}
    for dimension in "abcdef":
        given = random.random(count) < 0.5
        given |= dimension == "a"
        columns[dimension] = pa.array(random.integers(0, 5, count), mask=~given)
    return pa.table(columns)


def pairs(transitions: Any) -> list[tuple[int, Any, Any, str]]:
    """Return the rows of a table of transitions, in some order."""
    return sorted((one["row"], one["publication"], str(one["subscription"]), one["transition"]) for one in transitions)


@pytest.mark.parametrize("name", [int, lambda number: f"s{number}"], ids=["whole", "text"])
def test_a_batch_of_insertions_tells_what_single_ones_do(name: Callable[[int], Any]) -> None:
    random = np.random.default_rng(1)
    whole, singly = Subjects(SPACE), Subjects(SPACE)
    table = subscriptions(random, name, 0, 1_500)
    for subjects in (whole, singly):
        subjects.subscribe_many(table)
    told = []
    for batch in range(3):
        some = publications(random, 30 * batch, 30)
        told.append(whole.put_many(some))
        expected = []
        for row, one in enumerate(some.to_pylist()):
            values = {dimension: value for dimension, value in one.items() if value is not None}
            expected += [(row, key, str(id), kind) for kind, key, id in singly.publish(values.pop("key"), values)]
        assert expected
        assert (len(told[-1]), told[-1].enters, told[-1].leaves) == (len(expected), len(expected), 0)
        if batch < 2:
            assert pairs(told[-1].to_arrow().to_pylist()) == sorted(expected)
            assert pairs(told[-1].to_arrow(encoded=True).to_pylist()) == sorted(expected)
            assert sorted((key, str(id), kind) for kind, key, id in told[-1]) == sorted(each[1:] for each in expected)
    assert isinstance(told[0]._told, tuple) and isinstance(told[2]._told, Marks)
    # read late: the subscriptions are gone, and others have come
    for id in table["id"].to_pylist()[::2]:
        whole.unsubscribe(id)
    whole.subscribe_many(subscriptions(random, name, 2_000, 3_000))
    assert pairs(told[2].to_arrow().to_pylist()) == sorted(expected)
    assert pairs(told[2].to_arrow(encoded=True).to_pylist()) == sorted(expected)
    assert whole.delete_many(list(range(90))).enters == 0
    assert whole.matches() == set()
