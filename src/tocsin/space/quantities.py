"""The codec of numbers with a unit: quantities in other units are converted on their way in, many at a time.

A plain number is in the unit of the dimension. A quantity is a text ('2 TB'), a struct or mapping of value and unit, or
a number beside a companion field that names its unit. Conversion is exact; then, as a double it is the nearest one, as
a decimal it is rounded to its digits (half to even) if a factor was applied, as a whole number it must be one. The
same holds for ``quantity('...')`` in subscriptions, so that equal quantities are equal.

`Quantities.number_of` states all of this for one value. Columns are computed by the same function, once for each
distinct value, but for doubles that a factor is applied to: those are multiplied together (`times`), and one by one
where that is not certain to be exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
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
from tocsin.space.books import Book
from tocsin.space.codes import NUMERIC, Codec, Codes, Cuts, Doubles, Ends, Integers, ValueProblem, each_code, scaled
from tocsin.space.listed import Listed
from tocsin.space.scalars import brief, is_text, plain_scalar
from tocsin.space.units import SAME, Affine, Units, fraction_of, read_quantity

VALUES = ("value", "amount", "magnitude", "number")
UNITS = ("unit", "units", "currency")
DAY = "\0day"
"""The field of a struct that says for which day rates are taken; no event has a field of this name."""

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
        number = value if type(value) is float or type(value) is int else self.number_of(value)
        return NULL if number is None else self.inner.code(number)

    def number_of(self, value: Any) -> Any:
        """Return the number in the unit of the dimension that a value of an event gives; None for NULL."""
        given = given_of(value)
        if isinstance(given.value, str):
            return self._number_of_text(given)
        number = plain_scalar(given.value)
        if number is None or given.unit is None:
            return number
        conversion = self._conversion(given.unit, given.day)
        if conversion == SAME:
            return number
        return self._number(self._exact(number), conversion)

    def _number_of_text(self, given: Given) -> Any:
        held = self._numbers.get(given)
        if held is None:
            exact, written = self._read(given.value)
            held = self._number(exact, self._conversion(written or given.unit, given.day))
            if len(self._numbers) < _MOST_KEPT:
                self._numbers[given] = held
        return held

    def place(self, value: Any) -> int:  # noqa: D102
        return self.inner.place(self.number_of(value))

    def span(self, ends: Ends, *, keep: bool = False) -> tuple[int, int]:
        """Return the codes of a range, whose bounds are numbers or quantities."""
        return self.inner.span(self.numbers(ends), keep=keep)

    def numbers(self, ends: Ends) -> Ends:
        """Return the bounds of a range as numbers in the unit of the dimension."""
        low, high = (None if end is None else self.number_of(end) for end in (ends.low, ends.high))
        return ends._replace(low=low, high=high)

    def holds(self, low: int, high: int) -> bool:  # noqa: D102
        return self.inner.holds(low, high)

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:  # noqa: D102
        return self.inner.doubtful(low, high)

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if pa.types.is_struct(values.type):
            return self._of_struct(values)
        return each_code(values, self.code) if is_text(values.type) else self.inner.codes(values)

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
            exact, unit = self._read(text)
            self._cut_one(exact, self._conversion(unit, None))
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

    def _number(self, exact: Fraction, conversion: Affine) -> Any:
        """Return an exact number, converted, as the dimension holds it."""
        result = conversion(exact)
        if self._scale is not None:
            unscaled = result * 10**self._scale
            if conversion == SAME and unscaled.denominator != 1:
                raise ValueProblem(f"{_written(result)} has more than {self._scale} digits after the point")
            return scaled(round(unscaled), self._scale)
        if isinstance(self.inner, Integers):
            if result.denominator != 1:
                raise ValueProblem(f"{_written(result)} {self.unit} is not a whole number")
            return int(result)
        try:
            return float(result)
        except OverflowError:
            raise ValueProblem(f"it is beyond the doubles in {self.unit}") from None

    def _cut_one(self, exact: Fraction, conversion: Affine) -> Cuts:
        """Return where a quantity falls: on the value that an event of this quantity has, or between whole numbers."""
        if isinstance(self.inner, Integers):
            result = conversion(exact)
            floor = result.numerator // result.denominator
            pair = [self.inner.cut(_whole(each)) for each in (floor, floor + (result.denominator != 1))]
            return Cuts(pair[0].floor, pair[1].ceil, pair[1].above)
        number = self._number(exact, conversion)
        kind: Kind = "double" if isinstance(number, float) else "decimal"
        written = repr(number) if kind == "double" else f"{number:f}"
        return self.inner.cut(Literals(kind, text_array([written])))

    def _exact(self, number: Any) -> Fraction:
        """Return a number exactly; a float that becomes a decimal counts as it prints."""
        if isinstance(number, (bool, str)) or number is None:
            raise ValueProblem(f"{brief(number)} is not a number")
        try:
            as_printed = self._scale is not None and isinstance(number, float)
            return fraction_of(Decimal(repr(number)) if as_printed else number)
        except (TypeError, ValueError, ArithmeticError):
            raise ValueProblem(f"{brief(number)} is no number that can be converted") from None

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
        codes = np.full(len(values), NULL)
        if pa.types.is_null(number.type):
            return codes
        groups, which = _groups(unit, day, self.units, len(values))
        valid = np.array(number.is_valid())
        for at, given in enumerate(groups):
            rows = np.flatnonzero(valid & (which == at))
            if not len(rows):
                continue
            try:
                codes[rows] = self._of_group(number.take(pa.array(rows)), given)
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, int(rows[problem.row])) from None
        return codes

    def _of_group(self, values: pa.Array, given: Given) -> Codes:
        """Return the codes of numbers or texts of one unit and one day."""
        if not is_text(values.type):
            conversion = self._conversion(given.unit, given.day)
            if conversion == SAME:
                return self.inner.codes(values)
            plain = pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
            if isinstance(self.inner, Doubles) and plain and not conversion.offset:
                return self._multiplied(values, conversion.factor, given)
        return each_code(values, lambda value: self.code(given._replace(value=value)))

    def _multiplied(self, values: pa.Array, factor: Fraction, given: Given) -> Codes:
        """Return the codes of numbers times a factor: at once where each is certain to be the nearest double."""
        plain = np.array(values)
        certain = np.ones(len(plain), bool) if plain.dtype.kind == "f" else (plain <= _EXACT) & (plain >= -_EXACT)
        found, sure = times(plain.astype(np.float64), factor)
        codes = self.inner.codes(pa.array(found))
        for row in np.flatnonzero(~(sure & certain)):
            try:
                codes[row] = self.code(given._replace(value=plain[row].item()))
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, int(row)) from None
        return codes


class ListedQuantities(Quantities, Listed):
    """Quantities whose numbers have their codes in a book: decimals of more than 18 digits."""

    inner: Listed

    @property
    def book(self) -> Book:
        """The book of the numbers."""
        return self.inner.book

    @book.setter
    def book(self, book: Book) -> None:
        self.inner.book = book

    def _key_of(self, value: Any) -> bytes:
        return self.inner._key_of(self.number_of(value))

    def _above(self, key: bytes) -> bytes | None:
        return self.inner._above(key)

    def _below(self, key: bytes) -> bytes | None:
        return self.inner._below(key)


def quantities_of(inner: Codec, unit: str, units: Units, scale: int | None) -> Quantities:
    """Return the codec of quantities whose numbers have the codes of another."""
    kind = ListedQuantities if isinstance(inner, Listed) else Quantities
    return kind(inner, unit, units, scale)


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
            found = values * float(top)
            return found, np.isfinite(found)
        if top == 1:
            return values / float(bottom), np.isfinite(values)
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
    number = _first(values, [name for name in VALUES if name in names])
    if number is None:
        raise ValueProblem(f"the column holds {values.type}, without a field {' or '.join(VALUES[:2])}")
    unit = _first(values, [name for name in UNITS if name in names])
    return number, unit, pc.struct_field(values, DAY) if DAY in names else None


def _first(values: pa.Array, names: list[str]) -> pa.Array | None:
    """Return of each struct the first of some fields that is there."""
    found = [pc.struct_field(values, name) for name in names]
    found = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in found]
    there = [each for each in found if not pa.types.is_null(each.type)]
    if len({each.type for each in there}) > 1:
        raise ValueProblem(f"the column holds {values.type}: {' and '.join(names)} are of different types")
    return there[0] if len(there) == 1 else pc.coalesce(*there) if there else found[0] if found else None


def given_of(value: Any) -> Given:
    """Return what a value of an event gives: a number, a text, or a mapping of number and unit."""
    if isinstance(value, Given):
        return value
    if not isinstance(value, Mapping):
        return Given(value)
    if not any(name in value for name in VALUES):
        raise ValueProblem(f"{brief(value)} has no {' or '.join(VALUES[:2])}")
    number = next((value[name] for name in VALUES if value.get(name) is not None), None)
    unit = next((value[name] for name in UNITS if value.get(name) is not None), None)
    return Given(number, unit_of(unit))


def unit_of(unit: Any) -> str | None:
    """Return the unit that an event names; ValueProblem if it is no text."""
    if unit is not None and not isinstance(unit, str):
        raise ValueProblem(f"the unit {brief(unit)} is not text")
    return unit


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
    if day is None or units.rates is None:
        return [Given(None, name) for name in names], which
    days = np.array(day).astype("datetime64[D]")
    starts = np.array(units.rates.starts(), "datetime64[D]")
    period = np.where(np.isnat(days), -1, np.searchsorted(starts, days, "right"))
    _, first, place = np.unique(which * (len(starts) + 2) + period + 1, return_index=True, return_inverse=True)
    found = [Given(None, names[which[row]], days[row].item()) for row in first]
    return found, place.reshape(-1)


def _written(number: Fraction) -> str:
    try:
        return repr(float(number))
    except OverflowError:
        return "a number beyond the doubles"


def _whole(value: int) -> Literals:
    return Literals("decimal", text_array([str(value)]))
