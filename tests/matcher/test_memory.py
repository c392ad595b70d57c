"""What a matcher holds for each subscription beside its index, and that it stays right as it goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin import Matcher, Number, Space, Text
from tocsin.operators.growing import Growing, Mostly


def loaded(count: int) -> Matcher:
    """Return a matcher of so many plain subscriptions."""
    matcher = Matcher(Space({"price": Number("int64"), "city": Text()}))
    texts = [f"price = {number}" for number in range(count)]
    matcher.subscribe_many(pa.table({"id": range(count), "expression": texts}))
    return matcher


def test_a_plain_subscription_takes_five_numbers_beside_its_box() -> None:
    """Where its text lies (two), its first box, whose box that is, and since when."""
    assert loaded(5_000).stats()["bytes"]["slots"] <= 20 * 5_000


def test_changes_are_counted_beyond_32_bits() -> None:
    """Whatever number of changes there have been, a reader sees what was there before and after each."""
    matcher = loaded(3)
    matcher._subscriptions._epoch = 2**31 - 8
    matcher._subscriptions._turn()
    for number in range(3, 20):
        matcher.subscribe(number, f"price = {number}")
        assert matcher.match({"price": number}) == [number]
        with matcher._subscriptions.reading():
            view = matcher._subscriptions.view()
            matcher.unsubscribe(number - 3)
            slots = np.array([matcher._subscriptions.slots_of([number])[number]], np.int32)
            shown = matcher._subscriptions.visible(view, matcher._subscriptions.numbers_of(slots))
            assert shown is None or shown.all()
        assert matcher.match({"price": number - 3}) == []
    assert matcher._subscriptions._epoch > 2**31
    assert [id for price in range(20) for id in matcher.match({"price": price})] == [17, 18, 19]


def test_a_verified_subscription_is_found_among_plain_ones(tmp_path: Path) -> None:
    """The first program makes room for those of all boxes, and plain ones before and after it have none."""
    matcher = loaded(200)
    matcher.save(tmp_path)
    for held in (matcher, Matcher.load(tmp_path)):
        held.subscribe(1_000, "city LIKE '%Y_' AND price = 7")
        held.subscribe(1_001, "price = 7")
        assert sorted(held.match({"price": 7, "city": "NYC"})) == [7, 1_000, 1_001]
        assert sorted(held.match({"price": 7, "city": "Rome"})) == [7, 1_001]


@example([(0, 5)], True)
@example([(0, 5), (1, -1)], False)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([-1, -1, -1, 5])), max_size=30), st.booleans())
def test_an_array_of_mostly_nothing_is_like_any_other(changes: list[tuple[int, int]], alone: bool) -> None:
    """Whatever is put where, both kinds hold the same."""
    plain, mostly = Growing(np.int32), Mostly(np.int32)
    for place, value in changes:
        for held in (plain, mostly):
            if alone:
                held.set(place, value)
            else:
                held.put(np.array([place]), np.array([value], np.int32))
        assert mostly.array.tolist() == plain.array.tolist() and len(mostly) == len(plain)
    assert (mostly.nbytes == 0) == all(value == -1 for _, value in changes)
