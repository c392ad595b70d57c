"""Operators in the subscriptions of `Subjects`: what was told last is kept, and enter and leave alternate."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tocsin.errors import NotEnabledError

SPACE = tocsin.Space({"x": tocsin.Number(), "n": tocsin.Number("int64"), "text": tocsin.Text()})


class Stage:
    """An operator of ``n`` whose answers are given, and may fail."""

    def __init__(self, **settings: Any) -> None:
        self.answers: dict[int, Any] = {}
        self.asked: list[int] = []

        def good(n: int) -> Any:
            self.asked.append(n)
            found = self.answers.get(n, False)
            if found == "fail":
                raise RuntimeError("injected")
            return found

        self.operator = tocsin.operator(good, name="good", reads=["n"], **settings)

    def subjects(self, space: tocsin.Space = SPACE) -> tocsin.Subjects:
        """Return subjects whose subscriptions may call it."""
        return tocsin.Subjects(space, operators=[self.operator])


def told(transitions: tocsin.Transitions) -> list[tuple[str, Any, Any]]:
    return sorted(transitions)


def test_a_pair_enters_and_leaves_as_an_operator_says() -> None:
    stage = Stage()
    subjects = stage.subjects()
    stage.answers = {1: True, 2: False}
    assert told(subjects.subscribe("s", "x < 5 AND good()")) == []
    assert told(subjects.publish("p", {"x": 1, "n": 1})) == [("enter", "p", "s")]
    assert told(subjects.update("p", {"x": 2})) == []
    assert told(subjects.update("p", {"n": 2})) == [("leave", "p", "s")]
    assert told(subjects.update("p", {"n": 1})) == [("enter", "p", "s")]
    assert subjects.matches() == {("p", "s")}
    assert told(subjects.update("p", {"x": 9})) == [("leave", "p", "s")]
    assert told(subjects.update("p", {"x": 1})) == [("enter", "p", "s")]
    assert told(subjects.change("s", "x < 5 AND NOT good()")) == [("leave", "p", "s")]
    assert told(subjects.change("s", "x < 5")) == [("enter", "p", "s")]
    assert told(subjects.change("s", "x < 5 AND good()")) == []
    assert told(subjects.unsubscribe("s")) == [("leave", "p", "s")]
    assert told(subjects.subscribe("s", "good()")) == [("enter", "p", "s")]
    assert told(subjects.delete("p")) == [("leave", "p", "s")]
    assert subjects.matches() == set()


def test_what_was_told_decides_not_what_an_operator_would_say_now_of_what_was() -> None:
    stage = Stage()
    subjects = stage.subjects()
    stage.answers = {1: True}
    subjects.subscribe("s", "good()")
    assert told(subjects.publish("p", {"x": 1, "n": 1})) == [("enter", "p", "s")]
    stage.answers = {1: False}  # it changes its mind: told when the publication changes next, and once
    assert told(subjects.update("p", {"x": 2})) == [("leave", "p", "s")]
    assert told(subjects.update("p", {"x": 3})) == []
    assert told(subjects.delete("p")) == []


@pytest.mark.parametrize("policy", ["false", "error"])
def test_a_failed_call_changes_nothing_and_is_counted(policy: str) -> None:
    stage = Stage(on_failure=policy)
    subjects = stage.subjects()
    stage.answers = {1: True, 2: "fail", 3: False}
    subjects.subscribe("s", "good()")
    subjects.subscribe("not", "NOT good()")
    assert told(subjects.publish("p", {"x": 1, "n": 2})) == []
    assert told(subjects.update("p", {"n": 1})) == [("enter", "p", "s")]
    assert told(subjects.update("p", {"n": 2})) == []
    assert told(subjects.update("p", {"n": 3})) == [("enter", "p", "not"), ("leave", "p", "s")]
    assert told(subjects.update("p", {"n": 2})) == []
    assert subjects.matches() == {("p", "not")}
    assert "injected" in str(subjects.stats()["operators"]["space"]["good"]["last_failure"])


def test_a_failed_call_beside_a_test_that_decides_leaves_nothing_open() -> None:
    stage = Stage()
    subjects = stage.subjects()
    stage.answers = {1: True, 2: "fail"}
    subjects.subscribe("s", "good() AND x < 5")
    assert told(subjects.publish("p", {"x": 1, "n": 1})) == [("enter", "p", "s")]
    assert told(subjects.update("p", {"x": 9, "n": 2})) == [("leave", "p", "s")]
    assert told(subjects.update("p", {"x": 1})) == []


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_a_range_is_unknown_to_an_operator(unspecified: Any) -> None:
    stage = Stage()
    space = tocsin.Space({"x": tocsin.Number(), "n": tocsin.Number("int64")}, unspecified=unspecified)
    subjects = stage.subjects(space)
    stage.answers = {1: True}
    subjects.subscribe("s", "good()")
    subjects.subscribe("not", "NOT good()")
    assert told(subjects.publish("p", {"x": 1, "n": (1, 2)})) == []
    assert told(subjects.update("p", {"n": 1})) == [("enter", "p", "s")]
    assert told(subjects.update("p", {"n": (0, 2)})) == [("leave", "p", "s")]
    assert set(stage.asked) == {1}
    both = [("enter", "q", "not"), ("enter", "q", "s")] if unspecified == "any" else []
    assert told(subjects.publish("q", {"x": 1})) == both


def test_tables_tell_what_single_changes_tell() -> None:
    stage = Stage()
    stage.answers = {number: number % 3 == 0 for number in range(50)}
    rng = np.random.default_rng(7)
    many, few = stage.subjects(), stage.subjects()
    subscriptions = pa.table({"id": ["a", "b", "c"], "expression": ["good() AND x < 5", "NOT good()", "x > 3"]})
    many.subscribe_many(subscriptions)
    for row in subscriptions.to_pylist():
        few.subscribe(row["id"], row["expression"])
    for _ in range(6):
        keys, n, x = rng.integers(0, 8, 10), rng.integers(0, 50, 10), rng.integers(0, 9, 10).astype(float)
        table = pa.table({"key": keys, "n": n, "x": x})
        found = [tuple(row.values())[1:] for row in many.put_many(table).to_arrow().to_pylist()]
        wanted = [each for row in table.to_pylist() for each in few.put(row.pop("key"), row)]
        assert sorted((kind, key, id) for key, id, kind in found) == sorted(wanted)
    gone = sorted(many.matches())
    assert sorted((key, id) for _, key, id in many.delete_many(range(8))) == gone
    few.subscribe("late", "good()")
    many.put_many(pa.table({"key": [1, 2], "n": [3, 4]}))
    late = pa.table({"id": ["late"], "expression": ["good()"]})
    assert len(many.subscribe_many(late, tell=False)) == 0
    assert told(many.update(1, {"n": 4})) == [("enter", 1, "b"), ("leave", 1, "late")]


def test_an_operator_receives_what_it_receives_of_an_event() -> None:
    kinds: dict[str, Any] = {
        "double": tocsin.Number(),
        "whole": tocsin.Number("int64"),
        "cents": tocsin.Number("decimal(10, 2)"),
        "long": tocsin.Number("decimal(30, 3)"),
        "length": tocsin.Number(unit="m"),
        "word": tocsin.Text(synonyms={"colour": "color"}),
        "flag": tocsin.Boolean(),
        "day": tocsin.Time("date"),
        "at": tocsin.Time(),
        "host": tocsin.Address(),
        "kind": tocsin.Concept({"thing": ["one", "two"]}),
    }
    event = {
        "double": -0.5,
        "whole": 2**53 + 1,
        "cents": Decimal("1.50"),
        "long": Decimal("123456789012345678901.125"),
        "length": "2 km",
        "word": "colour",
        "flag": True,
        "day": date(2026, 1, 31),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "host": "10.0.0.1",
        "kind": "two",
    }
    seen: list[Any] = []

    def look(value: Any) -> bool:
        seen.append(value)
        return True

    space = tocsin.Space(kinds)
    operator = tocsin.operator(look, name="look")
    matcher, subjects = tocsin.Matcher(space, operators=[operator]), tocsin.Subjects(space, operators=[operator])
    for name in kinds:
        matcher.subscribe(name, f"look({name})")
        subjects.subscribe(name, f"look({name})")
    assert sorted(matcher.match(event)) == sorted(kinds)
    of_event, seen[:] = sorted(map(repr, seen)), []
    assert len(subjects.publish("p", event)) == len(kinds)
    assert sorted(map(repr, seen)) == of_event


def test_operators_that_ship_work_in_regions() -> None:
    space = tocsin.Space({"lon": tocsin.Number(), "lat": tocsin.Number(), "body": tocsin.Text()})
    subjects = tocsin.Subjects(space)
    subjects.subscribe("square", "within(lon, lat, 'POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))')")
    subjects.subscribe("market", "mentions(body, 'market day') AND lon > 0")
    entered = told(subjects.publish("p", {"lon": 1, "lat": 1.5, "body": "Saturday is Market Day!"}))
    assert entered == [("enter", "p", "market"), ("enter", "p", "square")]
    assert told(subjects.update("p", {"lat": 3})) == [("leave", "p", "square")]
    assert told(subjects.update("p", {"body": "nothing"})) == [("leave", "p", "market")]


def test_an_audience_calls_no_operators() -> None:
    subjects = tocsin.Subjects(SPACE, properties=tocsin.Space({"text": tocsin.Text()}))
    with pytest.raises(NotEnabledError):
        subjects.publish("p", {"x": 1}, audience="mentions(text, 'a')")


TEXTS = ["good()", "NOT good()", "x < 4 AND good()", "good() OR x > 6", "x BETWEEN 2 AND 5 AND NOT good()", "x > 2"]


def _step(rng: random.Random, subjects: tocsin.Subjects, ids: set[int]) -> Any:
    """Change something, and return what is told."""
    key, id = rng.randrange(4), rng.randrange(4)
    given: dict[str, Any] = {"n": rng.choice([0, 1, 2, 3, 4, 5, (1, 3)]), "x": float(rng.randrange(9))}
    chosen = rng.choices(["put", "part", "delete", "subscription", "unsubscribe"], (5, 4, 1, 3, 1))[0]
    if chosen == "put":
        return subjects.put(key, given)
    if chosen == "part":
        return subjects.put(key, {"n": given["n"]})
    if chosen == "delete":
        return subjects.delete(key) if key in subjects else []
    if chosen == "unsubscribe":
        found = subjects.unsubscribe(id) if id in ids else []
        ids.discard(id)
        return found
    changed = (subjects.change if id in ids else subjects.subscribe)(id, rng.choice(TEXTS))
    ids.add(id)
    return changed


@pytest.mark.parametrize("seed", range(4))
def test_enter_and_leave_alternate_through_random_histories_with_failures(seed: int) -> None:
    rng, stage = random.Random(seed), Stage()
    subjects, ids = stage.subjects(), set[int]()
    matching: set[tuple[Any, Any]] = set()
    for _ in range(60):
        stage.answers = {number: rng.choice([True, False, None, "fail"]) for number in range(6)}
        for kind, publication, subscription in _step(rng, subjects, ids):
            pair = publication, subscription
            assert (pair in matching) == (kind == "leave")
            (matching.remove if kind == "leave" else matching.add)(pair)
        assert subjects.matches() == matching
