"""Concepts through a matcher, held against the definition: random hierarchies, growth in between, every engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tests.space.hierarchies import is_a, name_of, parents
from tocsin.errors import EventError, SpaceError, TreeError, UnknownTermError
from tocsin.index import engines
from tocsin.language.printer import constant_text
from tocsin.language.tree import Constant

GOODS = {"product": {"computer": {"portable": ["laptop", "tablet"], "desktop": None}, "gift": ["tablet"], "phone": []}}
ENGINES = list(engines())


def quoted(name: str) -> str:
    return constant_text(Constant(name, "string"))


@st.composite
def conditions(draw: st.DrawFn, names: list[str], depth: int = 0) -> tuple[str, object]:
    """Draw an expression over the field c and its meaning: a function of the parents and the value, in three values."""
    kind = draw(st.sampled_from(["is_a", "is_a", "equal", "in", "not", "and", "or"] if depth < 3 else ["is_a", "in"]))
    if kind in ("is_a", "equal", "in"):
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=1 if kind == "equal" else 3))
        shown = ", ".join(map(quoted, chosen))
        if kind == "is_a":
            return (
                f"is_a(c, {shown})",
                lambda up, value: None if value is None else any(is_a(up, value, each) for each in chosen),
            )
        text = f"c = {shown}" if kind == "equal" else f"c IN ({shown})"
        return text, lambda up, value: None if value is None else value in chosen
    if kind == "not":
        text, meaning = draw(conditions(names, depth + 1))
        return f"NOT ({text})", lambda up, value: None if (held := meaning(up, value)) is None else not held
    (one, left), (other, right) = draw(conditions(names, depth + 1)), draw(conditions(names, depth + 1))
    if kind == "and":
        return (
            f"({one}) AND ({other})",
            lambda up, value: None if value is None else left(up, value) and right(up, value),
        )
    return f"({one}) OR ({other})", lambda up, value: None if value is None else left(up, value) or right(up, value)


@settings(max_examples=60, deadline=None)
@given(parents(most=14), st.sampled_from(ENGINES), st.data())
def test_any_sentence_about_concepts_holds_as_defined_while_the_tree_grows(
    given: dict[str, list[str]], engine: str, data: st.DataObject
) -> None:
    tree = tocsin.Hierarchy.of(given, {"another word": next(iter(given))})
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept(tree)}), engine)
    meant: dict[int, object] = {}
    for step in range(3):
        for number in range(10 * step, 10 * step + data.draw(st.integers(1, 5))):
            text, meant[number] = data.draw(conditions(list(given)))
            matcher.subscribe(number, text)
        fresh: dict[str, list[str]] = {}
        for number in range(data.draw(st.integers(0, 3))):
            new = data.draw(st.booleans()) or number == 0
            name = name_of(1000 + 10 * step + number) if new else data.draw(st.sampled_from(list(given)))
            above = data.draw(st.lists(st.sampled_from([*given, *fresh]), min_size=1, max_size=2, unique=True))
            if not new and (not given[name] or any(is_a({**given, **fresh}, each, name) for each in above)):
                continue
            fresh[name] = list(dict.fromkeys([*given.get(name, []), *fresh.get(name, []), *above]))
        additions: dict[str, list[str]] = {}
        for name, above in fresh.items():
            for each in above:
                if each not in given.get(name, []):
                    additions.setdefault(each, []).append(name)
        if additions:
            matcher.grow("c", additions)
        given = {**given, **fresh}
        values = [*given, None]
        wanted = {(row, number) for row, value in enumerate(values) for number in meant if meant[number](given, value)}  # type: ignore[operator]
        found = matcher.match_batch(pa.table({"c": pa.array(values, pa.string())}))
        assert set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == wanted
        for row, value in enumerate(values):
            assert set(matcher.match({"c": value})) == {number for at, number in wanted if at == row}


@pytest.mark.parametrize("engine", ENGINES)
def test_growth_takes_effect_for_stored_subscriptions(engine: str, tmp_path: Path) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"target": tocsin.Concept(GOODS), "other": tocsin.Text()}), engine)
    matcher.subscribe("computer", "is_a(target, 'computer') AND other > 'a'")
    matcher.subscribe("gift", "is_a(target, 'gi\\u0066t') AND other > 'a'")
    matcher.subscribe("no gift", "NOT is_a(target, 'gift') AND other > 'a'")
    matcher.grow("target", "laptop\n  ultrabook = 超极本\nphone\n  smartphone\n")
    assert matcher.match({"target": "超极本", "other": "b"}) == ["computer", "no gift"]
    matcher.grow("target", {"gift": ["ultrabook"], "computer": ["smartphone"]})
    assert sorted(matcher.match({"target": "ultrabook", "other": "b"})) == ["computer", "gift"]
    assert sorted(matcher.match({"target": "smartphone", "other": "b"})) == ["computer", "no gift"]
    matcher.save(tmp_path)
    opened = tocsin.Matcher.load(tmp_path)
    assert opened.space == matcher.space
    opened.grow("target", {"smartphone": ["foldable"]})
    assert sorted(opened.match({"target": "foldable", "other": "b"})) == ["computer", "no gift"]


def test_a_line_of_a_thousand_concepts_grows_by_numbering_anew() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept({"top": ["n0", "side"]})}), "counting")
    matcher.subscribe("top", "is_a(c, 'top')")
    matcher.subscribe("first", "is_a(c, 'n0')")
    matcher.subscribe("not", "NOT is_a(c, 'n0')")
    matcher.subscribe("equal", "c <> 'n0'")
    for number in range(1, 200):
        matcher.grow("c", {f"n{number - 1}": f"n{number}"})
        assert sorted(matcher.match({"c": f"n{number}"})) == ["equal", "first", "top"]
    matcher.subscribe("middle", "is_a(c, 'n100') AND NOT is_a(c, 'n150')")
    assert "middle" in matcher.match({"c": "n120"}) and "middle" not in matcher.match({"c": "n199"})
    assert sorted(matcher.match({"c": "side"})) == ["equal", "not", "top"]


def test_unknown_words_are_errors_that_name_the_nearest_or_plain_texts() -> None:
    strict = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept(GOODS)}))
    with pytest.raises(UnknownTermError, match="'labtop' is no concept of the tree; did you mean laptop"):
        strict.subscribe("typo", "is_a(c, 'labtop')")
    with pytest.raises(EventError, match="field c: 'Laptop' is no concept of the tree; did you mean laptop"):
        strict.match({"c": "Laptop"})
    strict.subscribe("any", "is_a(c, 'product')")
    problems: list[tocsin.Problem] = []
    found = strict.match_batch(pa.table({"c": ["laptop", "car", None, "phone", "dog"]}), problems=problems)
    assert found["event"].to_pylist() == [0, 3] and [problem.row for problem in problems] == [1, 4]
    kind = tocsin.Concept(GOODS, unknown_terms="text", unknown_values="text")
    loose = tocsin.Matcher(tocsin.Space({"c": kind}))
    loose.subscribe("car", "is_a(c, 'car')")
    loose.subscribe("equal", "c = 'car'")
    loose.subscribe("not", "NOT is_a(c, 'product')")
    loose.subscribe("any", "is_a(c, 'product')")
    assert loose.match({"c": "car"}) == ["car", "equal", "not"]
    assert loose.match({"c": "dog"}) == ["not"]
    assert loose.match_batch(pa.table({"c": ["car", "dog"]}))["event"].to_pylist() == [0, 0, 0, 1]
    loose.grow("c", {"product": {"car": ["van"]}})
    assert sorted(loose.match({"c": "van"})) == ["any", "car"]
    assert sorted(loose.match({"c": "car"})) == ["any", "car", "equal"]


@pytest.mark.parametrize(
    ("additions", "message"),
    [
        ({"nothing": ["x"]}, "there is no 'nothing' to put something below"),
        ({"laptop": ["computer"]}, "in a circle: computer → laptop → portable → computer"),
        ({"laptop": ["x"], "x": ["y"], "y": ["x"]}, "in a circle: x → y → x"),
        ({"laptop": ["product"]}, "'product' is a root and stays one"),
        ("laptop\n  x = tablet", "the synonym 'tablet' of 'x' is a name of its own"),
        (7, "additions are a mapping"),
    ],
)
def test_bad_growth_changes_nothing(additions: object, message: str) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept(GOODS), "n": tocsin.Number()}))
    matcher.subscribe("any", "is_a(c, 'product')")
    before = matcher.space
    with pytest.raises(TreeError, match=message):
        matcher.grow("c", additions)
    assert matcher.space is before and matcher.match({"c": "laptop"}) == ["any"]
    with pytest.raises(SpaceError, match="n is number and has no tree"):
        matcher.grow("n", additions)


def test_repeated_concepts_and_null() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Repeated(tocsin.Concept(GOODS))}))
    matcher.subscribe("both", "is_a(c, 'portable') AND is_a(c, 'phone')")
    matcher.subscribe("none", "NOT is_a(c, 'computer')")
    matcher.subscribe("null", "is_a(c, NULL) OR is_a(c, 'laptop', NULL)")
    assert matcher.match({"c": ["phone", "laptop"]}) == ["both", "null"]
    assert matcher.match({"c": ["phone"]}) == ["none"]
    assert matcher.match({"c": None}) == [] and matcher.match({"c": []}) == ["none"]


def test_two_dimensions_share_a_tree_and_grow_together() -> None:
    tree = tocsin.Hierarchy.of({"a": [], "b": ["a"]})
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Concept(tree), "y": tocsin.Concept(tree)}))
    matcher.subscribe("both", "is_a(x, 'b') AND is_a(y, 'b')")
    matcher.grow("x", {"b": "c"})
    assert matcher.match({"x": "c", "y": "c"}) == ["both"]


def test_a_concept_of_many_intervals_does_not_widen_the_others() -> None:
    given = {f"r{number}": [f"r{number - 1}"] if number else [] for number in range(60)}
    given |= {f"leaf{number}": [f"r{number}", "hub"] for number in range(0, 60, 2)}
    given = {"hub": [], **given}
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept(tocsin.Hierarchy.of(given)), "n": tocsin.Number()}))
    texts = [f"is_a(c, '{name}') OR n < 0 AND NOT is_a(c, 'hub')" for name in given]
    matcher.subscribe_many(pa.table({"id": list(given), "expression": texts}))
    found = matcher.match_batch(pa.table({"c": list(given), "n": [1.0] * len(given)}))
    wanted = {(row, concept) for row, name in enumerate(given) for concept in given if is_a(given, name, concept)}
    assert set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == wanted


def test_readers_go_on_while_the_tree_grows() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"c": tocsin.Concept(GOODS)}))
    matcher.subscribe("computer", "is_a(c, 'computer')")
    matcher.subscribe("gift", "is_a(c, 'gift')")
    stop, wrong = threading.Event(), []
    table = pa.table({"c": ["laptop", "tablet", "phone"] * 100})

    def read() -> None:
        while not stop.is_set():
            found = matcher.match_batch(table)
            if len(found) != 300:
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    at = "laptop"
    for number in range(60):  # the line downwards makes the hierarchy be numbered anew on the way
        matcher.grow("c", {at: [f"n{number}"], "gift": [f"m{number}"]})
        at = f"n{number}"
        matcher.grow("c", {"gift": [f"n{number}"]})
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert sorted(matcher.match({"c": "n59"})) == ["computer", "gift"]


def test_a_concept_that_is_left_out_may_be_any_where_texts_are_values_too() -> None:
    kind = tocsin.Concept({"vehicle": ["car"]}, unknown_terms="text", unknown_values="text")
    matcher = tocsin.Matcher(tocsin.Space({"kind": kind}, unspecified="any"))
    for text in ("kind = 'car'", "is_a(kind, 'car')", "kind = 'stone'", "NOT is_a(kind, 'vehicle')"):
        matcher.subscribe(text, text)
        assert matcher.match({}) == list(matcher)
