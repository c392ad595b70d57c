"""Order-preserving codes: how the values of each type, and the constants compared with them, become 64-bit integers.

A *direct* codec computes the code from the value alone; a *listed* one (`books`) looks it up. A constant need not be a
value of the axis (3.5 on an integer axis, or 10**30): it is *cut* to the greatest code not above it and the least not
below it, and from those two every comparison is an interval.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.language.arrays import are_valid, numbers_of
from tocsin.language.literals import Literals
from tocsin.language.tree import Constant, Kind
from tocsin.space.codec import Codec as Codec
from tocsin.space.codec import Codes as Codes
from tocsin.space.codec import Cuts as Cuts
from tocsin.space.codec import Ends as Ends
from tocsin.space.codec import ValueProblem as ValueProblem
from tocsin.space.scalars import brief, is_text, plain_number

NUMERIC: frozenset[Kind] = frozenset({"integer", "decimal", "double"})
_EXACT_DOUBLE = 2**53
_INT64, _FLOAT64 = pa.int64(), pa.float64()
_DOUBLE, _BITS = Struct("<d"), Struct("<q")
_NAN: int = _BITS.unpack(_DOUBLE.pack(float("nan")))[0]
"""The code of every NaN."""
_INFINITE: tuple[int, int] = _BITS.unpack(_DOUBLE.pack(math.inf))[0], _BITS.unpack(_DOUBLE.pack(-math.inf))[0]
"""The bits of both infinities."""


def distinct_texts(values: pa.Array) -> pa.DictionaryArray:
    """Return texts with their distinct ones apart; raise ValueProblem unless they are texts."""
    if not is_text(values.type):
        raise ValueProblem(f"the column holds {values.type}")
    return (values.dictionary_decode() if pa.types.is_dictionary(values.type) else values).dictionary_encode()


def codes_of_all(codes: Codes, indices: pa.Array) -> Codes:
    """Return the code of each value from those of the distinct ones, NULL where there is none."""
    if not indices.null_count:
        known: Codes = codes[numbers_of(indices)]
        return known
    filled = numbers_of(pc.fill_null(indices, -1))
    return np.where(filled < 0, NULL, codes[filled])


class Direct(Codec):
    """A codec whose codes are computed from the value alone."""

    def cut_alone(self, constant: Constant) -> tuple[int, int] | None:  # noqa: D102
        return self._cut_one(constant)

    @property
    def alike(self) -> Hashable:  # noqa: D102
        return type(self), *(str(option) for option in vars(self).values())

    def cut(self, constants: Literals) -> Cuts:
        """Cut each distinct constant once."""
        which, distinct = constants.distinct()
        cuts = []
        for position, constant in enumerate(distinct):
            try:
                cuts.append(self._cut_one(constant))
            except (ValueError, OverflowError, KeyError) as error:
                raise ValueProblem(str(error.args[0]), int(np.argmax(which == position))) from None
        above = np.array([ceil > HIGHEST for _, ceil in cuts], dtype=bool)
        floor = np.array([NULL if low < LOWEST else min(low, HIGHEST) for low, _ in cuts], dtype=np.int64)
        ceil = np.array([min(max(high, LOWEST), HIGHEST) for _, high in cuts], dtype=np.int64)
        return Cuts(floor[which], ceil[which], above[which])

    @abstractmethod
    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        """Return the greatest code not above the constant and the least not below it, however far outside."""


def _exactly(codes: Codes) -> Cuts:
    """Return the cuts of constants that are values of the axis."""
    return Cuts(codes, codes, np.zeros(len(codes), bool))


class Integers(Direct):
    """64-bit integers are their own codes. The least of them shares the code of its neighbour, NULL having taken its
    own: a constant that would tell those two apart is verified instead (see `tells_least_apart`)."""

    kinds = NUMERIC
    expects = "a whole number"
    least = NULL

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if values.type == _INT64:
            return raised(values)
        if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
            values = cast(values, pa.int64(), "is not a whole number of 64 bits")
        elif not pa.types.is_integer(values.type):
            raise ValueProblem(f"the column holds {values.type}")
        return raised(cast(values, pa.int64(), "is beyond 64 bits"))

    def are_codes(self, values: pa.Array) -> bool:  # noqa: D102
        return bool(values.type == _INT64 and not values.null_count)

    def write(self, values: pa.Array, codes: Codes) -> None:  # noqa: D102
        if self.are_codes(values):
            np.maximum(numbers_of(values), LOWEST, out=codes)
        else:
            super().write(values, codes)

    def code(self, value: Any) -> int:  # noqa: D102
        if type(value) is not int:
            value = plain_number(value)
            try:
                whole = isinstance(value, (float, Decimal)) and _is_whole(value)
                number = int(value) if whole else operator.index(value)
            except TypeError:
                number = None
            if number is None or isinstance(value, bool):
                raise ValueProblem(f"{brief(value)} is not a whole number")
            value = number
        if not -(2**63) <= value < 2**63:
            raise ValueProblem(f"{brief(value)} is beyond 64 bits")
        return max(int(value), LOWEST)

    def edge(self, value: Any, inwards: int, is_open: bool) -> int:
        """Return the last whole number within a bound, which may have a fraction or be infinite."""
        if type(value) is int and LOWEST <= value <= HIGHEST:
            return value + inwards if is_open else value
        if isinstance(value, np.floating):
            value = float(value)
        if isinstance(value, (float, Decimal)) and not (
            value.is_nan() if isinstance(value, Decimal) else math.isnan(value)
        ):
            if math.isinf(value):
                return 2**64 if value > 0 else -(2**64)
            if -(2**64) < value < 2**64 and value != int(value):
                return math.ceil(value) if inwards > 0 else math.floor(value)
        self.code(value)
        return int(value) + (inwards if is_open else 0)

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        return _exactly(constants.integers) if constants.integers is not None else super().cut(constants)

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        if type(constant.value) is int:
            return constant.value, constant.value
        return cut_scaled(constant, 1)

    @staticmethod
    def tells_least_apart(constant: Constant) -> bool:
        """Return whether a comparison with the constant may tell the least integer from the next."""
        value = constant.value
        return isinstance(value, (int, Decimal)) and LOWEST - 1 <= value <= LOWEST


class LeastApart(Direct):
    """0 is the least whole number of 64 bits, 1 every other."""

    kinds = NUMERIC
    expects = "a whole number"
    least, greatest = 0, 1

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if values.type == _INT64:
            codes: Codes = (numbers_of(values) != -(2**63)).astype(np.int64)
            if values.null_count:
                codes[~are_valid(values)] = NULL
            return codes
        return each_code(values, self.code)

    def code(self, value: Any) -> int:  # noqa: D102
        Integers().code(value)
        return int(int(value) != -(2**63))

    def edge(self, value: Any, inwards: int, is_open: bool) -> int:
        """Return whether the last whole number within a bound is another than the least."""
        return int(Integers().edge(value, inwards, is_open) > -(2**63))

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        return cut_scaled(constant, 1)


class Doubles(Direct):
    """The bits of a double, turned so that their order is that of the numbers; -0.0 is 0.0 and NaN is above
    infinity."""

    kinds = NUMERIC
    expects = "a number"
    least, greatest = int(NULL - _INFINITE[1]), _NAN

    def holds(self, low: int, high: int) -> bool:
        """Return whether a double has a code from ``low`` to ``high``: none has, between infinity and NaN."""
        return (max(low, self.least) if low <= _INFINITE[0] else max(low, _NAN)) <= min(high, self.greatest)

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:  # noqa: D102
        return (low > _INFINITE[0]) | (high < self.least)

    def edge(self, value: Any, inwards: int, is_open: bool) -> int:
        """Return the code of the last double within a bound; NaN is next to infinity."""
        code = self.code(value)
        if is_open and code in (_INFINITE[0], _NAN):
            return (_NAN if code != _NAN else _NAN + 1) if inwards > 0 else min(code - 1, _INFINITE[0])
        return super().edge(value, inwards, is_open)

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if pa.types.is_decimal(values.type):
            return each_code(values, self.code)
        if pa.types.is_integer(values.type):
            values = cast(values, pa.float64(), "is no double exactly")
        elif not pa.types.is_floating(values.type):
            raise ValueProblem(f"the column holds {values.type}")
        codes = double_codes(filled(cast(values, pa.float64(), "is no double"), 0.0))
        if values.null_count:
            codes[np.array(pc.is_null(values))] = NULL
        return codes

    def code(self, value: Any) -> int:  # noqa: D102
        if type(value) is not float:
            value = plain_number(value)
            if isinstance(value, (bool, str, bytes, np.generic)) or not hasattr(value, "__float__"):
                raise ValueProblem(f"{brief(value)} is not a number")
            try:
                given, value = value, float(value)
            except OverflowError:
                raise ValueProblem(f"{brief(value)} is beyond the doubles") from None
            except (TypeError, ValueError):
                raise ValueProblem(f"{brief(value)} is not a number") from None
            if isinstance(given, (int, Decimal)) and not _is_exactly(value, given):
                raise ValueProblem(
                    f"{brief(given)} is no double exactly; declare Number('int64') or Number('decimal(p, s)')"
                )
        return _double_code(value)

    def write(self, values: pa.Array, codes: Codes) -> None:  # noqa: D102
        if values.type != _FLOAT64 or values.null_count:
            super().write(values, codes)
            return
        doubles = numbers_of(values)
        codes[:] = doubles.view(np.int64)
        np.subtract(NULL, codes, out=codes, where=codes < 0)
        codes[np.isnan(doubles)] = _NAN

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        if constants.integers is not None:
            return _exactly(double_codes(constants.integers.astype(np.float64)))
        return super().cut(constants)

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        try:
            code = _double_code(float(constant.value))  # type: ignore[arg-type]
        except OverflowError:
            code = _double_code(math.inf if constant.value > 0 else -math.inf)  # type: ignore[operator]
        return code, code


class Decimals(Direct):
    """Decimals of at most 18 digits: the number without its point."""

    kinds = NUMERIC
    expects = "a decimal number"

    def __init__(self, precision: int, scale: int) -> None:
        self.precision, self.scale = precision, scale
        self.least, self.greatest = 1 - 10**precision, 10**precision - 1

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        unscaled = unscaled_decimals(values, self.precision, self.scale)
        codes = np.frombuffer(unscaled.buffers()[1], np.int64)[
            unscaled.offset * 2 : (unscaled.offset + len(values)) * 2 : 2
        ]
        return np.where(np.array(pc.is_null(unscaled)), NULL, codes) if unscaled.null_count else codes.copy()

    def code(self, value: Any) -> int:  # noqa: D102
        return unscaled_value(value, self.precision, self.scale)

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        return cut_scaled(constant, 10**self.scale)


class Booleans(Direct):
    """False is 0 and true is 1."""

    kinds = frozenset({"boolean"})
    expects = "true or false"
    least, greatest = 0, 1

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if not pa.types.is_boolean(values.type):
            raise ValueProblem(f"the column holds {values.type}")
        return filled(values.cast(pa.int8()).cast(pa.int64()), NULL)

    def code(self, value: Any) -> int:  # noqa: D102
        if not isinstance(value, (bool, np.bool_)):
            raise ValueProblem(f"{brief(value)} is neither true nor false")
        return int(value)

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        return int(bool(constant.value)), int(bool(constant.value))


def double_codes(values: npt.NDArray[np.float64]) -> Codes:
    """Return order-preserving codes of doubles.

    >>> double_codes(np.array([-0.0, 0.0])).tolist()
    [0, 0]
    >>> bool(np.all(np.diff(double_codes(np.array([-np.inf, -1.5, 0.0, 5e-324, np.inf, np.nan]))) > 0))
    True
    """
    bits = np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.int64)
    return np.where(bits < 0, NULL - bits, bits)


def _double_code(value: float) -> int:
    """Return the code of one double, as `double_codes` does."""
    if value != value:
        return _NAN
    bits: int = _BITS.unpack(_DOUBLE.pack(value))[0]
    return NULL - bits if bits < 0 else bits


def unscaled_decimals(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Return values as decimals of 38 digits whose unscaled form has this scale; ValueProblem for one that does not
    fit."""
    if not (pa.types.is_decimal(values.type) or pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise ValueProblem(f"the column holds {values.type}")
    if pa.types.is_floating(values.type):
        exact: list[Decimal | None] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                exact.append(None if value is None else scaled(unscaled_value(value, precision, scale), scale))
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, row) from None
        return pa.array(exact, pa.decimal128(38, scale))
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))
    fitted = cast(values, pa.decimal128(precision, scale), f"is not of {precision} digits, {scale} after the point")
    return fitted.cast(pa.decimal128(38, scale))


def unscaled_value(value: Any, precision: int, scale: int) -> int:
    """Return one number without its point; ValueProblem if it does not fit the decimal type."""
    if type(value) is not Decimal and type(value) is not int:
        value = plain_number(value)
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, (int, float, Decimal)):
        raise ValueProblem(f"{brief(value)} is not a number")
    complaint = f"is not of {precision} digits, {scale} after the point"
    if isinstance(value, int):
        if value.bit_length() > 128 or abs(value) >= 10 ** (precision - scale):
            raise ValueProblem(f"{brief(value)} {complaint}")
        return int(value * 10**scale)
    number = Decimal(repr(float(value))) if isinstance(value, float) else value
    if not number.is_finite():
        raise ValueProblem(f"{brief(value)} is not a decimal number")
    sign, digits, exponent = number.as_tuple()
    if number == 0:
        return 0
    if number.adjusted() >= precision - scale or len(digits) > 2 * precision + 400:
        raise ValueProblem(f"{brief(value)} {complaint}")
    unscaled, shift = int("".join(map(str, digits))), int(exponent) + scale
    if shift < 0:
        if -shift > len(digits) or unscaled % 10**-shift:
            raise ValueProblem(f"{brief(value)} {complaint}")
        unscaled //= 10**-shift
    else:
        unscaled *= 10**shift
    return int(-unscaled if sign else unscaled)


def scaled(unscaled: int, scale: int) -> Decimal:
    """Return the decimal of a number without its point, exactly: not rounded to the digits of Python's context.

    >>> scaled(-12345, 2)
    Decimal('-123.45')
    """
    return Decimal(f"{unscaled}E-{scale}")


def cut_scaled(constant: Constant, factor: int) -> tuple[int, int]:
    """Return the cut of a constant among the multiples of 1/factor: exactly, or as Spark does when it casts to
    double."""
    value = constant.value
    if isinstance(value, float):
        return _cut_double(value, factor)
    exact = Fraction(value) * factor  # type: ignore[arg-type]
    floor = exact.numerator // exact.denominator
    return floor, floor + (exact.denominator != 1)


def _cut_double(value: float, factor: int) -> tuple[int, int]:
    """Return the cut of a double among integers over ``factor`` when those are rounded to doubles to compare them.

    The first result is the greatest integer whose rounded quotient is not above the constant, the second the least
    whose is not below it; where several integers round to the constant, the second is below the first.
    """
    if value != value or value == float("inf"):
        return 2**130, 2**131
    if value == float("-inf"):
        return -(2**131), -(2**130)
    near = int(Fraction(value) * factor)
    if abs(near) > 2**130:
        return near, near + 1
    reach = max(2, abs(near) // 2**50)
    floor = _last(near - reach, near + reach, lambda number: float(Fraction(number, factor)) <= value)
    return floor, _last(near - reach, near + reach, lambda number: float(Fraction(number, factor)) < value) + 1


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last integer of the range for which a monotone condition holds (it holds for the first)."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _is_whole(value: float | Decimal) -> bool:
    """Return whether a number has no fraction; a decimal far beyond 64 bits is not looked at more closely."""
    if isinstance(value, float):
        return value.is_integer()
    return value.is_finite() and value.adjusted() < 20 and value == value.to_integral_value()


def _is_exactly(double: float, given: int | Decimal) -> bool:
    """Return whether a double is the number it was made of; NaN and infinities are."""
    if isinstance(given, int):
        return int(double) == given
    return not given.is_finite() or Decimal(double) == given


def each_code(values: pa.Array, code: Callable[[Any], int]) -> Codes:
    """Return the code of each value, that of each distinct one computed once as of a single value."""
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = np.empty(len(encoded.dictionary), np.int64)
    for position, value in enumerate(encoded.dictionary.to_pylist()):
        if value is None:
            codes[position] = NULL
            continue
        try:
            codes[position] = code(value)
        except ValueProblem as problem:
            row = pc.index(encoded.indices, position).as_py()
            if row >= 0:  # a dictionary may hold what no row has
                raise ValueProblem(problem.reason, row) from None
    return codes_of_all(codes, encoded.indices) if len(codes) else np.full(len(values), NULL)


def filled(values: pa.Array, missing: Any) -> npt.NDArray[Any]:
    """Return an Arrow array as a writable NumPy array, nulls replaced."""
    return numbers_of(pc.fill_null(values, missing) if values.null_count else values).copy()


def raised(values: pa.Array) -> Codes:
    """Return 64-bit integers as codes: the least, whose code NULL has taken, shares that of its neighbour."""
    codes: Codes = np.maximum(numbers_of(values), LOWEST)
    if values.null_count:
        codes[~are_valid(values)] = NULL
    return codes


def _shown(scalar: pa.Scalar) -> str:
    try:
        return brief(scalar.as_py())
    except (OverflowError, ValueError):  # a time outside Python's years
        return f"a {scalar.type}"


def cast(values: pa.Array, target: pa.DataType, complaint: str) -> pa.Array:
    """Return a safe cast, or name the first value that it would change."""
    if values.type == target:
        return values
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        for row in range(len(values)):
            try:
                values.slice(row, 1).cast(target)
            except pa.ArrowInvalid:
                raise ValueProblem(f"{_shown(values[row])} {complaint}", row) from None
        raise
