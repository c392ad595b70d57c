"""What is refused is refused whole: the matcher is as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tocsin
from tocsin.errors import MemoryLimitError


def test_a_load_beyond_the_memory_limit_changes_nothing() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number("int64")}), memory_limit=200_000)
    matcher.subscribe("two boxes", "x = 1 OR x > 90")
    matcher.subscribe("one box", "x > 5")
    ids = [*map(str, range(50_000)), "two boxes"]
    texts = [*(f"x = {number}" for number in range(50_000)), "x = 7"]
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        matcher.subscribe_many(pa.table({"id": ids, "expression": texts}), duplicates="replace")
    assert list(matcher) == ["two boxes", "one box"]
    assert matcher["two boxes"] == "x = 1 OR x > 90"
    assert [matcher.match({"x": x}) for x in (1, 7, 91)] == [["two boxes"], ["one box"], ["two boxes", "one box"]]
    matcher.unsubscribe("two boxes")
    matcher.subscribe("two boxes", "x = 7")
    assert matcher.match({"x": 7}) == ["one box", "two boxes"] or matcher.match({"x": 7}) == ["two boxes", "one box"]


def test_texts_of_removed_subscriptions_are_freed() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number("int64")}))
    for turn in range(20):
        matcher.subscribe_many(
            pa.table({"id": range(1000), "expression": [f"x = {number + turn}" for number in range(1000)]})
        )
        matcher.unsubscribe_many(range(1000))
    assert len(matcher) == 0
    assert sum(len(chunk) for chunk in matcher._subscriptions._texts._chunks) == 0
