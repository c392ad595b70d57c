"""The oracle against truths written by hand: it is what every other engine is compared with."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.errors import BoxNumberError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries, create
from tocsin.index.scan import Scan


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def holding(*boxes: dict[int, list[tuple[int, int]]]) -> Scan:
    index = Scan()
    index.insert(numbers(*range(len(boxes))), Boxes.of(boxes))
    return index


def met(index: Scan, *point: int) -> list[int]:
    return index.overlap(Queries.points(np.array(point, np.int64).reshape(-1, 1))).numbers.tolist()


def test_both_ends_of_an_interval_belong_to_it() -> None:
    index = holding({0: [(3, 7)]})
    assert [value for value in range(10) if met(index, value)] == [3, 4, 5, 6, 7]


def test_all_axes_must_hold() -> None:
    index = holding({0: [(1, 1)], 1: [(2, 2)]})
    assert met(index, 1, 2) == [0]
    assert met(index, 1, 3) == met(index, 0, 2) == []


def test_one_interval_of_an_axis_is_enough() -> None:
    index = holding({0: [(1, 2), (5, 6)], 1: [(0, 0)]})
    assert [value for value in range(8) if met(index, value, 0)] == [1, 2, 5, 6]
    assert met(index, 1, 1) == []


def test_a_box_without_entries_holds_everything() -> None:
    index = holding({}, {0: [(1, 1)]})
    assert met(index, 1) == [0, 1]
    assert met(index, NULL) == [0]
    assert met(index) == [0]


def test_missing_is_a_code_of_its_own() -> None:
    index = holding({0: [(NULL, NULL)]}, {0: [(LOWEST, HIGHEST)]}, {0: [(NULL, 3)]}, {0: [(LOWEST, 3)]})
    assert met(index, NULL) == [0, 2]
    assert met(index, LOWEST) == [1, 2, 3]
    assert met(index, HIGHEST) == [1]


def test_an_axis_that_is_not_asked_about_is_missing() -> None:
    index = holding({3: [(NULL, NULL)]}, {3: [(LOWEST, HIGHEST)]})
    assert met(index, 5) == [0]


def test_a_ranged_question_meets_what_it_touches() -> None:
    index = holding({0: [(3, 5)]}, {0: [(6, 6)]}, {0: [(1, 1), (9, 9)]})
    low, high = np.array([[5, 2, 7, LOWEST]]), np.array([[6, 8, 8, HIGHEST]])
    found = index.overlap(Queries(low, high))
    assert found.rows.tolist() == [0, 0, 1, 1, 3, 3, 3]
    assert found.numbers.tolist() == [0, 1, 0, 1, 0, 1, 2]


def test_several_rows_answer_in_order() -> None:
    index = holding({0: [(1, 2)]}, {0: [(2, 3)]})
    found = index.overlap(Queries.points(np.array([[1, 2, 3, 4]])))
    assert found.rows.tolist() == [0, 1, 1, 2]
    assert found.numbers.tolist() == [0, 0, 1, 1]


def test_no_rows_and_no_boxes() -> None:
    assert len(holding({}).overlap(Queries.points(np.empty((1, 0), np.int64))).rows) == 0
    assert len(Scan().overlap(Queries.points(np.array([[1]]))).rows) == 0


def test_removed_boxes_are_not_met_and_their_numbers_are_free() -> None:
    index = holding({0: [(1, 1)]}, {0: [(1, 1)]})
    index.remove(numbers(0))
    assert met(index, 1) == [1]
    index.insert(numbers(0), Boxes.of([{0: [(2, 2)]}]))
    assert (met(index, 1), met(index, 2)) == ([1], [0])


def test_contents_are_sorted_by_number() -> None:
    index = Scan()
    index.insert(numbers(9, 2), Boxes.of([{0: [(1, 1)]}, {1: [(2, 3)]}]))
    held, boxes = index.contents()
    assert held.tolist() == [2, 9]
    assert (boxes.axis.tolist(), boxes.low.tolist(), boxes.high.tolist()) == ([1, 0], [2, 1], [3, 1])


@pytest.mark.parametrize("again", [(0,), (5, 5)])
def test_a_number_twice_is_refused_and_changes_nothing(again: tuple[int, ...]) -> None:
    index = holding({})
    with pytest.raises(BoxNumberError):
        index.insert(numbers(*again), Boxes.of([{}] * len(again)))
    assert len(index) == 1


def test_removing_what_is_not_there_is_refused_and_changes_nothing() -> None:
    index = holding({})
    with pytest.raises(BoxNumberError):
        index.remove(numbers(0, 1))
    assert len(index) == 1


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Exception, match=r"choose one of .*scan"):
        create("sieve")
