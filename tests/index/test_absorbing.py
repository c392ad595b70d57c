"""Segments that take in new boxes as they are planned: the same answers as one built of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.index.test_adaptive import Draw, as_set

from tocsin.bench.concept_trees import ConceptWorkload
from tocsin.bench.workloads import WORKLOADS
from tocsin.index import Boxes, Queries
from tocsin.index.adaptive import Adaptive
from tocsin.index.scan import Scan
from tocsin.index.segments.parts import Part
from tocsin.index.segments.states import State, Work, answer, readable
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments.layout import SECOND


def answers(parts: list[Part], queries: Queries, version: int) -> set[tuple[int, int]]:
    low = readable(queries.low)
    high = low if queries.are_points else readable(queries.high)
    return as_set(answer(State(tuple(parts), (), version), low, high, 0, queries.rows))


def with_boxes(part: Part, numbers: list[int], boxes: Boxes, version: int) -> list[Part]:
    """Return the part with more boxes, and one of those that found no place; nothing is refused."""
    found = part.with_boxes(np.array(numbers, np.int32), boxes, version)
    if found is None:
        return [part, Part.of(np.array(numbers, np.int32), boxes, QueryStatistics())]
    whole, left = found
    others = Part.of(np.array(numbers, np.int32)[left], boxes.take(left), QueryStatistics())
    return [whole, others] if len(left) else [whole]


@pytest.mark.parametrize("seed", range(25))
def test_boxes_taken_in_are_found_and_those_removed_are_gone(seed: int) -> None:
    draw = Draw(seed)
    first, later = ([draw.box() for _ in range(count)] for count in (300, 60))
    scan = Scan()
    scan.insert(np.arange(300, dtype=np.int32), Boxes.of(first))
    parts = [Part.of(np.arange(300, dtype=np.int32), Boxes.of(first), QueryStatistics())]
    for version in range(1, 4):
        gone = np.arange(version * 40, version * 40 + 40, dtype=np.int32)
        parts[0].strike(gone, parts[0].locate(gone, version - 1), version)
        scan.remove(gone)
        some = later[version * 20 - 20 : version * 20]
        numbers = [*range(version * 40, version * 40 + 10), *range(1000 * version, 1000 * version + 10)]
        scan.insert(np.array(numbers, np.int32), Boxes.of(some))
        parts = [*with_boxes(parts[0], numbers, Boxes.of(some), version), *parts[1:]]
        for queries in (draw.queries(40, False), draw.queries(40, True)):
            assert answers(parts, queries, version) == as_set(scan.overlap(queries))
    held = np.sort(np.concatenate([part.contents(3)[0] for part in parts]))
    assert held.tolist() == scan.contents()[0].tolist()


@pytest.mark.parametrize("workload", ["W0", "W1", "R", "zipf", "schemas", "tenth"])
def test_workloads_keep_their_plan(workload: str) -> None:
    chosen = WORKLOADS[workload]
    numbers, boxes = chosen.boxes(6_000)
    queries = chosen.queries(300)
    statistics = QueryStatistics()
    statistics.observe(queries)
    part = Part.of(numbers[:5_000], boxes.take(np.arange(5_000)), statistics)
    found = part.with_boxes(numbers[5_000:], boxes.take(np.arange(5_000, 6_000)), 0)
    assert found is not None and not len(found[1])
    whole = Part.of(numbers, boxes, statistics)
    assert answers([found[0]], queries, 0) == answers([whole], queries, 0)
    assert found[0].info["absorbed"] == 1_000
    taken, held = found[0].contents(0)
    order = np.argsort(taken)
    for one, other in zip(held.take(order), boxes, strict=True):
        assert np.array_equal(one, other)


def test_a_plan_that_does_not_suit_refuses() -> None:
    before, after = Boxes.of([{0: [(k, k)], 1: [(k % 7, k % 7)]} for k in range(500)]), Boxes.of([{5: [(1, 1)]}] * 50)
    part = Part.of(np.arange(500, dtype=np.int32), before, QueryStatistics())
    assert part.with_boxes(np.arange(500, 550, dtype=np.int32), after, 0) is None
    assert not part.takes(0)


def test_removals_during_the_taking_in_count() -> None:
    index = Adaptive(background=False)
    numbers, boxes = WORKLOADS["W0"].boxes(3_000)
    index.insert(numbers[:2_500], boxes.take(np.arange(2_500)))
    index.insert(numbers[2_500:], boxes.take(np.arange(2_500, 3_000)))
    base, young = index._state.parts[0], index._state.fresh[-1][0]
    original = base.with_boxes

    def slow(*arguments: object) -> object:
        index.remove(np.array([7, 2_600], np.int32))
        return original(*arguments)  # type: ignore[arg-type]

    base.with_boxes = slow  # type: ignore[method-assign, assignment]
    index._merge(Work(base, [], [young]))
    assert [part.live for part in index._state.parts] == [2_998]
    held, _ = index.contents()
    assert sorted(set(range(3_000)) - set(held.tolist())) == [7, 2_600]


def test_of_many_predicates_two_words_a_box_are_checked() -> None:
    workload = ConceptWorkload(4)
    numbers, boxes = workload.boxes(46_000)
    queries = workload.queries(300)
    scan = Scan()
    scan.insert(numbers, boxes)
    first = np.arange(40_000, dtype=np.int32)
    part = Part.of(first, boxes.take(first), QueryStatistics())
    assert part.segment.header[SECOND] < part.segment.header[SECOND + 1]
    gone = first[::7]
    part.strike(gone, part.locate(gone, 0), 1)
    scan.remove(gone)
    parts = with_boxes(part, list(range(40_000, 46_000)), boxes.take(np.arange(40_000, 46_000)), 1)
    assert parts[0].segment.header[SECOND] < parts[0].segment.header[SECOND + 1]
    found = as_set(scan.overlap(queries))
    assert answers(parts, queries, 1) == found
    assert found
