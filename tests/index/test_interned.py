"""The predicate store: one number a predicate, freed with its last use, and chances from sampled events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.index import Boxes
from tocsin.index.clusters.interned import PredicateStore
from tocsin.kernels.clusters.interned import FREE, NO_POINT, RETIRED, SETS_DEAD, SETS_USED, release


def interned(store: PredicateStore, *boxes: dict[int, list[tuple[int, int]]]) -> list[int]:
    return store.intern(Boxes.of(boxes))[0].tolist()


def test_equal_predicates_share_a_number_and_others_do_not() -> None:
    store = PredicateStore()
    first = interned(store, {0: [(1, 1)], 1: [(1, 1)], 2: [(1, 2)], 3: [(1, 2), (4, 4)]})
    assert len(set(first)) == 4
    assert interned(store, {0: [(1, 1)], 1: [(1, 1)], 2: [(1, 2)], 3: [(1, 2), (4, 4)]}) == first
    others = interned(store, {2: [(1, 3)], 3: [(1, 2), (4, 5)]}, {3: [(1, 2)]}, {3: [(1, 2), (4, 4), (6, 6)]})
    assert len({*first, *others}) == 8


def test_a_number_is_free_after_its_last_use() -> None:
    store = PredicateStore()
    point, other = interned(store, {0: [(1, 1)], 1: [(2, 2)]})
    interned(store, {0: [(1, 1)]})
    assert release(store.arrays, np.array([point], np.int32)).tolist() == []
    assert release(store.arrays, np.array([point, other], np.int32)).tolist() == [point, other]
    assert len(store) == 0 and store.arrays.tally[FREE] == 2
    assert set(interned(store, {5: [(9, 9)], 6: [(9, 9)]})) == {point, other}


def test_ranges_and_sets_retire_until_the_store_is_tidied() -> None:
    store = PredicateStore()
    boxes = [{0: [(value, value + 3)], 1: [(value, value), (value + 2, value + 2)]} for value in range(1_500)]
    owned, _ = store.intern(Boxes.of(boxes))
    release(store.arrays, owned[1_000:])
    assert store.arrays.tally[RETIRED] == 2_000 and store.arrays.tally[SETS_DEAD] == 2_000
    store.tidy()
    assert store.arrays.tally[RETIRED] == 0 and store.arrays.tally[FREE] == 2_000
    assert len(store.ranges) == 500 + 1_000
    assert store.arrays.tally[SETS_USED] == 1_000
    assert interned(store, *boxes[:500]) == owned[:1_000].tolist()


@given(
    st.lists(
        st.dictionaries(st.integers(0, 5), st.sampled_from([[(1, 1)], [(0, 4)], [(1, 2), (5, 9)], [(-3, -3), (7, 7)]])),
        max_size=20,
    )
)
def test_boxes_come_back_as_they_were(drawn: list[dict[int, list[tuple[int, int]]]]) -> None:
    boxes = Boxes.of(drawn)
    store = PredicateStore()
    for array, true in zip(store.boxes(*store.intern(boxes)), boxes, strict=True):
        np.testing.assert_array_equal(array, true)


def test_a_thousand_intervals_on_one_axis_are_one_predicate() -> None:
    store = PredicateStore()
    wide = {0: [(2 * value, 2 * value) for value in range(1_000)]}
    assert interned(store, wide, {}, wide) == [0, 0]


def test_chances_are_uniform_before_any_event_and_follow_events_after() -> None:
    store = PredicateStore()
    owned, _ = store.intern(Boxes.of([{0: [(value, value)]} for value in range(4)] + [{0: [(0, 3)]}]))
    store.estimate(np.empty((0, 0), np.int64))
    assert store.arrays.chance[owned].tolist() == [0.25, 0.25, 0.25, 0.25, NO_POINT]
    store.estimate(np.array([[0] * 900 + [1] * 100]))
    often, seldom, never = store.arrays.chance[owned[:3]].tolist()
    assert often == pytest.approx(0.9, abs=0.02) and seldom == pytest.approx(0.1, abs=0.02)
    assert 0 < never < 0.01
