"""Events with ranges or sets, or whose fields are left out as anything: which subscriptions some point of them
satisfies, as for publications."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Concept, Derived, Interval, Matcher, Number, Space, Subjects, Text
from tocsin.space.witnesses import Between, exists

TEXT = Text()


def test_what_no_text_meets_never_matches_a_field_left_out_as_anything() -> None:
    matcher = Matcher(Space({"v": TEXT}, unspecified="any"))
    matcher.subscribe("contradiction", "v = 'a' AND upper(v) = 'B'")
    matcher.subscribe("capital", "v = 'a' AND upper(v) = 'A'")
    matcher.subscribe("no end", "v LIKE 'ab%' AND v LIKE '%b' AND v < 'ab'")
    assert matcher.match({}) == ["capital"]
    assert sorted(matcher.never()) == ["contradiction", "no end"]


def test_no_concept_is_outside_all_concepts_until_the_tree_grows() -> None:
    space = Space({"v": Concept({"a": ["b"]}), "w": TEXT}, unspecified="any")
    matcher, subjects = Matcher(space), Subjects(space)
    matcher.subscribe("others", "v NOT IN ('a', 'b')")
    subjects.publish("p", {"w": "x"})
    assert matcher.match({}) == []
    assert list(subjects.subscribe("others", "v NOT IN ('a', 'b')")) == []
    matcher.grow("v", {"b": ["c"]})
    assert matcher.match({}) == ["others"] == matcher.match({"v": "c"})


@pytest.mark.parametrize("changed", ["lower", "lower reversed"])
def test_a_capital_sigma_is_another_small_letter_at_the_end_of_a_word(changed: str) -> None:
    texts = ["".join(letters) for count in range(4) for letters in itertools.product("ΣσςΑ.1", repeat=count)]
    random = Random(7)
    for text in random.sample(texts, 25):
        other = random.choice(texts).lower()
        for small in (text.lower(), other):
            asked = small[::-1] if "reversed" in changed else small
            whole = ("", (Between(text, text),)), (changed, (Between(asked, asked),))
            assert exists(whole) == (text.lower() == small), (text, small)  # type: ignore[arg-type]


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_the_case_and_the_end_of_a_text_are_asked_of_some_text_of_a_range(unspecified: Any) -> None:
    matcher = Matcher(Space({"v": TEXT}, unspecified=unspecified))
    asked = [
        "lower(v) = 'q'",
        "lower(v) = 'a'",
        "v LIKE '%b'",
        "v LIKE '%c' AND v < 'ab'",
        "lower(v) = 'q' OR v = 'az'",
    ]
    for number, expression in enumerate(asked):
        matcher.subscribe(number, expression)
    struct = pa.array([{"low": "a", "high": "b"}, {"low": "q", "high": "r"}])
    found = matcher.match_batch(pa.table({"v": struct})).to_pylist()
    for row, bounds in enumerate([("a", "b"), ("q", "r")]):
        alone = matcher.match({"v": bounds})
        assert sorted(alone) == [[1, 2, 3, 4], [0, 2, 4]][row]
        assert sorted(each["subscription"] for each in found if each["event"] == row) == sorted(alone)


@pytest.mark.parametrize("bound", ["a%", "a%\0"])
def test_a_pattern_whose_wildcards_are_escaped_is_looked_for_in_a_range(bound: str) -> None:
    matcher = Matcher(Space({"v": TEXT}))
    for pattern in (r"a\%", r"a\%%", r"%\%", r"A\%", "b!_"):
        matcher.subscribe(
            pattern,
            f"v {'I' if 'A' in pattern else ''}LIKE '{pattern}' ESCAPE '{'!' if '!' in pattern else chr(92) * 2}'",
        )
    wanted = [r"a\%%", r"%\%"] if bound == "a%\0" else [r"a\%", r"a\%%", r"%\%", r"A\%"]
    assert sorted(matcher.match({"v": (bound, "b")})) == sorted(wanted)
    table = pa.table({"v": pa.array([{"low": bound, "high": "b"}])})
    assert sorted(matcher.match_batch(table)["subscription"].to_pylist()) == sorted(wanted)


def test_alternatives_that_are_verified_take_one_value_of_a_range() -> None:
    names, random = "xyz", Random(3)
    matcher = Matcher(Space(dict.fromkeys(names, Number("int64"))))
    asked = []
    for number in range(60):
        groups = [[(random.choice(names), random.randrange(4)) for _ in range(3)] for _ in range(4)]
        asked.append(groups)
        parts = (" OR ".join(f"{name} = {value}" for name, value in group) for group in groups)
        matcher.subscribe(number, " AND ".join(f"({part})" for part in parts))
    for _ in range(20):
        event = {name: (low, low + random.randrange(4)) for name in names for low in [random.randrange(3)]}
        points = [
            dict(zip(names, point, strict=True))
            for point in itertools.product(*(range(low, high + 1) for low, high in event.values()))
        ]
        wanted = [
            number
            for number, groups in enumerate(asked)
            if any(all(any(point[name] == value for name, value in some) for some in groups) for point in points)
        ]
        assert sorted(matcher.match(event)) == wanted


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_a_formula_over_a_range_may_be_anything_in_a_dictionary_and_in_a_table(unspecified: Any) -> None:
    kinds = {"x": Number("int64"), "made": Derived("coalesce(x, 1) + 1", Number("int64"))}
    matcher = Matcher(Space(kinds, unspecified=unspecified))
    for number, expression in enumerate(["made > 100", "made = 4", "made IS NULL", "made > 5 AND made < 4"]):
        matcher.subscribe(number, expression)
    events = [(1, 2), (3, 3), Interval(2, 4, "neither"), Interval(-(2**63), -(2**63), "both"), None]
    rows = [
        None if each is None else {"low": each[0], "high": each[1]} for each in [(1, 2), (3, 3), (3, 3), (1, 2), None]
    ]
    expected = [[0, 1], [1], [1], [], [0, 1] if unspecified == "any" else []]
    for event, wanted in zip(events, expected, strict=True):
        assert sorted(matcher.match({} if event is None else {"x": event})) == wanted, event
    table = pa.table({"x": pa.array([*rows[:3], rows[4]], pa.struct({"low": pa.int64(), "high": pa.int64()}))})
    found = matcher.match_batch(table).to_pylist()
    told = [sorted(each["subscription"] for each in found if each["event"] == row) for row in range(4)]
    assert told == [*expected[:3], expected[4]]


def test_a_pattern_looks_at_the_one_text_of_a_range() -> None:
    matcher = Matcher(Space({"v": TEXT}))
    matcher.subscribe("has x", "v LIKE '%x%'")
    matcher.subscribe("has none", "NOT contains(v, 'x')")
    assert sorted(matcher.match({"v": ("a", "b")})) == ["has none", "has x"], "a pattern counts as holding of a range"
    for one in (("axa", "axa"), Interval("axa", "axa\0", "left"), Interval("ax", "ax\0", "right")):
        assert matcher.match({"v": one}) == ["has x"]
    struct = pa.array([{"low": "ax", "high": "ax\0", "closed": "right"}, {"low": "a", "high": "a", "closed": None}])
    found = matcher.match_batch(pa.table({"v": struct})).to_pylist()
    assert [each["subscription"] for each in found] == ["has x", "has none"]
