"""Regions under several names of a dimension, beside computed ones, and with the least whole number."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tocsin import Derived, Interval, Matcher, Number, Space, Subjects
from tocsin.errors import RegionError

LEAST = -(2**63)


def test_a_change_under_a_synonym_replaces_what_was_given_under_the_name() -> None:
    held = Subjects(Space({"x": Number("int64"), "y": Number("int64")}, synonyms={"alias": "x"}))
    held.publish("p", {"alias": 7})
    held.subscribe("s", {"x": 1, "y": None, "alias": 1})
    assert list(held.change("s", {"alias": 7})) == [("enter", "p", "s")]
    assert list(held.change("s", {"x": {1, 2}})) == [("leave", "p", "s")]
    assert list(held.change("s", {"alias": (5, 9)})) == [("enter", "p", "s")]


def test_a_formula_is_computed_of_a_dimension_given_under_a_synonym() -> None:
    space = Space({"x": Number(), "double": Derived("2 * x", Number())}, synonyms={"alias": "x"})
    held = Subjects(space)
    held.subscribe("s", "double = 6")
    assert list(held.publish("p", {"alias": 3.0})) == [("enter", "p", "s")]
    assert list(held.update("p", {"x": 4.0})) == [("leave", "p", "s")]
    told = held.put_many(pa.table({"key": ["p"], "alias": [3.0]}))
    assert told.to_arrow()["transition"].to_pylist() == ["enter"]


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_what_is_only_computed_constrains_no_region(unspecified: Any) -> None:
    space = Space({"x": Number(), "made": Derived("coalesce(x, 5)", Number())}, unspecified=unspecified)
    held = Subjects(space)
    held.publish("p", {"x": 1.0})
    with pytest.raises(RegionError, match="at least one"):
        held.update("p", {"x": None})
    with pytest.raises(RegionError, match="at least one"):
        held.put_many(pa.table({"key": ["p"], "x": pa.array([None], pa.float64())}))
    with pytest.raises(RegionError, match="at least one"):
        held.publish("q", {"x": None})


def test_nothing_is_constrained_after_an_axis_for_the_least_number_came() -> None:
    held = Subjects(Space({"x": Number(), "z": Number("int64")}, unspecified="any"))
    held.publish("p", {"x": 1.0})
    held.subscribe("s", f"z = {LEAST + 1}")
    with pytest.raises(RegionError, match="at least one"):
        held.update("p", {"x": None})


def test_a_set_with_the_least_number_does_not_meet_its_neighbour() -> None:
    held = Subjects(Space({"x": Number("int64"), "y": Number("int64")}))
    held.subscribe("s", {"x": {1, LEAST}, "y": {LEAST, (3, 5)}})
    assert not list(held.publish("p", {"x": (LEAST + 1, 0), "y": 4}))
    assert list(held.update("p", {"x": Interval(None, 0)})) == [("enter", "p", "s")]
    assert list(held.update("p", {"y": {LEAST + 1, 6}})) == [("leave", "p", "s")]
    assert list(held.update("p", {"x": 1, "y": LEAST})) == [("enter", "p", "s")]


@pytest.mark.parametrize("first", ["publish", "subscribe"])
@pytest.mark.parametrize(("formula", "given"), [("x + 1", LEAST), ("x - 1", LEAST + 1)])
def test_a_formula_takes_and_makes_the_least_number(formula: str, given: int, first: str) -> None:
    held = Subjects(Space({"x": Number("int64"), "made": Derived(formula, Number("int64"))}))
    table = pa.table({"key": ["p", "q"], "x": [given, given + 1]})
    made = LEAST + 1 if given == LEAST else LEAST
    if first == "publish":
        held.put_many(table)
    for more in range(3):
        held.subscribe(more, f"made = {made + more}")
    if first == "subscribe":
        held.put_many(table)
    assert held.matches() == {("p", 0), ("q", 1)}


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_a_formula_without_a_value_is_as_a_dimension_that_is_left_out(unspecified: Any) -> None:
    space = Space({"x": Number(), "y": Number(), "share": Derived("x / y", Number())}, unspecified=unspecified)
    subjects, matcher = Subjects(space), Matcher(space)
    for id, text in {"less": "share < 5", "more": "share > 5", "none": "share IS NULL"}.items():
        subjects.subscribe(id, text)
        matcher.subscribe(id, text)
    found = {subscription for _, _, subscription in subjects.publish("p", {"x": 1, "y": 0})}
    assert found == set(matcher.match({"x": 1, "y": 0}))
    assert found == ({"none"} if unspecified == "null" else {"less", "more"})
