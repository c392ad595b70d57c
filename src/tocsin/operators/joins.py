"""Hash joins of rows on the variables that they share, with a bound on the combinations that are tried.

A variable may have several values at once: where calls return equal values of different types, 1 and 1.0, it has both;
and where it is only possible that values are equal, as of a call that failed, it has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from tocsin.operators.values import equal, family_of, join_key

MAX_COMBINATIONS = 100_000
"""The most combinations of rows that are tried to decide one conjunction, with what is inside its NOTs, for one event.
What takes more has failed."""

Values = tuple[Any, ...]
Bound = Mapping[str, Values]
Row = tuple[Values, ...]


_FEW_ROWS = 4
"""So many rows are gone through faster than looked up."""

_PLAIN = (int, str, bool)

TOO_MANY = "too many bindings"
"""How that is counted among the failures of the operators."""


class TooManyBindingsError(Exception):
    """A conjunction takes more combinations of rows than are tried. Internal: it is told as a failure."""

    def __init__(self) -> None:
        super().__init__(f"the calls of one conjunction bind more than {MAX_COMBINATIONS:,} combinations of values")


class Test(NamedTuple):
    """A test of a substitution: the variables of the join that it needs, and whether what it rejects is rejected with
    further values of those too, so that it may be tested early."""

    names: frozenset[str]
    passes: Callable[[Bound], bool]
    early: bool


class Relation:
    """Rows that a call contributes, for each of its variables its values, and how they are looked up.

    ``possible``: equality need only be possible. Then rows are looked up by their first variable that is bound, and
    those whose value there is of another family, so that nothing is known of their equality, are added.
    """

    def __init__(self, names: tuple[str, ...], rows: list[Row], possible: bool) -> None:
        self.names, self.rows, self._possible = names, rows, possible
        self._equal: dict[tuple[int, ...], dict[Any, list[Row]]] = {}
        self._others: dict[tuple[int, str], list[Row]] = {}

    def extensions(self, bound: Bound, outer: Bound, budget: Budget) -> Iterator[Bound]:
        """Yield what is bound together with each row that agrees with it; what is bound ``outer`` keeps its values."""
        for row in self._candidates(bound):
            budget.spend()
            more = dict(bound)
            for name, values in zip(self.names, row, strict=True):
                held = bound.get(name)
                both = values if held is None else merged(held, values, self._possible)
                if both is None:
                    break
                if name not in outer:
                    more[name] = both
            else:
                yield more

    def _candidates(self, bound: Bound) -> list[Row]:
        """Return the rows that may agree with what is bound."""
        places = tuple(place for place, name in enumerate(self.names) if name in bound)
        if not places or len(self.rows) <= _FEW_ROWS:
            return self.rows
        if self._possible:
            return self._possibly_equal(places[0], bound[self.names[places[0]]])
        key = tuple(join_key(bound[self.names[place]][0]) for place in places)
        return self._rows_by(places).get(key, [])

    def _rows_by(self, places: tuple[int, ...]) -> dict[Any, list[Row]]:
        found = self._equal.get(places)
        if found is None:
            found = self._equal[places] = {}
            for row in self.rows:
                found.setdefault(tuple(join_key(row[place][0]) for place in places), []).append(row)
        return found

    def _possibly_equal(self, place: int, values: Values) -> list[Row]:
        family = family_of(values[0])
        if family is None or any(family_of(value) != family for value in values):
            return self.rows
        others = self._others.get((place, family))
        if others is None:
            others = [row for row in self.rows if any(family_of(value) != family for value in row[place])]
            self._others[place, family] = others
        found = self._rows_by((place,)).get((join_key(values[0]),), [])
        if not others:
            return found
        return [row for row in found if all(family_of(value) == family for value in row[place])] + others


class Budget:
    """Counts the combinations tried."""

    def __init__(self) -> None:
        self.left = MAX_COMBINATIONS

    def spend(self) -> None:
        """Count one; TooManyBindingsError if it is one too many."""
        self.left -= 1
        if self.left < 0:
            raise TooManyBindingsError


def joined(relations: list[Relation], tests: list[Test], bound: Bound, budget: Budget) -> Bound | None:
    """Return a substitution made of what is bound and one row of each relation, whose values of one variable are equal,
    and that passes the tests; None if there is none.

    Relations that neither share variables nor are compared with each other are solved each for itself.
    """
    solution = dict(bound)
    for part, own in _components(relations, tests):
        found = next(_Join(part, own, bound, budget).solutions(solution), None)
        if found is None:
            return None
        solution.update(found)
    return solution


def merged(one: Values, other: Values, possible: bool) -> Values | None:
    """Return the values of a variable that has both, or None if they differ."""
    if len(one) == len(other) == 1 and type(one[0]) is type(other[0]) and type(one[0]) in _PLAIN:
        return one if one[0] == other[0] else None
    more = list(one)
    for value in other:
        for held in one:
            same = equal(held, value)
            if same is False or (same is None and not possible):
                return None
        if not any(_is_same(held, value) for held in one):
            more.append(value)
    return tuple(more)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether no constraint can tell two equal values apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
    return one is other or (type(one) in (int, float, str, bool) and bool(one == other or one != one))


def _components(relations: list[Relation], tests: list[Test]) -> Iterator[tuple[list[Relation], list[Test]]]:
    """Yield relations and tests that have to do with each other, tests that need no relation first."""
    free = [test for test in tests if not test.names]
    if free:
        yield [], free
    left, needed = list(relations), [test for test in tests if test.names]
    while left:
        part = [left.pop(0)]
        names = set(part[0].names)
        own: list[Test] = []
        grown = True
        while grown:
            grown = False
            for test in [test for test in needed if test.names & names]:
                needed.remove(test)
                own.append(test)
                names |= test.names
                grown = True
            for relation in [each for each in left if names.intersection(each.names)]:
                left.remove(relation)
                part.append(relation)
                names.update(relation.names)
                grown = True
        yield part, [test for test in tests if test in own]


class _Join:
    """A join of relations that have to do with each other: the smallest first, then those that share variables with
    what there is, the smallest of them first; tests as soon as they can be."""

    def __init__(self, relations: list[Relation], tests: list[Test], bound: Bound, budget: Budget) -> None:
        self._outer, self._budget = bound, budget
        self._steps: list[tuple[Relation, list[Test]]] = []
        self._first = [test for test in tests if not test.names]
        names: set[str] = set(bound)
        left = list(relations)
        while left:
            chosen = min(left, key=lambda each: (not names.intersection(each.names), len(each.rows)))
            left.remove(chosen)
            names.update(chosen.names)
            later = {name for relation in left for name in relation.names}
            ready = [
                test
                for test in tests
                if test.names <= names
                and test.names.intersection(chosen.names)
                and (test.early or not test.names & later)
            ]
            self._steps.append((chosen, ready))

    def solutions(self, bound: Bound) -> Iterator[Bound]:
        """Yield the solutions."""
        if all(test.passes(bound) for test in self._first):
            yield from self._from(0, bound)

    def _from(self, step: int, bound: Bound) -> Iterator[Bound]:
        if step == len(self._steps):
            yield bound
            return
        relation, tests = self._steps[step]
        for more in relation.extensions(bound, self._outer, self._budget):
            if all(test.passes(more) for test in tests):
                yield from self._from(step + 1, more)
