"""Atoms: the leaves that no interval can say. Each distinct one has a number and is evaluated once a batch and row."""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError
from tocsin.index.boxes import Int64s
from tocsin.kernels.language import literals as shapes
from tocsin.kernels.operators.programs import IS_ANY, IS_FALSE, IS_NULL, IS_TRUE
from tocsin.language.patterns import split_pattern
from tocsin.language.tree import Affix, Between, Comparison, Constant, Leaf, Like, Matches, Membership
from tocsin.space.listed import derive
from tocsin.space.reading import Column

_COMPARE = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "<=>": "equal",
}
"""The function of Arrow for each operator."""


_INT64 = range(-(2**63), 2**63)


class Atoms:
    """The atoms in use, by number.

    >>> from tocsin.language import parse
    >>> atoms = Atoms()
    >>> atoms.number(parse("name RLIKE 'b+'")), atoms.number(parse("name RLIKE 'b+'"))
    (0, 0)
    """

    def __init__(self) -> None:
        self._leaves: list[Leaf] = []
        self._numbers: dict[Leaf, int] = {}
        self.paths: list[tuple[str, ...]] = []
        """The fields that atoms look at, each once; readers may look while it grows."""

    def __len__(self) -> int:
        return len(self._leaves)

    def number(self, leaf: Leaf) -> int:
        """Return the number of an atom, a new one if it is new."""
        found = self._numbers.get(leaf)
        if found is None:
            path = leaf.field.path  # type: ignore[union-attr]
            if path not in self.paths:
                self.paths.append(path)
            self._leaves.append(leaf)
            found = self._numbers[leaf] = len(self._leaves) - 1
        return found

    def leaf(self, number: int) -> Leaf:
        """Return the atom of a number."""
        return self._leaves[number]


def evaluate_atom(leaf: Leaf, column: Column, rows: Int64s, any_unspecified: bool) -> npt.NDArray[np.int8]:
    """Return what is known of an atom for these rows of its field's column."""
    if column.offsets is None:
        truth = _truth(leaf, column.values.take(pa.array(rows)))
        missing = IS_ANY if any_unspecified else IS_NULL
        return _states(truth, missing)
    starts, ends = column.offsets[rows], column.offsets[rows + 1]
    counts = ends - starts
    elements = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    states = _states(_truth(leaf, column.values.take(pa.array(elements))), IS_NULL)
    owner = np.repeat(np.arange(len(rows)), counts)
    found = np.full(len(rows), IS_FALSE, np.int8)
    found[owner[states == IS_NULL]] = IS_NULL
    found[owner[states == IS_TRUE]] = IS_TRUE
    absent = ~column.present[rows] if column.present is not None else np.zeros(len(rows), bool)
    found[absent] = IS_ANY if any_unspecified else IS_NULL
    return found


def like_regex(pattern: str, escape: str) -> str:
    r"""Return the regular expression of a LIKE pattern.

    >>> like_regex("50\\%_off%", "\\")
    '(?s)\\A50%.off.*\\z'
    """
    pieces, wildcards = split_pattern(pattern, escape)
    quoted = ["".join(map(_quoted, piece)) for piece in pieces]
    between = [{"%": ".*", "_": "."}[wildcard] for wildcard in wildcards]
    return f"(?s)\\A{''.join(map(str.__add__, quoted, [*between, '']))}\\z"


def _quoted(character: str) -> str:
    return (
        r"\x00"
        if character == "\0"
        else re.sub(r"([^\w%])", r"\\\1", character, flags=re.ASCII)
        if ord(character) < 128
        else character
    )


def _truth(leaf: Leaf, values: pa.Array) -> pa.Array:
    """Return TRUE, FALSE or null for each value."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.bool_())
    if isinstance(leaf, (Like, Affix, Matches)):
        return _text_truth(leaf, values)
    if isinstance(leaf, Comparison):
        return _whole_truth(leaf.operator, leaf.constant, values)
    if isinstance(leaf, Between):
        return pc.and_kleene(_whole_truth(">=", leaf.low, values), _whole_truth("<=", leaf.high, values))
    if isinstance(leaf, Membership):
        known = [constant for constant in leaf.constants if constant.kind != "null"]
        truth = pa.array(np.zeros(len(values), bool))
        for constant in known:
            truth = pc.or_(truth, _whole_truth("=", constant, values))
        return truth if len(known) == len(leaf.constants) else pc.if_else(truth, True, pa.scalar(None, pa.bool_()))
    raise TypeError(leaf)


def _text_truth(leaf: Like | Affix | Matches, values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not (
        pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    ):
        raise EventError(f"field {leaf.field.name}: the column holds {values.type}; text is expected")
    values = values.cast(pa.large_string())
    fold = isinstance(leaf, Like) and leaf.case_blind
    for step in (leaf.field.transform, "lower" if fold else ""):
        if step:
            known = derive(values.drop_null(), step)
            where = np.cumsum(np.array(values.is_valid())) - 1
            values = known.take(pa.array(where, mask=np.array(values.is_null()))) if len(known) else values
    if isinstance(leaf, Affix):
        return pc.match_substring(values, str(leaf.constant.value))  # type: ignore[union-attr]
    pattern = str(leaf.pattern.value)  # type: ignore[union-attr]
    if isinstance(leaf, Like):
        pattern = pattern.lower() if fold else pattern
        if leaf.shape == shapes.CONTAINS:
            return pc.match_substring(values, pattern[1:-1])
        pattern = like_regex(pattern, leaf.escape)
    return pc.match_substring_regex(values, pattern)


def _whole_truth(operator: str, constant: object, values: pa.Array) -> pa.Array:
    """Return a comparison of whole numbers with a constant, exactly: one with a fraction, or beyond 64 bits, lies
    between two neighbours."""
    assert isinstance(constant, Constant)  # programs have no slots
    if constant.value is None:
        return pa.nulls(len(values), pa.bool_())
    if isinstance(constant.value, float):
        if constant.value != constant.value:  # NaN is above every number
            return pc.if_else(values.is_valid(), operator in ("<", "<=", "<>"), pa.scalar(None, pa.bool_()))
        return getattr(pc, _COMPARE[operator])(values.cast(pa.float64(), safe=False), constant.value)
    exact = Decimal(constant.value)
    floor, whole = int(exact.to_integral_value(ROUND_FLOOR)), values.cast(pa.int64())
    if floor == exact and floor in _INT64:
        return getattr(pc, _COMPARE[operator])(whole, floor)
    is_below = operator in ("<", "<=", "<>")
    if floor in _INT64 and operator in ("<", "<=", ">", ">="):
        return pc.less_equal(whole, floor) if is_below else pc.greater(whole, floor)
    held = is_below if floor > 0 or operator in ("=", "<>", "<=>") else not is_below  # the same for every value
    return pc.if_else(values.is_valid(), held, pa.scalar(None, pa.bool_()))


def _states(truth: pa.Array, missing: int) -> npt.NDArray[np.int8]:
    states = np.where(np.array(pc.fill_null(truth, False)), IS_TRUE, IS_FALSE).astype(np.int8)
    states[np.array(truth.is_null())] = missing
    return states
