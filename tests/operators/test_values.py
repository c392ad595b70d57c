"""What an operator receives: the value of a field as the matcher sees it, the same from a dictionary and a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
import tocsin.errors
from tocsin import Address, Boolean, Concept, Derived, Interval, Number, Repeated, Text, Time
from tocsin.operators.operator import Asked

TREE = {"computer": ["laptop", "desktop"]}
NOON = datetime(2026, 3, 4, 12, 30, 0, 5, tzinfo=UTC)
PARIS = timezone(timedelta(hours=1))

SPACE = tocsin.Space(
    {
        "double": Number(),
        "whole": Number("int64"),
        "short": Number("decimal(6, 2)"),
        "long": Number("decimal(30, 4)"),
        "mass": Number(unit="kg"),
        "weight": Number("decimal(12, 3)", unit="kg", unit_field="weight_unit"),
        "weight_unit": Text(),
        "flag": Boolean(),
        "text": Text(),
        "country": Text(synonyms={"US": "United States", "USA": "United States"}),
        "target": Concept(TREE, synonyms={"notebook": "laptop"}),
        "loose": Concept(TREE, unknown_values="text"),
        "host": Address(),
        "at": Time(),
        "wall": Time("timestamp_ntz"),
        "day": Time("date"),
        "tags": Repeated(Text()),
        "sizes": Repeated(Number(unit="m")),
        "total": Derived("double * 2", Number()),
        "nested": {"inner": Text()},
        "email": Text(),
        "phone": Text(),
    },
    attributes={"contact": ["email", "phone"]},
    synonyms={"nation": "country"},
)


def handed_over(field: str, event: dict[str, Any], table: pa.Table | None = None, call: str = "") -> list[Any]:
    """Return what scalar, vector and bulk operators get of a field: of a dictionary, then of a table."""
    got: list[Any] = []

    def scalar(value: Any) -> bool:
        got.append(value)
        return True

    def vector(values: list[Any]) -> list[bool]:
        got.extend(values)
        return [True] * len(values)

    def bulk(asked: Asked) -> Any:
        got.extend(each.item() if isinstance(each, np.generic) else each for each in asked.columns[0][asked.rows])
        return np.ones(len(asked.rows), bool)

    settings: dict[str, Any] = {"parameters": ("value",)}
    operators = [
        tocsin.operator(function, name=f"asked_{function.__name__}", form=function.__name__, **settings)
        for function in (scalar, vector, bulk)
    ]
    matcher = tocsin.Matcher(SPACE, operators=operators)
    for number, operator in enumerate(operators):
        matcher.subscribe(number, f"{operator.name}({call or field})")
    matcher.match(event)
    if table is not None:
        matcher.match_batch(table)
    return got


def same(values: list[Any], wanted: Any, times: int) -> bool:
    """Return whether values are all exactly the wanted one, in type, digits and sign too."""
    return [(type(each), repr(each)) for each in values] == [(type(wanted), repr(wanted))] * times


@pytest.mark.parametrize(
    ("field", "given", "column", "wanted"),
    [
        ("double", 5, pa.array([5], pa.int32()), 5.0),
        ("double", -0.0, pa.array([-0.0]), -0.0),
        ("double", float("nan"), pa.array([float("nan")]), float("nan")),
        ("double", np.float32(0.5), pa.array([0.5], pa.float32()), 0.5),
        ("double", np.int64(7), pa.array([7], pa.int64()), 7.0),
        ("double", Decimal("2.5"), pa.array([Decimal("2.5")]), 2.5),
        ("whole", 2**53 + 1, pa.array([2**53 + 1]), 2**53 + 1),
        ("whole", -(2**63), pa.array([-(2**63)]), -(2**63)),
        ("whole", np.uint8(3), pa.array([3], pa.uint8()), 3),
        ("whole", 4.0, pa.array([4.0]), 4),
        ("short", 1.5, pa.array([1.5]), Decimal("1.50")),
        ("short", Decimal("-1.5"), pa.array([Decimal("-1.5")]), Decimal("-1.50")),
        ("short", 0, pa.array([0]), Decimal("0.00")),
        ("long", Decimal("12345678901234567890123456.789"), pa.array([Decimal("12345678901234567890123456.789")]),
         Decimal("12345678901234567890123456.7890")),
        ("mass", "2 t", pa.array(["2 t"]), 2000.0),
        ("mass", {"value": 500, "unit": "g"}, pa.array([{"value": 500, "unit": "g"}]), 0.5),
        ("mass", 3, pa.array([3.0]), 3.0),
        ("flag", np.True_, pa.array([True]), True),
        ("text", np.str_("Straße"), pa.array(["Straße"], pa.large_string()), "Straße"),
        ("text", "", pa.array([""]).dictionary_encode(), ""),
        ("country", "USA", pa.array(["USA"]), "United States"),
        ("target", "notebook", pa.array(["notebook"]), "laptop"),
        ("loose", "toaster", pa.array(["toaster"]), "toaster"),
        ("host", " 10.0.0.1 ", pa.array([" 10.0.0.1 "]), "10.0.0.1"),
        ("host", "::ffff:10.0.0.1", pa.array(["::ffff:10.0.0.1"]), "10.0.0.1"),
        ("host", IPv4Address("10.0.0.1"), pa.array(["10.0.0.1"]), "10.0.0.1"),
        ("host", "2001:DB8:0::1", pa.array(["2001:DB8:0::1"]), "2001:db8::1"),
        ("at", NOON.astimezone(PARIS), pa.array([NOON], pa.timestamp("us", "Europe/Paris")), NOON),
        ("at", "2026-03-04T12:30:00.000005Z", pa.array(["2026-03-04T12:30:00.000005Z"]), NOON),
        ("at", NOON, pa.array([NOON], pa.timestamp("ns", "UTC")), NOON),
        ("wall", NOON.replace(tzinfo=None), pa.array([NOON.replace(tzinfo=None)]), NOON.replace(tzinfo=None)),
        ("day", date(2026, 3, 4), pa.array([date(2026, 3, 4)]), date(2026, 3, 4)),
        ("day", "2026-03-04", pa.array(["2026-03-04"]), date(2026, 3, 4)),
        ("tags", ["a", None], pa.array([["a", None]]), ["a", None]),
        ("tags", [], pa.array([[]], pa.list_(pa.string())), []),
        ("tags", "a", pa.array(["a"]), ["a"]),
        ("sizes", ["2 km", "5 m"], pa.array([["2 km", "5 m"]]), [2000.0, 5.0]),
    ],
)  # fmt: skip
def test_a_dictionary_and_a_table_hand_over_the_same(field: str, given: Any, column: pa.Array, wanted: Any) -> None:
    got = handed_over(field, {field: given}, pa.table({field: column}))
    assert same(got, wanted, 6), got


def test_a_companion_names_the_unit_of_what_is_handed_over() -> None:
    event = {"weight": Decimal("1.5"), "weight_unit": "t"}
    table = pa.table({"weight": [Decimal("1.5")], "weight_unit": ["t"]})
    assert same(handed_over("weight", event, table), Decimal("1500.000"), 6)


def test_a_derived_field_is_handed_over_as_it_is_computed() -> None:
    assert same(handed_over("total", {"double": 4}, pa.table({"double": [4.0]})), 8.0, 6)


def test_an_attribute_has_the_values_of_those_below_it() -> None:
    table = pa.table({"email": ["e"], "phone": ["p"]})
    assert same(handed_over("contact", {"email": "e", "phone": "p"}, table), ["e", "p"], 6)


def test_a_field_under_another_name_is_handed_over() -> None:
    assert same(handed_over("country", {"nation": "US"}, pa.table({"nation": ["US"]})), "United States", 6)


def test_a_change_of_case_reaches_the_operator() -> None:
    got = handed_over("text", {"text": "Ab"}, pa.table({"text": ["Ab"]}), call="lower(text)")
    assert same(got, "ab", 6), got
    got = handed_over("tags", {"tags": ["Ab", None]}, pa.table({"tags": [["Ab", None]]}), call="upper(tags)")
    assert same(got, ["AB", None], 6)


def test_what_an_operator_reads_is_a_dimension_whatever_its_case_and_else_as_it_is_given() -> None:
    got: list[Any] = []

    @tocsin.operator(reads=["DOUBLE", "nested.inner", "picture", "nested"])
    def sees(DOUBLE: Any, nested_inner: Any, picture: Any, nested: Any) -> bool:  # noqa: N803
        got.append((DOUBLE, nested_inner, picture, nested))
        return True

    matcher = tocsin.Matcher(SPACE, operators=[sees])
    matcher.subscribe(1, "sees()")
    event = {"double": 1, "nested": {"inner": "i"}, "picture": [[1, 2], [3]]}
    assert matcher.match(event) == [1]
    matcher.match_batch(pa.Table.from_pylist([event]))
    assert got == [(1.0, "i", [[1, 2], [3]], {"inner": "i"})] * 2
    assert [type(each[0]) for each in got] == [float, float]


@pytest.mark.parametrize(
    ("field", "given", "column"),
    [
        ("double", "five", pa.array(["five"])),
        ("double", 2**53 + 1, pa.array([2**53 + 1])),
        ("whole", 1.5, pa.array([1.5])),
        ("short", Decimal("1.555"), pa.array([Decimal("1.555")])),
        ("text", 5, pa.array([5])),
        ("target", "toaster", pa.array(["toaster"])),
        ("host", "nowhere", pa.array(["nowhere"])),
        ("mass", "2 s", pa.array(["2 s"])),
        ("at", "noon", pa.array(["noon"])),
        ("at", "2026-03-04T12:30:00.0000005Z0", pa.array([1], pa.timestamp("ns", "UTC"))),
        ("tags", ["a", 5], pa.array([[5]])),
    ],
)
def test_a_value_that_does_not_fit_fails_its_own_call_only(field: str, given: Any, column: pa.Array) -> None:
    calls: list[Any] = []

    @tocsin.operator
    def asked(value: Any) -> bool:
        calls.append(value)
        return True

    @tocsin.operator(form="bulk", parameters=("value",), on_failure="error")
    def insists(question: Asked) -> Any:
        return np.ones(len(question.rows), bool)

    matcher = tocsin.Matcher(SPACE, operators=[asked, insists])
    matcher.subscribe("is", f"asked({field})")
    matcher.subscribe("not", f"NOT asked({field})")
    assert matcher.match({field: given}) == []
    table = pa.table({field: pa.concat_arrays([column, pa.nulls(1, column.type)])})
    assert matcher.match_batch(table).num_rows == 0
    used = matcher.stats()["operators"]["used"]["asked"]
    assert (used["failures"], calls, used["evaluated"]) == ({"misfit": 2}, [], 0)
    assert f"misfit: field {field}: " in used["last_failure"]
    matcher.subscribe("error", f"insists({field})")
    with pytest.raises(tocsin.TocsinError, match=f"operator insists: misfit: field {field}"):
        matcher.match({field: given})
    problems: list[tocsin.Problem] = []
    matcher.match_batch(table, problems=problems)
    assert [problem.row for problem in problems] == [0]


def test_a_field_that_cannot_be_read_in_one_row_is_read_in_the_others() -> None:
    table = pa.table({"country": ["US", "France", None], "nation": [None, "Spain", "US"]})
    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe("us", "mentions(country, 'united')")
    assert matcher.match_batch(table)["event"].to_pylist() == [0, 2]
    assert matcher.stats()["operators"]["used"]["mentions"]["failures"] == {"misfit": 1}


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_a_range_is_unknown_to_an_operator_and_a_range_of_one_value_is_that_value(unspecified: Any) -> None:
    got: list[Any] = []

    @tocsin.operator(takes_null=True)
    def asked(x: Any) -> bool:
        got.append(x)
        return True

    space = tocsin.Space({"x": Number(), "y": Number()}, unspecified=unspecified)
    for subscription in ("asked(x)", "asked(x) AND x > -100"):  # whether the index looks at the field too or not
        matcher = tocsin.Matcher(space, operators=[asked])
        matcher.subscribe("is", subscription)
        matcher.subscribe("not", "NOT asked(x)")
        for given in [(1, 5), Interval(1, 5), Interval(5, 5, "left") if "AND" not in subscription else (1, 5)]:
            assert matcher.match({"x": given}) == []
        assert matcher.match({"x": (5, 5)}) == ["is"]
        table = pa.table({"x": pa.array([{"low": 1.0, "high": 5.0}, {"low": 5.0, "high": 5.0}])})
        assert matcher.match_batch(table)["event"].to_pylist() == [1]
        assert got == [5.0, 5.0]
        got.clear()


def test_what_is_left_out_where_it_spans_its_domain() -> None:
    space = tocsin.Space({"v": Repeated(Number()), "b": Text(), "x": Number(), "y": Number()}, unspecified="any")
    plus = tocsin.operator(lambda x: x + 1, name="plus", outputs=["n"])
    matcher = tocsin.Matcher(space, operators=[plus])
    matcher.subscribe("bound", "similarity(v, '[1, 0]', :s) AND :s > 5")
    matcher.subscribe("bound too", "similarity(v, '[1, 0]', :s) AND :s > -5")
    matcher.subscribe("scalar", "plus(x, :n) AND :n > 5")
    matcher.subscribe("closed", "b = 'a' AND NOT (similarity(v, '[1, 0]', :s) AND :s > 5)")
    matcher.subscribe("plain", "mentions(b, 'a')")
    matcher.subscribe("not", "NOT mentions(b, 'a')")
    matcher.subscribe("unreadable", "intersects(b, 'POINT (1 1)')")
    assert sorted(matcher.match({})) == ["not", "plain", "unreadable"]
    assert sorted(matcher.match({"b": "a"})) == ["plain"]
    assert sorted(matcher.match({"b": "x"})) == ["not"], "a text that is no shape is unknown, not left out"
    table = pa.table({"b": [None, "a"], "v": pa.nulls(2, pa.list_(pa.float64())), "x": pa.nulls(2, pa.float64())})
    found = matcher.match_batch(table, missing="unspecified")
    assert sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == [
        (0, "not"), (0, "plain"), (0, "unreadable"), (1, "plain")
    ]  # fmt: skip


def test_constraints_compare_fields_as_the_matcher_sees_them() -> None:
    two_thousand = tocsin.operator(lambda: 2000, name="two_thousand", outputs=["n"])
    matcher = tocsin.Matcher(SPACE, operators=[two_thousand])
    matcher.subscribe("mass", "two_thousand(:n) AND :n = mass")
    matcher.subscribe("derived", "two_thousand(:n) AND :n = total")
    assert matcher.match({"mass": "2 t", "double": 1000}) == ["mass", "derived"]
    table = pa.table({"mass": ["2 t"], "double": [1000.0]})
    assert matcher.match_batch(table)["subscription"].to_pylist() == ["mass", "derived"]


@pytest.mark.parametrize("kind", ["double", "int64", "decimal(10, 2)"])
@pytest.mark.parametrize("value", [2, Decimal(2), np.int64(2), np.float32(2), np.float64(2)])
def test_geometry_takes_numbers_of_every_kind(kind: str, value: Any) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": Number(kind), "y": Number(kind)}))
    area = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
    matcher.subscribe("within", f"within(x, y, '{area}')")
    matcher.subscribe("distance", f"distance(x, y, '{area}', :d) AND :d = 0")
    matcher.subscribe("nearby", "nearby(x, y, 'POINT (2 2)', 1)")
    assert sorted(matcher.match({"x": value, "y": value})) == ["distance", "nearby", "within"]


def test_a_concept_that_was_added_is_handed_over_by_its_name() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"target": Concept(TREE)}))
    matcher.subscribe("slim", "matches(target, '^ultra')")
    assert matcher.match({"target": "laptop"}) == []
    matcher.grow("target", {"laptop": ["ultrabook"]}, synonyms={"slim": "ultrabook"})
    assert matcher.match({"target": "slim"}) == ["slim"]


def test_each_member_of_a_set_is_asked_about_whatever_others_subscribe() -> None:
    even = tocsin.operator(lambda x: x % 2 == 0, name="even")
    for others in ((), ("x > -100",)):  # so that the index looks at the field too
        matcher = tocsin.Matcher(tocsin.Space({"x": Number(), "y": Number()}), operators=[even])
        matcher.subscribe("even", "even(x)")
        matcher.subscribe("odd", "NOT even(x) AND y > 0")
        matcher.subscribe("both", "even(x) AND NOT even(x)")
        for number, text in enumerate(others):
            matcher.subscribe(f"other {number}", text)
        found = [set(matcher.match({"x": x, "y": 1})) - {"other 0"} for x in ({1, 2}, {1, 3}, {2, 4}, {2}, (1, 2))]
        assert found == [{"even", "odd"}, {"odd"}, {"even"}, {"even"}, set()]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("s", "UTC"), pa.timestamp("us"), pa.date32()], ids=str
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_time_outside_the_years_of_python_fails_its_own_call_only(kind: pa.DataType, declared: bool) -> None:
    seen = tocsin.operator(lambda moment: True, name="seen", reads=["moment"])
    zone = getattr(kind, "tz", None)
    time = Time("date") if pa.types.is_date32(kind) else Time() if zone else Time("timestamp_ntz")
    space = tocsin.Space({"moment": time} if declared else {"x": Number()})
    matcher = tocsin.Matcher(space, operators=[seen])
    matcher.subscribe("seen", "seen()")
    far = 2**31 - 1 if pa.types.is_date32(kind) else 2**63 - 1
    events = pa.table({"moment": pa.array([far, 0, None], kind), "x": pa.array([1.0, 1.0, 1.0])})
    assert matcher.match_batch(events)["event"].to_pylist() == [1]
    assert "outside the years" in matcher.stats()["operators"]["used"]["seen"]["last_failure"]


def test_a_time_beyond_64_bits_of_microseconds_is_told_with_its_row() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"moment": Time()}))
    matcher.subscribe("late", "moment > '2020-01-01'")
    with pytest.raises(tocsin.errors.EventError, match="row 1, field moment"):
        matcher.match_batch(pa.table({"moment": pa.array([0, 2**63 - 1], pa.timestamp("s", "UTC"))}))
