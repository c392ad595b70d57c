"""Units and rates as plain dictionaries of fractions, and the numbers that are measured in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import tocsin
from tests.models.kind import Kind, Misfit
from tests.models.numbers import LEAST, MOST, Double, Long, Whole, to_double

UNITS: dict[str, tuple[str, Fraction, Fraction]] = {
    name: (what, Fraction(factor), Fraction(offset))
    for what, table in {
        "data": {
            "B": (1, 0),
            "kB": (10**3, 0),
            "MB": (10**6, 0),
            "GB": (10**9, 0),
            "TB": (10**12, 0),
            "KiB": (1024, 0),
        },
        "length": {"m": (1, 0), "km": (1000, 0), "cm": ("1/100", 0), "mm": ("1/1000", 0), "foot": ("0.3048", 0)},
        "mass": {"kg": (1, 0), "g": ("1/1000", 0), "t": (1000, 0), "lb": ("0.45359237", 0)},
        "time": {"s": (1, 0), "min": (60, 0), "hour": (3600, 0), "day": (86400, 0)},
        "heat": {"kelvin": (1, 0), "degC": (1, "273.15"), "degF": ("5/9", "45967/180")},
    }.items()
    for name, (factor, offset) in table.items()
}
"""What a unit measures, and the factor and offset that make its values those of the first unit of its kind."""

SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}


class Money:
    """Rates of currencies into a base, each from a day on."""

    def __init__(self, base: str, rows: Iterable[list[str]], names: dict[str, str]) -> None:
        self.base, self.rows, self.names = base, [list(row) for row in rows], dict(names)

    def declare(self) -> Any:
        rows = [tuple(row) for row in self.rows]
        return tocsin.Units(rates=tocsin.Rates(self.base, rows) if rows else None, names=self.names or None)

    def rate(self, currency: str, day: date | None) -> Fraction:
        """Return what one of a currency is worth in the base on a day, or by its latest rate."""
        if currency == self.base:
            return Fraction(1)
        found = [row for row in self.rows if row[0] == currency]
        if day is not None:
            found = [row for row in found if len(row) < 3 or date.fromisoformat(row[2]) <= day]
        if not found:
            raise Misfit(f"no rate of {currency}")
        return Fraction(max(found, key=lambda row: row[2] if len(row) > 2 else "")[1])

    def resolved(self, unit: str) -> str:
        unit = self.names.get(unit, unit)
        return SIGNS.get(unit, unit)

    def is_money(self, unit: str) -> bool:
        return unit == self.base or any(row[0] == unit for row in self.rows)

    def converted(self, value: Fraction, unit: str, target: str, day: date | None) -> Fraction:
        """Return a value in another unit."""
        unit, target = self.resolved(unit), self.resolved(target)
        if unit == target:
            return value
        if self.is_money(unit) and self.is_money(target):
            return value * self.rate(unit, day) / self.rate(target, day)
        if unit not in UNITS or target not in UNITS or UNITS[unit][0] != UNITS[target][0]:
            raise Misfit(f"{unit} is not {target}")
        _, factor, offset = UNITS[unit]
        _, below, lift = UNITS[target]
        return (value * factor + offset - lift) / below


class Measured(Kind):
    """Numbers in a unit, which take quantities in others: ``("quantity", text)`` in a subscription."""

    def __init__(self, base: Whole | Double | Long, unit: str, money: Money, beside: dict[str, str]) -> None:
        self.base, self.unit, self.money, self.beside = base, unit, money, beside
        self.name = f"{base.name} in {unit}"

    def declare(self) -> Any:
        return tocsin.Number(self.base.name, unit=self.unit, **self.beside)

    def fitted(self, value: Fraction, applied: bool) -> Any:
        """Return the value that the dimension holds of an exact one."""
        match self.base:
            case Double():
                return to_double(value) + 0.0
            case Whole():
                if value.denominator != 1 or not LEAST <= value.numerator <= MOST:
                    raise Misfit(value)
                return value.numerator
        steps = value * 10**self.base.scale
        if applied:
            steps = Fraction(round(steps))  # Python rounds half to even
        if steps.denominator != 1 or abs(steps.numerator) > self.base.most:
            raise Misfit(value)
        return self.base.of(steps.numerator)

    def measured(self, given: Any, unit: str | None, day: date | None) -> Any:
        """Return the value of something given, which may be a text or a mapping that says its unit."""
        if isinstance(given, str):
            number, unit = split(given)
        elif isinstance(given, dict):
            number = given.get("value", given.get("amount"))
            unit = given.get("unit", given.get("units", given.get("currency")))
            if number is None:
                return None
        else:
            number = given
        if unit is None or self.money.resolved(unit) == self.money.resolved(self.unit):
            return self.base.read(number) if not isinstance(number, Decimal) else self.exact(number)
        if isinstance(number, float) and not math.isfinite(number):
            self.money.converted(Fraction(1), unit, self.unit, day)
            return self.base.read(number)
        exact = (
            Fraction(repr(number)) if isinstance(number, float) and isinstance(self.base, Long) else Fraction(number)
        )
        return self.fitted(self.money.converted(exact, unit, self.unit, day), True)

    def exact(self, number: Decimal) -> Any:
        return self.fitted(Fraction(number), False)

    def read(self, given: Any) -> Any:
        return self.measured(given, None, None)

    def constant(self, given: Any) -> Any:
        if isinstance(given, tuple):
            number, unit = split(given[1])
            exact = self.money.converted(Fraction(number), unit, self.unit, None)
            if isinstance(self.base, Double):
                return to_double(exact)
            if isinstance(self.base, Long) and self.money.resolved(unit) != self.money.resolved(self.unit):
                return Fraction(round(exact * 10**self.base.scale), 10**self.base.scale)
            return exact  # compared as what it is: no whole number equals a half, no decimal one beyond its digits
        return self.base.constant(given)

    def compare(self, value: Any, constant: Any) -> int:
        return self.base.compare(value, constant)

    def near(self, constant: Any) -> Iterator[Any]:
        yield from self.base.near(constant)

    def sql(self, constant: Any) -> str:
        return f"quantity('{constant[1]}')" if isinstance(constant, tuple) else super().sql(constant)

    def arrow(self) -> list[Any]:
        return self.base.arrow()


def split(text: str) -> tuple[Decimal, str]:
    """Return the number and the unit of a quantity such as ``2.5 TB`` or ``$450``."""
    if text[0] in SIGNS:
        return Decimal(text[1:]), text[0]
    number, unit = text.split(" ", 1)
    return Decimal(number), unit
