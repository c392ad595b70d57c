"""Events with ranges or sets, or whose fields are left out as anything: which subscriptions some point of them
satisfies, as for publications."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tocsin import Concept, Matcher, Space, Subjects, Text
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
