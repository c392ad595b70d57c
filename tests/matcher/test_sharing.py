"""Equal subscriptions share their boxes, and nobody notices."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tocsin import Concept, Matcher, Number, Space, Text

SPACE = Space({"price": Number("int64"), "city": Text()})
EVENT = {"price": 5, "city": "NYC"}


def test_equal_subscriptions_are_one_box_with_many_owners(tmp_path: Path) -> None:
    matcher = Matcher(SPACE)
    texts = ["price < 9 AND city = 'NYC'", "city = 'NYC' AND price <= 8", "price < 9 AND city IN ('NYC')"]
    matcher.subscribe_many(pa.table({"id": list(range(300)), "expression": [texts[i % 3] for i in range(300)]}))
    assert matcher.stats()["index"]["shared"]["held"] == 1
    assert sorted(matcher.match(EVENT)) == list(range(300))
    matcher.unsubscribe_many(range(0, 300, 2))
    matcher.subscribe(0, "price < 2")
    assert sorted(matcher.match(EVENT)) == list(range(1, 300, 2))
    matcher.subscribe(1, "price = 77", duplicates="replace")
    assert sorted(matcher.match(EVENT)) == list(range(3, 300, 2))
    matcher.save(tmp_path)
    again = Matcher.load(tmp_path)
    again.unsubscribe_many(range(3, 200, 2))
    assert sorted(again.match(EVENT)) == list(range(201, 300, 2))
    again.unsubscribe_many(range(201, 300, 2))
    assert again.match(EVENT) == [] and again.match({"price": 77}) == [1]
    assert len(matcher) == 151


def test_equal_boxes_with_different_rests_are_verified_each_by_its_own() -> None:
    matcher = Matcher(SPACE)
    for letter in "NYCX":
        matcher.subscribe(letter, f"price < 9 AND city LIKE '%{letter}%'")
    assert sorted(matcher.match(EVENT)) == ["C", "N", "Y"]


def test_labels_made_anew_keep_what_is_shared() -> None:
    matcher = Matcher(SPACE)
    for turn in range(3):
        matcher.subscribe_many(
            pa.table({"id": [f"{turn}-{i}" for i in range(40)], "expression": ["city = 'NYC'"] * 40})
        )
        matcher.unsubscribe(f"{turn}-0")
        matcher._make_room()
        assert len(matcher.match(EVENT)) == 39 * (turn + 1)
    assert matcher.stats()["index"]["shared"]["held"] == 1


def test_what_comes_after_a_load_shares_the_boxes_that_were_saved(tmp_path: Path) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": [1, 2], "expression": ["city = 'NYC'", "price < 3"]}))
    matcher.save(tmp_path)
    again = Matcher.load(tmp_path)
    assert again.stats()["index"]["shared"] == {"held": 2, "sharing": 0, "remembered": 2}
    again.subscribe(3, "city = 'NYC'")
    again.subscribe_many(pa.table({"id": [4, 5], "expression": ["price < 3", "price < 4"]}))
    assert again.stats()["index"]["shared"] == {"held": 3, "sharing": 2, "remembered": 3}
    again.unsubscribe(1)
    assert sorted(again.match(EVENT)) == [3] and sorted(again.match({"price": 2})) == [2, 4, 5]
    again.save(tmp_path)
    third = Matcher.load(tmp_path)
    third.subscribe(6, "city = 'NYC'")
    assert third.stats()["index"]["shared"]["held"] == 3
    assert sorted(third.match(EVENT)) == [3, 6]


def test_growing_a_tree_frees_the_numbers_that_were_kept_for_others() -> None:
    matcher = Matcher(Space({"target": Concept({"computer": ["model 0"]})}))
    for id in ("first", "second"):
        matcher.subscribe(id, "is_a(target, 'computer')")
    matcher.unsubscribe("first")  # its number is kept, as the second shares its box
    begun, models = matcher._state.axes, 0
    while matcher._state.axes is begun:  # until there is no room for a number between two others
        matcher.grow("target", {f"model {models}": [f"model {models + 1}"]})
        models += 1
    assert matcher.match({"target": f"model {models}"}) == ["second"]
    matcher.subscribe("third", "target = 'model 0'")
    assert matcher._subscriptions._numbers._next == 2
