"""What is particular to `dynamic`: tables come and go with boxes and events, by the thresholds."""

from __future__ import annotations

import numpy as np

from tocsin.bench.workloads import DRIFTS, WORKLOADS
from tocsin.index import Queries
from tocsin.index.dynamic import Dynamic
from tocsin.index.scan import Scan


def pairs_of(index: Dynamic | Scan, asked: Queries) -> set[tuple[int, int]]:
    return set(zip(*map(np.ndarray.tolist, index.overlap(asked)), strict=True))


def test_a_table_is_made_once_margins_are_excessive() -> None:
    index = Dynamic(margin_max=2.0, repair_min=100, spare_min=0, longest=2)
    numbers, boxes = WORKLOADS["W0"].boxes(20_000)
    first = numbers[:2_000]
    index.insert(first, boxes.take(first))
    assert index.stats()["tables"] == {}
    index.insert(numbers[2_000:], boxes.take(numbers[2_000:]))
    assert index.stats()["tables"] == {(0, 1): 20_000}


def test_no_table_is_made_for_too_few_boxes_or_too_small_a_gain() -> None:
    numbers, boxes = WORKLOADS["W0"].boxes(5_000)
    few, poor = Dynamic(repair_min=5_001, spare_min=0), Dynamic(repair_min=1, spare_min=200)
    for index in (few, poor):
        index.insert(numbers, boxes)
        assert index.stats()["tables"] == {}


def test_loading_in_batches_reaches_the_tables_of_a_load_at_once() -> None:
    numbers, boxes = WORKLOADS["W0"].boxes(60_000)
    at_once, batches = Dynamic(), Dynamic()
    at_once.insert(numbers, boxes)
    for part in np.array_split(numbers, 60):
        batches.insert(part, boxes.take(part))
    assert set(at_once.stats()["tables"]) == set(batches.stats()["tables"]) == {(0, 1)}


def test_a_table_with_too_few_boxes_is_dropped_and_loses_none() -> None:
    index, oracle = Dynamic(benefit_min=500), Scan()
    numbers, boxes = WORKLOADS["W0"].boxes(20_000)
    index.insert(numbers, boxes)
    assert index.stats()["tables"] == {(0, 1): 20_000}
    index.remove(numbers[600:])
    assert index.stats()["tables"] == {(0, 1): 600}
    index.remove(numbers[400:600])
    assert index.stats()["tables"] == {}
    oracle.insert(numbers[:400], boxes.take(numbers[:400]))
    asked = WORKLOADS["W0"].queries(300)
    asked.low[:] = boxes.low[::5][:300]
    assert pairs_of(index, asked) == pairs_of(oracle, asked)


def test_tables_follow_a_change_of_schema() -> None:
    before, after = DRIFTS["schema"]
    index = Dynamic(benefit_min=500, repair_min=2_000, spare_min=50)
    numbers, boxes = before.boxes(20_000)
    _, others = after.boxes(20_000)
    index.insert(numbers, boxes)
    assert index.stats()["tables"] and all(max(axes) < 16 for axes in index.stats()["tables"])
    for part in np.array_split(numbers, 20):
        index.remove(part)
        index.insert(part, others.take(part))
    assert index.stats()["tables"] and all(min(axes) >= 16 for axes in index.stats()["tables"])


def test_tables_follow_a_skew_of_events_and_boxes() -> None:
    before, after = DRIFTS["skew"]
    index, still = Dynamic(spare_min=20, repair_min=2_000), Dynamic(repair_min=10**9)
    numbers, boxes = before.boxes(50_000)
    _, others = after.boxes(50_000)
    index.insert(numbers, boxes)
    assert set(index.stats()["tables"]) == {(0, 1)}
    events = np.split(after.queries(6_400).low, 10, axis=1)
    for part, codes in zip(np.array_split(numbers, 10), events, strict=True):
        index.overlap(Queries.points(np.ascontiguousarray(codes)))
        index.remove(part)
        index.insert(part, others.take(part))
    index.maintain()
    assert len(index.stats()["tables"]) > 3
    assert index.stats()["tables"][0, 1] < 40_000
    still.insert(numbers, others)
    asked = after.queries(500)
    assert pairs_of(index, asked) == pairs_of(still, asked)


def test_maintenance_without_a_change_changes_nothing() -> None:
    index = Dynamic()
    index.insert(*WORKLOADS["W0"].boxes(30_000))
    stats = index.stats()
    index.maintain()
    index.maintain()
    assert index.stats() == stats
