"""Many patterns asked in one pass give what each of them gives."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.operators import patterns
from tocsin.operators.patterns import NEEDED, Block, blocks_of

PIECES = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "ba",
        "a+",
        "(?:b|c)",
        "[abc]",
        ".",
        ".*",
        r"\b",
        "^",
        "$",
        "(?i:A)",
        "x{2}",
        "",
        "é",
        r"\n",
        "(?s:.)",
    ]
)
PATTERNS = st.lists(PIECES, max_size=5).map("".join)
TEXTS = st.text("abcABxé\n\x00 ", max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=30), st.lists(TEXTS, min_size=1, max_size=6))
def test_a_block_finds_what_each_pattern_finds(written: list[str], texts: list[str]) -> None:
    compiled = [re2.compile(each) for each in written]
    block = Block(compiled, 0, len(compiled))
    for text in texts:
        assert block.found(text) == [at for at, each in enumerate(compiled) if each.search(text) is not None]


def test_what_runs_out_of_memory_is_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_MEMORY", 1 << 12)
    compiled = [re2.compile(f"[0-9]{{{count}}}[a-f]*[0-9]{{{count}}}") for count in range(1, 60)]
    compiled += [re2.compile(f"word{number}[0-9]") for number in range(60)]
    block = Block(compiled, 0, len(compiled))
    text = "12345678abc12345678 word71 word42"
    expected = [at for at, each in enumerate(compiled) if each.search(text) is not None]
    assert block.found(text) == expected
    assert expected


def test_blocks_grow_with_the_patterns_and_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST", 4 * NEEDED)
    memo: dict[str, Any] = {}
    compiled: list[Any] = []
    for number in range(9 * NEEDED + 5):
        compiled.append(re2.compile(f"item{number}$"))
        blocks = blocks_of(memo, compiled)
        assert all(one.stop == other.start for one, other in itertools.pairwise(blocks))
        assert (blocks[0].start if blocks else 0) == 0
        assert len(compiled) - (blocks[-1].stop if blocks else 0) < NEEDED
    assert len(blocks) <= 4
    assert [found for block in blocks for found in block.found("item300")] == [300]


def test_many_patterns_in_a_matcher_that_grows() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"body": tocsin.Text(), "n": tocsin.Number()}))
    texts = ["order 17 of tea", "ORDER 90", "cup 3 and cup 44", "", "12345", None]
    written = [rf"cup {number}\b" for number in range(50)] + [f"(?i)order {number}" for number in range(50)]
    written += [f"[0-9]{{{number}}}" for number in range(1, 30)]
    expressions = {number: f"matches(body, r'{pattern}')" for number, pattern in enumerate(written)}
    for round_ in range(3):
        part = {number: text for number, text in expressions.items() if number % 3 == round_}
        matcher.subscribe_many(pa.table({"id": list(part), "expression": list(part.values())}))
        found = matcher.match_batch(pa.table({"body": pa.array(texts, pa.string()), "n": [1] * len(texts)}))
        pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
        assert pairs == {
            (row, number)
            for row, text in enumerate(texts)
            for number, pattern in enumerate(written)
            if number % 3 <= round_ and text is not None and re2.search(pattern, text)
        }
