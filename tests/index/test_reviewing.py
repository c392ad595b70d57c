"""Plans that no longer suit the queries are noticed and made anew, and only those."""

from __future__ import annotations

import numpy as np
import pytest
from tests.index.test_adaptive import as_set

from tocsin.bench.workloads import DRIFTS, WORKLOADS
from tocsin.index import Boxes, Queries
from tocsin.index.adaptive import Adaptive
from tocsin.index.scan import Scan
from tocsin.index.segments.reviewing import expected


def points(first: int, second: int, rows: int = 2_000) -> Queries:
    """Return queries with so many values on each of two axes."""
    random = np.random.default_rng(4089)
    return Queries.points(np.stack([random.integers(0, first, rows), random.integers(0, second, rows)]))


def test_events_that_change_alone_bring_a_new_plan() -> None:
    """Boxes demand values on both axes: which is the better key depends on the events."""
    random = np.random.default_rng(4089)
    boxes = Boxes.of([{0: [(a, a)], 1: [(b, b)]} for a, b in random.integers(0, 300, (6_000, 2)).tolist()])
    index, scan = Adaptive(background=False), Scan()
    numbers = np.arange(6_000, dtype=np.int32)
    for _ in range(20):
        index.overlap(points(300, 1))  # axis 1 says nothing
    for each in (index, scan):
        each.insert(numbers, boxes)
    while index.review():
        pass
    for _ in range(20):
        index.overlap(points(1, 300))  # now axis 0 says nothing
    costs = expected(index._state.parts[0], index.statistics)
    assert costs is not None and costs[0] > costs[1]
    assert index.review()
    asked = points(1, 300, 50)
    assert as_set(index.overlap(asked)) == as_set(scan.overlap(asked))
    assert not index.review(), "nothing has changed since"


@pytest.mark.parametrize("workload", ["W0", "R", "zipf", "schemas", "wide", "tenth"])
def test_steady_workloads_are_not_planned_again_and_again(workload: str) -> None:
    chosen = WORKLOADS[workload]
    index = Adaptive(background=False)
    index.insert(*chosen.boxes(5_000))
    for _ in range(20):
        index.overlap(chosen.queries(2_000))
    assert sum(index.review() for _ in range(4)) <= 1


def test_new_axes_are_chained_once_a_segment_has_them() -> None:
    before, after = DRIFTS["schema"]
    index = Adaptive(background=False)
    index.insert(*before.boxes(8_000))
    numbers, boxes = after.boxes(6_000)
    index.insert(numbers + 10_000, boxes)
    tables = index._state.fresh[-1][0].arrays.tables
    assert {axis for axis in tables.ravel().tolist() if axis >= 16}
