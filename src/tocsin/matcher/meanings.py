"""What explanations say of meaning: the way from a value up to a concept, and a quantity in the unit of its field."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tocsin.language.printer import constant_text
from tocsin.language.symbolic import AxisKey
from tocsin.language.tree import Constant, IsA, Leaf, Operand
from tocsin.space.axes import codec_of
from tocsin.space.codes import ValueProblem
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.quantities import Given, Quantities, given_of
from tocsin.space.space import Space
from tocsin.space.types import Concept

Path = tuple[str, ...]


def value_text(space: Space, path: Path, leaf: Leaf, given: Any) -> str:
    """Return a value of an event as an explanation shows it."""
    if isinstance(given, list):
        return f"[{', '.join(value_text(space, path, leaf, each) for each in given)}]"
    kind = space.scalar(path)
    if isinstance(kind, Concept) and isinstance(given, str):
        return _way(kind.tree, given, leaf)
    return _measured(space, path, given)[0]


def number_of(space: Space, path: Path, given: Any) -> float | None:
    """Return a value as a number in the unit of its field; None if it is none."""
    if isinstance(given, list):
        return None
    number = _measured(space, path, given)[1]
    return float(given) if number is None and isinstance(given, (int, float, Fraction)) else number


def constant_number(space: Space, path: Path, constant: Operand) -> float | None:
    """Return a constant as a number in the unit of the field that it is compared with."""
    if not isinstance(constant, Constant) or constant.value is None:
        return None
    if constant.kind == "quantity":
        return _measured(space, path, str(constant.value))[1]
    return float(constant.value)


def bound_text(space: Space, path: Path, constant: Operand) -> str:
    """Return a constant as an explanation shows it: a quantity in the unit of the field too."""
    if isinstance(constant, Constant) and constant.kind == "quantity":
        return _measured(space, path, str(constant.value))[0]
    return constant_text(constant)


def _way(tree: Hierarchy, word: str, leaf: Leaf) -> str:
    """Return a concept with the way up to the one that is asked for, or to its root."""
    row = tree.row(word)
    if row is None:
        return f"{word!r}, which is no concept"
    name = tree.names[row]
    shown = word if name == word else f"{word} = {name}"
    asked = [str(each.value) for each in leaf.concepts if isinstance(each, Constant)] if isinstance(leaf, IsA) else []
    ways = [way for each in asked if (way := tree.path(word, each))]
    way = min(ways, key=len) if ways else tree.path(word, tree.root(word)) if asked else [name]
    return shown if len(way) == 1 else f"{shown if name != word else way[0]} → {' → '.join(way[1:])}"


def _measured(space: Space, path: Path, given: Any) -> tuple[str, float | None]:
    """Return a quantity with its conversion, and its number in the unit of the field; anything else as it is."""
    codec = codec_of(space, AxisKey(path))
    if not isinstance(codec, Quantities) or not isinstance(given, (str, Mapping, Given)):
        return repr(given), None
    try:
        quantity = given_of(given)
        number = codec.converted(quantity)
        written = str(quantity.value) if quantity.unit is None else f"{quantity.value} {quantity.unit}"
        if number is None:
            return written, float(codec.exact(quantity))
        return f"{written} = {_shown(number)} {codec.unit}", float(number)
    except ValueProblem:
        return repr(given), None


def _shown(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.12g}"
