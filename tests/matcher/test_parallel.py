"""A table matched by several threads gives the rows that one thread gives, in the same order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tocsin


@pytest.fixture
def subscriptions() -> pa.Table:
    return pa.table(
        {"id": range(500), "expression": [f"x > {number} AND y = 's{number % 7}'" for number in range(500)]}
    )


@pytest.fixture
def events() -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {"x": random.integers(0, 600, 40_000), "y": [f"s{number}" for number in random.integers(0, 9, 40_000)]}
    )


def test_two_threads_answer_as_one(subscriptions: pa.Table, events: pa.Table) -> None:
    space = tocsin.Space.from_arrow(events.schema)
    one, two = tocsin.Matcher(space), tocsin.Matcher(space, threads=2)
    for matcher in (one, two):
        matcher.subscribe_many(subscriptions)
    assert two.match_batch(events) == one.match_batch(events)


def test_bad_rows_are_reported_in_order_whichever_thread_meets_them(subscriptions: pa.Table, events: pa.Table) -> None:
    broken = events.set_column(
        0, "x", pa.array([None if row % 5000 else 0.5 for row in range(len(events))], pa.float64())
    )
    matcher = tocsin.Matcher(tocsin.Space.from_arrow(events.schema), threads=3)
    matcher.subscribe_many(subscriptions)
    problems: list[tocsin.Problem] = []
    matcher.match_batch(broken, problems=problems)
    assert [problem.row for problem in problems] == list(range(0, 40_000, 5000))


@pytest.mark.parametrize(("threads", "refused"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_threads_are_counted_in_whole_numbers(threads: int, refused: type[Exception]) -> None:
    with pytest.raises(refused, match="at least 1"):
        tocsin.Matcher(tocsin.Space({"x": tocsin.Number()}), threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("named", [False, True])
def test_batches_of_many_and_of_few_matches_are_one_table(threads: int, named: bool, tmp_path: Path) -> None:
    ids = [f"s{number}" if named else number * 3 for number in range(500)]
    chunks = [[0, 0], [1000] * 100, [3], [], [1000] * 60 + [7], [0], [2, 1000, 1]]
    x = pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks])
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number("int64")}), threads=threads)
    matcher.subscribe_many(pa.table({"id": ids, "expression": [f"x > {number}" for number in range(500)]}))
    matcher.save(tmp_path)
    expected = [(row, id) for row, value in enumerate(x.to_pylist()) for id in ids[:value]]
    for asked in (matcher, tocsin.Matcher.load(tmp_path, threads=threads)):
        found = asked.match_batch(pa.table({"x": x}))
        assert found["event"].to_pylist() == [row for row, _ in expected]
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(expected)
        assert found.schema.types == [pa.int64(), pa.string() if named else pa.int64()]
