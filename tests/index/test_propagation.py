"""What is particular to `propagation`: where boxes wait, and that looking ahead changes no answer."""

from __future__ import annotations

import numpy as np

from tocsin.bench.workloads import WORKLOADS
from tocsin.index import Boxes, Queries
from tocsin.index.propagation import Propagation
from tocsin.index.scan import Scan


def as_set(pairs: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(*map(np.ndarray.tolist, pairs), strict=True))


def test_a_box_waits_under_its_rarest_equality() -> None:
    index = Propagation()
    index.insert(
        np.arange(100, dtype=np.int32), Boxes.of([{0: [(n % 2, n % 2)], 1: [(n % 50, n % 50)]} for n in range(100)])
    )
    assert index.stats()["clusters"] == 50


def test_clusters_of_one_access_predicate_differ_by_size() -> None:
    index = Propagation()
    boxes = Boxes.of([{0: [(1, 1)]}, {0: [(1, 1)], 1: [(1, 5)]}, {0: [(1, 1)], 2: [(1, 5)]}])
    index.insert(np.arange(3, dtype=np.int32), boxes)
    assert index.stats()["clusters"] == 2


def test_boxes_without_an_equality_are_always_looked_at() -> None:
    index = Propagation()
    index.insert(np.arange(3, dtype=np.int32), Boxes.of([{0: [(1, 5)]}, {}, {0: [(1, 1), (3, 3)]}]))
    assert index.stats()["without_access"] == 3
    found = as_set(index.overlap(Queries.points(np.array([[1, 2, 9]]))))
    assert found == {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 1)}


def test_looking_ahead_through_long_clusters_changes_nothing() -> None:
    numbers, boxes = WORKLOADS["W0"].boxes(20_000)
    boxes.low[boxes.axis >= 6] = boxes.high[boxes.axis >= 6] = 1
    asked = WORKLOADS["W0"].queries(600)
    asked.low[6:] = 1
    plain, ahead = Propagation(), Propagation(prefetch=True, cache_bytes=0)
    for index in (plain, ahead):
        index.insert(numbers, boxes)
    found = as_set(plain.overlap(asked))
    assert len(found) > 1_000 and found == as_set(ahead.overlap(asked))


def test_marks_survive_more_events_than_they_have_generations() -> None:
    index, oracle = Propagation(), Scan()
    numbers, boxes = WORKLOADS["W2"].boxes(500)
    points = boxes.low == boxes.high
    boxes.low[points] = boxes.high[points] = boxes.low[points] % 2
    asked = WORKLOADS["W2"].queries(2_000)
    asked.low[[0, 1, *range(8, 32)]] %= 2
    for one in (index, oracle):
        one.insert(numbers, boxes)
    assert as_set(index.overlap(asked)) == as_set(oracle.overlap(asked)) != set()


def test_memory_is_given_back_to_the_numbers_that_come_next() -> None:
    index = Propagation()
    numbers, boxes = WORKLOADS["R"].boxes(3_000)
    index.insert(numbers, boxes)
    size = index.stats()["bytes"]
    for _ in range(10):
        index.remove(numbers[:1_500])
        index.insert(numbers[:1_500], boxes.take(numbers[:1_500]))
    assert index.stats()["bytes"] < 2 * size
    assert index.stats()["predicates"] == len(np.unique(np.stack([boxes.axis, boxes.low]), axis=1).T)
