"""Where the variables of an expression are bound: which are shared with the outside of a NOT, and which are its own.

An expression is the disjunction of its *alternatives*, the conjunctions that come of multiplying out the ORs that stand
outside NOT. A variable belongs to an alternative: calls outside NOT bind it. A NOT inside shares the variables that its
alternative binds; any other variable is its own, and no values of those may make the inside TRUE. Alternatives of an OR
under a NOT have variables of their own likewise.

`scoped` makes that plain in the tree, so that nothing after it has to think of scopes: a NOT stands only around a leaf,
a call or an `Exists`, and names that mean different variables are different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tocsin.errors import ExpressionLimitError
from tocsin.language.tree import And, Call, Exists, Expression, Not, Or, Variable
from tocsin.language.variables import filled, names_in, parts_of

MAX_ALTERNATIVES = 1024
"""The most conjunctions that ORs around variables may come to."""

Names = frozenset[str]
Alternative = tuple[Expression, ...]


def scoped(expression: Expression) -> Expression:
    """Return the expression with the scope of each variable made plain.

    >>> from tocsin.language.parser import parse
    >>> from tocsin.language.printer import to_text
    >>> to_text(scoped(parse("a(:x) OR NOT (b(:x) AND c(:x))")))
    'a(:x) OR NOT (b(:x_2) AND c(:x_2))'
    >>> to_text(scoped(parse("a(:x) AND NOT (b(:x) AND :x > 5)")))
    'a(:x) AND (NOT b(:x) OR NOT :x > 5)'
    """
    total = Counter(variable.name for variable in parts_of(expression, Variable))
    return _Scopes(total).body(expression, frozenset()) if total else expression


def alternatives(expression: Expression) -> list[Alternative]:
    """Return the conjunctions whose disjunction is the expression; an OR that neither binds nor negates variables is
    one part, and so is what stands under NOT."""
    if isinstance(expression, Or) and _matters(expression):
        return _bounded(found for term in expression.terms for found in alternatives(term))
    if isinstance(expression, And):
        product: list[Alternative] = [()]
        for term in expression.terms:
            found = alternatives(term)
            product = _bounded((*one, *other) for one in product for other in found)
        return product
    if isinstance(expression, Not) and isinstance(expression.term, Not):
        return alternatives(expression.term.term)
    return [(expression,)]


def bound_in(parts: Iterable[Expression]) -> Names:
    """Return the variables that the calls among the parts bind."""
    return frozenset(name for part in parts if isinstance(part, Call) for name in names_in(part))


def _bounded(found: Iterator[Alternative]) -> list[Alternative]:
    held = []
    for each in found:
        held.append(each)
        if len(held) > MAX_ALTERNATIVES:
            raise ExpressionLimitError(
                f"the expression needs more than {MAX_ALTERNATIVES:,} conjunctions, as operators stand in its ORs; "
                "write fewer alternatives, or several subscriptions"
            )
    return held


def _matters(expression: Expression) -> bool:
    """Return whether an OR binds variables or has them under NOT."""
    return any(names_in(part) for kind in (Call, Not) for part in parts_of(expression, kind))


def _binds(expression: Expression) -> Names:
    """Return the variables that some call outside NOT binds."""
    if isinstance(expression, (And, Or)):
        return frozenset().union(*map(_binds, expression.terms))
    if isinstance(expression, Not):
        return _binds(expression.term.term) if isinstance(expression.term, Not) else frozenset()
    return names_in(expression) if isinstance(expression, Call) else frozenset()


def _shared(found: list[Alternative], outer: Names) -> dict[int, Names] | None:
    """Return the variables of each NOT that are bound around it; None if that differs among the alternatives that it
    stands in."""
    shared: dict[int, Names] = {}
    for alternative in found:
        bound = outer | bound_in(alternative)
        for part in alternative:
            if isinstance(part, Not):
                names = bound & names_in(part)
                if shared.setdefault(id(part), names) != names:
                    return None
    return shared


class _Scopes:
    """``total`` counts the occurrences of each name in the whole expression; a name that is its own scope's and occurs
    elsewhere too is replaced by one that does not."""

    def __init__(self, total: Counter[str]) -> None:
        self._total = total

    def body(self, expression: Expression, outer: Names) -> Expression:
        """Return the inside of a scope; ``outer`` are the variables that are bound around it."""
        if not any(names_in(part) for part in parts_of(expression, Not)):
            return expression
        found = alternatives(expression)
        shared = _shared(found, outer)
        if shared is not None:
            return self._kept(expression, shared)
        return Or(tuple(self._conjunction(each, outer) for each in found))

    def _kept(self, expression: Expression, shared: dict[int, Names]) -> Expression:
        """Return an expression in its form; ``shared`` has the variables of each NOT that are bound around it."""
        if isinstance(expression, (And, Or)):
            return type(expression)(tuple(self._kept(term, shared) for term in expression.terms))
        if not isinstance(expression, Not):
            return expression
        if isinstance(expression.term, Not):
            return self._kept(expression.term.term, shared)
        return self._negated(expression.term, shared.get(id(expression), frozenset()))

    def _conjunction(self, parts: Alternative, outer: Names) -> Expression:
        bound = outer | bound_in(parts)
        terms = tuple(self._negated(part.term, bound) if isinstance(part, Not) else part for part in parts)
        return terms[0] if len(terms) == 1 else And(terms)

    def _negated(self, term: Expression, outer: Names) -> Expression:
        """Return the negation of a term inside which only ``outer`` are bound."""
        if not names_in(term):
            return Not(term)
        if isinstance(term, Or):
            return And(tuple(self._negated(each, outer) for each in term.terms))
        if isinstance(term, And) and not _binds(term) - outer:
            return Or(tuple(self._negated(each, outer) for each in term.terms))
        if isinstance(term, And):
            found = alternatives(term)
            if _shared(found, outer) is None:
                return And(tuple(self._negated(And(each), outer) for each in found))
            return Not(Exists(self.body(self._own(term, outer), outer)))
        if isinstance(term, Not):
            return self.body(self._own(term.term, outer), outer)
        return Not(self._own(term, outer) if isinstance(term, Call) else term)

    def _own(self, expression: Expression, outer: Names) -> Expression:
        """Return an expression whose variables that are not bound outside occur nowhere else."""
        within = Counter(variable.name for variable in parts_of(expression, Variable))
        renamed: dict[Variable, Variable] = {}
        for name, count in within.items():
            if name not in outer and self._total[name] > count:
                fresh = self._fresh(name)
                renamed[Variable(name)] = Variable(fresh)
                self._total[fresh] = count
        return filled(expression, renamed) if renamed else expression

    def _fresh(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._total:
            number += 1
        return f"{name}_{number}"
