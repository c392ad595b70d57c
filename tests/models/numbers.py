"""Numbers: 64-bit integers, doubles with NaN above all, and decimals; compared exactly, or as doubles beside one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

import tocsin
from tests.models.kind import Kind, Misfit, order

LEAST, MOST = -(2**63), 2**63 - 1
WIDE = Context(prec=100)
"""Arithmetic of decimals in which nothing that a dimension holds is rounded."""


def double_order(one: float, other: float) -> int:
    """Return the order of two doubles: NaN equals itself and is above every number, and the zeros are equal."""
    return order((one != one, 0.0 if one != one else one), (other != other, 0.0 if other != other else other))


def to_double(number: Any) -> float:
    """Return the nearest double to a number of any type; beyond the doubles an infinity."""
    if isinstance(number, float):
        return number
    try:
        return float(Fraction(number))
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def number_order(one: Any, other: Any) -> int:
    """Return the order of two numbers as Spark compares them: as doubles if one is, else exactly."""
    if isinstance(one, float) or isinstance(other, float):
        return double_order(to_double(one), to_double(other))
    return order(Fraction(one), Fraction(other))


def up(value: float) -> float:
    return math.nextafter(value, math.inf)


def down(value: float) -> float:
    return math.nextafter(value, -math.inf)


def edges(constant: Any) -> Iterator[Fraction]:
    """Yield the finite numbers at which a comparison with a constant may turn, for a type that is compared exactly.

    With a double these are the middles between it and its neighbours, at which the other side's double changes.
    """
    if not isinstance(constant, float):
        yield Fraction(constant)
        return
    if math.isnan(constant):
        return
    largest = Fraction(1.7976931348623157e308)
    for near in (down(constant), constant, up(constant)):
        if math.isfinite(near):
            yield Fraction(near)
    for one, other in ((down(constant), constant), (constant, up(constant))):
        if math.isfinite(one) and math.isfinite(other):
            yield (Fraction(one) + Fraction(other)) / 2
    if math.isinf(constant):
        yield largest if constant > 0 else -largest


class Whole(Kind):
    """64-bit integers."""

    name = "int64"

    def declare(self) -> Any:
        return tocsin.Number("int64")

    def read(self, given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, (int, float, Decimal)):
            raise Misfit(given)
        if not (math.isfinite(given) and given == int(given) and LEAST <= int(given) <= MOST):
            raise Misfit(given)
        return int(given)

    def constant(self, given: Any) -> Any:
        return given

    def compare(self, value: Any, constant: Any) -> int:
        return number_order(value, constant)

    def near(self, constant: Any) -> Iterator[int]:
        for edge in edges(constant):
            for value in (math.floor(edge) - 1, math.floor(edge), math.ceil(edge), math.ceil(edge) + 1):
                if LEAST <= value <= MOST:
                    yield value

    def ends(self) -> Iterable[int]:
        return (LEAST, LEAST + 1, 0, MOST - 1, MOST)

    def arrow(self) -> list[Any]:
        return [pa.int64(), pa.decimal128(19, 0)]


class Double(Kind):
    """Doubles, with NaN above all."""

    name = "double"

    def declare(self) -> Any:
        return tocsin.Number()

    def read(self, given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise Misfit(given)
        value = to_double(given)
        if isinstance(given, int) and (math.isinf(value) or Fraction(value) != given):
            raise Misfit(given)
        return value + 0.0  # both zeros are one value

    def constant(self, given: Any) -> Any:
        return to_double(given)

    def compare(self, value: Any, constant: Any) -> int:
        return double_order(value, constant)

    def near(self, constant: Any) -> Iterable[float]:
        value = to_double(constant)
        return [math.nan, math.inf] if math.isnan(value) else [down(value), value + 0.0, up(value)]

    def ends(self) -> Iterable[float]:
        return (-math.inf, down(math.inf), -down(math.inf), 0.0, math.inf, math.nan)

    def arrow(self) -> list[Any]:
        return [pa.float64()]


class Long(Kind):
    """Decimals of so many digits, some of them after the point."""

    def __init__(self, digits: int, scale: int) -> None:
        self.digits, self.scale = digits, scale
        self.name = f"decimal({digits}, {scale})"
        self.most = 10**digits - 1

    def declare(self) -> Any:
        return tocsin.Number(self.name)

    def of(self, units: int) -> Decimal:
        """Return a number of the least steps as a decimal."""
        return Decimal(units).scaleb(-self.scale, WIDE)

    def read(self, given: Any) -> Decimal:
        if isinstance(given, float):
            if not math.isfinite(given):
                raise Misfit(given)
            given = Decimal(repr(given))
        if isinstance(given, bool) or not isinstance(given, (int, Decimal)) or not Decimal(given).is_finite():
            raise Misfit(given)
        steps = Fraction(given) * 10**self.scale
        if steps.denominator != 1 or abs(steps.numerator) > self.most:
            raise Misfit(given)
        return self.of(steps.numerator)

    def constant(self, given: Any) -> Any:
        return given

    def compare(self, value: Any, constant: Any) -> int:
        return number_order(value, constant)

    def near(self, constant: Any) -> Iterator[Decimal]:
        for edge in edges(constant):
            steps = edge * 10**self.scale
            for value in (math.floor(steps) - 1, math.floor(steps), math.ceil(steps), math.ceil(steps) + 1):
                if abs(value) <= self.most:
                    yield self.of(value)

    def ends(self) -> Iterable[Decimal]:
        return [self.of(steps) for steps in (-self.most, -self.most + 1, 0, self.most - 1, self.most)]

    def arrow(self) -> list[Any]:
        return [pa.decimal128(self.digits, self.scale)]
