"""Every bad input has its documented outcome, and leaves everything as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Interval, Number, Region, Repeated, Space, Subjects, Text
from tocsin.errors import (
    BadSubscriptionsError,
    DuplicatePublicationError,
    DuplicateSubscriptionError,
    EventError,
    ExpressionError,
    FilterError,
    RegionError,
    SpaceError,
    SubjectError,
    SubscriptionError,
    UnknownPublicationError,
    UnknownSubscriptionError,
)


@pytest.fixture
def subjects() -> Subjects:
    space = Space({"x": Number("int64"), "y": Number(), "name": Text()})
    made = Subjects(space, properties=Space({"age": Number("int64")}))
    made.subscribe("low", "x < 5")
    made.publish("p", {"x": 3, "name": "a"})
    return made


BAD: list[tuple[type[Exception], str, Callable[[Subjects], Any]]] = [
    (UnknownSubscriptionError, "type int", lambda s: s.unsubscribe(10**5000)),
    (UnknownPublicationError, "type int", lambda s: s.delete(10**5000)),
    (SubjectError, "hashable value", lambda s: s.delete(Decimal("sNaN"))),
    (RegionError, "type int", lambda s: s.update("p", 10**5000)),
    (SubjectError, "type int", lambda s: s.update("p", audience=10**5000)),
    (EventError, "not a whole number", lambda s: s.update("p", {"x": (Decimal("sNaN"), 5)})),
    (SubjectError, "publications are a table", lambda s: s.put_many(pa.array([1]))),
    (RegionError, "constrains none", lambda s: s.publish("q", {})),
    (RegionError, "constrains none", lambda s: s.publish("q", {"x": None})),
    (RegionError, "constrains none", lambda s: s.update("p", {"x": None, "name": None})),
    (RegionError, "constrains none", lambda s: s.subscribe("t", {})),
    (RegionError, "holds of everything", lambda s: s.subscribe("t", "TRUE")),
    (RegionError, "give one region", lambda s: s.publish("q")),
    (RegionError, "at least one region", lambda s: s.publish("q", regions={})),
    (RegionError, "keeps at least one", lambda s: s.update("p", regions={"region": None})),
    (RegionError, "did you mean name", lambda s: s.publish("q", {"nane": "a"})),
    (RegionError, "no dimension z", lambda s: s.update("p", {"z": 1})),
    (RegionError, "no dimension 1", lambda s: s.update("p", {1: 1})),
    (RegionError, "no dimension 1", lambda s: s.publish("q", {1: 1})),
    (RegionError, "no dimension 1", lambda s: s.subscribe("t", {1: 1})),
    (RegionError, "not both", lambda s: s.update("p", {"x": 1}, regions={"region": {"x": 2}})),
    (RegionError, "not both", lambda s: s.change("low", "x < 3", regions={"region": "x < 2"})),
    (RegionError, "dictionary by name", lambda s: s.update("p", regions=[{"x": 2}])),
    (EventError, "a set of them is expected", lambda s: s.publish("q", {"x": [1, 2]})),
    (RegionError, "no space 'here'", lambda s: s.publish("q", {"x": 1}, space="here")),
    (RegionError, "name of a region", lambda s: s.publish("q", regions={"a b": {"x": 1}})),
    (RegionError, "an expression or a dictionary", lambda s: s.subscribe("t", 5)),
    (RegionError, "dictionary of values", lambda s: s.publish("q", "x = 1")),
    (EventError, "above the upper", lambda s: s.publish("q", {"x": (4, 3)})),
    (EventError, "holds no value", lambda s: s.publish("q", {"x": Interval(3, 4, "neither")})),
    (EventError, "set is empty", lambda s: s.publish("q", {"x": set()})),
    (EventError, "whole number", lambda s: s.update("p", {"x": "seven"})),
    (EventError, "whole number", lambda s: s.update("p", {"x": int})),
    (EventError, "whole number", lambda s: s.update("p", {"x": np.array("7")})),
    (SubjectError, "hashable value", lambda s: s.put(Decimal("sNaN"), {"x": 1})),
    (SubjectError, "hashable value", lambda s: s.put(np.array([1, 2]), {"x": 1})),
    (RegionError, "above the upper", lambda s: s.subscribe("t", {"x": (4, 3)})),
    (RegionError, "holds no value", lambda s: s.subscribe("t", {"x": Interval(3.1, 3.9)})),
    (ExpressionError, "prise", lambda s: s.subscribe("t", "prise < 3")),
    (DuplicatePublicationError, "already", lambda s: s.publish("p", {"x": 1})),
    (DuplicateSubscriptionError, "already", lambda s: s.subscribe("low", "x > 1")),
    (UnknownPublicationError, "no publication 'q'", lambda s: s.update("q", {"x": 1})),
    (UnknownPublicationError, "no publication 'q'", lambda s: s.delete("q")),
    (UnknownPublicationError, "no publication 'q'", lambda s: s.delete_many(["p", "q"])),
    (UnknownSubscriptionError, "no subscription 't'", lambda s: s.change("t", "x > 1")),
    (UnknownSubscriptionError, "no subscription 't'", lambda s: s.unsubscribe("t")),
    (FilterError, "holds where no region", lambda s: s.publish("q", {"x": 1}, filter="NOT region")),
    (FilterError, "names the region b", lambda s: s.publish("q", regions={"a": {"x": 1}}, filter="a AND b")),
    (FilterError, "nothing else", lambda s: s.subscribe("t", "x > 1", filter="region > 3")),
    (FilterError, "not a boolean", lambda s: s.subscribe("t", "x > 1", filter="region AND")),
    (ExpressionError, "height", lambda s: s.publish("q", {"x": 1}, audience="height > 3")),
    (SubjectError, "twice", lambda s: s.delete_many(["p", "p"])),
    (SubjectError, "not None", lambda s: s.publish(None, {"x": 1})),
    (SubjectError, "hashable", lambda s: s.publish([], {"x": 1})),
    (EventError, "field y", lambda s: s.put_many(pa.table({"key": ["q", "r"], "y": ["1", "b"]}))),
    (RegionError, "row 1", lambda s: s.put_many(pa.table({"key": ["q", "r"], "x": [1, None]}))),
    (EventError, "column key", lambda s: s.put_many(pa.table({"x": [1]}))),
    (SubjectError, "for one publication use put", lambda s: s.put_many({"key": "q", "x": 1})),
    (SubjectError, "row 0: a key is a hashable", lambda s: s.put_many(pa.table({"key": [[1]], "x": [1]}))),
    (SubjectError, "row 0: the key is NaN", lambda s: s.put_many(pa.table({"key": [float("nan")], "x": [1]}))),
    (SubjectError, "equals itself", lambda s: s.publish(float("nan"), {"x": 1})),
    (SubjectError, "for one use delete", lambda s: s.delete_many("p")),
    (SubjectError, "for one use delete", lambda s: s.delete_many(7)),
    (RegionError, "a dictionary by name", lambda s: s.publish("q", regions=[{"x": 1}])),
    (EventError, "above the upper", lambda s: s.publish("q", {"y": (float("nan"), 1.0)})),
    (SubscriptionError, "single values", lambda s: s.subscribe_many(pa.table({"id": [[1]], "expression": ["x > 1"]}))),
    (SubjectError, "row 1: the key is NULL", lambda s: s.put_many(pa.table({"key": ["q", None], "x": [1, 2]}))),
    (
        BadSubscriptionsError,
        "2 of the subscriptions",
        lambda s: s.subscribe_many(pa.table({"id": ["a", "b", "c"], "expression": ["x > 1", "x >", "TRUE"]})),
    ),
]


@pytest.mark.parametrize(("error", "reason", "call"), BAD, ids=[f"{n}-{one[1][:20]}" for n, one in enumerate(BAD)])
def test_bad_input_is_refused_and_changes_nothing(
    subjects: Subjects, error: type[Exception], reason: str, call: Callable[[Subjects], Any]
) -> None:
    with pytest.raises(error, match=reason):
        call(subjects)
    assert subjects.matches() == {("p", "low")} and len(subjects) == 1
    assert list(subjects.update("p", {"x": 9})) == [("leave", "p", "low")]
    assert list(subjects.publish("q", {"x": 1, "y": 2.0})) == [("enter", "q", "low")]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ({"at": [5]}, "no dimension at"),
        ({"at": [{"low": 1, "high": 5}]}, "no dimension at"),
        ({"at": [{"lat": 5, "lan": 3}]}, "no dimension at.lan; did you mean"),
        ({"on": [5]}, "no dimension on"),
        ({"on": [{"lat": 5}]}, "no dimension on;"),
    ],
    ids=["number for a struct", "range for a struct", "unknown in a struct", "unknown", "unknown struct"],
)
def test_a_column_that_is_no_dimension_is_named_in_the_refusal(column: dict[str, Any], reason: str) -> None:
    subjects = Subjects(Space({"at.lat": Number("int64"), "at.lon": Number("int64")}))
    subjects.subscribe("s", "at.lat > 1")
    with pytest.raises(RegionError, match=reason):
        subjects.put_many(pa.table({"key": ["p"], **column}))
    assert list(subjects.put_many(pa.table({"key": ["p"], "at": [{"lat": 5, "lon": 3}]}))) == [("enter", "p", "s")]


def test_an_absent_dimension_comes_and_goes(subjects: Subjects) -> None:
    subjects.subscribe("wide", "y >= 0")
    assert list(subjects.update("p", {"y": 1.0})) == [("enter", "p", "wide")]
    assert list(subjects.update("p", {"y": None})) == [("leave", "p", "wide")]
    assert list(subjects.update("p", {"y": None})) == []


def test_removing_an_unmatched_region_can_create_a_match() -> None:
    subjects = Subjects(Space({"x": Number("int64")}))
    subjects.subscribe("s", "x < 5")
    assert list(subjects.publish("p", regions={"a": {"x": 1}, "b": {"x": 9}})) == []
    assert list(subjects.update("p", regions={"b": None})) == [("enter", "p", "s")]
    assert list(subjects.update("p", regions={"b": {"x": 9}})) == [("leave", "p", "s")]
    assert list(subjects.update("p", filter="any")) == [("enter", "p", "s")]


def test_closed_ends_that_touch_overlap_and_open_ones_do_not() -> None:
    subjects = Subjects(Space({"x": Number()}, unspecified="any"))
    subjects.subscribe("s", {"x": (1.0, 2.0)})
    assert list(subjects.publish("p", {"x": (2.0, 3.0)})) == [("enter", "p", "s")]
    assert list(subjects.update("p", {"x": Interval(2.0, 3.0, "right")})) == [("leave", "p", "s")]


def test_a_region_without_space_lies_in_every_space_that_has_one_of_its_dimensions() -> None:
    subjects = Subjects({"a": Space({"x": Number("int64")}), "b": Space({"x": Number("int64"), "z": Number("int64")})})
    subjects.subscribe("a", Region("x = 1", "a"))
    subjects.subscribe("b", Region("z = 1", "b"))
    assert sorted(subjects.publish("p", {"x": 1, "z": 1})) == [("enter", "p", "a"), ("enter", "p", "b")]
    assert list(subjects.update("p", {"z": None})) == [("leave", "p", "b")]
    assert list(subjects.publish("q", {"z": 1})) == [("enter", "q", "b")]


def test_a_space_with_repeated_dimensions_is_refused() -> None:
    with pytest.raises(SpaceError, match="tags: a region has no repeated dimension"):
        Subjects(Space({"tags": Repeated(Text())}))
    for none in ({}, 5, {"map": "x"}):
        with pytest.raises(SpaceError, match="several by name"):
            Subjects(none)  # type: ignore[arg-type]


def test_many_texts_on_both_sides_keep_their_order_when_labels_are_spread_anew() -> None:
    subjects = Subjects(Space({"name": Text()}))
    for number in range(40):
        subjects.subscribe(number, f"name >= 'k{'a' * number}' AND name <= 'k{'a' * number}z'")
        subjects.publish(number, {"name": "k" + "a" * number})
    before = subjects.matches()
    for plane in subjects._planes:
        plane.relabel()
    assert subjects.matches() == before == {(one, other) for one in range(40) for other in range(40) if other <= one}
    assert len(subjects.subscribe("late", "name LIKE '%aa'")) == 38
    assert len(subjects.update(0, {"name": "kaa"})) == 3


def test_transitions_are_read_late_and_name_what_was_there() -> None:
    subjects = Subjects(Space({"x": Number("int64")}))
    subjects.subscribe("s", "x < 5")
    first = subjects.publish("p", {"x": 1})
    gone = subjects.delete("p")
    subjects.publish("q", {"x": 1})
    subjects.unsubscribe("s")
    subjects.subscribe("t", "x < 5")
    assert list(first) == [("enter", "p", "s")] and gone.to_arrow()["publication"].to_pylist() == ["p"]


def test_subscriptions_of_a_table_are_changed_and_taken_away_as_others_are() -> None:
    subjects = Subjects(Space({"x": Number("int64"), "name": Text()}), properties=Space({"age": Number("int64")}))
    subjects.publish("p", {"x": 3, "name": "ab"})
    subjects.publish("q", regions={"a": {"x": 3}, "b": {"x": 8}}, filter="a AND NOT b")
    subjects.publish("r", {"x": 3}, audience="age IS NULL")
    texts = ["x < 5", "x = 3 OR name = 'ab'", "name LIKE '%b%'", "x > 3 AND x < 4", "x IN (1, 3)", "x < 9"]
    told = subjects.subscribe_many(pa.table({"id": list("stuvwy"), "expression": texts}))
    pairs = [(row["row"], row["publication"], row["subscription"]) for row in told.to_arrow().to_pylist()]
    assert pairs == sorted(pairs) and {(publication, id) for _, publication, id in pairs} == subjects.matches()
    assert subjects.matches() == {(p, s) for p in "pqr" for s in "stw"} | {("p", "u"), ("p", "y"), ("r", "y")}
    assert sorted(subjects.change("s", "x > 5")) == [("leave", p, "s") for p in "pqr"]
    assert sorted(subjects.change("w", properties={"age": 7})) == [("leave", "r", "w")]
    assert list(subjects.unsubscribe("u")) == [("leave", "p", "u")]
    assert sorted(subjects.delete_many(["p", "q", "r"])) == sorted(
        ("leave", p, s)
        for p, s in {(p, s) for p in "pqr" for s in "tw"} | {("p", "y"), ("r", "y")}
        if (p, s) != ("r", "w")
    )


def test_threads_take_turns_and_every_answer_is_one_step() -> None:
    subjects = Subjects(Space({"x": Number("int64")}))
    subjects.subscribe("low", "x < 5")
    told: list[Any] = []

    def work(name: str) -> None:
        for turn in range(60):
            told.append(subjects.put(name, {"x": turn % 10}))
            if turn % 6 == 0:
                told.append(subjects.subscribe(f"{name}{turn}", f"x > {turn % 7}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "pqr"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    balance: dict[tuple[Any, Any], int] = {}
    for kind, publication, subscription in (one for each in told for one in each):
        pair = publication, subscription
        balance[pair] = balance.get(pair, 0) + (1 if kind == "enter" else -1)
    assert {pair for pair, count in balance.items() if count} == subjects.matches()
    assert set(balance.values()) <= {0, 1}


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_filter_on_a_region_that_never_holds_is_not_met_by_the_region_beside_it(engine: str) -> None:
    subjects = Subjects(Space({"x": Number("int64")}), engine=engine)
    subjects.publish("p", {"x": 3})
    regions = {"a": "x > 5 AND x < 3", "b": "x < 5"}
    assert list(subjects.subscribe("s", regions=regions, filter="a")) == []
    assert list(subjects.subscribe("t", "x = 3")) == [("enter", "p", "t")]
    told = subjects.change("t", regions={"region": None, **regions}, filter="a")
    assert list(told) == [("leave", "p", "t")]
    assert subjects.matches() == set()
