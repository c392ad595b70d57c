"""Random expression trees, such as the parser makes them, as Hypothesis strategies."""

from __future__ import annotations

import math
from decimal import Decimal

from hypothesis import strategies as st

from tocsin.kernels.language import literals as shapes
from tocsin.language.tree import (
    Affix,
    And,
    Between,
    Call,
    Comparison,
    Constant,
    Expression,
    Field,
    Fixed,
    InNetwork,
    IsNull,
    IsTruth,
    Like,
    Matches,
    Membership,
    Not,
    Or,
    Truth,
    Variable,
)

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
WORDS = (
    "a",
    "b",
    "price",
    "Zone",
    "é",
    "日本",
    "with space",
    "select",
    "and",
    "null",
    "date",
    "x1",
    "_",
    "a-b",
    "0",
    "1e5",
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.one_of(
    st.sampled_from(WORDS),
    st.text(st.characters(codec="utf-8", exclude_characters="`.", exclude_categories=("C",)), min_size=1, max_size=5),
)
"""Any name but one with a backtick, a point or a control character: those are tested by themselves."""

integers = st.one_of(st.integers(-10, 10), st.integers(-(10**37), 10**37)).map(lambda value: Constant(value, "integer"))
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=3).map(
    lambda value: Constant(value, "decimal")
)
doubles = st.floats(allow_nan=False).map(lambda value: Constant(value, "double"))
strings = texts.map(lambda value: Constant(value, "string"))
times = st.one_of(
    st.dates().map(lambda value: Constant(value.isoformat(), "date")),
    st.datetimes().map(lambda value: Constant(str(value), "timestamp")),
    st.datetimes().map(lambda value: Constant(str(value), "timestamp_ntz")),
)
booleans = st.booleans().map(lambda value: Constant(value, "boolean"))
null = st.just(Constant(None, "null"))
constants = st.one_of(integers, decimals, doubles, strings, times, booleans, null)

plain_fields = st.lists(names, min_size=1, max_size=3).map(lambda path: Field(tuple(path)))
fields = st.builds(
    Field, st.lists(names, min_size=1, max_size=3).map(tuple), st.sampled_from(("", "", "lower", "upper"))
)


def like_of(field: Field, pattern: str, escape: str, case_blind: bool) -> Like:
    """Return a LIKE as the parser makes it from what the printer writes: the shape is the class of the literal."""
    shape = shape_of(pattern) if escape == "\\" else 0
    return Like(field, Constant(pattern, "string"), shape, escape, case_blind)


def shape_of(pattern: str) -> int:
    """Return the class of the literal that the printer writes for a pattern."""
    if any(character in pattern for character in "\\'\n\r\t\0"):
        return shapes.INTRICATE
    wild = [at for at, character in enumerate(pattern) if character in "%_"]
    if not wild:
        return shapes.PLAIN
    if any(pattern[at] == "_" for at in wild):
        return shapes.INTRICATE
    if wild == [len(pattern) - 1]:
        return shapes.STARTS
    if wild == [0]:
        return shapes.ENDS
    return shapes.CONTAINS if wild == [0, len(pattern) - 1] else shapes.INTRICATE


patterns = st.text(st.sampled_from("ab%_é'\\\n!"), max_size=6)
likes = st.builds(like_of, fields, patterns, st.sampled_from("\\\\!#"), st.booleans())
calls = st.builds(
    Call,
    st.sampled_from(("near", "f", "is_a")),
    st.lists(st.one_of(plain_fields, strings, integers, st.just(Variable("v"))), max_size=3).map(tuple),
)
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Comparison, st.sampled_from(OPERATORS), fields, constants),
    st.builds(Between, fields, constants, constants),
    st.builds(Membership, fields, st.lists(constants, min_size=1, max_size=4).map(tuple)),
    likes,
    st.builds(Matches, fields, strings),
    st.builds(Affix, st.sampled_from(("startswith", "endswith", "contains")), fields, strings),
    st.builds(InNetwork, plain_fields, strings),
    st.builds(IsNull, fields),
    st.builds(IsTruth, fields, st.booleans()),
    st.builds(Truth, plain_fields),
    st.builds(Fixed, st.sampled_from((True, False, None))),
    calls,
)


def joined(kind: type[And] | type[Or], terms: list[Expression]) -> Expression:
    """Return the terms under one connective, flattened as the parser flattens them."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, kind) else (term,))]
    return kind(tuple(flat))


def nested(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Return one more level of logic around expressions."""
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        inner.map(Not), several.map(lambda terms: joined(And, terms)), several.map(lambda terms: joined(Or, terms))
    )


trees = st.recursive(leaves, nested, max_leaves=8)
"""Expressions such as the parser makes them: no AND directly below an AND, no OR directly below an OR."""

Number = int | float | Decimal


def is_finite(value: Number) -> bool:
    """Return whether a number is neither NaN nor infinite."""
    return not isinstance(value, float) or math.isfinite(value)
