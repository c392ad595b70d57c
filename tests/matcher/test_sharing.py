"""Equal subscriptions share their boxes, and nobody notices."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tocsin import Matcher, Number, Space, Text

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
