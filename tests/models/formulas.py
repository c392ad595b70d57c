"""Formulas of derived fields: Spark SQL on the left, the same in plain Python on the right."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from tests.models.kind import Misfit
from tests.models.numbers import LEAST, MOST


def whole(value: int) -> int:
    """Return a 64-bit integer; an overflow is an error."""
    if not LEAST <= value <= MOST:
        raise Misfit(value)
    return value


def truncated(one: int, other: int) -> int:
    """Return a quotient without its fraction, as SQL has it."""
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def remainder(one: int, other: int) -> int:
    return one - other * truncated(one, other)


def given(*values: Any) -> Any:
    """Return the first that is not NULL."""
    return next((value for value in values if value is not None), None)


def doubled_less(n: int | None, m: int | None) -> int | None:
    """Return 2 * n - m; its left side is computed, and may overflow, before its right is seen to be NULL."""
    left = None if n is None else whole(2 * n)
    return None if left is None or m is None else whole(left - m)


def there(values: tuple[Any, ...]) -> list[Any]:
    """Return those that are not NULL."""
    return [value for value in values if value is not None]


def rounded(value: float) -> float:
    if not math.isfinite(value):
        return value
    return float(Decimal(repr(value)).quantize(Decimal(1), ROUND_HALF_UP, Context(prec=400)))


def division(one: float, other: float) -> float | None:
    return None if other == 0 else float(one) / float(other)


Formula = tuple[list[str], Callable[..., Any], list[Any]]

STRICT: dict[str, Formula] = {
    "n + 1": (["n"], lambda n: whole(n + 1), ["int64"]),
    "n % 3": (["n"], lambda n: remainder(n, 3), ["int64"]),
    "n % m": (["n", "m"], lambda n, m: None if m == 0 else remainder(n, m), ["int64"]),
    "n div m": (["n", "m"], lambda n, m: None if m == 0 else whole(truncated(n, m)), ["int64"]),
    "n / m": (["n", "m"], division, ["double"]),
    "abs(n)": (["n"], lambda n: whole(abs(n)), ["int64"]),
    "d * 2": (["d"], lambda d: d * 2, ["double"]),
    "d / 4": (["d"], lambda d: d / 4, ["double"]),
    "d + n": (["d", "n"], lambda d, n: d + float(n), ["double"]),
    "round(d)": (["d"], rounded, ["double"]),
    "c + 1": (["c"], lambda c: c + 1, ["decimal", 12, 2]),
    "c * 2": (["c"], lambda c: c * 2, ["decimal", 12, 2]),
    "c - c": (["c"], lambda c: c - c, ["decimal", 12, 2]),
    "length(t)": (["t"], len, ["int64"]),
    "lower(t)": (["t"], str.lower, ["text", {}]),
    "upper(t)": (["t"], str.upper, ["text", {}]),
    "trim(t)": (["t"], lambda t: t.strip(" "), ["text", {}]),
    "concat(t, '-', u)": (["t", "u"], lambda t, u: f"{t}-{u}", ["text", {}]),
    "t || u": (["t", "u"], lambda t, u: t + u, ["text", {}]),
    "concat(t, n)": (["t", "n"], lambda t, n: f"{t}{n}", ["text", {}]),
    "concat(u, c)": (["u", "c"], lambda u, c: f"{u}{c:.2f}", ["text", {}]),
    "year(day)": (["day"], lambda day: day.year, ["int64"]),
    "month(day) + day(day)": (["day"], lambda day: day.month + day.day, ["int64"]),
    "datediff(day, '2020-01-01')": (["day"], lambda day: day.toordinal() - 737425, ["int64"]),
    "year(now()) - n": (["n"], lambda n: whole(datetime.now(UTC).year - n), ["int64"]),
}
"""Formulas that are NULL where one of their fields is."""

LENIENT: dict[str, Formula] = {
    "2 * n - m": (["n", "m"], doubled_less, ["int64"]),
    "coalesce(n, m, 0)": (["n", "m"], lambda n, m: given(n, m, 0), ["int64"]),
    "coalesce(t, 'none')": (["t"], lambda t: given(t, "none"), ["text", {}]),
    "least(n, m)": (
        ["n", "m"],
        lambda *both: min((each for each in both if each is not None), default=None),
        ["int64"],
    ),
    "greatest(n, m, 3)": (
        ["n", "m"],
        lambda *both: max([*there(both), 3]),
        ["int64"],
    ),
}
"""Formulas that see NULLs for themselves."""


def fields_of(formula: str) -> list[str]:
    """Return the fields that a formula reads."""
    return (STRICT | LENIENT)[formula][0]


def computed(formula: str, values: dict[str, Any]) -> Any:
    """Return what a formula comes to for the values of its fields; None is NULL."""
    fields, function, _ = (STRICT | LENIENT)[formula]
    arguments = [values.get(field) for field in fields]
    if formula in STRICT and any(each is None for each in arguments):
        return None
    return function(*arguments)
