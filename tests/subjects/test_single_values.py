"""A range that holds one value is that value, however it is written: to formulas and to operators, of dictionaries and
of tables, in a matcher and in `Subjects`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Address, Boolean, Derived, Interval, Matcher, Number, Space, Subjects, Text, Time, operator

LEAST, MOST = -(2**63), 2**63 - 1
LAST = "ffff:" * 7 + "ffff"
LONG = Decimal("9" * 28 + ".99")

SINGLE: list[tuple[Any, pa.DataType, Any, Interval]] = [
    (Number(), pa.float64(), -inf, Interval(None, -inf)),
    (Number(), pa.float64(), nan, Interval(nan, None)),
    (Number(), pa.float64(), nan, Interval(inf, None, "right")),
    (Number(), pa.float64(), inf, Interval(inf, nan, "left")),
    (Number("int64"), pa.int64(), LEAST, Interval(None, LEAST)),
    (Number("int64"), pa.int64(), LEAST, Interval(None, LEAST + 1, "left")),
    (Number("int64"), pa.int64(), LEAST + 1, Interval(LEAST, LEAST + 1, "right")),
    (Number("int64"), pa.int64(), MOST, Interval(MOST, None)),
    (Number("int64"), pa.int64(), 3, Interval(2, 4, "neither")),
    (Number("decimal(4,2)"), pa.decimal128(4, 2), Decimal("-99.99"), Interval(None, Decimal("-99.99"))),
    (Number("decimal(4,2)"), pa.decimal128(4, 2), Decimal("99.99"), Interval(Decimal("99.99"), None)),
    (Number("decimal(30,2)"), pa.decimal128(30, 2), LONG, Interval(LONG, None)),
    (Number("decimal(30,2)"), pa.decimal128(30, 2), LONG.copy_negate(), Interval(None, LONG.copy_negate())),
    (Boolean(), pa.bool_(), False, Interval(None, False)),
    (Boolean(), pa.bool_(), True, Interval(False, None, "right")),
    (Text(), pa.string(), "", Interval(None, "")),
    (Text(), pa.string(), "a", Interval("a", "a\0", "left")),
    (Address(), pa.string(), "::", Interval(None, "::")),
    (Address(), pa.string(), LAST, Interval(LAST, None)),
    (Time("date"), pa.date32(), date.min, Interval(None, date.min)),
    (Time("timestamp_ntz"), pa.timestamp("us"), datetime.max, Interval(datetime.max, None)),
]


def table(kind: pa.DataType, value: Interval) -> pa.Table:
    struct = {"low": value.low, "high": value.high, "closed": value.closed}
    if value.closed == "both":
        del struct["closed"]
    fields = {name: pa.string() if name == "closed" else kind for name in struct}
    return pa.table({"key": ["q"], "v": pa.array([struct], pa.struct(fields))})


@pytest.mark.parametrize(("kind", "arrow", "value", "given"), SINGLE, ids=[f"{e[0].type} {e[3]}" for e in SINGLE])
def test_an_operator_receives_the_only_value_of_a_range(
    kind: Any, arrow: pa.DataType, value: Any, given: Interval
) -> None:
    seen = []

    @operator(name="see")
    def see(v: Any) -> bool:
        seen.append(str(v))
        return True

    for unspecified in ("null", "any"):
        space = Space({"v": kind}, unspecified=unspecified)  # type: ignore[arg-type]
        matcher, subjects = Matcher(space, operators=[see]), Subjects(space, operators=[see])
        matcher.subscribe("s", "see(v)")
        subjects.subscribe("s", "see(v)")
        matcher.match({"v": given})
        matcher.match_batch(table(arrow, given))
        subjects.publish("p", {"v": given})
        subjects.put_many(table(arrow, given))
    assert seen == [str(value)] * 8


FORMULAS = [
    ("abs(v)", "made = double('Infinity')", Number(), Interval(None, -inf), Interval(None, -1.5e308)),
    ("v div 2", "made = -4611686018427387904", Number("int64"), Interval(None, LEAST), Interval(None, LEAST + 1)),
    ("v * 2", "made = 199.98", Number("decimal(4,2)"), Interval(Decimal("99.99")), Interval(Decimal("99.98"))),
    ("length(v)", "made = 0", Text(), Interval(None, ""), Interval(None, "\0")),
]


@pytest.mark.parametrize(("formula", "wish", "kind", "one", "two"), FORMULAS, ids=[each[0] for each in FORMULAS])
def test_a_formula_is_computed_from_the_only_value_of_a_range(
    formula: str, wish: str, kind: Any, one: Interval, two: Interval
) -> None:
    made = kind if kind != Text() else Number("int64")
    made = Number("decimal(6,2)") if made == Number("decimal(4,2)") else made
    space = Space({"v": kind, "made": Derived(formula, made)})
    matcher, subjects = Matcher(space), Subjects(space)
    for number, each in enumerate([wish, f"NOT ({wish})"]):
        matcher.subscribe(number, each)
        subjects.subscribe(number, each)
    for given, wanted in ((one, [0]), (two, [0, 1])):
        assert sorted(matcher.match({"v": given})) == wanted
        subjects.put("p", {"v": given})
        assert subjects.matches() == {("p", number) for number in wanted}
