"""The codec of numbers with a unit: quantities in other units are converted on their way in, many at a time.

A plain number is in the unit of the dimension. A quantity is a text ('2 TB'), a struct or mapping of value and unit, or
a number beside a companion field that names its unit. Conversion is exact; then, as a double it is the nearest one, as
a decimal it is rounded to its digits (half to even) if a factor was applied, as a whole number it must be one. The
same holds for ``quantity('...')`` in subscriptions, so that equal quantities are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import UnitError
from tocsin.index.boxes import NULL
from tocsin.language.arrays import text_array
from tocsin.language.literals import Literals
from tocsin.language.tree import Kind
from tocsin.space.codes import NUMERIC, Codec, Codes, Cuts, Doubles, Integers, ValueProblem
from tocsin.space.units import SAME, Affine, Units, read_quantity

Doubles64 = npt.NDArray[np.float64]
VALUES = ("value", "amount", "magnitude", "number")
UNITS = ("unit", "units", "currency")
_EXACT = 2**53
_MOST_KEPT = 2**16


class Given(NamedTuple):
    """A quantity of one event: what stands for its number, its unit if one is given, and its day."""

    value: Any
    unit: str | None = None
    day: date | None = None


class Quantities(Codec):
    """Codes of numbers in one unit; ``inner`` are the codes of the numbers themselves."""

    kinds = NUMERIC | frozenset[Kind]({"quantity"})

    def __init__(self, inner: Codec, unit: str, units: Units, scale: int | None) -> None:
        self.inner, self.unit, self.units, self._scale = inner, unit, units, scale
        self._numbers: dict[Given, Any] = {}
        self.expects = f"{inner.expects} in {unit}, or a quantity such as '40 {unit}',"  # type: ignore[misc]

    def code(self, value: Any) -> int:  # noqa: D102
        given = given_of(value)
        number, unit = given.value, given.unit
        if isinstance(number, str):
            held = self._numbers.get(given)
            if held is None:
                exact, written = self._read(number)
                held = self.number(exact, self._conversion(written or unit, given.day))
                if len(self._numbers) < _MOST_KEPT:
                    self._numbers[given] = held
            return self.inner.code(held)
        if unit is None or self.units.resolved(unit) == self.units.resolved(self.unit):
            return self.inner.code(number)
        return self.inner.code(self.number(self._exact(number), self._conversion(unit, given.day)))

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if pa.types.is_struct(values.type):
            return self._of_struct(values)
        if is_text(values.type):
            return self._of_texts(values, [Given(None)], np.zeros(len(values), np.int64))
        return self.inner.codes(values)

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        if constants.kind != "quantity":
            return self.inner.cut(constants)
        which, distinct = constants.distinct()
        parts = []
        for position, constant in enumerate(distinct):
            try:
                exact, unit = self._read(str(constant.value))
                parts.append(self._cut_one(exact, self._conversion(unit, None)))
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, int(np.argmax(which == position))) from None
        joined = (np.concatenate([part[side] for part in parts])[which] for side in range(3))
        return Cuts(*joined)

    def refusal(self, text: str) -> str | None:
        """Return why a quantity may not stand in a subscription, None if it may."""
        try:
            self._conversion(self._read(text)[1], None)
        except ValueProblem as problem:
            return problem.reason
        return None

    def converted(self, given: Given) -> Fraction | None:
        """Return a quantity in the unit of the dimension, None if it is given in that unit."""
        number, unit = given.value, given.unit
        exact: Fraction | None = None
        if isinstance(number, str):
            exact, written = self._read(number)
            unit = written or unit
        conversion = self._conversion(unit, given.day)
        return None if conversion == SAME else conversion(self._exact(number) if exact is None else exact)

    def exact(self, given: Given) -> Fraction:
        """Return the number of a quantity as it is given."""
        return self._read(given.value)[0] if isinstance(given.value, str) else self._exact(given.value)

    def number(self, exact: Fraction, conversion: Affine) -> Any:
        """Return an exact number, converted, as the dimension holds it."""
        result = conversion(exact)
        if self._scale is not None:
            scaled = result * 10**self._scale
            if conversion == SAME and scaled.denominator != 1:
                raise ValueProblem(f"{float(result)!r} has more than {self._scale} digits after the point")
            return Decimal(f"{round(scaled)}E-{self._scale}")
        if isinstance(self.inner, Integers) and result.denominator != 1:
            raise ValueProblem(f"{float(result)!r} {self.unit} is not a whole number")
        return int(result) if isinstance(self.inner, Integers) else float(result)

    def _cut_one(self, exact: Fraction, conversion: Affine) -> Cuts:
        """Return where a quantity falls: on the value that an event of this quantity has, or between whole numbers."""
        if isinstance(self.inner, Integers):
            result = conversion(exact)
            floor = result.numerator // result.denominator
            pair = [self.inner.cut(_whole(each)) for each in (floor, floor + (result.denominator != 1))]
            return Cuts(pair[0].floor, pair[1].ceil, pair[1].above)
        number = self.number(exact, conversion)
        kind: Kind = "double" if isinstance(number, float) else "decimal"
        written = repr(number) if kind == "double" else str(number)
        return self.inner.cut(Literals(kind, text_array([written])))

    def _exact(self, number: Any) -> Fraction:
        """Return a number exactly; a float that becomes a decimal counts as it prints."""
        if self._scale is not None and isinstance(number, float) and np.isfinite(number):
            return Fraction(repr(number))
        return exact_of(number)

    def _one(self, value: Any, convert: Callable[[Fraction], Any]) -> Any:
        """Return one number converted; NULL and what is not finite stay as they are."""
        if value is None or (isinstance(value, float) and not np.isfinite(value)):
            return value
        return convert(self._exact(value))

    def _read(self, text: str) -> tuple[Fraction, str | None]:
        try:
            return read_quantity(text)
        except UnitError as error:
            raise ValueProblem(str(error)) from None

    def _conversion(self, unit: str | None, day: date | None) -> Affine:
        try:
            return SAME if unit is None else self.units.conversion(unit, self.unit, day)
        except UnitError as error:
            raise ValueProblem(str(error)) from None

    def _of_struct(self, values: pa.Array) -> Codes:
        """Return the codes of structs: rows of one unit and one period of rates are converted together."""
        number, unit, day = struct_parts(values)
        groups, which = _groups(unit, day, self.units, len(values))
        if is_text(number.type):
            return self._of_texts(number, groups, which)
        codes = np.full(len(values), NULL)
        valid = np.array(number.is_valid())
        for at, given in enumerate(groups):
            rows = np.flatnonzero(valid & (which == at))
            if not len(rows):
                continue
            try:
                conversion = self._conversion(given.unit, given.day)
                some = number.take(pa.array(rows))
                codes[rows] = self.inner.codes(some if conversion == SAME else self._scaled(some, conversion))
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, int(rows[problem.row])) from None
        return codes

    def _of_texts(self, values: pa.Array, groups: list[Given], which: npt.NDArray[np.int64]) -> Codes:
        """Return the codes of texts, each distinct one of a unit and a period read once."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        encoded = values.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        indices = np.array(pc.fill_null(encoded.indices, -1)).astype(np.int64)
        pairs, first, place = np.unique(indices * len(groups) + which, return_index=True, return_inverse=True)
        codes = np.full(len(pairs), NULL)
        for at, pair in enumerate(pairs.tolist()):
            text, group = divmod(pair, len(groups))
            if text >= 0:
                try:
                    codes[at] = self.code(groups[group]._replace(value=texts[text]))
                except ValueProblem as problem:
                    raise ValueProblem(problem.reason, int(first[at])) from None
        found: Codes = codes[place]
        return found

    def _scaled(self, values: pa.Array, conversion: Affine) -> pa.Array:
        """Return numbers converted: at once where each is certain to be the nearest double, the rest one by one."""
        if isinstance(self.inner, Doubles) and (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            plain = np.array(pc.fill_null(values, 0))
            small = plain.dtype.kind == "f" or bool((np.abs(plain) <= _EXACT).all())
            if small and not conversion.offset:
                found, sure = times(plain.astype(np.float64), conversion.factor)
                for row in np.flatnonzero(~sure):
                    found[row] = self._one(plain[row].item(), lambda exact: float(conversion(exact)))
                return pa.array(found, mask=np.array(values.is_null()))
        encoded = values.dictionary_encode()
        distinct = []
        for at, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                distinct.append(self._one(value, lambda exact: self.number(exact, conversion)))
            except (ValueProblem, OverflowError) as problem:
                raise ValueProblem(str(problem), pc.index(encoded.indices, at).as_py()) from None
        kind = pa.decimal128(38, self._scale) if self._scale is not None else None
        return pa.array(distinct, kind).take(encoded.indices)


def times(values: npt.NDArray[np.float64], factor: Fraction) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the doubles nearest to values times an exact factor, and of which it is certain that they are.

    The product by the numerator is held as a sum of two doubles, and so is the remainder of the division; a result is
    certain if a slightly smaller and a slightly greater correction round to it.

    >>> times(np.array([0.5, 350.0]), Fraction(27, 25))[0].tolist()
    [0.54, 378.0]
    """
    top, bottom = factor.numerator, factor.denominator
    if abs(top) > _EXACT or bottom > _EXACT:
        return np.zeros_like(values), np.zeros(len(values), bool)
    with np.errstate(all="ignore"):
        if bottom == 1:
            return values * float(top), np.ones(len(values), bool)
        if top == 1:
            return values / float(bottom), np.ones(len(values), bool)
        high, low = _two_product(values, float(top))
        found = high / float(bottom)
        back, rest = _two_product(found, float(bottom))
        correction = ((high - back) - rest + low) / float(bottom)
        results = [found + correction * (1 + sign * 2.0**-40) for sign in (-1, 1)]
        size = np.abs(results[0])
        sure = (results[0] == results[1]) & (((size > 1e-250) & (size < 1e250)) | (values == 0))
        return results[0], sure


def _two_product(
    left: npt.NDArray[np.float64], right: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return a product as the sum of two doubles, exactly (Veltkamp, Dekker)."""
    product = left * right
    split = 134217729.0
    big, other_big = split * left, split * right
    high, other_high = big - (big - left), other_big - (other_big - right)
    low, other_low = left - high, right - other_high
    error = ((high * other_high - product) + high * other_low + low * other_high) + low * other_low
    return product, error


def struct_parts(values: pa.Array) -> tuple[pa.Array, pa.Array | None, pa.Array | None]:
    """Return the numbers, the units and the days of structs; ValueProblem if they have no number."""
    names = [field.name for field in values.type]
    number = next((name for name in VALUES if name in names), None)
    if number is None:
        raise ValueProblem(f"the column holds {values.type}, without a field {' or '.join(VALUES[:2])}")
    unit = next((name for name in UNITS if name in names), None)
    parts = [
        pc.struct_field(values, name) if name else None for name in (number, unit, "at" if "at" in names else None)
    ]
    return parts[0], parts[1], parts[2]


def exact_of(value: Any) -> Fraction:
    """Return a number exactly; ValueProblem if it is none, or not finite."""
    if isinstance(value, (bool, str)) or value is None:
        raise ValueProblem(f"{value!r} is not a number")
    try:
        return Fraction(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError, OverflowError):
        raise ValueProblem(f"{value!r} is no number that can be converted") from None


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def given_of(value: Any) -> Given:
    """Return what a value of an event gives: a number, a text, or a mapping of number and unit."""
    if isinstance(value, Given):
        return value
    if not isinstance(value, Mapping):
        return Given(value)
    number = next((name for name in VALUES if name in value), None)
    if number is None:
        raise ValueProblem(f"{value!r} has no {' or '.join(VALUES[:2])}")
    unit = next((value[name] for name in UNITS if value.get(name) is not None), None)
    if unit is not None and not isinstance(unit, str):
        raise ValueProblem(f"the unit {unit!r} is not text")
    return Given(value[number], unit)


def day_of(moment: Any) -> date | None:
    """Return the day of a moment of an event, for the rate of that day."""
    if isinstance(moment, datetime):
        return moment.date()
    if isinstance(moment, date) or moment is None:
        return moment
    try:
        return date.fromisoformat(str(moment)[:10])
    except ValueError:
        raise ValueProblem(f"{moment!r} is no day to look a rate up for") from None


def _groups(
    unit: pa.Array | None, day: pa.Array | None, units: Units, count: int
) -> tuple[list[Given], npt.NDArray[np.int64]]:
    """Return the distinct units and periods of rates among rows, a day of each period, and which each row has."""
    which = np.zeros(count, np.int64)
    names: list[str | None] = [None]
    if unit is not None and not pa.types.is_null(unit.type):
        if not is_text(unit.type):
            raise ValueProblem(f"the units are {unit.type}, not text")
        encoded = (unit.dictionary_decode() if pa.types.is_dictionary(unit.type) else unit).dictionary_encode()
        names = [*encoded.dictionary.to_pylist(), None]
        which = np.array(pc.fill_null(encoded.indices, len(names) - 1)).astype(np.int64)
    if day is None or units.rates is None or pa.types.is_null(day.type):
        return [Given(None, name) for name in names], which
    days = _days(day)
    starts = np.array(units.rates.starts(), "datetime64[D]")
    period = np.where(np.isnat(days), -1, np.searchsorted(starts, days, "right"))
    _, first, place = np.unique(which * (len(starts) + 2) + period + 1, return_index=True, return_inverse=True)
    found = [Given(None, names[which[row]], days[row].item()) for row in first]
    return found, place.reshape(-1)


def _days(moments: pa.Array) -> npt.NDArray[np.datetime64]:
    """Return the days of moments: of a timestamp with a zone, in UTC."""
    if pa.types.is_timestamp(moments.type) or pa.types.is_date(moments.type):
        plain = moments.cast(pa.timestamp("us")) if pa.types.is_timestamp(moments.type) else moments
        return np.array(plain.cast(pa.date32())).astype("datetime64[D]")
    found = []
    for row, moment in enumerate(moments.to_pylist()):
        try:
            found.append(day_of(moment))
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, row) from None
    return np.array(found, "datetime64[D]")


def _whole(value: int) -> Literals:
    return Literals("decimal", text_array([str(value)]))
