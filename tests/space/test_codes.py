"""Codes preserve order, and a constant cuts its axis exactly where Spark's comparison does."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracle.three_valued import compared, ordered

from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.language import symbolic
from tocsin.language.symbolic import AxisKey
from tocsin.language.tree import Constant
from tocsin.space import Address, Boolean, Number, Space, Text, Time
from tocsin.space.axes import codec_of
from tocsin.space.codes import Codec, Integers, ValueProblem, double_codes
from tocsin.space.filling import literals_of
from tocsin.space.sets import evaluate
from tocsin.space.types import Scalar

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def codec(kind: Scalar, derivation: symbolic.Derivation = "", zone: str = "UTC") -> Codec:
    return codec_of(Space({"x": kind}, timezone=zone), AxisKey(("x",), derivation))


def inside(axis: Codec, symbol: symbolic.Set, value: Any) -> bool:
    """Return whether the code of a value lies in the set that a symbol stands for."""
    found = evaluate(symbol, axis, literals_of)
    code = NULL if value is None else axis.code(value)
    return bool(((found.low <= code) & (code <= found.high)).any())


whole = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5), st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1])
)
floats = st.floats(allow_nan=True, allow_subnormal=True)
cents = st.integers(-(10**10), 10**10).map(lambda number: Decimal(number).scaleb(-2))
long_decimals = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -3))
)
moments = st.datetimes(timezones=st.just(UTC))
wall_times = st.datetimes()
texts = st.text(st.characters(codec="utf-8"), max_size=6)
addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))


# Order


@given(whole, whole)
@example(-(2**63) + 1, 2**63 - 1)
def test_integers_keep_their_order_but_for_the_least_two(one: int, other: int) -> None:
    axis = codec(Number("int64"))
    assert LOWEST <= axis.code(one) <= HIGHEST
    if max(one, other) > -(2**63) + 1:
        assert (axis.code(one) < axis.code(other)) == (one < other)
        assert (axis.code(one) == axis.code(other)) == (one == other)


@given(floats, floats)
@example(-0.0, 0.0)
@example(math.nan, math.inf)
@example(5e-324, 0.0)
@example(-5e-324, -0.0)
def test_doubles_keep_their_order(one: float, other: float) -> None:
    axis = codec(Number())
    assert (axis.code(one) < axis.code(other)) == (ordered(one) < ordered(other))
    assert (axis.code(one) == axis.code(other)) == (ordered(one) == ordered(other))


@given(cents, cents)
def test_decimals_keep_their_order(one: Decimal, other: Decimal) -> None:
    axis = codec(Number("decimal(18, 2)"))
    assert (axis.code(one) < axis.code(other)) == (one < other)


@given(moments, moments, wall_times, wall_times, st.dates(), st.dates())
def test_times_keep_their_order(
    one: datetime, other: datetime, wall: datetime, other_wall: datetime, day: date, other_day: date
) -> None:
    for kind, low, high in (("timestamp", one, other), ("timestamp_ntz", wall, other_wall), ("date", day, other_day)):
        axis = codec(Time(kind))  # type: ignore[arg-type]
        assert (axis.code(low) < axis.code(high)) == (low < high)
        assert (axis.code(low) == axis.code(high)) == (low == high)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def place(axis: Codec, constant: Constant) -> int:
    return int(axis.cut(literals_of(constant)).floor[0])


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.lists(texts, min_size=1, max_size=8))
@example(["\uffff", "\U00010000"], ["\U0001f600", ""])
def test_texts_keep_the_order_of_code_points_around_every_key(keys: list[str], values: list[str]) -> None:
    axis = codec(Text())
    for key in keys:
        place(axis, Constant(key, "string"))
    for key in keys:
        label = place(axis, Constant(key, "string"))
        for value in [*values, *keys]:
            assert sign(axis.code(value) - label) == sign((value > key) - (value < key))


@settings(max_examples=100, deadline=None)
@given(st.lists(addresses, min_size=1, max_size=6), st.lists(addresses, min_size=1, max_size=6))
def test_addresses_keep_the_order_of_their_numbers(keys: list[Any], values: list[Any]) -> None:
    def number(address: IPv4Address | IPv6Address) -> int:
        return int(address) + (0xFFFF << 32 if address.version == 4 else 0)

    axis = codec(Address())
    labels = {key: place(axis, Constant(str(key), "string")) for key in keys}
    labels = {key: place(axis, Constant(str(key), "string")) for key in labels}
    for key, label in labels.items():
        for value in [*values, *keys]:
            assert sign(axis.code(value) - label) == sign(number(value) - number(key))
            assert axis.code(str(value)) == axis.code(value)


def test_a_version_4_address_is_its_mapped_version_6_form() -> None:
    axis = codec(Address())
    assert place(axis, Constant("::ffff:10.0.0.1", "string")) == axis.code("10.0.0.1")


@given(addresses, st.integers(0, 128), addresses)
def test_networks_hold_their_addresses(base: Any, bits: int, address: Any) -> None:
    network = ip_network(f"{base}/{min(bits, base.max_prefixlen)}", strict=False)
    axis = codec(Address())
    symbol = symbolic.Listed((Constant(str(network), "string"),))
    if network.version == address.version:
        assert inside(axis, symbol, address) == (address in network)
    assert inside(axis, symbol, network.network_address)
    assert inside(axis, symbol, network.broadcast_address)


# Arrow and Python agree


@pytest.mark.parametrize(
    ("kind", "arrow", "values"),
    [
        (Number("int64"), pa.int64(), [1, None, -(2**63), 2**63 - 1]),
        (Number("int64"), pa.int8(), [1, None, -128]),
        (Number("int64"), pa.float64(), [1.0, None, -3.0]),
        (Number("int64"), pa.uint64(), [1, None]),
        (Number(), pa.float64(), [1.5, None, math.nan, -0.0, math.inf]),
        (Number(), pa.float32(), [1.5, None]),
        (Number(), pa.int32(), [1, None]),
        (Number("decimal(10, 2)"), pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-99999999.99")]),
        (Number("decimal(10, 2)"), pa.decimal128(5, 1), [Decimal("1.5"), None]),
        (Number("decimal(10, 2)"), pa.int64(), [3, None]),
        (Number("decimal(10, 2)"), pa.float64(), [0.1, None]),
        (Number("decimal(38, 3)"), pa.decimal128(38, 3), [Decimal("1.500"), None, Decimal(-(10**34))]),
        (Boolean(), pa.bool_(), [True, None, False]),
        (Text(), pa.string(), ["a", None, "", "😀"]),
        (Text(), pa.large_string(), ["a", None]),
        (Text(), pa.string_view(), ["a", None]),
        (Text(), pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"]),
        (Time(), pa.timestamp("us", "UTC"), [datetime(2020, 1, 1, tzinfo=UTC), None]),
        (Time(), pa.timestamp("s", "Asia/Tokyo"), [datetime(2020, 1, 1, tzinfo=UTC), None]),
        (Time(), pa.string(), ["2020-01-01 00:00:00+02:00", None]),
        (Time("timestamp_ntz"), pa.timestamp("ms"), [datetime(2020, 1, 1), None]),
        (Time("date"), pa.date32(), [date(1, 1, 1), None]),
        (Time("date"), pa.date64(), [date(2020, 1, 1), None]),
        (Address(), pa.string(), ["10.0.0.1", None, "::1"]),
    ],
    ids=str,
)
def test_a_column_has_the_codes_of_its_values(kind: Scalar, arrow: pa.DataType, values: list[Any]) -> None:
    axis = codec(kind)
    if hasattr(axis, "book"):
        axis.book.place([b"a", b"m"])
    column = pa.array(values, arrow) if not pa.types.is_dictionary(arrow) else pa.array(values).dictionary_encode()
    expected = [NULL if value is None else axis.code(value) for value in values]
    assert axis.codes(column).tolist() == expected
    assert axis.codes(column.slice(1)).tolist() == expected[1:]
    assert axis.codes(column.slice(0, 0)).tolist() == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Number("int64"), 2**63),
        (Number("int64"), 1.5),
        (Number("int64"), math.nan),
        (Number("int64"), math.inf),
        (Number("int64"), Decimal("Infinity")),
        (Number("int64"), Decimal("sNaN")),
        (Number("int64"), Decimal("1e100")),
        (Number("int64"), "1"),
        (Number("int64"), True),
        (Number("int64"), np.True_),
        (Number(), 2**53 + 1),
        (Number(), 10**400),
        (Number(), Decimal("0.1")),
        (Number(), Decimal("sNaN")),
        (Number(), "1"),
        (Number(), [1.0]),
        (Number(), np.array([1.0, 2.0])),
        (Number("decimal(5, 2)"), Decimal("1.005")),
        (Number("decimal(5, 2)"), Decimal(1000)),
        (Number("decimal(5, 2)"), math.nan),
        (Number("decimal(5, 2)"), True),
        (Boolean(), 1),
        (Boolean(), "true"),
        (Text(), 1),
        (Text(), b"a"),
        (Text(), "\ud800"),
        (Time(), date(2020, 1, 1)),
        (Time(), "yesterday"),
        (Time(), 0),
        (Time(), "0001-01-01 00:00:00+05:00"),
        (Time("timestamp_ntz"), datetime(2020, 1, 1, tzinfo=UTC)),
        (Time("date"), datetime(2020, 1, 1)),
        (Time("date"), "2020-13-01"),
        (Address(), "10.0.0.256"),
        (Address(), 10),
    ],
    ids=repr,
)
def test_a_value_that_does_not_fit_is_told(kind: Scalar, value: Any) -> None:
    with pytest.raises(ValueProblem):
        codec(kind).code(value)


def test_a_moment_before_the_calendar_is_told() -> None:
    with pytest.raises(ValueProblem):
        codec(Time()).code(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))))


def test_a_decimal_infinity_is_a_double() -> None:
    axis = codec(Number())
    assert axis.code(Decimal("Infinity")) == axis.code(math.inf)
    assert axis.code(Decimal("NaN")) == axis.code(math.nan)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (Number("int64"), pa.array([0, 1.5, 2])),
        (Number("int64"), pa.array([0, 2**63, 5], pa.uint64())),
        (Number(), pa.array([0, 2**53 + 1])),
        (Number("decimal(5, 2)"), pa.array([Decimal("1.00"), Decimal("1.005")])),
        (Number("decimal(5, 2)"), pa.array([1.0, 1234567.0])),
        (Number("decimal(5, 2)"), pa.array([1.0, math.nan])),
        (Number("decimal(5, 2)"), pa.array([1.0, 1e300])),
        (Time("timestamp_ntz"), pa.array([0, 1], pa.timestamp("ns"))),
        (Time(), pa.array(["2020-01-01", "no"])),
        (Time("date"), pa.array(["2020-01-01", "no"])),
        (Address(), pa.array(["::1", "no"])),
    ],
    ids=str,
)
def test_the_first_value_that_does_not_fit_is_named_by_its_row(kind: Scalar, column: pa.Array) -> None:
    with pytest.raises(ValueProblem) as caught:
        codec(kind).codes(column)
    assert caught.value.row == 1


# Cuts: (kind of column) x (kind of constant), against exact arithmetic or, for doubles, Spark's cast to double

numeric_constants = st.one_of(
    st.integers(-(10**37), 10**37).map(lambda value: Constant(value, "integer")),
    whole.map(lambda value: Constant(value, "integer")),
    st.decimals(min_value=-(10**15), max_value=10**15, places=4, allow_nan=False).map(
        lambda value: Constant(value, "decimal")
    ),
    floats.map(lambda value: Constant(value, "double")),
    whole.map(lambda value: Constant(float(value), "double")),
)


def near(constant: Constant) -> list[Any]:
    """Return integers around a constant."""
    value = constant.value
    if isinstance(value, float) and not math.isfinite(value):
        return []
    middle = int(value)  # type: ignore[arg-type]
    return [middle + step for step in (-2, -1, 0, 1, 2)]


def check_cuts(axis: Codec, constant: Constant, values: list[Any]) -> None:
    for operator in OPERATORS:
        for value in values:
            symbol = symbolic.Compared(operator, constant)  # type: ignore[arg-type]
            assert inside(axis, symbol, value) == compared(operator, value, constant), (operator, value, constant)
        assert not inside(axis, symbolic.Compared(operator, constant), None)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(numeric_constants, whole)
@example(Constant(9007199254740992.0, "double"), 2**53 + 1)
@example(Constant(9.223372036854775807e18, "double"), 2**63 - 1)
@example(Constant(-9.223372036854775808e18, "double"), -(2**63) + 1)
def test_integers_are_cut_exactly(constant: Constant, value: int) -> None:
    values = [each for each in [*near(constant), value] if -(2**63) < each < 2**63]
    if Integers.tells_least_apart(constant):
        return
    check_cuts(codec(Number("int64")), constant, [*values, -(2**63)])


@settings(max_examples=300, deadline=None)
@given(numeric_constants, floats)
@example(Constant(Decimal("0.1"), "decimal"), 0.1)
@example(Constant(2**53 + 1, "integer"), 2.0**53)
@example(Constant(0.0, "double"), -0.0)
def test_doubles_are_cut_as_spark_casts_the_constant(constant: Constant, value: float) -> None:
    middle = float(constant.value)  # type: ignore[arg-type]
    values = [value, middle, math.nextafter(middle, math.inf), math.nextafter(middle, -math.inf), math.nan, math.inf]
    check_cuts(codec(Number()), constant, values)


@settings(max_examples=200, deadline=None)
@given(numeric_constants, cents)
@example(Constant(0.1, "double"), Decimal("0.10"))
def test_decimals_are_cut_exactly(constant: Constant, value: Decimal) -> None:
    values = [Decimal(each).scaleb(-2) for each in near(Constant(_times(constant, 100), constant.kind))]
    values = [each for each in values if abs(each) < 10**16]
    check_cuts(codec(Number("decimal(18, 2)")), constant, [*values, value])


@settings(max_examples=200, deadline=None)
@given(numeric_constants, long_decimals)
def test_long_decimals_are_cut_exactly(constant: Constant, value: Decimal) -> None:
    values = [Decimal(each) for each in near(constant) if abs(each) < 10**35]
    check_cuts(codec(Number("decimal(38, 3)")), constant, [*values, value])


def _times(constant: Constant, factor: int) -> Any:
    value = constant.value
    if isinstance(value, float):
        return value * factor if math.isfinite(value * factor) else math.inf
    return value * factor  # type: ignore[operator]


@given(st.booleans(), st.booleans())
def test_truth_values_are_cut(value: bool, constant: bool) -> None:
    check_cuts(codec(Boolean()), Constant(constant, "boolean"), [value])


@given(st.datetimes(), st.datetimes(), st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"]))
def test_times_are_cut_where_their_text_says(value: datetime, constant: datetime, zone: str) -> None:
    if not (date(2, 1, 1) <= value.date() <= date(9998, 1, 1) and date(2, 1, 1) <= constant.date() <= date(9998, 1, 1)):
        return
    for operator in OPERATORS:
        wall = symbolic.Compared(operator, Constant(str(constant), "timestamp_ntz"))  # type: ignore[arg-type]
        expected = compared(operator, value, Constant(constant, "timestamp_ntz"))  # type: ignore[arg-type]
        assert inside(codec(Time("timestamp_ntz"), zone=zone), wall, value) == expected
        moment = symbolic.Compared(operator, Constant(str(constant), "timestamp"))  # type: ignore[arg-type]
        one, other = (each.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for each in (value, constant))
        expected = compared(operator, one, Constant(other, "timestamp"))  # type: ignore[arg-type]
        assert inside(codec(Time(), zone=zone), moment, one) == expected


@given(st.dates(), st.dates(), st.times())
def test_a_date_beside_a_timestamp_is_its_first_moment(value: date, day: date, time: Any) -> None:
    constant = datetime.combine(day, time)
    axis = codec(Time("date"))
    for operator in OPERATORS:
        symbol = symbolic.Compared(operator, Constant(str(constant), "timestamp_ntz"))  # type: ignore[arg-type]
        first = datetime.combine(value, datetime.min.time())
        assert inside(axis, symbol, value) == compared(operator, first, Constant(constant, "timestamp_ntz"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Time(), Time("timestamp_ntz"), Time("date")], ids=str)
@pytest.mark.parametrize(
    "text", ["no", "2020-01-01 00:00:00 Foo/Bar", "0000-01-01", "2020-02-30", "2020-01-01 25:00:00"]
)
def test_a_constant_that_is_no_time_is_told(kind: Time, text: str) -> None:
    for constant_kind in ("timestamp", "string"):
        if kind.kind == "date" and constant_kind == "string" and " " in text:
            continue  # what follows the day is not looked at
        with pytest.raises(ValueProblem):
            codec(kind).cut(literals_of(Constant(text, constant_kind)))  # type: ignore[arg-type]


def test_a_zone_that_leads_out_of_the_calendar_is_told() -> None:
    for kind in (Time(), Time("timestamp_ntz"), Time("date")):
        with pytest.raises(ValueProblem):
            codec(kind).cut(literals_of(Constant("0001-01-01 00:00:00+05:00", "timestamp")))


def test_a_wall_clock_constant_ignores_the_zone_written_behind_it() -> None:
    axis = codec(Time("timestamp_ntz"), zone="Asia/Tokyo")
    constant = Constant("2020-01-01 00:00:00+05:00", "timestamp_ntz")
    assert inside(axis, symbolic.Compared("=", constant), datetime(2020, 1, 1))


@given(texts, texts)
@example("", "a")
@example("\U0010ffff", "\U0010ffffa")
def test_prefixes_hold_the_texts_that_begin_with_them(prefix: str, value: str) -> None:
    symbol = symbolic.Prefixed(Constant(prefix, "string"))
    for text in (value, prefix + value):
        assert inside(codec(Text()), symbol, text) == text.startswith(prefix)
        assert inside(codec(Text(), "reversed"), symbol, text) == text.endswith(prefix)
        assert inside(codec(Text(), "lower"), symbol, text) == text.lower().startswith(prefix)
        whole_text = symbolic.Prefixed(Constant(prefix, "string"), fold=True, whole=True)
        assert inside(codec(Text(), "lower"), whole_text, text) == (text.lower() == prefix.lower())


@given(st.lists(floats, max_size=20))
def test_codes_of_doubles_are_their_bits_turned(values: list[float]) -> None:
    codes = double_codes(np.array(values, np.float64))
    assert [codec(Number()).code(value) for value in values] == codes.tolist()
