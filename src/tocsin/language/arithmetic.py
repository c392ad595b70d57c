"""Arithmetic, casts and comparisons of constants, with Spark's types: what can be computed before any event is seen."""

from __future__ import annotations

import math
import operator as python_operator
from collections.abc import Callable
from datetime import UTC
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tocsin.language import clock
from tocsin.language.literals import MAX_DIGITS
from tocsin.language.tree import Constant, Kind, Operand, Operator, Slot

if TYPE_CHECKING:
    from sqlglot import exp

_LONG = range(-(2**63), 2**63)
_NAN = math.nan
"""Every constant that is NaN is this one object, so that expressions which have it are equal."""
_NUMERIC = ("integer", "decimal", "double")
_EXACT = Context(prec=200)
_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": python_operator.eq,
    "<>": python_operator.ne,
    "<": python_operator.lt,
    "<=": python_operator.le,
    ">": python_operator.gt,
    ">=": python_operator.ge,
    "<=>": python_operator.eq,
}
_CASTS: dict[str, Kind] = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "DOUBLE": "double",
    "FLOAT": "double",
    "BIGINT": "integer",
    "INT": "integer",
    "SMALLINT": "integer",
    "TINYINT": "integer",
    "DECIMAL": "decimal",
    "TEXT": "string",
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
}


class NeedsValueError(Exception):
    """A template cannot be parsed without knowing the value of this slot. Internal: the template is parsed anew with
    it."""

    def __init__(self, slot: int) -> None:
        super().__init__(slot)
        self.slot = slot


def fold(sign: str, left: Constant, right: Constant, place: int) -> Constant:
    """Return the result of ``left sign right`` as Spark computes it.

    >>> fold("/", Constant(1, "integer"), Constant(4, "integer"), 0)
    Constant(value=0.25, kind='double', place=0)
    """
    if "null" in (left.kind, right.kind):
        return Constant(None, "null", place)
    if left.kind not in _NUMERIC or right.kind not in _NUMERIC:
        raise ValueError(f"arithmetic needs numbers, not {left.kind} and {right.kind}")
    if sign in ("/", "%", "div") and not right.value:
        raise ZeroDivisionError("division by zero")
    if left.kind == right.kind == "integer" and sign != "/":
        return Constant(within_long(_whole(sign, left.value, right.value)), "integer", place)
    if "double" in (left.kind, right.kind) or left.kind == right.kind == "integer":
        return _double(_floating(sign, float(left.value), float(right.value)), place)  # type: ignore[arg-type]
    with localcontext(_EXACT):
        return Constant(_decimal(sign, Decimal(left.value), Decimal(right.value)), "decimal", place)  # type: ignore[arg-type]


def cast(operand: Operand, target: exp.DataType, place: int) -> Operand:
    """Return a constant cast to the type named in the expression."""
    kind = _CASTS.get(target.this.value)
    if kind is None:
        raise ValueError(f"constants cannot be cast to {target.sql(dialect='spark')}")
    if isinstance(operand, Slot) and operand.kind == "string" and kind in ("date", "timestamp", "timestamp_ntz"):
        return Slot(operand.number, kind, place=place)
    if isinstance(operand, Slot):
        raise NeedsValueError(operand.number)
    value = operand.value
    if value is None:
        return Constant(None, "null", place)
    if kind in ("date", "timestamp", "timestamp_ntz", "string"):
        return Constant(str(value).lower() if isinstance(value, bool) else str(value), kind, place)
    try:
        if kind == "double":
            return _double(_rounded(float(value), target.this.value), place)
        if kind == "integer":
            number = Decimal(value)
            if number.is_finite() and number.adjusted() > MAX_DIGITS:  # the digits of 1e999999999 would take minutes
                raise OverflowError("the result is beyond 64 bits")
            return Constant(within_long(int(number)), kind, place)
        if kind == "decimal":
            return Constant(_scaled(Decimal(value), target), kind, place)
        return Constant({"true": True, "false": False}[str(value).strip().lower()], "boolean", place)
    except (ValueError, KeyError, InvalidOperation):
        raise ValueError(f"{value!r} cannot be cast to {target.sql(dialect='spark')}") from None


_TIMES = ("date", "timestamp", "timestamp_ntz")


def compare(operator: Operator, left: Operand, right: Operand) -> bool | None:
    """Return the truth of a comparison of two constants; None is unknown.

    >>> compare("<", Constant(1, "integer"), Constant(None, "null")) is None
    True
    """
    for side in (left, right):
        if isinstance(side, Slot):
            raise NeedsValueError(side.number)
    one, other = left.value, right.value  # type: ignore[union-attr]
    if one is None or other is None:
        return (one is None and other is None) if operator == "<=>" else None
    kinds = {left.kind, right.kind}
    if len(kinds) > 1 and not kinds <= set(_NUMERIC):
        one_kind, other_kind = (f"an {kind}" if kind == "integer" else f"a {kind}" for kind in (left.kind, right.kind))
        raise ValueError(f"{one_kind} cannot be compared with {other_kind}")
    if "double" in kinds:
        one, other = _ordered(float(one)), _ordered(float(other))
    elif left.kind in _TIMES:
        one, other = _times(left.kind, str(one), str(other))
    return _COMPARE[operator](one, other)


def _times(kind: str, one: str, other: str) -> tuple[int, int]:
    """Return two texts of days or moments as numbers that compare as they do."""
    if kind == "date":
        return clock.read_date(one), clock.read_date(other)
    if kind == "timestamp":
        zoned = clock.has_zone(one)
        if zoned != clock.has_zone(other):
            raise ValueError(f"of {one!r} and {other!r} only one has a zone; write it in both")
        if zoned:
            return clock.read_timestamp(one, UTC), clock.read_timestamp(other, UTC)
    return clock.read_wall_time(one, None), clock.read_wall_time(other, None)


def _ordered(value: float) -> tuple[bool, float]:
    """Return a key under which NaN equals itself and is above every number."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def _whole(sign: str, left: Any, right: Any) -> int:
    if sign in ("div", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return int(quotient if sign == "div" else left - right * quotient)
    return int({"+": left + right, "-": left - right, "*": left * right}[sign])


def _floating(sign: str, left: float, right: float) -> float:
    if sign == "%":
        return math.fmod(left, right)
    if sign == "div":
        raise ValueError("div takes integers")
    operation = {"+": python_operator.add, "-": python_operator.sub, "*": python_operator.mul}
    return float(operation.get(sign, python_operator.truediv)(left, right))


def _decimal(sign: str, left: Decimal, right: Decimal) -> Decimal:
    """Return the decimal that Spark's rules of precision and scale give."""
    if sign == "/":
        left_scale, right_scale = _scale(left), _scale(right)
        right_digits = max(len(right.as_tuple().digits), right_scale)
        left_digits = max(len(left.as_tuple().digits), left_scale)
        scale = max(6, left_scale + right_digits + 1)
        whole = left_digits - left_scale + right_scale
        if whole + scale > MAX_DIGITS:
            scale = max(MAX_DIGITS - whole, min(scale, 6))
        return _bounded((left / right).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP))
    if sign == "div":
        raise ValueError("div takes integers")
    operation: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "+": python_operator.add,
        "-": python_operator.sub,
        "*": python_operator.mul,
        "%": python_operator.mod,
    }
    return _bounded(operation[sign](left, right))


def _scale(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def _scaled(value: Decimal, target: exp.DataType) -> Decimal:
    sizes = [int(size.name) for size in target.expressions] or [10]
    precision, scale = (*sizes, 0)[:2]
    with localcontext(_EXACT):
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if len(rounded.as_tuple().digits) > precision:
        raise ValueError
    return rounded


def _bounded(value: Decimal) -> Decimal:
    if len(value.as_tuple().digits) > MAX_DIGITS:
        raise OverflowError(f"the result has more than {MAX_DIGITS} digits")
    return value


def within_long(value: int) -> int:
    """Return a whole number; OverflowError if 64 bits do not hold it."""
    if value not in _LONG:
        raise OverflowError("the result is beyond 64 bits")
    return value


def _double(value: float, place: int) -> Constant:
    return Constant(_NAN if value != value else value, "double", place)


def _rounded(value: float, target: str) -> float:
    return float(np.float32(value)) if target == "FLOAT" else value
