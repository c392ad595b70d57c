"""Ranges in fields below attributes: a subscription holds if one value of each range, in all places where the field
counts, satisfies it. Ranges here hold few values, and the matcher is asked about every point."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Address, Derived, Interval, Matcher, Number, Space, Text, operator

Literal = Callable[[Any], str]
LEAST = -(2**63)

KINDS: dict[str, tuple[Any, pa.DataType, Literal, list[Any]]] = {
    "int64": (Number("int64"), pa.int64(), str, list(range(6))),
    "decimal": (Number("decimal(25,1)"), pa.decimal128(25, 1), str, [Decimal(number) / 10 for number in range(6)]),
    "address": (Address(), pa.string(), "'{}'".format, [f"10.0.0.{number}" for number in range(6)]),
    "text": (Text(), pa.string(), lambda text: f"'{text}'".replace("\0", "\\0"), ["a", "a\0", "a\0\0", "a\0\0\0"]),
}


class Case:
    """Some subscriptions and events over fields f and g below mid, and with h below top."""

    def __init__(self, name: str, kind: str, unspecified: Any) -> None:
        self.random = Random(f"{name}/{kind}/{unspecified}")
        self.kind, self.arrow, self.literal, self.values = KINDS[kind]
        fields = dict.fromkeys("fghx", self.kind)
        self.space = Space(fields, attributes={"top": {"mid": ["f", "g"], "h": None}}, unspecified=unspecified)
        self.matcher = Matcher(self.space)
        self.asked = [self.expression(self.random.choice([1, 2])) for _ in range(8)]
        for number, each in enumerate(self.asked):
            self.matcher.subscribe(number, each)

    def leaf(self) -> str:
        field = self.random.choice(["f", "g", "h", "x", "mid", "mid", "top", "top"])
        one, other = (self.literal(self.random.choice(self.values)) for _ in range(2))
        if isinstance(self.kind, Text) and self.random.random() < 0.2:
            return self.random.choice([f"upper({field}) = {one.upper()}", f"endswith({field}, 'a')"])
        sign = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        return self.random.choice([f"{field} {sign} {one}", f"{field} IN ({one}, {other})", f"{field} {sign} {other}"])

    def expression(self, depth: int) -> str:
        if not depth:
            return self.leaf()
        parts = [self.expression(depth - 1) for _ in range(2)]
        joined = f"({self.random.choice([' AND ', ' AND ', ' OR ']).join(parts)})"
        return f"NOT {joined}" if self.random.random() < 0.3 else joined

    def event(self) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        event: dict[str, Any] = {}
        points: dict[str, list[Any]] = {}
        for field in "fghx":
            if self.random.random() < 0.25:
                continue
            first, last = sorted(self.random.choices(range(len(self.values)), k=2))
            event[field] = self.values[first], self.values[last]
            points[field] = self.values[first : last + 1]
        if self.random.random() < 0.3:
            event["mid"] = self.random.choices(self.values, k=2)
            points["mid"] = [event["mid"]]
        return event, points

    def table(self, event: dict[str, Any]) -> pa.Table:
        ranges, lists = pa.struct({"low": self.arrow, "high": self.arrow}), pa.list_(self.arrow)
        columns: dict[str, Any] = {"number": [1]}
        for field, value in event.items():
            is_list = isinstance(value, list)
            given = value if is_list else {"low": value[0], "high": value[1]}
            columns[field] = pa.array([given], lists if is_list else ranges)
        return pa.table(columns)

    def check(self) -> None:
        for _ in range(4):
            event, points = self.event()
            wanted: set[int] = set()
            for point in itertools.product(*points.values()):
                wanted |= set(self.matcher.match(dict(zip(points, point, strict=True))))
            found = set(self.matcher.match(event))
            told = [(self.asked[number], number in found) for number in sorted(found ^ wanted)]
            assert found == wanted, (event, told)
            batch = self.matcher.match_batch(self.table(event), missing="unspecified")
            assert set(batch["subscription"].to_pylist()) == found, event


@pytest.mark.parametrize(("kind", "unspecified"), [("int64", "any"), ("address", "null"), ("text", "null")])
def test_a_range_below_an_attribute_takes_one_value_everywhere(kind: str, unspecified: str) -> None:
    Case("0", kind, unspecified).check()


@pytest.mark.slow
@pytest.mark.parametrize("unspecified", ["null", "any"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_many_ranges_below_attributes_take_one_value_everywhere(kind: str, unspecified: str) -> None:
    for number in range(100):
        Case(f"many {number}", kind, unspecified).check()


def contacts(kind: Any = None, **options: Any) -> Space:
    kind = kind or Number("int64")
    return Space({"email": kind, "phone": kind}, attributes={"contact": ["email", "phone"]}, **options)


def test_whether_a_range_is_taken_does_not_depend_on_what_others_subscribe() -> None:
    matcher = Matcher(contacts())
    matcher.subscribe("own", "email = 5")
    assert matcher.match({"email": (3, 6)}) == ["own"]
    matcher.subscribe("above", "contact = 4")
    matcher.subscribe("two values", "contact = 4 AND email = 5")
    matcher.subscribe("two fields", "contact = 9 AND email = 5")
    matcher.subscribe("none", "NOT (contact > 2)")
    assert sorted(matcher.match({"email": (3, 6)})) == ["above", "own"]
    assert sorted(matcher.match({"email": (3, 6), "phone": (7, 9)})) == ["above", "own", "two fields"]
    assert sorted(matcher.match({"email": {1, (3, 6)}})) == ["above", "none", "own"]
    assert not matcher.explain({"email": (3, 6)}, "two values")
    assert matcher.explain({"email": (3, 6)}, "above")


def test_a_range_of_one_value_below_an_attribute_is_that_value() -> None:
    matcher = Matcher(contacts())
    matcher.subscribe("all", "NOT (contact <> 3)")
    assert matcher.match({"email": Interval(2, 4, "neither")}) == ["all"]
    assert matcher.match({"email": Interval(2, 4, "left")}) == ["all"]
    assert matcher.match({"email": (4, 5)}) == []


def test_the_least_whole_number_is_told_from_the_next_below_an_attribute() -> None:
    matcher = Matcher(contacts())
    matcher.subscribe("least", f"contact = {LEAST}")
    matcher.subscribe("other", f"contact > {LEAST} AND NOT (contact > {LEAST + 1})")
    assert sorted(matcher.match({"email": (LEAST, 0)})) == ["least", "other"]
    assert matcher.match({"email": (LEAST + 1, 0)}) == ["other"]
    assert matcher.match({"email": (0, 5)}) == []


def test_the_case_and_the_end_of_a_text_are_asked_of_one_text_below_an_attribute() -> None:
    matcher = Matcher(contacts(Text()))
    for number, each in enumerate(["lower(contact) = 'q'", "contact LIKE '%b' AND email < 'az'", "contact LIKE '%x%'"]):
        matcher.subscribe(number, each)
    assert sorted(matcher.match({"email": ("a", "b")})) == [1, 2], "a pattern counts as holding of a range"
    assert sorted(matcher.match({"email": ("Q", "R")})) == [0, 1, 2]
    assert sorted(matcher.match({"email": ("q", "r")})) == [0, 2]


def test_what_a_formula_makes_of_a_range_may_be_anything_above_it_too() -> None:
    kinds = {"x": Number("int64"), "made": Derived("x + 1", Number("int64")), "other": Number("int64")}
    matcher = Matcher(Space(kinds, attributes={"any_of": ["made", "other"]}))
    matcher.subscribe("seven", "any_of = 7")
    matcher.subscribe("never", "any_of = 7 AND made < 7 AND NOT (any_of > 7)")
    table = pa.table({"x": pa.array([{"low": 1, "high": 2}, {"low": 6, "high": 6}, {"low": 5, "high": 5}])})
    found = matcher.match_batch(table, missing="unspecified").to_pylist()
    assert [(each["event"], each["subscription"]) for each in found] == [(0, "seven"), (1, "seven")]
    assert [matcher.match({"x": each}) for each in ((1, 2), (6, 6), (5, 5))] == [["seven"], ["seven"], []]


def test_an_operator_does_not_know_the_values_above_a_range() -> None:
    seen = []

    @operator(name="see")
    def see(values: Any) -> bool:
        seen.append(values)
        return True

    matcher = Matcher(contacts(), operators=[see])
    matcher.subscribe("s", "see(contact)")
    assert matcher.match({"email": (1, 2), "phone": 3}) == []
    assert matcher.match({"email": (1, 1), "phone": 3}) == ["s"]
    assert seen == [[1, 3]]


def test_operators_decide_the_alternative_that_a_range_satisfies() -> None:
    @operator(name="positive")
    def positive(value: Any) -> bool:
        return bool(value > 0)

    matcher = Matcher(Space({"v": Text(), "x": Number(), "y": Number()}), operators=[positive])
    matcher.subscribe("s", "(lower(v) = 'q' AND positive(x)) OR (lower(v) = 'a' AND positive(y))")
    for x, y, wanted in ((1.0, -1.0, []), (-1.0, 1.0, ["s"]), (-1.0, -1.0, [])):
        assert matcher.match({"v": ("a", "b"), "x": x, "y": y}) == wanted
    assert matcher.match({"v": ("p", "r"), "x": 1.0, "y": -1.0}) == ["s"]


def test_a_move_of_a_range_of_texts_is_decided_by_its_texts() -> None:
    matcher = Matcher(Space({"v": Text()}))
    matcher.subscribe("q", "lower(v) = 'q'")
    before, after = (pa.table({"v": pa.array([{"low": low, "high": high}])}) for low, high in (("a", "b"), ("c", "d")))
    assert matcher.moved_batch(before, after).num_rows == 0
    inside = pa.table({"v": pa.array([{"low": "P", "high": "R"}])})
    assert matcher.moved_batch(before, inside)["transition"].to_pylist() == ["enter"]


def test_a_repeated_field_left_out_as_anything_is_explained_as_it_matches() -> None:
    matcher = Matcher(contacts(unspecified="any"))
    matcher.subscribe("s", "contact = 5")
    assert matcher.match({}) == ["s"]
    assert matcher.explain({}, "s")


@pytest.mark.parametrize("other", ["t LIKE '%aa' AND lower(t) = 'ab'", "upper(t) = 'B' AND t = 'a'"])
def test_an_alternative_that_no_text_satisfies_does_not_borrow_the_range_of_another(other: str) -> None:
    @operator
    def odd(t: str) -> bool:
        return len(t) % 2 == 1

    matcher = Matcher(Space({"t": Text()}), operators=[odd])
    matcher.subscribe("s", f"odd(t) OR ({other})")
    assert matcher.match({"t": ("A", "bb")}) == []  # a range is unknown to an operator
    assert matcher.match_batch(pa.table({"t": [{"low": "A", "high": "bb"}]})).num_rows == 0
    assert matcher.match({"t": "aaa"}) == ["s"]
