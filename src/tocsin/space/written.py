"""Values as Spark SQL writes them into texts."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa

from tocsin import arrow as pc
from tocsin.space.scalars import is_text


def text_of(values: pa.Array, timezone: str) -> pa.Array:
    """Return values as texts; a moment by the clock of a zone.

    >>> text_of(pa.array([1.0, 1e7, None]), "UTC").to_pylist(), text_of(pa.array([True]), "UTC").to_pylist()
    (['1.0', '1.0E7', None], ['true'])
    """
    kind = values.type
    if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.tz:
        values = pc.local_timestamp(values.cast(pa.timestamp("us", timezone)))
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
    return pa.array([None if value is None else _written(value) for value in values.to_pylist()], pa.string())


def _written(value: Any) -> str:
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, datetime):
        fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return f"{value.date().isoformat()} {value:%H:%M:%S}{fraction}"
    return value.isoformat() if isinstance(value, date) else f"{value:f}"


def _double(value: float) -> str:
    """Return a double as Java writes it.

    >>> [_double(each) for each in (100.0, 0.001, 1.5e-5, 12345678.9, -0.0, float("inf"))]
    ['100.0', '0.001', '1.5E-5', '1.23456789E7', '-0.0', 'Infinity']
    """
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    power = int(exponent or 0) + len(whole) - 1
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    digits, power = digits.lstrip("0").rstrip("0"), power - leading
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
