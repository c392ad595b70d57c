"""One text at a time: a subscription by itself, of comparisons joined by AND, without the arrays that many need.

What is read here is read as `filling` would, by the same plans and codecs; whatever is not a plain comparison of one
field with a constant is left to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.errors import ExpressionError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes
from tocsin.kernels.language import literals as classes
from tocsin.kernels.language.conjuncts import split_conjuncts
from tocsin.language import symbolic
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.literals import KINDS, MAX_DEPTH, MAX_LENGTH, read_constant
from tocsin.language.parser import Template
from tocsin.language.tree import Constant, Kind, Slot
from tocsin.space.codes import Codec, ValueProblem
from tocsin.space.plan import Plans

Interval = tuple[int, int]

_PLAIN = frozenset({classes.PLAIN, classes.STARTS, classes.ENDS, classes.CONTAINS})


class Compared(NamedTuple):
    """A comparison with the literal number ``slot`` of its text, which is of a class and stands for a kind."""

    operator: str
    slot: int
    literal_class: int
    negative: bool
    kind: Kind


class Recipe(NamedTuple):
    """What a piece of text asks of one axis: to be within an interval and to hold in all of the comparisons."""

    axis: int
    codec: Codec
    within: Interval
    compared: tuple[Compared, ...]


class Alone:
    """Reads single texts, with the plans of a matcher.

    >>> from tocsin.space import Number, Space
    >>> from tocsin.space.axes import Axes
    >>> alone = Alone(Plans(Axes(Space({"price": Number("int64"), "size": Number("int64")}))))
    >>> alone.box("price < 400 AND size = 3").high.tolist()
    [399, 3]
    >>> alone.box("price < 400 OR size = 3") is None
    True
    """

    MOST = 10_000

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._recipes: dict[bytes, Recipe | None] = {}

    def box(self, text: str) -> Boxes | None:
        """Return the box of a text, no box if it can never match; None if this text is not for here."""
        encoded = text.encode()
        if not encoded or len(encoded) > MAX_LENGTH:
            return None
        data = np.frombuffer(encoded, np.uint8)
        _, starts, ends = split_conjuncts(np.array([0, len(encoded)]), data)
        split = classes.split_texts(starts, ends, data)
        if split[6].any() or split[5].max() > MAX_DEPTH:
            return None
        shapes, places = split[1].tobytes(), split[0].tolist()
        firsts, begins, stops = split[2].tolist(), split[3].tolist(), split[4].tolist()
        found: dict[int, Interval] = {}
        for piece, first in enumerate(firsts[:-1]):
            recipe = self._recipe(shapes[places[piece] : places[piece + 1]])
            if recipe is None:
                return None
            written = [encoded[begins[at] : stops[at]] for at in range(first, firsts[piece + 1])]
            inside = _interval(recipe, written)
            if inside is None:
                return None
            held = found.get(recipe.axis)
            found[recipe.axis] = inside if held is None else (max(held[0], inside[0]), min(held[1], inside[1]))
        return _boxes(found, self._plans)

    def _recipe(self, shape: bytes) -> Recipe | None:
        """Return how a piece of this template is read, None if not here."""
        try:
            return self._recipes[shape]
        except KeyError:
            if len(self._recipes) >= self.MOST:
                self._recipes.clear()
            self._recipes[shape] = recipe = self._made(shape)
            return recipe

    def _made(self, shape: bytes) -> Recipe | None:
        template = Template(shape.decode("utf-8", "replace"))
        try:
            plan = self._plans.plan(template, {})
        except (ExpressionError, NeedsValueError):
            return None
        if not plan.simple or len(plan.boxes) != 1 or len(plan.boxes[0].axes) != 1:
            return None
        (axis,), (inside,) = plan.boxes[0].axes, plan.boxes[0].sets
        within = LOWEST, HIGHEST
        compared = []
        for each in inside.sets if isinstance(inside, symbolic.Intersection) else (inside,):
            if inside is each and isinstance(each, symbolic.Nulls):
                within = NULL, NULL
            elif isinstance(each, symbolic.Compared) and isinstance(each.constant, Slot) and each.operator != "<>":
                slot = each.constant
                kind = template.classes[slot.number]
                compared.append(Compared(each.operator, slot.number, kind, slot.negative, slot.kind))
            elif not isinstance(each, symbolic.Values):
                return None
        return Recipe(axis, self._plans.axes.codecs[axis], within, tuple(compared))


def _interval(recipe: Recipe, written: list[bytes]) -> Interval | None:
    """Return the codes that a piece allows, given its literals; None if they must be read with others."""
    low, high = recipe.within
    for operator, slot, literal_class, negative, kind in recipe.compared:
        try:
            constant = _constant(written[slot], literal_class, negative, kind)
            cut = None if constant is None else recipe.codec.cut_alone(constant)
        except (ValueError, ArithmeticError, KeyError, ValueProblem):
            return None  # what is wrong is told there
        if cut is None:
            return None
        least, most = _related(operator, *cut)
        low, high = max(low, least), min(high, most)
    return low, high


def _constant(written: bytes, literal_class: int, negative: bool, kind: Kind) -> Constant | None:
    """Return the constant of a literal, None if it is of an intricate kind."""
    if literal_class in _PLAIN:
        return Constant(written[1:-1].decode(), kind)
    if KINDS[literal_class] == "string" or not written[-1:].isdigit():
        return None
    if literal_class == classes.INTEGER:
        return Constant(-int(written) if negative else int(written), kind)
    numeral = written.decode()
    return read_constant("-" + numeral if negative else numeral, kind)


def _related(operator: str, floor: int, ceil: int) -> Interval:
    """Return the codes that stand in a relation to a constant, which lies between two codes or is both."""
    if operator == "<=":
        return LOWEST, min(floor, HIGHEST)
    if operator == "<":
        return LOWEST, min(ceil - 1, HIGHEST)
    if operator == ">=":
        return max(ceil, LOWEST), HIGHEST
    if operator == ">":
        return max(floor + 1, LOWEST), HIGHEST
    return max(ceil, LOWEST), min(floor, HIGHEST)


def _boxes(found: dict[int, Interval], plans: Plans) -> Boxes:
    """Return the box of intervals on axes, none if one of them is empty (see `domains`)."""
    axes = sorted(found)
    entries = [found[axis] for axis in axes]
    for axis, (low, high) in found.items():
        if low == NULL and not plans.nulls:
            return Boxes.of([])
        codec = plans.axes.codecs[axis]
        if low > high or (low > NULL and (plans.everything or not codec.wider) and not codec.holds(low, high)):
            return Boxes.of([])
    sides = np.array(entries, np.int64).T.copy() if entries else np.empty((2, 0), np.int64)
    return Boxes(np.array([0, len(axes)]), np.array(axes, np.int32), sides[0], sides[1])
