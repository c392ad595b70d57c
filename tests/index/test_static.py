"""What is particular to `static`: which tables the greedy algorithm chooses, and when."""

from __future__ import annotations

import numpy as np

from tocsin.bench.workloads import DRIFTS, WORKLOADS
from tocsin.index import Boxes, Queries
from tocsin.index.static import Static


def grid(values: int, others: int) -> tuple[np.ndarray, Boxes]:
    """Boxes with an equality on axes 0 and 1 each, in all combinations."""
    boxes = Boxes.of([{0: [(v, v)], 1: [(w, w)]} for v in range(values) for w in range(others)])
    return np.arange(values * others, dtype=np.int32), boxes


def test_the_two_fixed_axes_of_w0_become_a_table() -> None:
    index = Static()
    index.insert(*WORKLOADS["W0"].boxes(40_000))
    assert index.stats()["tables"] == {(0, 1): 40_000}


def test_a_few_boxes_need_no_table() -> None:
    index = Static(replan_from=1)
    index.insert(*grid(10, 10))
    assert index.stats()["tables"] == {}


def test_more_tables_are_made_when_looking_at_boxes_costs_more() -> None:
    numbers, boxes = WORKLOADS["W0"].boxes(20_000)
    tables = []
    for cost in (0.001, 0.4, 400.0):
        index = Static(checking_ns=cost)
        index.insert(numbers, boxes)
        tables.append(len(index.stats()["tables"]))
    assert tables[0] == 0 and tables == sorted(tables) and tables[2] > tables[1] > 0


def test_the_space_bound_is_respected() -> None:
    numbers, boxes = WORKLOADS["W0"].boxes(20_000)
    free, bound = Static(checking_ns=400.0), Static(checking_ns=400.0, max_bytes=700_000)
    for index in (free, bound):
        index.insert(numbers, boxes)
    assert 0 < len(bound.stats()["tables"]) < len(free.stats()["tables"])
    assert bound.stats()["bytes"] < free.stats()["bytes"]
    nothing = Static(checking_ns=400.0, max_bytes=0)
    nothing.insert(numbers, boxes)
    assert nothing.stats()["tables"] == {}


def test_schemas_are_no_longer_than_allowed() -> None:
    index = Static(checking_ns=1e4, longest=4)
    index.insert(*WORKLOADS["none"].boxes(15_000))
    assert max(map(len, index.stats()["tables"])) == 4
    pairs = Static(checking_ns=1e4, longest=2)
    pairs.insert(*WORKLOADS["none"].boxes(15_000))
    assert {len(axes) for axes in pairs.stats()["tables"]} == {2}


def test_the_plan_is_made_anew_when_boxes_have_doubled() -> None:
    before, after = DRIFTS["schema"]
    index = Static(replan_from=5_000, checking_ns=4.0)
    numbers, boxes = before.boxes(6_000)
    index.insert(numbers, boxes)
    assert index.stats()["tables"] and all(max(axes) < 16 for axes in index.stats()["tables"])
    index.remove(numbers[:5_000])
    later, others = after.boxes(12_000)
    index.insert(later + 6_000, others)
    assert any(min(axes) >= 16 for axes in index.stats()["tables"])


def test_reorganizing_takes_events_into_account() -> None:
    """Axis 0 looks best by its 21 values, until events turn out to carry only the one that half of the boxes want."""
    index = Static(replan_from=1, checking_ns=20.0, longest=2)
    wanted = [n // 2 % 20 + 1 if n % 2 else 0 for n in range(3_000)]
    boxes = Boxes.of([{0: [(v, v)], 1: [(n % 9, n % 9)], 2: [(n % 11, n % 11)]} for n, v in enumerate(wanted)])
    index.insert(np.arange(3_000, dtype=np.int32), boxes)
    assert (1, 2) not in index.stats()["tables"]
    codes = np.stack([np.zeros(600, np.int64), np.arange(600) % 9, np.arange(600) % 11])
    for _ in range(9):
        index.overlap(Queries.points(codes))
    index.reorganize()
    assert index.stats()["tables"].get((1, 2), 0) >= 1_500


def test_a_plan_that_drops_a_table_loses_no_box() -> None:
    index = Static(replan_from=1, checking_ns=1_000.0)
    numbers, boxes = grid(60, 60)
    index.insert(numbers, boxes)
    assert (0, 1) in index.stats()["tables"]
    index.remove(numbers[20:])
    index.reorganize()
    assert (0, 1) not in index.stats()["tables"]
    found = index.overlap(Queries.points(np.array([[0] * 60, list(range(60))])))
    assert found.numbers.tolist() == list(range(20))
