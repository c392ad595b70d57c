"""What a reader sees of changes beside it, where it has many matches and where it has few; and what its ids cost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Matcher, Number, Space
from tocsin.index.boxes import Int32s
from tocsin.kernels.picking import mark_absent
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.matcher.views import View


def subscribe(matcher: Matcher, ids: range) -> None:
    matcher.subscribe_many(pa.table({"id": list(ids), "expression": [f"x >= {-id}" for id in ids]}))


def seen(held: Subscriptions, view: View, numbers: Int32s) -> list[bool]:
    """Return which of many numbers the view shows, and hold that against what it says of each by itself."""
    shown = held.visible(view, numbers)
    every = [True] * len(numbers) if shown is None else shown.tolist()
    for number, together in zip(numbers.tolist(), every, strict=True):
        alone = held.visible(view, np.array([number], np.int32))
        assert together == (alone is None or bool(alone[0]))
    return every


@given(
    st.lists(st.integers(0, 2**31 - 1), max_size=300),
    st.lists(st.integers(0, 2**31 - 1), max_size=40),
    st.lists(st.integers(0, 299), max_size=20),
)
def test_few_numbers_are_found_among_many(many: list[int], few: list[int], chosen: list[int]) -> None:
    few += [many[place] for place in chosen if place < len(many)]
    absent = np.empty(len(many), np.bool_)
    found = mark_absent(np.array(many, np.int32), np.sort(np.array(few, np.int32)), absent)
    assert absent.tolist() == [number not in few for number in many]
    assert found == len(many) - int(absent.sum())


def test_a_view_shows_neither_what_came_later_nor_less_than_there_was() -> None:
    matcher = Matcher(Space({"x": Number("int64")}))
    subscribe(matcher, range(2_000))
    held = matcher._subscriptions
    with held.reading():
        view = held.view()
        numbers = np.arange(2_000, dtype=np.int32)
        matcher.unsubscribe_many([3, 4])
        subscribe(matcher, range(2_000, 2_100))
        matcher.subscribe(5, "x = 5", duplicates="replace")
        born = held.numbers_of(np.array(list(held.slots_of([5, *range(2_000, 2_100)]).values()), np.int32))
        assert seen(held, view, np.concatenate([numbers, born])) == [True] * 2_000 + [False] * 101
        gone = held.numbers_of(np.array([held.slot(7)], np.int32))
        matcher.unsubscribe(7)
        later = held.view()
        every = seen(held, later, np.concatenate([numbers, born, gone]))
        assert [place for place, here in enumerate(every) if not here] == [3, 4, 5, 7, 2_101]
    subscribe(matcher, range(3_000, 3_001))
    assert len(held._newborn) == 1, "what every reader sees is no longer remembered"


@pytest.mark.parametrize("each", [1, 37])
def test_slots_stay_numbers_where_every_subscription_has_one_box(each: int) -> None:
    """So that the ids of matches are read at once, not through whose box each is. Boxes that are equal are held
    once, and their numbers longer."""
    matcher = Matcher(Space({"x": Number("int64")}))
    subscribe(matcher, range(1_000))
    numbers = np.arange(1_000, dtype=np.int32)
    for turn in range(40):
        begin = turn * each
        with matcher._subscriptions.reading():
            matcher.unsubscribe_many(list(range(begin, begin + each)))
            subscribe(matcher, range(1_000 + begin, 1_000 + begin + each))
        assert matcher._subscriptions.owners_of(numbers) is numbers
    assert sorted(matcher.match({"x": 9})) == list(range(40 * each, 1_000 + 40 * each))


def test_slots_of_subscriptions_without_a_box_are_used_again() -> None:
    matcher = Matcher(Space({"x": Number("int64")}))
    for turn in range(50):
        matcher.subscribe(turn, "x < 1 AND x > 1")
        matcher.unsubscribe(turn)
    matcher.subscribe("last", "x = 1")
    assert matcher._subscriptions.slot("last") < 3 and matcher.match({"x": 1}) == ["last"]
