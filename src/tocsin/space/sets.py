"""Sets of codes, a column for each subscription of a template: the symbolic sets of the language filled with
constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.kernels.sets import merge_intervals
from tocsin.language import symbolic
from tocsin.language.arrays import text_array
from tocsin.language.literals import Literals
from tocsin.language.tree import Call, Constant, Leaf, Operand, Operator, Slot
from tocsin.language.variables import filled, parts_of
from tocsin.space.codes import Codec, Codes, Cuts, ValueProblem
from tocsin.space.concepts import ConceptCodes, crossed
from tocsin.space.declared import implied_codes, refuse_constants
from tocsin.space.listed import Addresses, Texts

T = TypeVar("T", bound=Leaf)
Supply = Callable[[Operand], Literals]
"""Gives the constants of an operand: one for each subscription, or a single one for all."""


class Sets(NamedTuple):
    """One set a column: intervals sorted, disjoint, not adjacent; unused places hold an empty interval.

    ``low`` and ``high``: int64[intervals, columns]; a single column stands for all.
    """

    low: Codes
    high: Codes

    @property
    def nonempty(self) -> npt.NDArray[np.bool_]:
        """For each interval of each column, whether it is used."""
        return self.low <= self.high


def evaluate(symbol: symbolic.Set, codec: Codec, supply: Supply) -> Sets:
    """Return the set that a symbol stands for, for each subscription."""
    match symbol:
        case symbolic.Compared(operator, constant):
            return _compared(operator, codec.cut(supply(constant)))
        case symbolic.Listed(constants):
            return _united(_equal_to_any(codec, [supply(constant) for constant in constants]))
        case symbolic.Prefixed(constant, cut, fold, whole):
            if not isinstance(codec, Texts):
                raise TypeError(codec)
            low, high = codec.prefix(supply(constant), cut, fold, whole)
            return Sets(low[None, :], high[None, :])
        case symbolic.Below(constants):
            if not isinstance(codec, ConceptCodes):
                raise TypeError(codec)
            return _united([_below(codec, supply(constant)) for constant in constants])
        case symbolic.Nulls():
            return _fixed(NULL, NULL)
        case symbolic.Values():
            return _fixed(LOWEST, HIGHEST)
        case symbolic.Union(sets):
            return _united([evaluate(each, codec, supply) for each in sets])
        case symbolic.Intersection(sets):
            found = evaluate(sets[0], codec, supply)
            for each in sets[1:]:
                found = intersected(found, evaluate(each, codec, supply))
            return found
        case symbolic.Complement(of):
            return _complement(evaluate(of, codec, supply))
        case symbolic.Implied(call, position):
            which, calls = filled_leaves(call, supply)
            try:
                low, high = implied_codes(calls, position, codec)[:, None, which]
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, int(np.argmax(which == problem.row))) from problem
            return Sets(low, high)


def filled_leaves(leaf: T, supply: Supply) -> tuple[npt.NDArray[np.int64], list[T]]:
    """Return the distinct leaves that a leaf with slots becomes, and which of them each subscription has."""
    slots = list(dict.fromkeys(parts_of(leaf, Slot)))
    if not slots:
        return np.zeros(1, np.int64), [leaf]
    given = [supply(slot).distinct() for slot in slots]
    chosen, first, which = np.unique(
        np.stack([each for each, _ in given]), axis=1, return_index=True, return_inverse=True
    )
    known = [
        filled(leaf, {slot: values[at] for slot, (_, values), at in zip(slots, given, column, strict=True)})
        for column in chosen.T.tolist()
    ]
    for each, row in zip(known, first.tolist(), strict=True):
        for call in parts_of(each, Call):
            refuse_constants(call, row)
    return which.ravel(), known


def intersected(one: Sets, other: Sets) -> Sets:
    """Return the intersection, column by column."""
    low = np.maximum(one.low[:, None, :], other.low[None, :, :])
    high = np.minimum(one.high[:, None, :], other.high[None, :, :])
    return _tidy(low.reshape(-1, low.shape[2]), high.reshape(-1, high.shape[2]))


def _equal(codec: Codec, constants: Literals) -> Sets:
    """Return the values equal to each constant; on an address axis, those inside each network."""
    if isinstance(codec, Addresses):
        low, high = codec.networks(constants)
        return Sets(low[None, :], high[None, :])
    return _compared("=", codec.cut(constants))


def _equal_to_any(codec: Codec, constants: list[Literals]) -> list[Sets]:
    """Return the values equal to constants, those of one kind and length together: a long list is read at once."""
    alike: dict[tuple[str, int, bool], list[Literals]] = {}
    for each in constants:
        alike.setdefault((each.kind, len(each), each.integers is None), []).append(each)
    found = []
    for (kind, rows, as_text), several in alike.items():
        if len(several) == 1:
            found.append(_equal(codec, several[0]))
            continue
        if as_text:
            joined = Literals(kind, pa.concat_arrays([each.texts.cast(pa.string()) for each in several]))  # type: ignore[arg-type]
        else:
            integers = np.concatenate([each.integers for each in several])
            joined = Literals(kind, integers=integers)  # type: ignore[arg-type]
        try:
            low, high = _equal(codec, joined)
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, problem.row % rows) from None
        found.append(_tidy(low.reshape(-1, rows), high.reshape(-1, rows)))
    return found


def _below(codec: ConceptCodes, constants: Literals) -> Sets:
    """Return the concepts at or below each constant."""
    lows, highs = codec.below(constants)
    low, high = crossed(np.stack(lows), np.stack(highs))
    return Sets(low, high) if len(lows) == 1 else _tidy(low, high)


def _compared(operator: Operator, cuts: Cuts) -> Sets:
    """Return the codes that stand in the relation to constants cut so."""
    floor, ceil, above = cuts
    lowest, highest = np.full_like(floor, LOWEST), np.full_like(floor, HIGHEST)
    under = np.where(above, HIGHEST, ceil - 1)
    over = np.where(floor == HIGHEST, NULL, floor) + 1
    nothing_over = floor == HIGHEST
    if operator == "<=":
        return _tidy_one(lowest, floor, None)
    if operator == "<":
        return _tidy_one(lowest, under, None)
    if operator == ">=":
        return _tidy_one(ceil, highest, above)
    if operator == ">":
        return _tidy_one(over, highest, nothing_over)
    if operator == "=":
        return _tidy_one(ceil, floor, above)
    low, high = np.stack([lowest, over]), np.stack([under, np.where(nothing_over, NULL, highest)])
    return _tidy(low, high)


def _tidy_one(low: Codes, high: Codes, none: npt.NDArray[np.bool_] | None) -> Sets:
    """Return sets of one interval each, empty where it is ``none`` or its ends cross."""
    empty = low > high if none is None else (low > high) | none
    return Sets(np.where(empty, HIGHEST, low)[None, :], np.where(empty, NULL, high)[None, :])


def _tidy(low: Codes, high: Codes) -> Sets:
    """Return the intervals of each column sorted and merged."""
    order = np.argsort(low, axis=0, kind="stable")
    low, high = np.take_along_axis(low, order, 0), np.take_along_axis(high, order, 0)
    most = max(1, merge_intervals(low, high, HIGHEST, NULL))
    return Sets(low[:most], high[:most])


def _united(parts: list[Sets]) -> Sets:
    """Return the union, column by column."""
    if len(parts) == 1:
        return parts[0]
    columns = max(part.low.shape[1] for part in parts)
    low, high = (
        np.concatenate([np.broadcast_to(part[side], (part[side].shape[0], columns)) for part in parts])
        for side in (0, 1)
    )
    return _tidy(low, high)


def _complement(of: Sets) -> Sets:
    """Return the values, NULL left out, that are not in each set."""
    low, high = np.maximum(of.low, LOWEST), of.high
    used = of.nonempty
    ends = np.full((1, low.shape[1]), LOWEST)
    starts = np.concatenate([ends, np.where(used & (high < HIGHEST), high + 1, HIGHEST)])
    lasts = np.full((1, low.shape[1]), HIGHEST)
    stops = np.concatenate([np.where(used, low - 1, HIGHEST), lasts])
    at_top = np.concatenate([np.zeros((1, low.shape[1]), bool), used & (high == HIGHEST)])
    unused = np.concatenate([np.zeros((1, low.shape[1]), bool), ~used])
    gone = np.logical_or.accumulate(at_top, 0) | unused
    return _tidy(np.where(gone, HIGHEST, starts), np.where(gone, NULL, stops))


def _fixed(low: int, high: int) -> Sets:
    return Sets(np.array([[low]], np.int64), np.array([[high]], np.int64))


def literals_of(constant: Operand) -> Literals:
    """Return a known constant as literals of one row."""
    if isinstance(constant, Slot):
        raise TypeError(constant)
    if constant.kind == "integer" and isinstance(constant.value, int) and abs(constant.value) < 10**18:
        return Literals(constant.kind, integers=np.array([constant.value], np.int64))
    text = constant.value if isinstance(constant.value, str) else _numeral(constant)
    return Literals(constant.kind, text_array([text]))


def _numeral(constant: Constant) -> str:
    """Return the numeral of a constant without suffix, or the name of a truth value."""
    return repr(constant.value) if constant.kind == "double" else str(constant.value)
