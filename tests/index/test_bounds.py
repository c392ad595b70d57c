"""What is particular to `bounds`: waiting, sorting in, replacing, widths beyond 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from tests.index.test_contract import assert_same, assert_same_contents, assert_same_moves

from tocsin.bench.workloads import WORKLOADS
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries, create
from tocsin.index.bounds import Bounds


def test_what_waits_is_sorted_in_once_questions_have_paid_for_it() -> None:
    index, asked = Bounds(), WORKLOADS["R"].queries(1)
    numbers, boxes = WORKLOADS["R"].boxes(1_000)
    index.insert(numbers, boxes)
    index.overlap(asked)
    assert index.stats()["waiting"] == 1_000 and index.stats()["sorted"] == 0
    for _ in range(200):
        index.overlap(asked)
    assert index.stats()["waiting"] == 0 and index.stats()["sorted"] == 1


def test_replacing_is_removing_and_inserting() -> None:
    random = np.random.default_rng(3)
    index, oracle = Bounds(), create("scan")
    numbers, boxes = WORKLOADS["zipf"].boxes(600)
    for one in (index, oracle):
        one.insert(numbers, boxes)
    for turn in range(12):
        some = random.choice(600, 150, replace=False).astype(np.int32)
        others = boxes.take(random.choice(600, 150))
        index.replace(some, others)
        oracle.remove(some)
        oracle.insert(some, others)
        asked = WORKLOADS["zipf"].queries(30 if turn % 3 else 3_000)
        few = Queries.points(np.ascontiguousarray(asked.low[:, :20]))
        if turn % 3 == 0:
            index.overlap(asked)
        assert_same(index, oracle, few)
    assert_same_contents(index, oracle)


def test_intervals_wider_than_64_bits_are_found_from_either_end() -> None:
    ends = [(LOWEST, 2), (LOWEST, -1), (NULL, NULL), (-5, HIGHEST), (0, 0), (LOWEST, HIGHEST), (7, 9)]
    index, oracle = Bounds(), create("scan")
    for one in (index, oracle):
        one.insert(np.arange(7, dtype=np.int32), Boxes.of([{0: [each], 1: [(0, 9)]} for each in ends]))
    points = np.array([[1, 2, 3, NULL, LOWEST, HIGHEST, 7, -6], [5] * 8])
    for _ in range(300):
        index.overlap(Queries.points(points))
    assert index.stats()["waiting"] == 0
    assert_same(index, oracle, Queries.points(points))
    assert_same_moves(index, oracle, Queries.points(points), Queries.points(points[:, ::-1].copy()))


def test_what_most_boxes_of_an_axis_are_excluded_by_leaves_the_others() -> None:
    random = np.random.default_rng(5)
    for widest in (0, 3, 40):
        boxes = []
        for place in range(1_500):
            low = random.integers(0, 100, 6).tolist()
            spans = [(each, each + int(random.integers(0, widest + 1))) for each in low]
            box = {int(axis): [span] for axis, span in zip(random.choice(6, 2, replace=False), spans, strict=False)}
            if place % 50 == 0:
                box = {0: [(low[0], low[0] + 1), (low[0] + 5, low[0] + 5)], 5: [(NULL, NULL)]}
            if widest == 40 and place % 70 == 0:
                box = {1: [(NULL, low[0])], 2: [(low[1], HIGHEST)], 3: [(LOWEST, HIGHEST)]}
            boxes.append(box)
        index, oracle = Bounds(), create("scan")
        for one in (index, oracle):
            one.insert(np.arange(1_500, dtype=np.int32), Boxes.of(boxes))
            one.remove(np.arange(0, 1_500, 7, dtype=np.int32))
        index.settle()
        for one in (index, oracle):
            one.remove(np.arange(1, 1_500, 7, dtype=np.int32))
        low = random.integers(-2, 145, (6, 120))
        high = low + random.integers(0, 2, (6, 120)) * random.integers(0, 30, (6, 120))
        still = random.random((6, 120)) < 0.5
        low, high = np.where(still, LOWEST, low), np.where(still, HIGHEST, high)
        low[5, ::9] = high[5, ::9] = NULL
        assert_same(index, oracle, Queries(low, high))
        assert_same(index, oracle, Queries.points(np.ascontiguousarray(high[:4])))


@pytest.mark.parametrize("most_axes", [1, 2, 3, 8])
def test_moves_are_told_by_what_lies_beside_the_bounds_and_by_what_does_not(most_axes: int) -> None:
    random = np.random.default_rng(most_axes)

    def spans(several: bool) -> list[tuple[int, int]]:
        cuts = np.sort(random.choice(14, 4, replace=False)).tolist()
        ends = [(cuts[0], cuts[1]), (cuts[2], cuts[3])] if several else [(cuts[0], cuts[random.integers(0, 4)])]
        odd = [[(NULL, NULL)], [(NULL, ends[0][1])], [(ends[0][0], HIGHEST)], [(LOWEST, HIGHEST)], [(LOWEST, 3)]]
        return odd[random.integers(0, 5)] if random.random() < 0.2 else ends

    boxes = []
    for _ in range(400):
        chosen = np.sort(random.choice(8, random.integers(most_axes // 2 + 1, most_axes + 1), replace=False))
        boxes.append({int(axis): spans(random.random() < 0.15) for axis in chosen})
    index, oracle = Bounds(), create("scan")
    for one in (index, oracle):
        one.insert(np.arange(350, dtype=np.int32), Boxes.of(boxes[:350]))
    index.settle()
    for one in (index, oracle):
        one.remove(np.arange(0, 350, 9, dtype=np.int32))
        one.insert(np.arange(350, 400, dtype=np.int32), Boxes.of(boxes[350:]))
    for _ in range(6):
        low = random.integers(-1, 16, (2, 8, 40))
        high = low + random.integers(0, 2, low.shape) * random.integers(0, 9, low.shape)
        absent, still = random.random(low.shape) < 0.15, random.random(low.shape[1:]) < 0.4
        low[absent], high[absent] = LOWEST, HIGHEST
        low[:, 7, ::5] = high[:, 7, ::5] = NULL
        low[1], high[1] = np.where(still, low[0], low[1]), np.where(still, high[0], high[1])
        before, after = (Queries(low[side].copy(), high[side].copy()) for side in (0, 1))
        assert_same_moves(index, oracle, before, after)
        shorter = Queries(after.low[:5].copy(), after.high[:5].copy())
        assert_same_moves(index, oracle, before, shorter)
        assert_same_moves(index, oracle, shorter, before)


def test_when_all_that_waits_is_gone_nothing_waits() -> None:
    index, asked = Bounds(), Queries.points(np.array([[3]]))
    index.insert(np.array([1, 2], np.int32), Boxes.of([{0: [(1, 5)]}, {0: [(3, 3)]}]))
    index.remove(np.array([2, 1], np.int32))
    assert index.stats()["waiting"] == 0
    index.insert(np.array([2], np.int32), Boxes.of([{0: [(0, 3)]}]))
    assert index.overlap(asked).numbers.tolist() == [2]
    assert index.moved(asked, Queries.points(np.array([[4]]))).left.numbers.tolist() == [2]
