"""Joining what operators bind: is there a substitution of values for the variables that makes all parts true?

A conjunction is a join, as SQL's: each call outside NOT contributes one of its rows, values of one variable must be
equal, and every other part must hold of them. A call whose result is unknown contributes one row of unknown values.
Whatever order that is computed in, it comes to the same.

Two questions are asked of a part: whether it is *certainly* as wanted, and whether it is *possibly* so, that is, not
certainly the opposite. A negation holds if its inside is not possibly TRUE, so that what failed makes neither a call
nor its negation hold. Where a field is unspecified and spans its domain, a call without variables satisfies whatever is
wanted: it is certainly TRUE and certainly FALSE.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tocsin.kernels.operators.programs import IS_ANY, IS_FALSE, IS_NULL, IS_TRUE
from tocsin.language.scopes import alternatives
from tocsin.language.symbolic import Check
from tocsin.language.tree import And, Call, Constant, Constraint, Exists, Expression, Fixed, Leaf, Not, Or, Variable
from tocsin.language.variables import names_in
from tocsin.operators.joins import Bound, Budget, Relation, Row, Test, Values, joined, merged
from tocsin.operators.values import UNKNOWN, Fields, equal, truth


class Outcome(NamedTuple):
    """What a call came to for one event: its state, what it bound, and how it failed if it did."""

    state: int
    bindings: tuple[tuple[Any, ...], ...] = ()
    failure: str | None = None
    message: str = ""


NOTHING_BOUND = Outcome(IS_FALSE)
UNKNOWN_OUTCOME = Outcome(IS_NULL)
ANY_OUTCOME = Outcome(IS_ANY)

_UNKNOWN = (UNKNOWN,)
_NO_NAMES: frozenset[str] = frozenset()
_MANY_FORMS = 10_000
_forms: dict[int, tuple[Exists, list[list[Check]]]] = {}


class Known(NamedTuple):
    """What is known of one event: the outcome of a call, the values of fields, whether an ordinary leaf comes out as
    wanted."""

    outcome: Callable[[Call], Outcome]
    fields: Fields
    leaf: Callable[[Leaf, bool], bool] = lambda leaf, wanted: False


def holds(checks: Sequence[Check], known: Known) -> bool:
    """Return whether some substitution makes all checks come out as wanted. TooManyBindingsError if that takes more
    combinations than are tried."""
    return _Event(known).solution(checks, {}, possible=False) is not None


def three_valued(checks: Sequence[Check], known: Known) -> bool | None:
    """Return TRUE, FALSE or unknown for a conjunction."""
    event = _Event(known)
    if event.solution(checks, {}, possible=False) is not None:
        return True
    return False if event.solution(checks, {}, possible=True) is None else None


def substitution(checks: Sequence[Check], known: Known) -> Mapping[str, Any] | None:
    """Return one substitution under which all checks come out as wanted, or None."""
    bound = _Event(known).solution(checks, {}, possible=False)
    return None if bound is None else {name: values[0] for name, values in bound.items()}


class _Event:
    """What is asked of one event."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._budget = Budget()
        self._relations: dict[tuple[int, bool, frozenset[str]], Relation] = {}

    def solution(self, checks: Iterable[Check], bound: Bound, possible: bool) -> Bound | None:
        """Return a substitution, ``bound`` and more, that makes all checks come out as wanted, or None."""
        relations, tests = [], []
        for check in checks:
            if check.wanted and isinstance(check.leaf, Call):
                relation = self._relation(check.leaf, possible, bound)
                if not relation.rows:
                    return None
                relations.append(relation)
            else:
                tests.append(check)
        tests.sort(key=_lateness)
        names = {name for relation in relations for name in relation.names}
        return joined(relations, [self._test(each, names, possible) for each in tests], bound, self._budget)

    def _test(self, check: Check, names: set[str], possible: bool) -> Test:
        leaf, wanted = check.leaf, check.wanted
        own = names_in(leaf)
        if not isinstance(leaf, Constraint):
            return Test(own & names, lambda bound: self._passes(leaf, wanted, bound, possible), early=False)

        def passes(bound: Bound) -> bool:
            found = self._truth(leaf, own, bound)
            return found is wanted or (possible and found is None)

        return Test(own & names, passes, early=wanted)

    def _passes(self, part: Expression, wanted: bool, bound: Bound, possible: bool) -> bool:
        """Return whether a part comes out as wanted under a substitution; variables not in it are the part's own."""
        if isinstance(part, Not):
            return self._passes(part.term, not wanted, bound, possible)
        if isinstance(part, (And, Or)):
            found = (self._passes(term, wanted, bound, possible) for term in part.terms)
            return all(found) if isinstance(part, And) == wanted else any(found)
        if isinstance(part, Fixed):
            return part.value is wanted or (possible and part.value is None)
        if isinstance(part, Constraint):
            constrained = self._truth(part, names_in(part), bound)
            return constrained is wanted or (possible and constrained is None)
        if isinstance(part, Call):
            relation = self._relation(part, possible if wanted else not possible, bound)
            return any(True for _ in relation.extensions(bound, bound, self._budget)) == wanted
        if isinstance(part, Exists):
            mode = possible if wanted else not possible
            inside = (self.solution(checks, bound, mode) for checks in _alternatives(part))
            return any(one is not None for one in inside) == wanted
        return not self._known.leaf(part, not wanted) if possible else self._known.leaf(part, wanted)

    def _truth(self, leaf: Constraint, names: frozenset[str], bound: Bound) -> bool | None:
        """Return the truth of a constraint: of all the values that its variables have."""
        single = {}
        for name in names:
            values = bound.get(name, _UNKNOWN)
            if len(values) > 1:
                break
            single[name] = values[0]
        else:
            return truth(leaf, single, self._known.fields)
        found = [
            truth(leaf, dict(zip(names, chosen, strict=True)), self._known.fields)
            for chosen in itertools.product(*(bound.get(name, _UNKNOWN) for name in names))
        ]
        return False if False in found else None if None in found else True

    def _relation(self, call: Call, possible: bool, outer: Bound) -> Relation:
        """Return the rows under which a call is TRUE, or possibly so; ``outer`` are the variables bound around it."""
        outputs = outputs_of(call)
        names = tuple(dict.fromkeys(each.name for each in outputs if isinstance(each, Variable)))
        given = frozenset(names).intersection(outer) if possible and len(names) < len(outputs) else _NO_NAMES
        found = self._relations.get((id(call), possible, given))
        if found is None:
            rows = _rows(self._known.outcome(call), outputs, names, possible, given)
            found = self._relations[id(call), possible, given] = Relation(names, rows, possible)
        return found


def _rows(
    outcome: Outcome, outputs: tuple[Any, ...], names: tuple[str, ...], possible: bool, given: frozenset[str]
) -> list[Row]:
    if outcome.state == IS_ANY and not names:
        return [] if possible else [()]
    if outcome.state == IS_FALSE or (outcome.state != IS_TRUE and not possible):
        return []
    if not outputs:
        return [()]
    bindings = outcome.bindings if outcome.state == IS_TRUE else ((UNKNOWN,) * len(outputs),)
    rows = (_unified(outputs, names, binding, possible, given) for binding in bindings)
    return [row for row in rows if row is not None]


def outputs_of(call: Call) -> tuple[Any, ...]:
    """Return what stands in a call for what its operator returns: variables and constants, or nothing at all."""
    if not call.operator.outputs or len(call.arguments) == len(call.operator.parameters):
        return ()
    return call.arguments[len(call.arguments) - len(call.operator.outputs) :]


def _unified(
    outputs: tuple[Any, ...], names: tuple[str, ...], binding: Values, possible: bool, given: frozenset[str]
) -> Row | None:
    """Return the values of each variable when the outputs of a call are these, or None if those contradict each other
    or a constant. Of a variable that is ``given`` its value all of them are kept: each is compared with that value, and
    not with the others."""
    if len(names) == len(outputs):
        return tuple((value,) for value in binding)
    held: dict[str, Values] = {}
    for output, value in zip(outputs, binding, strict=True):
        if isinstance(output, Constant):
            same = equal(output.value, value)
            if same is False or (same is None and not possible):
                return None
            continue
        before = held.get(output.name, ())
        after = (*before, value) if output.name in given else merged(before, (value,), possible)
        if after is None:
            return None
        held[output.name] = after
    return tuple(held[name] for name in names)


def _lateness(check: Check) -> int:
    """Return when a part is tested: constraints as soon as they can be, what takes further calls last."""
    return 0 if isinstance(check.leaf, Constraint) else 2 if isinstance(check.leaf, (Call, Exists)) else 1


def _checks(parts: Iterable[Expression]) -> list[Check]:
    return [Check(part.term, False) if isinstance(part, Not) else Check(part, True) for part in parts]  # type: ignore[arg-type]


def _alternatives(exists: Exists) -> list[list[Check]]:
    """Return the conjunctions inside an `Exists`, remembered."""
    found = _forms.get(id(exists))
    if found is None or found[0] is not exists:
        if len(_forms) >= _MANY_FORMS:
            _forms.clear()
        found = _forms[id(exists)] = exists, [_checks(parts) for parts in alternatives(exists.term)]
    return found[1]
