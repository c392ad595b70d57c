"""One reading: a value means the same in a dictionary, a table of one row, a row of a larger table, after the matcher
was saved and loaded, and after its labels were spread anew."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.errors import EventError, SpaceError, TreeError

RATES = tocsin.Rates("USD", [("EUR", "1.08", "2026-01-01"), ("EUR", "1.10", "2026-07-01"), ("GBP", "1.25")])
UNITS = tocsin.Units(rates=RATES, names={"G": "GB"})
PARIS = ZoneInfo("Europe/Paris")
TREE = {"goods": {"computer": ["laptop", "desktop"], "phone": None}}

KINDS: dict[str, tuple[Any, list[Any], list[str], pa.DataType]] = {
    "double": (
        tocsin.Number(),
        [0.0, -0.0, 1.5, 5e-324, math.inf, -math.inf, math.nan, np.float32(0.5), np.float64(2.5), 3, 1e308],
        ["x < 0.1", "x = 0", "x >= 1.5e0", "x > 1e300", "x <> 3"],
        pa.float64(),
    ),
    "int64": (
        tocsin.Number("int64"),
        [0, -(2**63), 2**63 - 1, 2**53 + 1, np.int8(-7), np.uint64(2**40), 4],
        ["x < 0", "x = 9007199254740993", "x >= -9223372036854775808", "x <> 4", "x < 4.5"],
        pa.int64(),
    ),
    "decimal": (
        tocsin.Number("decimal(10, 2)"),
        [Decimal("1.5"), Decimal("1.50"), Decimal("-0.01"), Decimal("0E-2"), Decimal("99999999.99"), Decimal("1E+2")],
        ["x < 1.5", "x = 1.5", "x >= -0.005", "x <> 100", "x > 1.005"],
        pa.decimal128(38, 2),
    ),
    "long": (
        tocsin.Number("decimal(38, 6)"),
        [Decimal("12345678901234567890123456789012.123456"), Decimal("0.000001"), Decimal("-1.5"), Decimal("7")],
        ["x < 1", "x = 12345678901234567890123456789012.123456", "x > 0", "x <> 7", "x < 7.0000005"],
        pa.decimal128(38, 6),
    ),
    "long with unit": (
        tocsin.Number("decimal(30, 2)", unit="USD"),
        ["1234567890123456789012345.67 USD", "10000000000000000000000 EUR", "-5", "0.01 USD", "8 GBP"],
        [
            "x < 1",
            "x = quantity('10000000000000000000000 EUR')",
            "x > 0",
            "x = 10",
            "x >= 1234567890123456789012345.67",
        ],
        pa.string(),
    ),
    "unit": (
        tocsin.Number(unit="GB"),
        ["2 TB", "0.5", "1e3 MB", "40 G", " 7GB ", "1 GiB", "3 gigabyte"],
        ["x < 1", "x = quantity('1 TB')", "x >= quantity('1 GiB')", "x <> 7", "x = 3"],
        pa.string(),
    ),
    "text": (
        tocsin.Text(synonyms={"US": "United States", "": "nothing"}),
        ["US", "United States", "", "\0", "é", "e\u0301", "😀", "ß", "z" * 100],
        ["x = 'US'", "x < 'f'", "x LIKE '%States'", "lower(x) = 'united states'", "x <> ''"],
        pa.string(),
    ),
    "boolean": (tocsin.Boolean(), [True, False, np.bool_(True)], ["x", "NOT x", "x = FALSE"], pa.bool_()),
    "timestamp": (
        tocsin.Time(),
        [
            datetime(2026, 3, 29, 0, 30, tzinfo=UTC),
            datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=2))),
            datetime(1, 1, 2, tzinfo=UTC),
            datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(2026, 10, 25, 1, 30, tzinfo=PARIS),
        ],
        ["x < '2026-03-29 01:30:00'", "x = '2026-03-29 00:30:00Z'", "x >= DATE '2026-10-25'", "x <> '0001-01-02'"],
        pa.timestamp("us", "UTC"),
    ),
    "timestamp as text": (
        tocsin.Time(),
        ["2026-03-29 02:30:00", "2026-03-29T00:30:00Z", "2026-10-25 02:30:00", "2026", "2026-10-25 00:30:00 UTC"],
        ["x < '2026-03-29 03:30:00'", "x = '2026-03-29 03:30:00'", "x >= DATE '2026-10-25'", "x = '2026-01-01'"],
        pa.large_string(),
    ),
    "wall time": (
        tocsin.Time("timestamp_ntz"),
        [datetime(2026, 3, 29, 2, 30), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1)],
        ["x < '1970-01-01'", "x = '2026-03-29 02:30:00'", "x > '0001-01-01'"],
        pa.timestamp("us"),
    ),
    "date": (
        tocsin.Time("date"),
        [date(2026, 3, 29), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)],
        ["x < '1970-01-01'", "x = '2026-03-29'", "x >= '9999-12-31'", "x < TIMESTAMP '2026-03-29 00:00:01'"],
        pa.date32(),
    ),
    "date as text": (
        tocsin.Time("date"),
        ["2026-03-29", "2026-03-29 23:59:59", "1969-12-31", "2026-3-9"],
        ["x < '1970-01-01'", "x = '2026-03-29'", "x > '2026-03-09'"],
        pa.dictionary(pa.int8(), pa.string()),
    ),
    "address": (
        tocsin.Address(),
        ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", " 10.0.0.2 ", "0.0.0.0"],
        ["x = '10.0.0.1'", "in_network(x, '10.0.0.0/8')", "x < '::1'"],
        pa.string(),
    ),
    "concept": (
        tocsin.Concept(TREE, synonyms={"notebook": "laptop"}, unknown_values="text", unknown_terms="text"),
        ["laptop", "notebook", "goods", "car", "", "phone"],
        ["is_a(x, 'computer')", "x = 'notebook'", "NOT is_a(x, 'goods')", "x = 'car'", "x <> ''"],
        pa.string(),
    ),
}


def rows_of(matcher: tocsin.Matcher, table: pa.Table) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(table.num_rows)]
    for pair in matcher.match_batch(table).to_pylist():
        found[pair["event"]].append(pair["subscription"])
    return [sorted(each) for each in found]


@pytest.mark.parametrize("name", KINDS)
def test_a_value_means_the_same_wherever_it_stands(name: str) -> None:
    kind, values, expressions, arrow = KINDS[name]
    space = tocsin.Space({"x": kind, "t": tocsin.Text()}, units=UNITS, timezone="Europe/Paris")
    matcher = tocsin.Matcher(space)
    for expression in [*expressions, "x IS NULL", "x IS NOT NULL"]:
        matcher.subscribe(expression, expression)
    values = [*values, None]
    plain = [each.item() if isinstance(each, np.generic) else each for each in values]
    table = pa.table({"x": pa.array(plain, arrow), "t": pa.nulls(len(values), pa.string())})
    expected = [sorted(matcher.match({"x": value})) for value in values]
    assert rows_of(matcher, table) == expected
    assert [rows_of(matcher, table.slice(row, 1))[0] for row in range(len(values))] == expected
    with tempfile.TemporaryDirectory() as directory:
        matcher.save(directory)
        loaded = tocsin.Matcher.load(directory)
        for again in (loaded, matcher):
            again.subscribe("another", "t = 'a' OR x IS NULL")
            again._make_room()
            again.unsubscribe("another")
            assert [sorted(again.match({"x": value})) for value in values] == expected
            assert rows_of(again, table) == expected
        loaded.save(directory)
        assert rows_of(tocsin.Matcher.load(directory), table) == expected


REFUSED: list[tuple[Any, Any, pa.Array | None]] = [
    (tocsin.Number(), 2**53 + 1, pa.array([2**53 + 1])),
    (tocsin.Number(), Decimal("0.1"), pa.array([Decimal("0.1")])),
    (tocsin.Number(), True, pa.array([True])),
    (tocsin.Number(), np.bool_(True), None),
    (tocsin.Number(), 10**5000, None),
    (tocsin.Number(), Decimal("1e-999999999"), None),
    (tocsin.Number("int64"), 2.5, pa.array([2.5])),
    (tocsin.Number("int64"), math.nan, pa.array([math.nan])),
    (tocsin.Number("int64"), math.inf, pa.array([math.inf])),
    (tocsin.Number("int64"), 2.0**63, pa.array([2.0**63])),
    (tocsin.Number("int64"), np.bool_(True), None),
    (tocsin.Number("int64"), Decimal("1e999999999"), None),
    (tocsin.Number("int64"), 10**5000, None),
    (tocsin.Number("decimal(10, 2)"), 0.001, pa.array([0.001])),
    (tocsin.Number("decimal(10, 2)"), 10**8, pa.array([10**8])),
    (tocsin.Number("decimal(38, 6)"), Decimal("1e999999999"), None),
    (tocsin.Number("decimal(38, 6)"), Decimal("1e-999999999"), None),
    (tocsin.Number("decimal(38, 6)"), math.inf, pa.array([math.inf])),
    (tocsin.Number(unit="GB"), {"value": 1e308, "unit": "TB"}, pa.array([{"value": 1e308, "unit": "TB"}])),
    (tocsin.Number(unit="GB"), {"value": math.inf, "unit": "TB"}, pa.array([{"value": math.inf, "unit": "TB"}])),
    (tocsin.Number(unit="GB"), {"value": 10**400, "unit": "TB"}, None),
    (tocsin.Number(unit="GB"), {"value": Decimal("1e999999999"), "unit": "TB"}, None),
    (tocsin.Number(unit="GB"), {"value": 5, "unit": ""}, pa.array([{"value": 5, "unit": ""}])),
    (tocsin.Number(unit="GB"), "5 m**99999999", pa.array(["5 m**99999999"])),
    (tocsin.Number(unit="GB"), "5 GB**9**9**9**9", pa.array(["5 GB**9**9**9**9"])),
    (tocsin.Number(unit="mW"), "5 dBm", pa.array(["5 dBm"])),
    (tocsin.Number(unit="K/m"), "5 degC", pa.array(["5 degC"])),
    (tocsin.Number("int64", unit="B"), {"value": 2**62, "unit": "TB"}, pa.array([{"value": 2**62, "unit": "TB"}])),
    (
        tocsin.Number("decimal(38, 2)", unit="B"),
        {"value": 2**62, "unit": "YB"},
        pa.array([{"value": 2**62, "unit": "YB"}]),
    ),
    (tocsin.Text(), [[["deep"]]], None),
]


@pytest.mark.parametrize(("kind", "value", "column"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_alike(kind: Any, value: Any, column: pa.Array | None) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": kind}))
    matcher.subscribe("there", "x IS NOT NULL")
    with pytest.raises(EventError, match="field x: "):
        matcher.match({"x": value})
    if column is not None:
        with pytest.raises(EventError, match="row 0, field x: "):
            matcher.match_batch(pa.table({"x": column}))


numbers = st.one_of(
    st.none(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 5e-324, 2.0**60])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            numbers,
            st.sampled_from([None, "USD", "EUR", "€", "GBP"]),
            st.sampled_from([None, "GBP"]),
            st.sampled_from([None, datetime(2026, 6, 30, 22, 30, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.booleans(),
)
def test_companions_are_read_alike(rows: list[tuple[Any, ...]], nested: bool, renamed: bool) -> None:
    """Numbers and mappings beside a currency and a day, under a synonym or not; in Paris the day begins at 22:00."""
    space = tocsin.Space(
        {"x": tocsin.Number(unit="USD", unit_field="money", at="seen"), "seen": tocsin.Time(), "money": tocsin.Text()},
        units=UNITS,
        timezone="Europe/Paris",
        synonyms={"when": "seen", "currency": "money"},
    )
    matcher = tocsin.Matcher(space)
    for expression in ("x < 0", "x = 0", "x > 110", "x >= 1000", "x IS NULL"):
        matcher.subscribe(expression, expression)
    unit, day = ("currency", "when") if renamed else ("money", "seen")
    events, wanted = [], []
    for number, beside, inside, moment in rows:
        held = {"value": number, "unit": inside} if nested else number
        events.append({"x": held, unit: beside, day: moment})
        of = (inside if nested else None) or beside
        rate = {None: Decimal(1), "USD": Decimal(1), "GBP": Decimal("1.25")}.get(of)
        if rate is None:
            rate = Decimal("1.08") if moment is not None and moment.month == 3 else Decimal("1.10")
        exact = None if number is None else Decimal(number) * rate
        checks = {
            "x < 0": exact is not None and exact < 0,
            "x = 0": exact is not None and float(exact) == 0,
            "x > 110": exact is not None and float(exact) > 110,
            "x >= 1000": exact is not None and float(exact) >= 1000,
            "x IS NULL": exact is None,
        }
        wanted.append(sorted(name for name, holds in checks.items() if holds))
    number_type = pa.float64()
    kind = pa.struct({"value": number_type, "unit": pa.string()}) if nested else number_type
    table = pa.table(
        {
            "x": pa.array([event["x"] for event in events], kind),
            unit: pa.array([event[unit] for event in events], pa.string()),
            day: pa.array([event[day] for event in events], pa.timestamp("us", "UTC")),
        }
    )
    assert [sorted(matcher.match(event)) for event in events] == wanted
    assert rows_of(matcher, table) == wanted


@pytest.mark.parametrize(
    ("moment", "column"),
    [
        (datetime(2026, 6, 30, 22, 30, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (datetime(2026, 6, 30, 22, 30, tzinfo=UTC), pa.timestamp("ms", "America/New_York")),
        (datetime(2026, 7, 1), pa.timestamp("us")),
        (date(2026, 7, 1), pa.date32()),
        ("2026-06-30 22:30:00Z", pa.large_string()),
        ("2026-07-01 00:30:00", pa.string()),
        ("2026-07-01", pa.dictionary(pa.int32(), pa.string())),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_the_day_of_a_rate_is_that_of_the_zone_of_the_space(moment: Any, column: pa.DataType, declared: bool) -> None:
    others = {"seen": tocsin.Time("timestamp")} if declared else {}
    space = tocsin.Space({"x": tocsin.Number(unit="USD", at="seen"), **others}, units=UNITS, timezone="Europe/Paris")
    matcher = tocsin.Matcher(space)
    matcher.subscribe("second", "x = 110")
    assert matcher.match({"x": "100 EUR", "seen": moment}) == ["second"]
    table = pa.table({"x": ["100 EUR"], "seen": pa.array([moment], column)})
    assert rows_of(matcher, table) == [["second"]]


def test_units_of_list_items_belong_to_their_items() -> None:
    space = tocsin.Space(
        {"items": {"price": tocsin.Repeated(tocsin.Number(unit="USD", unit_field="items.currency"))}}, units=UNITS
    )
    matcher = tocsin.Matcher(space)
    matcher.subscribe("gbp", "items.price = 125")
    matcher.subscribe("none", "NOT items.price = 125")
    events = [
        {"items": [{"price": 125, "currency": "EUR"}, {"price": 100, "currency": "GBP"}]},
        {"items": [{"price": 100, "currency": "EUR"}, {"price": 100}]},
        {"items": [{"price": 125}]},
        {"items": []},
    ]
    kind = pa.list_(pa.struct({"price": pa.float64(), "currency": pa.string()}))
    wanted = [["gbp"], ["none"], ["gbp"], ["none"]]
    assert [matcher.match(event) for event in events] == wanted
    assert rows_of(matcher, pa.table({"items": pa.array([event["items"] for event in events], kind)})) == wanted


def test_two_names_of_a_repeated_field_that_say_different_things_are_refused() -> None:
    space = tocsin.Space({"tags": tocsin.Repeated(tocsin.Text())}, synonyms={"labels": "tags"})
    matcher = tocsin.Matcher(space)
    matcher.subscribe("a", "tags = 'a'")
    kind = pa.list_(pa.string())
    same = {"tags": pa.array([["a"], None, ["b"]], kind), "labels": pa.array([["a"], ["a", "c"], None], kind)}
    assert rows_of(matcher, pa.table(same)) == [["a"], ["a"], []]
    assert matcher.match({"tags": ["a"], "labels": ["a"]}) == ["a"] == matcher.match({"tags": "a", "labels": ["a"]})
    with pytest.raises(EventError, match=r"tags says \['a'\] and labels, which means the same, \['b'\]"):
        matcher.match({"tags": ["a"], "labels": ["b"]})
    with pytest.raises(EventError, match=r"row 0, field tags: tags says \['a'\] and labels"):
        matcher.match_batch(pa.table({"tags": pa.array([["a"]], kind), "labels": pa.array([["b"]], kind)}))


def test_members_of_a_family_may_be_given_in_different_types() -> None:
    space = tocsin.Space(
        {"gross": tocsin.Number(unit="USD"), "net": tocsin.Number(unit="USD")},
        attributes={"amount": ["gross", "net"]},
        units=UNITS,
    )
    matcher = tocsin.Matcher(space)
    matcher.subscribe("110", "amount = 110")
    events = [{"gross": "100 EUR", "net": 5}, {"gross": None, "net": 110}, {"gross": "1", "net": None}]
    table = pa.table({"gross": pa.array(["100 EUR", None, "1"]), "net": pa.array([5, 110, None])})
    assert [matcher.match(event) for event in events] == [["110"], ["110"], []] == rows_of(matcher, table)


@pytest.mark.parametrize("null", [{"value": None, "unit": "TB"}, {"amount": None}, None])
def test_a_quantity_without_a_number_is_null(null: Any) -> None:
    matcher = tocsin.Matcher(
        tocsin.Space({"x": tocsin.Number(unit="GB"), "y": tocsin.Repeated(tocsin.Number(unit="GB"))})
    )
    matcher.subscribe("null", "x IS NULL")
    matcher.subscribe("some", "y > 1")
    assert matcher.match({"x": null, "y": [null, 5]}) == ["null", "some"]
    column = pa.array([null], pa.struct({"value": pa.int64(), "unit": pa.string(), "amount": pa.int64()}))
    assert rows_of(matcher, pa.table({"x": column, "y": pa.nulls(1)})) == [["null"]]


SHOP = tocsin.Space(
    {
        "a": tocsin.Number(),
        "p": tocsin.Number(unit="USD", unit_field="currency"),
        "email": tocsin.Text(),
        "cell": tocsin.Text(),
        "seller": {"rating": tocsin.Number()},
        "tags": tocsin.Repeated(tocsin.Text()),
        "twice": tocsin.Derived("a * 2", tocsin.Number()),
    },
    attributes={"contact": ["email", "cell"]},
    units=UNITS,
)
TESTS = [
    "a < 3", "a > 3", "p = 2.5", "p > 100", "contact = 'x'", "NOT contact = 'x'", "contact IS NULL", "email = 'x'",
    "seller.rating > 2", "tags = 't'", "NOT tags = 't'", "a < 3 AND tags = 't'", "twice = 10", "contact LIKE '%x%'",
]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "choices"),
    [
        ({"a": {1, 5}, "email": "x"}, [{"a": 1, "email": "x"}, {"a": 5, "email": "x"}]),
        ({"p": {1, 2}, "currency": "GBP"}, [{"p": 1, "currency": "GBP"}, {"p": 2, "currency": "GBP"}]),
        ({"email": {"x", "y"}}, [{"email": "x"}, {"email": "y"}]),
        ({"a": {1, 5}, "tags": ["t", "u"]}, [{"a": 1, "tags": ["t", "u"]}, {"a": 5, "tags": ["t", "u"]}]),
        ({"seller": {"rating": {1, 3}}}, [{"seller": {"rating": 1}}, {"seller": {"rating": 3}}]),
        ({"a": {9}, "contact": ["x"]}, [{"a": 9, "contact": ["x"]}]),
        ({"a": {1, (4, 6)}, "cell": "z"}, [{"a": 1, "cell": "z"}, {"a": (4, 6), "cell": "z"}]),
    ],
)
def test_a_set_is_a_choice_whoever_subscribes(event: dict[str, Any], choices: list[dict[str, Any]]) -> None:
    matcher = tocsin.Matcher(SHOP)
    for test in TESTS:
        matcher.subscribe(test, test)
    expected = {test for choice in choices for test in matcher.match(choice)}
    assert set(matcher.match(event)) == expected
    for test in TESTS:  # nobody else's subscription changes it
        alone = tocsin.Matcher(SHOP)
        alone.subscribe(test, test)
        assert alone.match(event) == ([test] if test in expected else [])


def test_a_range_beside_a_unit_is_in_that_unit() -> None:
    matcher = tocsin.Matcher(SHOP)
    for test in ("p = 2.5", "p > 100", "p < 1"):
        matcher.subscribe(test, test)
    assert matcher.match({"p": (1, 2), "currency": "GBP"}) == ["p = 2.5"]
    assert matcher.match({"p": tocsin.Interval(90, None), "currency": "GBP"}) == ["p > 100"]
    ranges = pa.array([{"low": 1.0, "high": 2.0}, {"low": 90.0, "high": None}, None])
    table = pa.table({"p": ranges, "currency": ["GBP", "GBP", "GBP"]})
    assert rows_of(matcher, table) == [["p = 2.5"], ["p > 100"], []]


def nested(depth: int, make: Any) -> Any:
    value = make(None)
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("field", ["a", "p", "email", "seller", "tags", "twice"])
def test_a_value_that_holds_itself_or_is_very_deep_is_refused(field: str) -> None:
    matcher = tocsin.Matcher(SHOP)
    for test in TESTS:
        matcher.subscribe(test, test)
    held: list[Any] = []
    held.append(held)
    mapping: dict[str, Any] = {}
    mapping["rating"] = mapping
    for value in (held, mapping, nested(100_000, lambda of: [of]), nested(100_000, lambda of: {"rating": of})):
        if field != "twice":  # what is given for a derived field is not looked at
            with pytest.raises(EventError, match="field "):
                matcher.match({field: value})


def test_trees_and_spaces_that_hold_themselves_are_refused_or_walked_once() -> None:
    held: list[Any] = ["a"]
    held.append(held)
    assert tocsin.Concept({"top": held}).tree.names == ("top", "a")
    mapping: dict[str, Any] = {}
    mapping["a"] = mapping
    with pytest.raises(TreeError, match="in a circle: a → a"):
        tocsin.Concept(mapping)
    with pytest.raises(TreeError, match="lists of trees stand in more than 16 others"):
        tocsin.Concept(held)
    with pytest.raises(SpaceError, match="nested more than 64 deep"):
        tocsin.Space(mapping)
    with pytest.raises(SpaceError, match="nested more than 64 deep"):
        tocsin.Space.infer([mapping])


def test_units_of_three_capitals_that_are_no_money_are_units() -> None:
    assert UNITS.conversion("BTU", "J", None).factor == Fraction(131882, 125)
    assert not UNITS.is_currency("BTU") and UNITS.is_currency("EUR") and UNITS.is_currency("CHF")
    for unit in ("", " "):
        with pytest.raises(SpaceError, match="a unit has a name"):
            tocsin.Space({"x": tocsin.Number(unit=unit)})
