"""Variables of operator calls: where they occur, which are local to a negation, and filling templates that hold them.

What an expression with variables means: it matches if **some** substitution of values for its variables makes it TRUE.
Under a NOT, variables that occur nowhere else are local to it: no substitution of those may make the inside TRUE. A
variable that occurs outside too is the same variable inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tocsin.language.tree import And, Call, Constant, Constraint, Exists, Expression, Not, Or, Slot, Variable

T = TypeVar("T")

_OPEN = (Slot, Variable)
_LEAVES = (Constant, Slot)


def parts_of(node: Any, kind: type[T]) -> Iterator[T]:
    """Yield every node of a kind in a tree, in the order of the text."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, Call):  # the arguments of a call have no parts
        yield from (each for each in node.arguments if isinstance(each, kind))
    elif isinstance(node, tuple):
        for each in node:
            if isinstance(each, kind):
                yield each
            elif not isinstance(each, _LEAVES):  # a list of 100,000 constants is passed over quickly
                yield from parts_of(each, kind)
    elif is_dataclass(node):
        for entry in fields(node):
            if entry.compare:
                yield from parts_of(getattr(node, entry.name), kind)


def names_in(node: Any) -> frozenset[str]:
    """Return the names of the variables in a tree.

    >>> from tocsin.language.parser import parse
    >>> sorted(names_in(parse("boats(:y) AND :y > 2 * :z")))
    ['y', 'z']
    """
    return frozenset(variable.name for variable in parts_of(node, Variable))


def scoped(expression: Expression) -> Expression:
    """Return the expression with an `Exists` inside each NOT around several parts that have variables of their own.

    >>> from tocsin.language.parser import parse
    >>> type(scoped(parse("NOT (mob(:p) AND :p > 50)")).term).__name__
    'Exists'
    >>> type(scoped(parse("a(:p) AND NOT (mob(:p) AND :p > 50)")).terms[1].term).__name__
    'And'
    """
    total = Counter(variable.name for variable in parts_of(expression, Variable))
    return _scoped(expression, total) if total else expression


def _scoped(expression: Expression, total: Counter[str]) -> Expression:
    if isinstance(expression, (And, Or)):
        return type(expression)(tuple(_scoped(term, total) for term in expression.terms))
    if not isinstance(expression, Not):
        return expression
    inner, negated = expression.term, True
    while isinstance(inner, Not):
        inner, negated = inner.term, not negated
    if not negated:
        return _scoped(inner, total)
    within = Counter(variable.name for variable in parts_of(inner, Variable))
    own = any(total[name] == count for name, count in within.items())
    if own and isinstance(inner, (And, Or)):
        return Not(Exists(_scoped(inner, within)))
    return Not(_scoped(inner, total))


def filled(node: T, constants: Mapping[Any, Any]) -> T:
    """Return a tree with its slots replaced by constants, or its variables by others.

    >>> from tocsin.language.tree import Constant
    >>> filled(Call("near", (Slot(0, "integer"),)), {Slot(0, "integer"): Constant(5, "integer")}).arguments[0].value
    5
    """
    if isinstance(node, _OPEN):
        found: T = constants.get(node, node)
        return found
    if isinstance(node, Call):
        arguments = tuple(constants.get(each, each) if isinstance(each, _OPEN) else each for each in node.arguments)
        return Call(node.name, arguments, node.place, node.operator)  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(filled(each, constants) for each in node)  # type: ignore[return-value]
    if not is_dataclass(node):
        return node
    changed = {entry.name: filled(getattr(node, entry.name), constants) for entry in fields(node) if entry.compare}
    return replace(node, **changed)  # type: ignore[type-var]


def has_operators(expression: Expression) -> bool:
    """Return whether operators have a part in deciding an expression."""
    return any(next(parts_of(expression, kind), None) is not None for kind in (Call, Constraint))


def is_operator_part(leaf: Any) -> bool:
    """Return whether a leaf is for operators to decide, not for the index or an ordinary check."""
    return isinstance(leaf, (Call, Constraint, Exists))
