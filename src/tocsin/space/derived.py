"""Derived fields: formulas over other fields of the event, computed a column at a time as Spark SQL does.

Columns have the types of their dimensions, and results those of Spark: whole numbers of 32 and 64 bits, decimals of
their digits, doubles. What is NULL in a formula makes it NULL, and so does a division by zero. A result that does not
fit its type is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import reduce
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.language import clock
from tocsin.language.arrays import numbers_of
from tocsin.language.formulas import Apply, Formula
from tocsin.language.tree import Constant, Field
from tocsin.space.codes import ValueProblem
from tocsin.space.decimals import computed, decimal_of, half_up, rescaled, wider_type
from tocsin.space.listed import derive
from tocsin.space.scalars import is_text
from tocsin.space.written import text_of

Columns = Mapping[tuple[str, ...], pa.Array]

_DAY = clock.MICROSECONDS_A_DAY
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


class TypeProblem(Exception):  # noqa: N818 - carried to the caller, who knows the field
    """A formula applies a function to what it does not take."""


def compute(formula: Formula, columns: Columns, rows: int, timezone: str) -> pa.Array:
    """Return what a formula comes to in each row; ValueProblem names a row where it cannot be computed.

    >>> from tocsin.language.formulas import parse_formula
    >>> columns = {("a",): pa.array([7, None, 5]), ("b",): pa.array([2, 2, 0])}
    >>> compute(parse_formula("a div b + 1"), columns, 3, "UTC").to_pylist()
    [4, None, None]
    """
    now = datetime.now(UTC)
    try:
        return _Computing(columns, rows, timezone, now).of(formula)
    except pa.ArrowException as error:
        for row in range(rows):
            one = {path: column.slice(row, 1) for path, column in columns.items()}
            try:
                _Computing(one, 1, timezone, now).of(formula)
            except pa.ArrowException as problem:
                raise ValueProblem(f"the formula cannot be computed: {problem}", row) from None
        raise ValueProblem(f"the formula cannot be computed: {error}") from None


def as_declared(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return what a formula came to as the type of its field has it: as a double, the nearest one.

    Anything else is left to the codes of the field, which refuse what does not fit.
    """
    if pa.types.is_floating(target) and (pa.types.is_decimal(values.type) or pa.types.is_integer(values.type)):
        return _doubles(values)
    return values


class _Computing:
    def __init__(self, columns: Columns, rows: int, timezone: str, now: datetime) -> None:
        self._columns, self._rows, self._zone, self._now = columns, rows, timezone, now

    def of(self, formula: Formula) -> pa.Array:
        """Return the column of a formula."""
        if isinstance(formula, Field):
            return self._columns[formula.path]
        if isinstance(formula, Constant):
            return pa.repeat(constant(formula), self._rows)
        return self._applied(formula)

    def _applied(self, formula: Apply) -> pa.Array:
        name = formula.function
        given = [self.of(each) for each in formula.arguments]
        if name in ("now", "current_date"):
            moments = pa.repeat(pa.scalar(self._now, pa.timestamp("us", "UTC")), self._rows)
            return moments if name == "now" else self._local(moments, name).cast(pa.date32())
        if name in ("year", "month", "day", "hour", "minute"):
            return getattr(pc, name)(self._local(given[0], name)).cast(pa.int32())
        if name == "datediff":
            days = [self._local(each, name).cast(pa.date32()).cast(pa.int32()) for each in given]
            return pc.subtract_checked(days[0], days[1])
        if name in _TEXT:
            return _TEXT[name](*(text_of(each, self._zone) for each in given))
        if name in ("+", "-", "*", "/", "%", "div"):
            return _arithmetic(name, given, formula)
        if name in _NUMBER:
            return _NUMBER[name](_number(given[0], name))
        return _CHOICE[name](*_of_one_type(given, name))

    def _local(self, moments: pa.Array, name: str) -> pa.Array:
        """Return moments by the wall clock of the space; a text is read as one, a date is its first moment."""
        kind = moments.type
        if pa.types.is_null(kind):
            return moments.cast(pa.timestamp("us"))
        if is_text(kind):
            return self._read(moments, days=name not in ("hour", "minute"))
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise TypeProblem(f"{name} takes a time, not {kind}")
        if pa.types.is_timestamp(kind) and kind.tz:
            return pc.local_timestamp(moments.cast(pa.timestamp("us", self._zone)))
        return moments.cast(pa.timestamp("us"))

    def _read(self, texts: pa.Array, *, days: bool) -> pa.Array:
        """Return texts as moments by the wall clock, or as days: of those a zone is not looked at."""
        zone, found = ZoneInfo(self._zone), []
        for row, text in enumerate(texts.to_pylist()):
            try:
                if text is not None:
                    text = clock.read_date(text) * _DAY if days else clock.read_timestamp(text, zone)
                found.append(text)
            except (ValueError, OverflowError, KeyError) as error:
                raise ValueProblem(str(error), row) from None
        moments = pa.array(found, pa.int64())
        return (
            moments.cast(pa.timestamp("us")) if days else self._local(moments.cast(pa.timestamp("us", "UTC")), "hour")
        )


def constant(given: Constant) -> pa.Scalar:
    """Return a constant in the type that Spark gives it.

    >>> constant(Constant(1, "integer")).type, constant(Constant(2**40, "integer")).type
    (DataType(int32), DataType(int64))
    """
    value = given.value
    if given.kind == "integer" and isinstance(value, int):
        if value in _INT64:
            return pa.scalar(value, pa.int32() if value in _INT32 else pa.int64())
        return pa.scalar(value, pa.decimal128(len(str(abs(value))), 0))
    if given.kind == "decimal":
        _, digits, exponent = value.as_tuple()  # type: ignore[union-attr]
        scale = -int(exponent)
        return pa.scalar(value, pa.decimal128(max(len(digits), scale, 1), scale))
    kinds = {"string": pa.string(), "boolean": pa.bool_(), "double": pa.float64()}
    return pa.scalar(value, kinds.get(given.kind, pa.null()))


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.array(values.is_valid())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _number(values: pa.Array, name: str) -> pa.Array:
    if pa.types.is_null(values.type):
        return values.cast(pa.int32())
    if not _is_number(values.type):
        raise TypeProblem(f"{name} takes numbers, not {values.type}")
    return values


def _doubles(values: pa.Array) -> pa.Array:
    """Return numbers as the nearest doubles."""
    if pa.types.is_decimal(values.type):
        found = [None if value is None else float(value) for value in values.to_pylist()]
        return pa.array(found, pa.float64())
    return values.cast(pa.float64(), safe=False)


def _arithmetic(sign: str, given: list[pa.Array], formula: Apply) -> pa.Array:
    left, right = (_number(each, sign) for each in given)
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        if sign == "div":
            raise TypeProblem("div takes whole numbers and decimals, not doubles")
        return _of_doubles(sign, _doubles(left), _doubles(right))
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        types = [_digits(each, of) for each, of in zip((left, right), formula.arguments, strict=True)]
        return computed(sign, left, right, types)
    if sign == "/":
        return _of_doubles(sign, _doubles(left), _doubles(right))
    if sign in _CHECKED:
        return _CHECKED[sign](left, right)
    if sign == "div":
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
        return pc.divide_checked(left, _nonzero(right))
    kind = pa.int64() if pa.int64() in (left.type, right.type) else pa.int32()
    return _remainders(left.cast(kind), _nonzero(right.cast(kind)))


def _digits(values: pa.Array, formula: Formula) -> tuple[int, int]:
    """Return the digits of an operand beside a decimal: of a whole constant, those it has."""
    if isinstance(formula, Constant) and isinstance(formula.value, int) and not pa.types.is_decimal(values.type):
        return len(str(abs(formula.value))), 0
    return decimal_of(values.type)


_CHECKED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": lambda one, other: pc.add_checked(one, other),
    "-": lambda one, other: pc.subtract_checked(one, other),
    "*": lambda one, other: pc.multiply_checked(one, other),
}


def _of_doubles(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if sign in _CHECKED:
        return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[sign](left, right)
    return pc.divide(left, _nonzero(right)) if sign == "/" else _remainders(left, _nonzero(right))


def _nonzero(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.not_equal(values, pa.scalar(0, values.type)), values, pa.scalar(None, values.type))


def _remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return remainders with the sign of what was divided."""
    valid = _valid(left) & _valid(right)
    divisors = numbers_of(right)
    with np.errstate(all="ignore"):
        found = np.fmod(numbers_of(left), np.where(valid, divisors, divisors.dtype.type(1)))
    return pa.array(found, left.type, mask=~valid)


def _rounded(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        return _to_whole(values, half_up)
    if pa.types.is_integer(values.type):
        return values
    plain = np.where(_valid(values), numbers_of(values), 0.0)
    with np.errstate(all="ignore"):
        whole = np.trunc(plain)
        found = np.where(np.abs(plain - whole) >= 0.5, whole + np.sign(plain), whole) + 0.0
    return pa.array(found, mask=~_valid(values))


def _to_whole(values: pa.Array, round_to: Callable[[int, int], int]) -> pa.Array:
    precision, scale = decimal_of(values.type)
    return rescaled(values, pa.decimal128(min(38, precision - scale + 1), 0), round_to) if scale else values


def _bound(values: pa.Array, towards: Callable[[pa.Array], pa.Array], round_to: Callable[[int, int], int]) -> pa.Array:
    """Return the whole numbers at or below, or at or above; that of NaN is 0, as in Spark."""
    if pa.types.is_decimal(values.type):
        return _to_whole(values, round_to)
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    return pc.if_else(pc.is_nan(values), pa.scalar(0.0), towards(values)).cast(pa.int64())


def _negated(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        return pa.array([None if each is None else each.copy_negate() for each in values.to_pylist()], values.type)
    return pc.negate_checked(values) if pa.types.is_integer(values.type) else pc.negate(values)


def _of_one_type(given: list[pa.Array], name: str) -> list[pa.Array]:
    """Return columns in the one type that holds them all."""
    kinds = list(dict.fromkeys(each.type for each in given if not pa.types.is_null(each.type)))
    if all(is_text(kind) for kind in kinds):
        return [each.cast(pa.string()) for each in given]
    if len(kinds) == 1:
        return [each.cast(kinds[0]) for each in given]
    if not all(_is_number(kind) for kind in kinds):
        raise TypeProblem(f"{name} takes values of one type, not {' and '.join(map(str, kinds))}")
    if any(pa.types.is_floating(kind) for kind in kinds):
        return [pa.nulls(len(each), pa.float64()) if pa.types.is_null(each.type) else _doubles(each) for each in given]
    if all(pa.types.is_integer(kind) for kind in kinds):
        return [each.cast(pa.int64()) for each in given]
    target = wider_type(kinds)
    return [each.cast(target) if pa.types.is_null(each.type) else rescaled(each, target, half_up) for each in given]


def _chosen(given: tuple[pa.Array, ...], before: Callable[[pa.Array, pa.Array], pa.Array], nan_last: bool) -> pa.Array:
    """Return the least or greatest that is not NULL, the first of equal ones; NaN is above all."""

    def better(one: pa.Array, other: pa.Array) -> pa.Array:
        wanted = before(other, one)
        if pa.types.is_floating(one.type):
            nans = pc.is_nan(one), pc.is_nan(other)
            first, second = nans if nan_last else nans[::-1]
            wanted = pc.or_(wanted, pc.and_(first, pc.invert(second)))
        wanted = pc.or_(pc.fill_null(wanted, False), pc.and_(pc.is_null(one), pc.is_valid(other)))
        return pc.if_else(wanted, other, one)

    return reduce(better, given)


_TEXT: dict[str, Callable[..., pa.Array]] = {
    "length": lambda text: pc.utf8_length(text).cast(pa.int32()),
    "lower": lambda text: _recased(text, "lower"),
    "upper": lambda text: _recased(text, "upper"),
    "trim": lambda text: pc.utf8_trim(text, " "),
    "concat": lambda *texts: pc.binary_join_element_wise(*texts, ""),
}
_NUMBER: dict[str, Callable[[pa.Array], pa.Array]] = {
    "negate": _negated,
    "abs": lambda values: pc.abs_checked(values),
    "round": _rounded,
    "floor": lambda values: _bound(values, pc.floor, lambda value, by: value // by),
    "ceil": lambda values: _bound(values, pc.ceil, lambda value, by: -(-value // by)),
}
_CHOICE: dict[str, Callable[..., pa.Array]] = {
    "coalesce": lambda *values: pc.coalesce(*values),
    "least": lambda *values: _chosen(values, pc.less, True),
    "greatest": lambda *values: _chosen(values, pc.greater, False),
}


def _recased(texts: pa.Array, step: str) -> pa.Array:
    """Return texts in another case, as axes of that case have them."""
    if not texts.null_count:
        return derive(texts, step).cast(pa.string())  # type: ignore[arg-type]
    changed = derive(texts.drop_null(), step).cast(pa.string())  # type: ignore[arg-type]
    valid = _valid(texts)
    return changed.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
