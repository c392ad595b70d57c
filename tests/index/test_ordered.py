"""Ordered intervals: whatever was added and not purged is found where it overlaps, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.index import NULL, Queries
from tocsin.index.clusters.ordered import FRESH, OrderedIntervals
from tocsin.kernels.clusters.ordered import mark_fresh, mark_run
from tocsin.kernels.clusters.satisfied import Scratch

AXES = 3


def found(ordered: OrderedIntervals, queries: Queries, row: int, count: int) -> list[int]:
    nothing = np.empty(0, np.int32)
    marks = np.zeros(count, np.uint8)
    scratch = Scratch(marks, np.array([1, 0]), np.empty(count, np.int32), nothing, nothing, nothing)
    listed = 0
    for run in (ordered.arrays.main, ordered.arrays.middle):
        listed = mark_run(run, queries, row, False, scratch, listed)
    listed = mark_fresh(ordered.arrays.fresh, queries, row, False, scratch, listed)
    assert sorted(scratch.satisfied[:listed].tolist()) == np.flatnonzero(marks).tolist()
    return np.flatnonzero(marks).tolist()


@pytest.mark.parametrize("kind", ["two-sided", "open below", "open above", "narrow"])
@pytest.mark.parametrize("batches", [[20_000], [3, 9_000, 5_000, 1, 600, 40, 5_356], [FRESH], [100] * 30])
def test_overlapping_intervals_are_found_through_every_level(kind: str, batches: list[int]) -> None:
    random = np.random.default_rng(3)
    total = sum(batches)
    axis = random.integers(0, AXES, total).astype(np.int32)
    low = random.integers(0, 100_000, total)
    width = {"two-sided": 30_000, "narrow": 10}.get(kind, 0)
    high = low + random.integers(0, width, total) if width else np.full(total, 100_000)
    if kind == "open below":
        low, high = np.full(total, -5), low
    ordered = OrderedIntervals()
    place = 0
    for size in batches:
        part = slice(place, place + size)
        ordered.add(axis[part], low[part], high[part], np.arange(place, place + size, dtype=np.int32), AXES)
        place += size
    assert len(ordered) == total
    centre = random.integers(-10, 100_010, (AXES, 12))
    for queries in (Queries.points(centre), Queries(centre, centre + random.integers(0, 50, (AXES, 12)))):
        for row in range(12):
            true = (low <= queries.high[axis, row]) & (high >= queries.low[axis, row])
            assert found(ordered, queries, row, total) == np.flatnonzero(true).tolist()


def test_purged_predicates_are_gone_and_named() -> None:
    ordered = OrderedIntervals()
    numbers = np.arange(9_000, dtype=np.int32)
    ordered.add(numbers % AXES, numbers.astype(np.int64), numbers + 10, numbers, AXES)
    ordered.add(numbers[:50] % AXES, numbers[:50].astype(np.int64), numbers[:50] + 10, numbers[:50], AXES)
    uses = np.ones(9_000, np.int32)
    uses[::7] = 0
    assert ordered.purge(uses).tolist() == numbers[::7].tolist()
    everything = Queries(np.full((AXES, 1), NULL), np.full((AXES, 1), 10_000))
    assert found(ordered, everything, 0, 9_000) == np.flatnonzero(uses).tolist()


def test_axes_may_come_later() -> None:
    ordered = OrderedIntervals()
    one = np.array([1])
    ordered.add(np.array([0], np.int32), one, one + 1, np.array([0], np.int32), 1)
    many = np.arange(FRESH, dtype=np.int32)
    ordered.add(np.full(FRESH, 6, np.int32), many.astype(np.int64), many + 5, many + 1, 7)
    queries = Queries.points(np.full((7, 1), 1))
    assert found(ordered, queries, 0, FRESH + 1) == [0, 1, 2]
