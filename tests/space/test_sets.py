"""The algebra of sets of codes, against Python's own sets on a small domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.three_valued import COMPARE

from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.language import symbolic
from tocsin.language.literals import Literals
from tocsin.language.tree import Constant, Operand, Slot
from tocsin.space.codes import Integers
from tocsin.space.filling import literals_of
from tocsin.space.sets import Sets, evaluate, intersected

VALUES = [NULL, LOWEST, *range(-3, 4), HIGHEST]
"""The domain that membership is tried on: NULL, both ends, and a few in the middle."""


def meaning(symbol: symbolic.Set) -> set[int]:
    """Return which of the domain's codes are in a set, by the definition of each symbol."""
    known = set(VALUES) - {NULL}
    match symbol:
        case symbolic.Compared(operator, Constant(value)):
            return {code for code in known if COMPARE[operator](code, value)}
        case symbolic.Listed(constants):
            return known & {constant.value for constant in constants}  # type: ignore[union-attr]
        case symbolic.Nulls():
            return {NULL}
        case symbolic.Values():
            return known
        case symbolic.Union(sets):
            return set().union(*map(meaning, sets))
        case symbolic.Intersection(sets):
            return set(VALUES).intersection(*map(meaning, sets))
        case symbolic.Complement(of):
            return known - meaning(of)
    raise TypeError(symbol)


def members(found: Sets, column: int = 0) -> set[int]:
    column = 0 if found.low.shape[1] == 1 else column
    low, high = found.low[:, column], found.high[:, column]
    return {code for code in VALUES if bool(((low <= code) & (code <= high)).any())}


constants = st.one_of(st.integers(-4, 4), st.sampled_from([HIGHEST, HIGHEST + 1, LOWEST + 1, LOWEST - 5])).map(
    lambda value: Constant(value, "integer")
)
operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
symbols: st.SearchStrategy[symbolic.Set] = st.recursive(
    st.one_of(
        st.builds(symbolic.Compared, operators, constants),
        st.builds(symbolic.Listed, st.lists(constants, min_size=1, max_size=4).map(tuple)),
        st.just(symbolic.Nulls()),
        st.just(symbolic.Values()),
    ),
    lambda inner: st.one_of(
        st.builds(symbolic.Union, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(symbolic.Intersection, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(symbolic.Complement, inner),
    ),
    max_leaves=8,
)


def check_shape(found: Sets) -> None:
    """Intervals in use are sorted, disjoint and not adjacent; unused places are empty intervals at the end."""
    for column in range(found.low.shape[1]):
        used = found.nonempty[:, column]
        low, high = found.low[used, column].tolist(), found.high[used, column].tolist()
        assert all(high[at] + 1 < low[at + 1] for at in range(len(low) - 1))


@settings(max_examples=500, deadline=None)
@given(symbols)
def test_every_symbol_is_the_set_it_says(symbol: symbolic.Set) -> None:
    found = evaluate(symbol, Integers(), literals_of)
    check_shape(found)
    assert members(found) == meaning(symbol)


def supplying(values: list[int]) -> Callable[[Operand], Literals]:
    def supply(operand: Operand) -> Literals:
        return Literals("integer", integers=np.array(values)) if isinstance(operand, Slot) else literals_of(operand)

    return supply


def with_slot(symbol: symbolic.Set, slot: Operand) -> symbolic.Set:
    """Return the symbol with every comparison made with the slot."""
    match symbol:
        case symbolic.Compared(operator, _):
            return symbolic.Compared(operator, slot)
        case symbolic.Listed(constants):
            return symbolic.Listed((slot, *constants[1:]))
        case symbolic.Union(sets) | symbolic.Intersection(sets):
            return type(symbol)(tuple(with_slot(each, slot) for each in sets))
        case symbolic.Complement(of):
            return symbolic.Complement(with_slot(of, slot))
    return symbol


@settings(max_examples=300, deadline=None)
@given(symbols, st.lists(st.integers(-4, 4), min_size=1, max_size=5))
def test_a_column_for_each_subscription_is_its_own_set(symbol: symbolic.Set, values: list[int]) -> None:
    found = evaluate(with_slot(symbol, Slot(0, "integer")), Integers(), supplying(values))
    check_shape(found)
    for column, value in enumerate(values):
        assert members(found, column) == meaning(with_slot(symbol, Constant(value, "integer")))


@given(symbols, symbols)
def test_intersection_is_intersection(one: symbolic.Set, other: symbolic.Set) -> None:
    found = intersected(evaluate(one, Integers(), literals_of), evaluate(other, Integers(), literals_of))
    check_shape(found)
    assert members(found) == meaning(one) & meaning(other)


@pytest.mark.parametrize("symbol", [symbolic.Values(), symbolic.Compared("<>", Constant(HIGHEST, "integer"))], ids=str)
def test_a_complement_is_undone_by_another(symbol: symbolic.Set) -> None:
    twice = symbolic.Complement(symbolic.Complement(symbol))
    assert members(evaluate(twice, Integers(), literals_of)) == meaning(symbol)


def test_a_wide_list_is_one_set() -> None:
    listed = symbolic.Listed(tuple(Constant(number * 2, "integer") for number in range(1000)))
    found = evaluate(listed, Integers(), literals_of)
    assert found.nonempty.sum() == 1000
    adjacent = symbolic.Listed(tuple(Constant(number, "integer") for number in range(1000)))
    assert evaluate(adjacent, Integers(), literals_of).nonempty.sum() == 1
