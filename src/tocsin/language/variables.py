"""Variables of operator calls: where they occur, and filling templates that hold them. Their scopes: see `scopes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tocsin.language.tree import (
    And,
    Arithmetic,
    Call,
    Constant,
    Constraint,
    Exists,
    Expression,
    Not,
    Or,
    Slot,
    Variable,
)

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
    found: set[str] = set()
    left = [node]
    while left:
        part = left.pop()
        if isinstance(part, Variable):
            found.add(part.name)
        elif isinstance(part, Call):
            found.update(each.name for each in part.arguments if isinstance(each, Variable))
        elif isinstance(part, (Constraint, Arithmetic)):
            left += (part.left, part.right)
        elif isinstance(part, (And, Or)):
            left += part.terms
        elif isinstance(part, (Not, Exists)):
            left.append(part.term)
        elif isinstance(part, tuple):
            left += part
    return frozenset(found)


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
