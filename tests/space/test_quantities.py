"""Units: exact conversion, one value for equal quantities however they are written, and clear refusals."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.errors import EventError, SpaceError, TypeClashError, UnitError
from tocsin.space.quantities import times
from tocsin.space.units import Units, read_quantity

RATES = [("EUR", "1.08", "2026-01-01"), ("EUR", "1.10", "2026-07-01"), ("GBP", Fraction(5, 4)), ("JPY", 0.0065)]
UNITS = tocsin.Units(rates=tocsin.Rates("USD", RATES), names={"G": "GB", "Taler": "EUR"})
finite = st.floats(allow_nan=False, allow_infinity=False)
factors = st.builds(Fraction, st.integers(1, 2**53), st.integers(1, 2**53))


def matcher_of(number: tocsin.Number, *expressions: str, **others: Any) -> tocsin.Matcher:
    matcher = tocsin.Matcher(tocsin.Space({"x": number, **others}, units=UNITS))
    for expression in expressions:
        matcher.subscribe(expression, expression)
    return matcher


@settings(deadline=None, max_examples=300)
@given(st.lists(finite, min_size=1, max_size=20), factors)
@example([1e308, -1e-308, 5e-324, 0.0, -0.0], Fraction(27, 25))
def test_a_product_that_is_called_certain_is_the_nearest_double(values: list[float], factor: Fraction) -> None:
    found, sure = times(np.array(values), factor)
    for value, product, certain in zip(values, found.tolist(), sure.tolist(), strict=True):
        if certain:
            try:
                assert product == float(Fraction(value) * factor)
            except OverflowError:
                assert abs(product) == np.inf


def test_most_products_are_certain() -> None:
    values = np.random.default_rng(1).uniform(-1e6, 1e6, 10_000)
    assert times(values, Fraction(27, 25))[1].mean() > 0.999


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.one_of(finite, st.none()), st.sampled_from(["USD", "EUR", "GBP", "€", None])), max_size=12),
    st.sampled_from(["double", "decimal(38, 4)"]),
)
def test_a_batch_a_dictionary_and_a_text_agree_with_exact_arithmetic(
    rows: list[tuple[float | None, str | None]], kind: str
) -> None:
    rows = [(value, unit) for value, unit in rows if value is None or abs(value) < 1e15]
    number = tocsin.Number(kind, unit="USD", unit_field="unit")
    matcher = matcher_of(number, "x < 0", "x >= 100.5", "x = 0", "x <= quantity('350 EUR')", "x IS NULL")
    plain = tocsin.Matcher(tocsin.Space({"x": tocsin.Number(kind)}))
    for expression in ("x < 0", "x >= 100.5", "x = 0", "x IS NULL"):
        plain.subscribe(expression, expression)
    plain.subscribe("x <= quantity('350 EUR')", "x <= 385")
    worth = {"EUR": Fraction(11, 10), "€": Fraction(11, 10), "Taler": Fraction(11, 10), "GBP": Fraction(5, 4)}
    table = pa.table(
        {"x": pa.array([v for v, _ in rows], pa.float64()), "unit": pa.array([u for _, u in rows], pa.string())}
    )
    wanted: list[Any] = []
    for value, unit in rows:
        if value is None or unit in (None, "USD"):
            if kind != "double" and value is not None and Fraction(repr(value)) * 10**4 % 1:
                return  # not a value of the decimal: refused, as without units
            wanted.append(value)
        elif kind == "double":
            wanted.append(float(Fraction(value) * worth[unit]))
        else:
            wanted.append(Decimal(round(Fraction(repr(value)) * worth[unit] * 10**4)).scaleb(-4))
    expected = [sorted(plain.match({"x": value})) for value in wanted]
    found = matcher.match_batch(table)
    for row, (value, unit) in enumerate(rows):
        of_batch = sorted(found.filter(pa.compute.equal(found["event"], row))["subscription"].to_pylist())
        assert of_batch == expected[row]
        assert sorted(matcher.match({"x": value, "unit": unit})) == expected[row]
        if value is not None:
            assert sorted(matcher.match({"x": {"value": value, "unit": unit}})) == expected[row]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("2 TB", "GB", Fraction(2000)),
        ("40 GiB", "byte", Fraction(40 * 2**30)),
        ("1 lb", "kg", Fraction(45359237, 10**8)),
        ("100 degC", "degF", Fraction(212)),
        ("3 inch", "m", Fraction(762, 10_000)),
        ("1e3 km/h", "m/s", Fraction(1000, 1) * Fraction(5, 18)),
        ("0.1 t", "kg", Fraction(100)),
        ("-40", "degC", Fraction(-40)),
        ("50 percent", "", Fraction(1, 2)),
    ],
)
def test_conversion_is_exact_where_factors_are(text: str, unit: str, value: Fraction) -> None:
    exact, given = read_quantity(text)
    assert Units().conversion(given or unit, unit or "dimensionless", None)(exact) == value


def test_rates_hold_on_their_days() -> None:
    number = tocsin.Number(unit="USD", unit_field="currency", at="seen")
    matcher = matcher_of(number, "x = 378", "x = 385", "x >= quantity('350 EUR')", seen=tocsin.Time())
    march, august = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
    events = {"x": [350.0, 350.0, None], "currency": ["EUR", "EUR", "EUR"], "seen": [march, august, march]}
    found = matcher.match_batch(pa.table(events))
    assert found.to_pylist() == [
        {"event": 0, "subscription": "x = 378"},
        {"event": 1, "subscription": "x = 385"},
        {"event": 1, "subscription": "x >= quantity('350 EUR')"},
    ]
    assert matcher.match({"x": 350, "currency": "EUR", "seen": march}) == ["x = 378"]
    assert matcher.match({"x": "350 EUR", "seen": date(2026, 3, 1).isoformat()}) == ["x = 378"]
    with pytest.raises(EventError, match="there is no rate of EUR for 2025-12-31; they are known from 2026-01-01"):
        matcher.match({"x": "350 EUR", "seen": "2025-12-31"})
    problems: list[tocsin.Problem] = []
    old = {
        "x": [350.0, 1.0, 5.0],
        "currency": ["EUR", "EUR", "kg"],
        "seen": [datetime(2020, 1, 1, tzinfo=UTC), march, march],
    }
    assert len(matcher.match_batch(pa.table(old), problems=problems)) == 0
    assert [problem.row for problem in problems] == [0, 2]


def test_a_companion_that_is_no_text_is_refused() -> None:
    matcher = matcher_of(tocsin.Number(unit="USD", unit_field="currency"), "x > 1")
    for unit in (7, ["EUR"]):
        with pytest.raises(EventError, match="is not text"):
            matcher.match({"x": 5, "currency": unit})
    with pytest.raises(EventError, match="the units are int64, not text"):
        matcher.match_batch(pa.table({"x": [5.0], "currency": [7]}))


def test_whole_numbers_stay_whole() -> None:
    matcher = matcher_of(tocsin.Number("int64", unit="GB"), "x >= quantity('500 MB')", "x = quantity('2 TB')", "x = 1")
    assert matcher.match({"x": "2 TB"}) == ["x >= quantity('500 MB')", "x = quantity('2 TB')"]
    assert matcher.match({"x": 0}) == [] and matcher.match({"x": "1000 MB"}) == ["x >= quantity('500 MB')", "x = 1"]
    with pytest.raises(EventError, match=r"0\.5 GB is not a whole number"):
        matcher.match({"x": "500 MB"})


def test_templates_share_the_slot_of_a_quantity() -> None:
    matcher = matcher_of(tocsin.Number(unit="kg"))
    table = pa.table({"id": list(range(50)), "expression": [f"x > quantity('{n} g')" for n in range(50)]})
    assert matcher.subscribe_many(table) == 50
    assert len(matcher.match({"x": 0.0105})) == 11
    texts = pa.table({"x": ["10.5 g", None, "1 kg"]})
    assert matcher.match_batch(texts)["event"].to_pylist() == [0] * 11 + [2] * 50


BAD_EVENTS: list[tuple[Any, str]] = [
    ("5 kg", "kg measures mass, and USD money"),
    ("5 foo", "there is no unit 'foo'"),
    ("abc", "'abc' is no quantity; write a number and a unit"),
    ("", "'' is no quantity"),
    ("5 CHF", "there is no rate from CHF to USD"),
    ({"unit": "EUR"}, "has no value or amount"),
    ({"value": 5, "unit": 7}, "the unit 7 is not text"),
    ({"value": True, "unit": "EUR"}, "True is not a number"),
    ({"value": float("nan"), "unit": "EUR"}, "is no number that can be converted"),
    ("1e999 EUR", "is out of reach"),
]


@pytest.mark.parametrize(("value", "message"), BAD_EVENTS)
def test_a_bad_quantity_of_an_event_is_refused(value: Any, message: str) -> None:
    matcher = matcher_of(tocsin.Number(unit="USD"), "x > 1")
    with pytest.raises(EventError) as caught:
        matcher.match({"x": value})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x > quantity('5 kg')", "x: kg measures mass, and USD money"),
        ("x > quantity('5 foo')", "x: there is no unit 'foo'"),
        ("x > quantity('five')", "is no quantity"),
        ("x > quantity('1,000 USD')", "write the number without commas"),
        ("x > '400 USD'", "without quotes, or with a quantity such as quantity('40 USD')"),
        ("y > quantity('5 kg')", "y is number and cannot be compared with a quantity"),
    ],
)
def test_a_bad_quantity_of_a_subscription_is_refused_with_its_place(expression: str, message: str) -> None:
    matcher = matcher_of(tocsin.Number(unit="USD"), y=tocsin.Number())
    with pytest.raises(TypeClashError, match="line 1, column") as caught:
        matcher.subscribe("bad", expression)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tocsin.Space({"x": tocsin.Number(unit="foo")}), "x: there is no unit 'foo'"),
        (lambda: tocsin.Number(unit_field="u"), "has a unit that quantities are converted to"),
        (lambda: tocsin.Rates("USD", [("EUR", 0)]), "the rate of EUR is above 0, not 0"),
        (lambda: tocsin.Rates("USD", [("EUR", "x")]), "the rate of EUR is a number, not 'x'"),
        (lambda: tocsin.Rates("USD", [("EUR", 1), ("EUR", 2)]), "two rates of EUR hold on"),
        (lambda: tocsin.Rates("USD", [("EUR", 1, "2026-01-01", "2025-01-01")]), "two rates of EUR hold on"),
        (lambda: tocsin.Rates("USD", [("EUR", 1, "soon")]), "a day is written like 2026-01-31, not 'soon'"),
        (lambda: tocsin.Rates("USD", [("USD", 1)]), "USD is the base of the rates"),
        (lambda: tocsin.Rates("USD", [("EUR",)]), "a rate is a row of currency, rate"),
        (lambda: tocsin.Rates.read("nowhere.csv", "USD"), "nowhere.csv cannot be read"),
    ],
)
def test_bad_declarations_are_refused(make: Any, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        make()
    assert message in str(caught.value)


def test_rates_from_a_file_and_through_json(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("currency,rate,from,until\nEUR,1.08,2026-01-01,2026-07-01\nEUR,1.10,2026-07-01,\nGBP,1.25,,\n")
    rates = tocsin.Rates.read(path, "USD")
    assert rates.between("EUR", "USD", date(2026, 6, 30)) == Fraction(27, 25)
    space = tocsin.Space({"x": tocsin.Number(unit="USD", at="t")}, units=tocsin.Units(rates=rates, names={"Q": "EUR"}))
    again = tocsin.Space.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space and again["x"] == space["x"] and again.units == space.units
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UnitError, match="names columns currency and rate"):
        tocsin.Rates.read(path, "USD")
