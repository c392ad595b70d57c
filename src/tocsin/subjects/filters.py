"""Filters: which of its own regions must be matched for a publication or a subscription to match.

A filter is kept as *terms*, pairs of bit masks over the regions: one term must hold, and it does when all of its first
mask and none of its second are matched.
"""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.errors import ExpressionError, FilterError
from tocsin.language.parser import parse
from tocsin.language.tree import And, Expression, Not, Or, Truth
from tocsin.space.scalars import brief
from tocsin.space.space import nearest_of

Term = tuple[int, int]
Terms = tuple[Term, ...]

MOST_REGIONS = 62
"""How many regions one publication or subscription may have: a bit each in 64, and room for the sign."""

MOST_TERMS = 1024


def terms_of(filter: str, regions: Sequence[str]) -> Terms:
    """Return the terms of ``all``, ``any`` or a boolean expression over these regions.

    >>> terms_of("all", ["a", "b"]), terms_of("any", ["a", "b"]), terms_of("a AND NOT b", ["a", "b"])
    (((3, 0),), ((1, 0), (2, 0)), ((1, 2),))
    """
    if not isinstance(filter, str):
        raise FilterError(f"a filter is 'all', 'any' or an expression over regions, not {brief(filter)}")
    if filter == "all":
        return (((1 << len(regions)) - 1, 0),)
    if filter == "any":
        return tuple((1 << bit, 0) for bit in range(len(regions)))
    try:
        tree = parse(filter)
    except ExpressionError as error:
        raise FilterError(f"the filter is not a boolean expression over regions: {error}") from None
    terms = _terms(tree, {name: 1 << bit for bit, name in enumerate(regions)}, True)
    kept = tuple(dict.fromkeys((must, never) for must, never in terms if not must & never))
    if any(must == 0 for must, _ in kept):
        raise FilterError(f"the filter {filter!r} holds where no region matches; it must need at least one of them")
    return kept


def _terms(node: Expression, bits: dict[str, int], wanted: bool) -> list[Term]:
    """Return the terms under which a node has the wanted truth."""
    match node:
        case Truth(field):
            name = ".".join(field.path)
            if name not in bits:
                raise FilterError(f"the filter names the region {name}; {nearest_of(name, list(bits))}")
            return [(bits[name], 0)] if wanted else [(0, bits[name])]
        case Not(term):
            return _terms(term, bits, not wanted)
        case And(terms) | Or(terms):
            parts = [_terms(term, bits, wanted) for term in terms]
            if isinstance(node, And) != wanted:
                return [each for part in parts for each in part]
            found: list[Term] = [(0, 0)]
            for part in parts:
                found = [(one | must, two | never) for one, two in found for must, never in part]
                if len(found) > MOST_TERMS:
                    raise FilterError(f"the filter has more than {MOST_TERMS:,} alternatives; write fewer")
            return found
        case _:
            raise FilterError("a filter has names of regions, AND, OR, NOT and parentheses, and nothing else")
