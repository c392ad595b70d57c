"""Arithmetic of decimals as Spark SQL does it: the digits of each result, and rounding to them, half away from zero."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from typing import Any

import pyarrow as pa

from tocsin.space.codes import ValueProblem, scaled

MOST_DIGITS = 38
_LEAST_SCALE = 6
_EXACT = Context(prec=100)

_WHOLE = {pa.int32(): 10, pa.int64(): 20}


def decimal_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the digits of a number as a decimal, and how many are behind the point."""
    return (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (_WHOLE[kind], 0)


def result_type(sign: str, left: tuple[int, int], right: tuple[int, int]) -> pa.DataType:
    """Return the type of a sum, difference, product, quotient or remainder of decimals.

    >>> result_type("*", (3, 1), (3, 2)), result_type("/", (38, 10), (38, 10))
    (Decimal128Type(decimal128(7, 3)), Decimal128Type(decimal128(38, 6)))
    """
    (precision, scale), (other_precision, other_scale) = left, right
    whole, other_whole = precision - scale, other_precision - other_scale
    if sign == "*":
        return _bounded(precision + other_precision + 1, scale + other_scale)
    if sign == "/":
        digits = max(_LEAST_SCALE, scale + other_precision + 1)
        return _bounded(whole + other_scale + digits, digits)
    digits = max(scale, other_scale)
    if sign == "%":
        return _bounded(min(whole, other_whole) + digits, digits)
    return _bounded(max(whole, other_whole) + digits + 1, digits)


def wider_type(kinds: list[pa.DataType]) -> pa.DataType:
    """Return the type that holds all of some decimals and whole numbers; digits behind the point give way.

    >>> wider_type([pa.int32(), pa.decimal128(2, 1)])
    Decimal128Type(decimal128(11, 1))
    """
    found = [decimal_of(kind) for kind in kinds]
    whole, scale = max(precision - scale for precision, scale in found), max(scale for _, scale in found)
    if whole + scale <= MOST_DIGITS:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal128(MOST_DIGITS, max(0, MOST_DIGITS - whole))


def computed(sign: str, left: pa.Array, right: pa.Array, types: list[tuple[int, int]]) -> pa.Array:
    """Return what a sign makes of decimals and whole numbers, row by row; ``div`` gives whole numbers.

    >>> one, other = pa.array(["5.0"]).cast(pa.decimal128(2, 1)), pa.array([3], pa.int32())
    >>> computed("/", one, other, [(2, 1), (1, 0)]).to_pylist()
    [Decimal('1.666667')]
    """
    scale, other_scale = types[0][1], types[1][1]
    if sign == "div":
        target, function = pa.int64(), _divided(scale, other_scale)
    else:
        target = result_type(sign, *types)
        function = _FUNCTIONS[sign](scale, other_scale, target.scale)
    found: list[Any] = []
    pairs = zip(unscaled(left, scale), unscaled(right, other_scale), strict=True)
    for row, (one, other) in enumerate(pairs):
        result = None if one is None or other is None else function(one, other)
        found.append(_fitting(result, target, row))
    return pa.array(found, target)


def rescaled(values: pa.Array, target: pa.DataType, round_to: Callable[[int, int], int]) -> pa.Array:
    """Return decimals with fewer digits behind the point, rounded by a function of the number and what divides it."""
    scale = decimal_of(values.type)[1]
    found = []
    for row, value in enumerate(unscaled(values, scale)):
        if value is not None:
            shift = target.scale - scale
            value = value * 10**shift if shift >= 0 else round_to(value, 10**-shift)
        found.append(_fitting(value, target, row))
    return pa.array(found, target)


def half_up(value: int, divisor: int) -> int:
    """Return a quotient rounded to the nearest whole number, half away from zero.

    >>> half_up(5, 2), half_up(-5, 2), half_up(7, 3)
    (3, -3, 2)
    """
    quotient = (2 * abs(value) + abs(divisor)) // (2 * abs(divisor))
    return quotient if (value < 0) == (divisor < 0) else -quotient


def unscaled(values: pa.Array, scale: int) -> list[int | None]:
    """Return decimals or whole numbers without their point."""
    if not pa.types.is_decimal(values.type):
        return [None if value is None else value * 10**scale for value in values.to_pylist()]
    return [None if value is None else int(value.scaleb(scale, _EXACT)) for value in values.to_pylist()]


def _fitting(value: int | None, target: pa.DataType, row: int) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(target):
        if abs(value) >= 10**target.precision:
            raise ValueProblem(f"the formula comes to more than {target.precision} digits", row)
        return scaled(value, target.scale)
    if not -(2**63) <= value < 2**63:
        raise ValueProblem("the formula comes to a number beyond 64 bits", row)
    return value


def _bounded(precision: int, scale: int) -> pa.DataType:
    """Return a type of at most 38 digits: those behind the point give way, down to six."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE)))


def _shifted(value: int, shift: int) -> int:
    return value * 10**shift if shift >= 0 else half_up(value, 10**-shift)


def _sum(scale: int, other_scale: int, target: int) -> Callable[[int, int], int | None]:
    most = max(scale, other_scale)
    left, right = 10 ** (most - scale), 10 ** (most - other_scale)
    return lambda one, other: _shifted(one * left + other * right, target - most)


def _difference(scale: int, other_scale: int, target: int) -> Callable[[int, int], int | None]:
    add = _sum(scale, other_scale, target)
    return lambda one, other: add(one, -other)


def _product(scale: int, other_scale: int, target: int) -> Callable[[int, int], int | None]:
    return lambda one, other: _shifted(one * other, target - scale - other_scale)


def _quotient(scale: int, other_scale: int, target: int) -> Callable[[int, int], int | None]:
    shift = target - scale + other_scale
    top, bottom = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    return lambda one, other: half_up(one * top, other * bottom) if other else None


def _remainder(scale: int, other_scale: int, target: int) -> Callable[[int, int], int | None]:
    most = max(scale, other_scale)
    left, right = 10 ** (most - scale), 10 ** (most - other_scale)

    def remainder(one: int, other: int) -> int | None:
        if not other:
            return None
        found = abs(one * left) % abs(other * right)
        return _shifted(found if one >= 0 else -found, target - most)

    return remainder


def _divided(scale: int, other_scale: int) -> Callable[[int, int], int | None]:
    most = max(scale, other_scale)
    left, right = int(10 ** (most - scale)), int(10 ** (most - other_scale))

    def divided(one: int, other: int) -> int | None:
        if not other:
            return None
        found = abs(one * left) // abs(other * right)
        return found if (one < 0) == (other < 0) else -found

    return divided


_FUNCTIONS = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "%": _remainder}
