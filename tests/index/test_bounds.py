"""What is particular to `bounds`: waiting, sorting in, replacing, widths beyond 64 bits."""

from __future__ import annotations

import numpy as np
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
