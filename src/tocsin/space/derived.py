"""Derived fields: formulas over other fields of the event, computed a column at a time.

What is NULL in a formula makes it NULL, and so does a division by zero. Integers that overflow are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import reduce

import pyarrow as pa

from tocsin import arrow as pc
from tocsin.language.formulas import Apply, Formula
from tocsin.language.tree import Constant, Field
from tocsin.space.codes import ValueProblem

Columns = Mapping[tuple[str, ...], pa.Array]


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


class _Computing:
    def __init__(self, columns: Columns, rows: int, timezone: str, now: datetime) -> None:
        self._columns, self._rows, self._zone, self._now = columns, rows, timezone, now

    def of(self, formula: Formula) -> pa.Array:
        """Return the column of a formula."""
        if isinstance(formula, Field):
            return self._columns[formula.path]
        if isinstance(formula, Constant):
            kind = {"string": pa.string(), "integer": pa.int64()}.get(formula.kind, pa.float64())
            return pa.repeat(pa.scalar(formula.value, kind), self._rows)
        return self._applied(formula)

    def _applied(self, formula: Apply) -> pa.Array:
        name = formula.function
        given = [self.of(each) for each in formula.arguments]
        if name == "now":
            return pa.repeat(pa.scalar(self._now, pa.timestamp("us", "UTC")), self._rows)
        if name == "current_date":
            local = pa.repeat(pa.scalar(self._now, pa.timestamp("us", "UTC")), self._rows)
            return self._local(local).cast(pa.date32())
        if name in ("year", "month", "day", "hour", "minute"):
            return getattr(pc, name)(self._local(given[0])).cast(pa.int64())
        if name == "datediff":
            days = [self._local(each).cast(pa.date32()).cast(pa.int32()).cast(pa.int64()) for each in given]
            return pc.subtract_checked(days[0], days[1])
        if name in _TEXT:
            return _TEXT[name](*(each.cast(pa.string()) for each in given))
        if name in ("+", "-", "*", "/", "%", "div"):
            return _arithmetic(name, _plain(given[0]), _plain(given[1]))
        return _REST[name](*map(_plain, given))

    def _local(self, moments: pa.Array) -> pa.Array:
        """Return moments by the wall clock of the space."""
        if pa.types.is_null(moments.type):
            return moments.cast(pa.timestamp("us"))
        if pa.types.is_timestamp(moments.type) and moments.type.tz:
            return pc.local_timestamp(moments.cast(pa.timestamp("us", self._zone)))
        return moments


def _plain(values: pa.Array) -> pa.Array:
    """Return numbers as 64 bits, whole or not; a decimal as a double."""
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    if pa.types.is_decimal(values.type) or pa.types.is_floating(values.type):
        return values.cast(pa.float64(), safe=False)
    return values.cast(pa.int64()) if pa.types.is_null(values.type) else values


def _arithmetic(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if sign in ("+", "-", "*"):
        return {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[sign](left, right)
    nonzero = pc.if_else(pc.not_equal(right, 0), right, pa.scalar(None, right.type))
    if sign == "/":
        return pc.divide(left.cast(pa.float64(), safe=False), nonzero.cast(pa.float64(), safe=False))
    quotient = pc.divide_checked(left, nonzero)
    if sign == "div":
        return quotient if pa.types.is_integer(quotient.type) else pc.trunc(quotient).cast(pa.int64())
    if not pa.types.is_integer(quotient.type):
        quotient = pc.trunc(quotient)
    return pc.subtract_checked(left, pc.multiply_checked(quotient, nonzero))


def _whole(function: Callable[[pa.Array], pa.Array], values: pa.Array) -> pa.Array:
    return values if pa.types.is_integer(values.type) else function(values).cast(pa.int64())


_TEXT: dict[str, Callable[..., pa.Array]] = {
    "length": lambda text: pc.utf8_length(text).cast(pa.int64()),
    "lower": lambda text: pc.utf8_lower(text),
    "upper": lambda text: pc.utf8_upper(text),
    "trim": lambda text: pc.utf8_trim(text, " "),
    "concat": lambda *texts: pc.binary_join_element_wise(*texts, ""),
}
_REST: dict[str, Callable[..., pa.Array]] = {
    "abs": lambda values: pc.abs_checked(values),
    "round": lambda values: (
        values if pa.types.is_integer(values.type) else pc.round(values, 0, "half_towards_infinity")
    ),
    "floor": lambda values: _whole(pc.floor, values),
    "ceil": lambda values: _whole(pc.ceil, values),
    "coalesce": lambda *values: pc.coalesce(*values),
    "least": lambda *values: reduce(lambda one, other: pc.min_element_wise(one, other, skip_nulls=True), values),
    "greatest": lambda *values: reduce(lambda one, other: pc.max_element_wise(one, other, skip_nulls=True), values),
}
