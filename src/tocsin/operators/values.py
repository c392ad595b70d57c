"""Values that operators return, in constraints: compared and computed as Spark does its constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np

from tocsin.language import arithmetic
from tocsin.language.tree import Arithmetic, Constant, Constraint, Field, Kind, Term, Variable

Fields = Callable[[Field], Any]
"""Gives the value of a field of the event."""


class _Unknown:
    """The value that a call that failed might have returned: equal to anything, comparable with nothing."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()

_NUMBERS = (int, float)
_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "double"),
    (Decimal, "decimal"),
    (str, "string"),
)


_EXACTLY: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
)
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


def plain(value: Any) -> Any:
    """Return a NumPy scalar, and what derives from a number or a text, as the Python value it is; else as it is.

    What derives from them may compare as it likes; what is compared are the numbers and texts themselves.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return value.item()
    for kind, exactly in _EXACTLY:
        if isinstance(value, kind):
            return exactly(value)
    return value


def shown(value: Any, most: int = 60, text: Callable[[Any], str] = repr) -> str:
    """Return a value as text for people, cut if it is long; its type if it cannot be shown.

    >>> shown("a" * 100, 10), shown(10**5000)
    ("'aaaaaa...", 'an int that cannot be shown')
    """
    try:
        found = str.__str__(text(value))
    except Exception:
        kind = type(value).__name__
        return f"a{'n' if kind[:1] in 'aeiouAEIOU' else ''} {kind} that cannot be shown"
    return found if len(found) <= most else f"{found[: most - 3]}..."


def constant_of(value: Any) -> Constant:
    """Return a value as a constant with its kind; ValueError if constraints know no such values.

    >>> constant_of(np.float32(0.5))
    Constant(value=0.5, kind='double', place=-1)
    """
    value = plain(value)
    found: Any = value
    if value is None:
        return Constant(None, "null")
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return Constant(found, name)
    raise ValueError(f"constraints compare numbers, texts and truths, not {type(value).__name__}")


def equal(one: Any, other: Any) -> bool | None:
    """Return whether two values are equal; None is unknown: a NULL, or values of types that are not compared.

    >>> equal(1, 1.0), equal(float("nan"), float("nan")), equal("1", 1), equal(None, None)
    (True, True, None, None)
    """
    if one is UNKNOWN or other is UNKNOWN:
        return None
    try:
        return arithmetic.compare("=", constant_of(one), constant_of(other))
    except (ValueError, ArithmeticError):
        return None


def truth(constraint: Constraint, bound: Mapping[str, Any], fields: Fields) -> bool | None:
    """Return the truth of a constraint whose variables are bound; what cannot be computed or compared is unknown.

    >>> from tocsin.language import parse
    >>> truth(parse(":y > 2 * :z"), {"y": 9, "z": 4}, lambda field: None)
    True
    >>> truth(parse(":y > 2 * :z"), {"y": 9, "z": None}, lambda field: None) is None
    True
    """
    left, right = _quick(constraint.left, bound), _quick(constraint.right, bound)
    if type(left) in _NUMBERS and type(right) in _NUMBERS and left == left and right == right:
        return _compared(constraint.operator, left, right)
    try:
        one = _computed(constraint.left, bound, fields)
        if constraint.operator == "is null":
            return None if one is UNKNOWN else one.kind == "null"
        other = _computed(constraint.right, bound, fields)
        if one is UNKNOWN or other is UNKNOWN:
            return None
        return arithmetic.compare(constraint.operator, one, other)
    except (ValueError, ArithmeticError):
        return None


def _quick(term: Term, bound: Mapping[str, Any]) -> Any:
    if isinstance(term, Variable):
        return bound[term.name]
    return term.value if isinstance(term, Constant) else None


def _compared(sign: str, left: Any, right: Any) -> bool:
    """Return a comparison of two numbers that are not NaN; a double makes doubles of both, as in Spark."""
    if type(left) is not type(right):
        left, right = float(left) if abs(left) < 2**1000 else math.inf, float(right)
    match sign:
        case ">":
            return bool(left > right)
        case "<":
            return bool(left < right)
        case ">=":
            return bool(left >= right)
        case "<=":
            return bool(left <= right)
        case "<>":
            return bool(left != right)
    return bool(left == right) if sign != "is null" else False


def _computed(term: Term, bound: Mapping[str, Any], fields: Fields) -> Any:
    """Return a term as a constant, or UNKNOWN."""
    if isinstance(term, Variable):
        value = bound[term.name]
        return UNKNOWN if value is UNKNOWN else constant_of(value)
    if isinstance(term, Field):
        value = fields(term)
        if term.transform and isinstance(value, str):
            value = value.lower() if term.transform == "lower" else value.upper()
        return constant_of(value)
    if isinstance(term, Arithmetic):
        left, right = _computed(term.left, bound, fields), _computed(term.right, bound, fields)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        return arithmetic.fold(term.sign, left, right, 0)
    return term
