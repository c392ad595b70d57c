"""Sets of values on one axis, symbolic in the constants, and tests of membership in them.

An expression without negation is a tree of such tests: `normal.py` makes it, a space turns its sets into intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tocsin.language.tree import Call, Leaf, Operand, Operator

Derivation: TypeAlias = Literal[
    "", "lower", "upper", "reversed", "lower reversed", "upper reversed", "presence", "least"
]


class AxisKey(NamedTuple):
    """Which axis: a field and what is derived from its values. ``least`` is 0 for the least whole number of 64 bits,
    which shares the code of the next one, and 1 for all others."""

    path: tuple[str, ...]
    derivation: Derivation = ""


# Sets of codes on one axis, symbolic in the constants.


@dataclass(frozen=True, slots=True)
class Compared:
    """The values that stand in this relation to the constant."""

    operator: Operator
    constant: Operand


@dataclass(frozen=True, slots=True)
class Listed:
    """The values equal to one of the constants (or, on an address axis, inside one of the networks)."""

    constants: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Prefixed:
    """The texts that begin with the constant, or are it (``whole``).

    The constant is first put in lower case (``fold``), then loses ``cut`` characters of wildcards at its ends.
    """

    constant: Operand
    cut: tuple[int, int] = (0, 0)
    fold: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Below:
    """The concepts that are one of the constants or below one."""

    constants: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Nulls:
    """Only NULL."""


@dataclass(frozen=True, slots=True)
class Values:
    """Every value, not NULL."""


@dataclass(frozen=True, slots=True)
class Union:
    """What is in any of the sets."""

    sets: tuple[Set, ...]


@dataclass(frozen=True, slots=True)
class Intersection:
    """What is in all of the sets."""

    sets: tuple[Set, ...]


@dataclass(frozen=True, slots=True)
class Complement:
    """The values, NULL left out, that are not in the set."""

    of: Set


@dataclass(frozen=True, slots=True)
class Implied:
    """The values of the field at this position of an operator call within which alone the call can be TRUE."""

    call: Call
    position: int


Set: TypeAlias = Compared | Listed | Prefixed | Below | Nulls | Values | Union | Intersection | Complement | Implied


# The expression without negation.


@dataclass(frozen=True, slots=True)
class Test:
    """The value on the axis (for a repeated field: some element) is in the set."""

    axis: AxisKey
    inside: Set


@dataclass(frozen=True, slots=True)
class Every:
    """The repeated field is there and each of its elements is in the set."""

    axis: AxisKey
    inside: Set


@dataclass(frozen=True, slots=True)
class Check:
    """A leaf that no set can say comes out as wanted: TRUE or, for its negation, FALSE."""

    leaf: Leaf
    wanted: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of the terms hold."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the terms holds."""

    terms: tuple[Node, ...]


Node: TypeAlias = Test | Every | Check | AllOf | AnyOf
