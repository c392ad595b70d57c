"""Where in a text the constant stands that a dimension refuses: asked only when one has been refused."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.language import symbolic
from tocsin.language.symbolic import AxisKey
from tocsin.language.tree import Between, Comparison, Expression, Field, InNetwork, IsA, Leaf, Membership, Operand
from tocsin.language.variables import parts_of
from tocsin.space.axes import codec_of
from tocsin.space.codes import ValueProblem
from tocsin.space.sets import evaluate, literals_of
from tocsin.space.space import Space


def place_of_misfit(space: Space, expression: Expression) -> int | None:
    """Return where the first constant stands that its field cannot be compared with, or the call that refuses one.

    >>> from tocsin.language import parse
    >>> from tocsin.space import Time
    >>> place_of_misfit(Space({"day": Time("date")}), parse("day = '2026-01-31' OR day > '2026-02-30'"))
    28
    """
    for leaf in (each for kind in _COMPARED for each in parts_of(expression, kind)):
        for field, constant, inside in _comparisons(leaf):
            try:
                evaluate(inside, codec_of(space, AxisKey(field.path, field.transform)), literals_of)
            except (ValueProblem, ValueError):
                return constant.place
    return None


def first_place(expression: Expression) -> int:
    """Return where the first field of an expression stands, 0 if it has none."""
    return min((field.place for field in parts_of(expression, Field) if field.place >= 0), default=0)


_COMPARED: tuple[type[Leaf], ...] = (Comparison, Between, Membership, InNetwork, IsA)


def _comparisons(leaf: Leaf) -> Iterator[tuple[Field, Operand, symbolic.Set]]:
    """Yield the constants of a leaf, each with its field and with what is asked of the field's axis."""
    match leaf:
        case Comparison(_, field, constant):
            yield field, constant, symbolic.Compared("=", constant)
        case Between(field, low, high):
            yield from ((field, each, symbolic.Compared("=", each)) for each in (low, high))
        case Membership(field, constants):
            yield from ((field, each, symbolic.Listed((each,))) for each in constants if each.kind != "null")
        case InNetwork(field, network):
            yield field, network, symbolic.Listed((network,))
        case IsA(field, concepts):
            yield from ((field, each, symbolic.Below((each,))) for each in concepts if each.kind != "null")
