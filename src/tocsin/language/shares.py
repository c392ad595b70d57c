"""What part of all events a test lets through, guessed by its form alone: before there are constants or events.

The guesses only decide which alternatives are worth boxes of their own; what they decide wrongly costs time, never an
answer.
"""

from __future__ import annotations

from math import prod

from tocsin.language.symbolic import (
    AllOf,
    AnyOf,
    Below,
    Compared,
    Complement,
    Intersection,
    Listed,
    Node,
    Nulls,
    Prefixed,
    Set,
    Test,
    Union,
)

_ONE_VALUE = 0.02
_PREFIX = 0.05
_CONCEPT = 0.1
_SIDE = 0.5
_MOST = 0.5
"""However long a list of values is, it is guessed to hold no more."""


def share(node: Node) -> float:
    """Return what part of all events a node is guessed to let through.

    >>> from tocsin.language.normal import positive
    >>> from tocsin.language.parser import parse
    >>> [share(positive(parse(text), frozenset())) for text in ("x = 1", "x < 1 OR y = 2", "NOT x = 1")]
    [0.02, 0.52, 0.98]
    """
    if isinstance(node, AnyOf):
        return min(1.0, sum(map(share, node.terms)))
    if isinstance(node, AllOf):
        return prod(map(share, node.terms))
    return _share_of_values(node.inside) if isinstance(node, Test) else 1.0


def _share_of_values(inside: Set) -> float:
    match inside:
        case Compared(operator):
            return {"=": _ONE_VALUE, "<>": 1 - _ONE_VALUE}.get(operator, _SIDE)
        case Listed(constants):
            return min(_MOST, _ONE_VALUE * len(constants))
        case Below(constants):
            return min(_MOST, _CONCEPT * len(constants))
        case Prefixed():
            return _PREFIX
        case Nulls():
            return _ONE_VALUE
        case Union(sets):
            return min(1.0, sum(map(_share_of_values, sets)))
        case Intersection(sets):
            return prod(map(_share_of_values, sets))
        case Complement(of):
            return 1 - _share_of_values(of)
        case _:
            return 1.0
