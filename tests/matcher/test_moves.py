"""Events that move: what a matcher says has begun and ceased is what two plain answers differ in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin import Interval, Matcher, Number, Repeated, Space, Text
from tocsin.errors import EventError
from tocsin.index import engines

EXPRESSIONS = [
    "x > 3",
    "x BETWEEN 2 AND 4 AND y < 5",
    "x = 1 OR y = 2",
    "name LIKE 'a%' AND x >= 0",
    "name = 'b' OR x IN (5, 6)",
    "y IS NULL",
    "x IS NOT NULL AND name <> 'a'",
]
PATTERNS = [*EXPRESSIONS, "name LIKE '%b%'", "(x = 1 OR y = 1) AND (x = 2 OR y = 2) AND (x = 3 OR name = 'c')"]
EVENT = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-1, 7),
        "y": st.none() | st.integers(0, 6),
        "name": st.sampled_from([None, "", "a", "ab", "b", "c", "é"]),
    }
)
SCHEMA = pa.schema({"x": pa.int64(), "y": pa.int64(), "name": pa.string()})


def matcher_of(expressions: list[str], unspecified: Any = "null", engine: str = "adaptive") -> Matcher:
    kinds = {"x": Number("int64"), "y": Number("int64"), "name": Text()}
    matcher = Matcher(Space(kinds, unspecified=unspecified), engine)
    for number, text in enumerate(expressions):
        matcher.subscribe(number, text)
    return matcher


def told(table: pa.Table) -> list[tuple[int, Any, str]]:
    return sorted((row["event"], row["subscription"], row["transition"]) for row in table.to_pylist())


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(st.tuples(EVENT, EVENT), max_size=6),
    expressions=st.sampled_from([EXPRESSIONS[:2], EXPRESSIONS, PATTERNS]),
    unspecified=st.sampled_from(["null", "any"]),
    engine=st.sampled_from(["adaptive", "bounds", "scan"]),
)
def test_transitions_are_the_differences_of_two_answers(
    moves: list[tuple[dict[str, Any], dict[str, Any]]], expressions: list[str], unspecified: str, engine: str
) -> None:
    matcher = matcher_of(expressions, unspecified, engine)
    old, new = (pa.Table.from_pylist([move[side] for move in moves], SCHEMA) for side in (0, 1))
    expected = []
    for row, (before, after) in enumerate(moves):
        one, two = set(matcher.match(before)), set(matcher.match(after))
        expected += [(row, id, "enter") for id in two - one] + [(row, id, "leave") for id in one - two]
    assert told(matcher.moved_batch(old, new)) == sorted(expected)
    came, went = told(matcher.moved_batch(None, new)), told(matcher.moved_batch(old, None))
    assert [each[:2] for each in came] == [
        (row, id) for row, move in enumerate(moves) for id in sorted(matcher.match(move[1]))
    ]
    assert {kind for _, _, kind in went} <= {"leave"}
    assert len(went) == sum(len(matcher.match(before)) for before, _ in moves)


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_ranges_match_what_some_of_their_values_satisfy(unspecified: str) -> None:
    matcher = matcher_of(["x > 3", "x < 3 AND y = 1", "name >= 'b'", "name LIKE '%z%'", "x = 5 OR y = 9"], unspecified)
    plain = {"y": 0, "name": "a"}
    assert matcher.match({**plain, "x": (1, 3)}) == []
    assert matcher.match({**plain, "x": (1, 4)}) == [0]
    assert matcher.match({**plain, "x": Interval(1, 4, "left")}) == []
    assert matcher.match({**plain, "x": Interval(3.5, None)}) == [0, 4]
    assert matcher.match({"x": (0, 9), "y": (0, 1), "name": "a"}) == [0, 1, 4]
    assert matcher.match({"x": 0, "y": 0, "name": ("a", "c")}) == [2, 3]
    assert matcher.match({"x": 0, "y": 0, "name": Interval("a", "b", "left")}) == [3]
    assert sorted(matcher.match({"x": {2, 5, (7, 8)}, "y": frozenset({1}), "name": "a"})) == [0, 1, 4]


def test_ranges_and_sets_in_tables() -> None:
    matcher = matcher_of(["x > 3", "x < 3 AND y = 1", "name >= 'b'"])
    span = pa.struct({"low": pa.int64(), "high": pa.int64(), "closed": pa.string()})
    old = pa.table({"x": [1, 1, 9], "y": [1, 1, 1], "name": ["a", "a", "a"]})
    rows = [{"low": 3, "high": 4, "closed": "both"}, {"low": 3, "high": 4, "closed": "left"}, {"low": None, "high": 2}]
    new = pa.table({"x": pa.array(rows, span), "y": [[1], [0, 2], [5, 1]], "name": ["a", "a", "c"]})
    found = [(0, 0, "enter"), (0, 1, "leave"), (1, 1, "leave"), (2, 0, "leave"), (2, 1, "enter"), (2, 2, "enter")]
    assert told(matcher.moved_batch(old, new)) == found
    assert told(matcher.moved_batch(new, old)) == sorted(
        (row, id, "leave" if kind == "enter" else "enter") for row, id, kind in found
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ((4, 3), "lower bound of .* is above"),
        (Interval(3, 4, "neither"), "holds no value"),
        (Interval(3.2, 3.8), "holds no value"),
        ((1, 2, 3), "not a pair"),
        ((1, "a"), "'a' is not a whole number"),
        (frozenset(), "set is empty"),
        ({(1, 2), None}, "members of a set"),
        ((1, 2**70), "beyond 64 bits"),
    ],
)
def test_empty_and_crooked_ranges_are_refused(value: Any, reason: str) -> None:
    matcher = matcher_of(["x > 3"])
    with pytest.raises(EventError, match=reason):
        matcher.match({"x": value})


def test_tables_of_different_lengths_are_refused() -> None:
    matcher = matcher_of(["x > 3"])
    with pytest.raises(EventError, match="as many"):
        matcher.moved_batch(pa.table({"x": [1]}), pa.table({"x": [1, 2]}))
    with pytest.raises(EventError, match=r"row 1, field x: the lower bound of .* is above the upper"):
        span = pa.array([{"low": 1, "high": 1}, {"low": 5, "high": 4}])
        matcher.moved_batch(None, pa.table({"x": span}))


def test_repeated_fields_move_too() -> None:
    matcher = Matcher(Space({"tags": Repeated(Text()), "x": Number("int64")}))
    matcher.subscribe("both", "tags = 'a' AND tags = 'b'")
    matcher.subscribe("one", "tags = 'a' AND x > 1")
    old = pa.table({"tags": [["a"], ["a", "b"]], "x": [1, 1]})
    new = pa.table({"tags": [["b", "a"], ["a"]], "x": [1, 2]})
    moved = {
        (row["event"], row["subscription"], row["transition"]) for row in matcher.moved_batch(old, new).to_pylist()
    }
    assert moved == {(0, "both", "enter"), (1, "both", "leave"), (1, "one", "enter")}


def test_every_engine_moves_events() -> None:
    for name in engines():
        matcher = matcher_of(EXPRESSIONS, engine=name)
        old, new = pa.table({"x": [1], "y": [1], "name": ["a"]}), pa.table({"x": [5], "y": [2], "name": ["a"]})
        assert told(matcher.moved_batch(old, new)) == [(0, 0, "enter"), (0, 4, "enter")]
