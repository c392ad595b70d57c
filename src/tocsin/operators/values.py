"""Values that operators return, in joins and constraints: compared exactly, computed as Spark does its constants."""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tocsin.language import arithmetic
from tocsin.language.tree import Arithmetic, Constant, Constraint, Field, Kind, Term, Variable

Fields = Callable[[Field], Any]
"""Gives the value of a field of the event."""


class _Unknown:
    """The value that a call that failed might have returned: every comparison with it is unknown."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()

_NUMBERS = (int, float, Decimal, Fraction)
_ALIKE = (int, str, bool)
_WHOLE: dict[str, Callable[[Any, Any], int]] = {
    "+": python_operator.add,
    "-": python_operator.sub,
    "*": python_operator.mul,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": python_operator.eq,
    "<=>": python_operator.eq,
    "<>": python_operator.ne,
    "<": python_operator.lt,
    "<=": python_operator.le,
    ">": python_operator.gt,
    ">=": python_operator.ge,
}
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
    return compared("=", one, other)


def compared(sign: str, one: Any, other: Any) -> bool | None:
    """Return the truth of a comparison of two values, None if it is unknown.

    Numbers of whatever types compare exactly, and none passes through a double; NaN is equal to itself and above all.

    >>> compared("<", -10**400, 1.5), compared("<", 10**305, 1e307), compared("=", 2**53 + 1, 2.0**53)
    (True, True, False)
    >>> compared(">", float("nan"), 10**400), compared("<=>", None, None), compared("<", True, 2)
    (True, True, None)
    """
    if type(one) is type(other) and type(one) in _ALIKE:
        return _COMPARE[sign](one, other)
    if one is UNKNOWN or other is UNKNOWN:
        return None
    if one is None or other is None:
        return (one is None and other is None) if sign == "<=>" else None
    family = family_of(one)
    if family is None or family != family_of(other):
        return None
    if family == "number" and (_is_nan(one) or _is_nan(other)):
        one, other = _is_nan(one), _is_nan(other)
    return _COMPARE[sign](one, other)


def _is_nan(value: Any) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)


def family_of(value: Any) -> str | None:
    """Return which values a value is compared with: numbers, texts or truths; None for none, as of NULL."""
    if isinstance(value, (bool, str)):
        return "truth" if isinstance(value, bool) else "text"
    return "number" if isinstance(value, _NUMBERS) else None


def join_key(value: Any) -> Any:
    """Return what is the same for values that are equal, and differs for others; of what equals nothing, itself alone.

    >>> join_key(1) == join_key(1.0) == join_key(Decimal("1.00")), join_key(1) == join_key(True)
    (True, False)
    >>> join_key(float("nan")) == join_key(Decimal("NaN")), join_key(None) == join_key(None)
    (True, False)
    """
    family = family_of(value)
    if family is None:
        return object()
    return family, None if family == "number" and _is_nan(value) else value


def truth(constraint: Constraint, bound: Mapping[str, Any], fields: Fields) -> bool | None:
    """Return the truth of a constraint whose variables are bound; what cannot be computed or compared is unknown.

    >>> from tocsin.language import parse
    >>> truth(parse(":y > 2 * :z"), {"y": 9, "z": 4}, lambda field: None)
    True
    >>> truth(parse(":y > 2 * :z"), {"y": 9, "z": None}, lambda field: None) is None
    True
    """
    try:
        one = _computed(constraint.left, bound, fields)
        if constraint.operator == "is null":
            return None if one is UNKNOWN else one is None
        return compared(constraint.operator, one, _computed(constraint.right, bound, fields))
    except (ValueError, ArithmeticError):
        return None


def _computed(term: Term, bound: Mapping[str, Any], fields: Fields) -> Any:
    """Return the value of a term, or UNKNOWN."""
    if isinstance(term, Variable):
        return bound[term.name]
    if isinstance(term, Constant):
        return term.value
    if isinstance(term, Field):
        value = plain(fields(term))
        if term.transform and isinstance(value, str):
            value = value.lower() if term.transform == "lower" else value.upper()
        return value
    if isinstance(term, Arithmetic):
        left, right = _computed(term.left, bound, fields), _computed(term.right, bound, fields)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if type(left) is int and type(right) is int and term.sign in _WHOLE:
            return arithmetic.within_long(_WHOLE[term.sign](left, right))
        return arithmetic.fold(term.sign, constant_of(left), constant_of(right), 0).value
    raise TypeError(term)
