"""A matcher with a history of changes, growth, saving and loading answers as one made anew of what it holds."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tocsin

UNITS = tocsin.Units(rates=tocsin.Rates("USD", [("EUR", "1.08", "2026-01-01"), ("EUR", "1.10", "2026-07-01")]))
WORDS = ["top", "a", "b", "aa", "ab", "ba", "n0", "n1", "n2", "n3", "x", "y", "z"]
NUMBERS = ["12345678901234567890123456.78", "12345678901234567890123456.79", "0.01", "-5", "100", "108", "110"]


def space() -> tocsin.Space:
    """Two fields of one family whose equal trees are given apart, and long decimals with and without a unit."""
    tree = {"top": {"a": ["aa", "ab"], "b": ["ba"]}}
    kinds = {name: tocsin.Concept(tree, unknown_terms="text", unknown_values="text") for name in "cd"}
    return tocsin.Space(
        {
            **kinds,
            "n": tocsin.Number("decimal(30, 2)", unit="USD", unit_field="u"),
            "m": tocsin.Number("decimal(38, 6)", unit="GB"),
            "l": tocsin.Number("decimal(28, 2)"),
            "t": tocsin.Text(),
        },
        attributes={"e": ["c", "d"]},
        units=UNITS,
    )


def expression(draw: random.Random) -> str:
    word, other, field = draw.choice(WORDS), draw.choice(WORDS), draw.choice("cde")
    sign, number = draw.choice(["<", "<=", "=", "<>", ">="]), draw.choice(NUMBERS)
    return draw.choice(
        [
            f"is_a({field}, '{word}')",
            f"NOT is_a({field}, '{word}')",
            f"{field} = '{word}'",
            f"{field} IN ('{word}', '{other}')",
            f"t < '{word}' AND {field} <> '{other}'",
            f"n {sign} {number}",
            f"n {sign} quantity('{number} {draw.choice(['USD', 'EUR'])}')",
            f"m {sign} quantity('{number} {draw.choice(['GB', 'TB'])}')",
            f"l {sign} {number}",
        ]
    )


def event(draw: random.Random) -> dict[str, Any]:
    number = draw.choice(NUMBERS)
    given = {
        "c": draw.choice(WORDS),
        "d": draw.choice(WORDS),
        "e": [draw.choice(WORDS)],
        "t": draw.choice(WORDS),
        "n": Decimal(draw.choice(NUMBERS)),
        "u": draw.choice(["USD", "EUR", None]),
        "m": f"{number} {draw.choice(['GB', 'TB'])}",
        "l": Decimal(draw.choice(NUMBERS)),
    }
    return {name: value for name, value in given.items() if draw.random() < 0.7}


@pytest.mark.parametrize("seed", range(12))
def test_histories_end_as_if_made_anew(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    matcher = tocsin.Matcher(space(), draw.choice(["adaptive", "scan"]))
    stored: dict[int, str] = {}
    concepts = WORDS[:6]
    for step in range(10):
        action = draw.choice(["subscribe", "subscribe", "unsubscribe", "grow", "grow", "save", "relabel"])
        if action == "subscribe":
            for id in range(4 * step, 4 * step + 4):
                stored[id] = expression(draw)
                matcher.subscribe(id, stored[id])
        elif action == "unsubscribe" and stored:
            matcher.unsubscribe(draw.choice(list(stored)))
            stored = {id: matcher[id] for id in matcher}
        elif action == "grow" and len(concepts) < len(WORDS):
            new, parents = draw.choice([each for each in WORDS if each not in concepts]), draw.sample(concepts, 2)
            if draw.random() < 0.3:
                matcher.grow(draw.choice("cde"), {}, synonyms={new: parents[0]})
            else:
                names = [matcher.space.scalar(("c",)).tree.names[_row(matcher, each)] for each in parents]
                matcher.grow(draw.choice("cde"), {name: [new] for name in names[: draw.choice([1, 2])]})
            concepts = [*concepts, new]
        elif action == "save":
            directory = tmp_path / draw.choice(["one", "other"])
            matcher.save(directory)
            matcher = tocsin.Matcher.load(directory)
        elif action == "relabel":
            matcher._make_room()
        fresh = tocsin.Matcher(matcher.space, "scan")
        for id, text in stored.items():
            fresh.subscribe(id, text)
        for each in [event(draw) for _ in range(3)]:
            assert sorted(matcher.match(each)) == sorted(fresh.match(each)), (step, action, each)


def _row(matcher: tocsin.Matcher, word: str) -> int:
    row = matcher.space.scalar(("c",)).tree.row(word)  # type: ignore[union-attr]
    assert row is not None
    return row


def test_plain_texts_keep_their_own_codes_when_others_become_concepts() -> None:
    kind = tocsin.Concept({"top": ["a"]}, unknown_terms="text", unknown_values="text")
    matcher = tocsin.Matcher(tocsin.Space({"c": kind}))
    for word in ("x", "y"):
        matcher.subscribe(word, f"c = '{word}'")
    matcher.grow("c", {"a": ["x"]})
    matcher.subscribe("z", "c = 'z'")
    assert [matcher.match({"c": word}) for word in "xyz"] == [["x"], ["y"], ["z"]]


def test_fields_of_one_family_grow_together(tmp_path: Path) -> None:
    kinds = {name: tocsin.Concept({"top": ["a"]}) for name in ("first", "second")}
    matcher = tocsin.Matcher(tocsin.Space(kinds, attributes={"either": ["first", "second"]}))
    matcher.subscribe("any", "is_a(either, 'a')")
    matcher.grow("first", {"a": ["aa"]})
    assert matcher.match({"second": "aa"}) == ["any"] == matcher.match({"either": ["aa"]})
    matcher.save(tmp_path / "saved")
    loaded = tocsin.Matcher.load(tmp_path / "saved")
    loaded.grow("second", {"aa": ["aaa"]})
    assert loaded.match({"first": "aaa"}) == ["any"]


@pytest.mark.parametrize("unspecified", ["null", "any"])
@pytest.mark.parametrize("unknown", ["error", "text"])
def test_what_holds_of_no_concept_yet_holds_of_one_that_comes(unspecified: Any, unknown: Any) -> None:
    kind = tocsin.Concept({"top": ["a", "b"]}, unknown_terms=unknown, unknown_values=unknown)
    matcher = tocsin.Matcher(tocsin.Space({"c": kind}, unspecified=unspecified))
    matcher.subscribe("below", "is_a(c, 'a') AND c <> 'a'")
    matcher.subscribe("beside", "NOT is_a(c, 'a') AND c NOT IN ('top', 'b')")
    matcher.subscribe("b", "c = 'b'")
    assert matcher.match({"c": "a"}) == [] and matcher.match({"c": "b"}) == ["b"]
    matcher.grow("c", {"a": ["aa"], "top": ["c"]})
    assert matcher.match({"c": "aa"}) == ["below"] and matcher.match({"c": "c"}) == ["beside"]
    assert sorted(matcher.match({})) == (["b", "below", "beside"] if unspecified == "any" else [])


@pytest.mark.parametrize("synonyms", ["text", ["x"], {"x": 5}, {5: "top"}], ids=repr)
def test_synonyms_that_are_no_mapping_of_words_are_refused(synonyms: Any) -> None:
    matcher = tocsin.Matcher(space())
    with pytest.raises(tocsin.TocsinError, match="synonyms are a mapping"):
        matcher.grow("c", {}, synonyms=synonyms)
    with pytest.raises(tocsin.TocsinError, match="named by a text"):
        matcher.grow(5, {})  # type: ignore[arg-type]


def test_events_read_while_subscriptions_are_made_anew_are_answered_as_before() -> None:
    """Growth beyond the room of a parent numbers the tree anew; until every text is a concept, events know none."""
    during: list[list[str]] = []

    def look(word: str) -> str:
        during.append(sorted(matcher.match({"c": "x"})))
        return word

    @tocsin.operator(prepare=look)
    def told(c: str, word: str) -> bool:
        return c == word

    kind = tocsin.Concept({"n0": []}, unknown_terms="text", unknown_values="text")
    matcher = tocsin.Matcher(tocsin.Space({"c": kind}), operators=[told])
    matcher.subscribe("text", "c = 'x'")
    matcher.subscribe("below", "is_a(c, 'n0')")
    matcher.subscribe("told", "c = 'x' AND told(c, 'x')")
    for depth in range(14):
        matcher.grow("c", {f"n{depth}": [f"n{depth + 1}"]})
    crowded = matcher._state.axes
    during.clear()
    matcher.grow("c", {"n14": ["x"]})
    assert matcher._state.axes is not crowded, "there was room left: the tree was not numbered anew"
    assert during and all(each == ["text", "told"] for each in during)
    assert sorted(matcher.match({"c": "x"})) == ["below", "text", "told"]
