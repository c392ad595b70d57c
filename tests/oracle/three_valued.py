"""What an expression means, said a second time: SQL's three-valued logic over Python values, one event at a time.

Nothing of the space, the index or the normal form is used here; only the tree. Numbers are compared as fractions, or as
doubles where Spark casts to double; LIKE is matched character by character.
"""

from __future__ import annotations

import math
import operator as python_operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from tocsin.language.tree import (
    Affix,
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    Field,
    Fixed,
    IsNull,
    IsTruth,
    Like,
    Membership,
    Not,
    Or,
    Truth,
)

Truth3 = bool | None
Event = Mapping[str, Any]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": python_operator.eq,
    "<>": python_operator.ne,
    "<": python_operator.lt,
    "<=": python_operator.le,
    ">": python_operator.gt,
    ">=": python_operator.ge,
}


def all3(truths: list[Truth3]) -> Truth3:
    """AND."""
    return False if False in truths else None if None in truths else True


def any3(truths: list[Truth3]) -> Truth3:
    """OR."""
    return True if True in truths else None if None in truths else False


def not3(truth: Truth3) -> Truth3:
    """NOT."""
    return None if truth is None else not truth


def holds(expression: Expression, event: Event) -> Truth3:
    """Return whether an expression is true, false or unknown for an event, whose lists are repeated fields."""
    match expression:
        case And(terms):
            return all3([holds(term, event) for term in terms])
        case Or(terms):
            return any3([holds(term, event) for term in terms])
        case Not(term):
            return not3(holds(term, event))
        case Fixed(value):
            return value
        case IsNull(field):
            return value_at(event, field) is None
        case _:
            value = value_at(event, expression.field)  # type: ignore[union-attr]
            if isinstance(value, list):
                return any3([leaf_holds(expression, element) for element in value])
            return leaf_holds(expression, value)


def value_at(event: Event, field: Field) -> Any:
    """Return the value of a field, without its transform."""
    value: Any = event
    for name in field.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def leaf_holds(leaf: Any, value: Any) -> Truth3:
    """Return the truth of one predicate for one value."""
    if value is not None and isinstance(value, str) and leaf.field.transform:
        value = value.lower() if leaf.field.transform == "lower" else value.upper()
    match leaf:
        case Comparison("<=>", _, constant):
            if value is None or constant.value is None:
                return value is None and constant.value is None
            return compared("=", value, constant)
        case Comparison(operator, _, constant):
            return compared(operator, value, constant)
        case Between(_, low, high):
            return all3([compared(">=", value, low), compared("<=", value, high)])
        case Membership(_, constants):
            if any(constant.kind == "double" for constant in constants):
                constants = tuple(
                    Constant(float(constant.value), "double") if constant.kind in ("integer", "decimal") else constant
                    for constant in constants
                )
            return any3([compared("=", value, constant) for constant in constants])
        case IsTruth(_, wanted):
            return value is wanted
        case Truth(_):
            return value
    if value is None:
        return None
    match leaf:
        case Like(_, pattern, _, escape, case_blind):
            text, shape = value, str(pattern.value)
            return like(text.lower(), shape.lower(), escape) if case_blind else like(text, shape, escape)
        case Affix("startswith", _, constant):
            return bool(value.startswith(constant.value))
        case Affix("endswith", _, constant):
            return bool(value.endswith(constant.value))
        case Affix("contains", _, constant):
            return constant.value in value
    raise TypeError(leaf)


def compared(operator: str, value: Any, constant: Constant) -> Truth3:
    """Return a comparison as Spark makes it: exactly, or as doubles if one side is a double."""
    other = constant.value
    if value is None or other is None:
        return None
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if isinstance(value, float) or isinstance(other, float):
            return COMPARE[operator](ordered(to_double(value)), ordered(to_double(other)))
        return COMPARE[operator](Fraction(value), Fraction(other))  # type: ignore[arg-type]
    return COMPARE[operator](value, other)


def to_double(number: Any) -> float:
    """Return the nearest double; infinite beyond the doubles."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def ordered(number: float) -> tuple[bool, float]:
    """Return a key by which NaN equals itself and is above all else."""
    return (True, 0.0) if math.isnan(number) else (False, number)


def like(text: str, pattern: str, escape: str) -> bool:
    """Return whether a text has the shape of a LIKE pattern."""
    shapes: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            shapes.append(("exactly", pattern[at]))
        else:
            shapes.append(({"%": "many", "_": "one"}.get(pattern[at], "exactly"), pattern[at]))
        at += 1

    @cache
    def fits(start: int, shape: int) -> bool:
        if shape == len(shapes):
            return start == len(text)
        kind, character = shapes[shape]
        if kind == "many":
            return any(fits(end, shape + 1) for end in range(start, len(text) + 1))
        return start < len(text) and (kind == "one" or text[start] == character) and fits(start + 1, shape + 1)

    return fits(0, 0)
