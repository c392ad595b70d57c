"""Joining what operators bind: is there a substitution of values for the variables that makes all parts true?

Two questions are asked of a part: whether it is *certainly* TRUE, and whether it is *possibly* TRUE (TRUE or unknown).
A negation holds if its inside is not possibly TRUE, so that what failed makes neither a call nor its negation hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tocsin.kernels.operators.programs import IS_ANY, IS_FALSE, IS_NULL, IS_TRUE
from tocsin.language.symbolic import Check
from tocsin.language.tree import (
    And,
    Call,
    Constant,
    Constraint,
    Exists,
    Expression,
    Fixed,
    Leaf,
    Not,
    Or,
    Variable,
)
from tocsin.language.variables import names_in
from tocsin.operators.values import UNKNOWN, Fields, equal, truth

Bound = Mapping[str, Any]


class Outcome(NamedTuple):
    """What a call came to for one event: its state, what it bound, and how it failed if it did."""

    state: int
    bindings: tuple[tuple[Any, ...], ...] = ()
    failure: str | None = None
    message: str = ""


NOTHING_BOUND = Outcome(IS_FALSE)
UNKNOWN_OUTCOME = Outcome(IS_NULL)
ANY_OUTCOME = Outcome(IS_ANY)


class Known(NamedTuple):
    """What is known of one event: the outcome of a call, the values of fields, the truth of an ordinary leaf."""

    outcome: Callable[[Call], Outcome]
    fields: Fields
    leaf: Callable[[Leaf], bool | None] = lambda leaf: None


def holds(checks: Sequence[Check], known: Known) -> bool:
    """Return whether some substitution makes all checks come out as wanted."""
    return any(True for _ in _all(list(checks), {}, known, possible=False))


def three_valued(checks: Sequence[Check], known: Known) -> bool | None:
    """Return TRUE, FALSE or unknown for a conjunction."""
    if holds(checks, known):
        return True
    return None if any(True for _ in _all(list(checks), {}, known, possible=True)) else False


def satisfying(expression: Expression, known: Known) -> Bound | None:
    """Return one substitution that makes a whole expression TRUE, or None."""
    return next(_expression(expression, True, {}, known, possible=False), None)


def substitution(checks: Sequence[Check], known: Known) -> Bound | None:
    """Return one substitution under which all checks come out as wanted, or None."""
    return next(_all(list(checks), {}, known, possible=False), None)


def _all(checks: list[Check], bound: Bound, known: Known, possible: bool) -> Iterator[Bound]:
    """Yield the substitutions that make all checks come out as wanted: what can be tested first, calls that bind
    next, negations when nothing more can be bound."""
    if not checks:
        yield bound
        return
    ready = next((at for at, each in enumerate(checks) if _is_ready(each, bound)), None)
    if ready is None:
        ready = next((at for at, each in enumerate(checks) if each.wanted and isinstance(each.leaf, Call)), 0)
    check, others = checks[ready], checks[:ready] + checks[ready + 1 :]
    for more in _one(check, bound, known, possible):
        yield from _all(others, more, known, possible)


def _is_ready(check: Check, bound: Bound) -> bool:
    return isinstance(check.leaf, Constraint) and names_in(check.leaf) <= bound.keys()


def _one(check: Check, bound: Bound, known: Known, possible: bool) -> Iterator[Bound]:
    """Yield the substitutions, each ``bound`` or more, that make one check come out as wanted."""
    leaf, wanted = check.leaf, check.wanted
    if isinstance(leaf, Constraint):
        found = truth(leaf, bound, known.fields) if names_in(leaf) <= bound.keys() else None
        if found is wanted or (possible and found is None):
            yield bound
    elif isinstance(leaf, Exists):
        inside = _expression(leaf.term, True, bound, known, possible=possible if wanted else not possible)
        if any(True for _ in inside) == wanted:
            yield bound
    elif isinstance(leaf, Call):
        if wanted:
            yield from _bound_by(leaf, bound, known, possible)
        elif not any(True for _ in _bound_by(leaf, bound, known, not possible)) or _is_any(leaf, known):
            yield bound
    else:
        found = known.leaf(leaf)
        if found is wanted or (possible and found is None):
            yield bound


def _is_any(call: Call, known: Known) -> bool:
    return not names_in(call) and known.outcome(call).state == IS_ANY


def _bound_by(call: Call, bound: Bound, known: Known, possible: bool) -> Iterator[Bound]:
    """Yield the substitutions under which a call is TRUE, or possibly so."""
    outcome = known.outcome(call)
    outputs = call.arguments[len(call.arguments) - len(call.operator.outputs) :] if call.operator.outputs else ()
    if len(call.arguments) == len(call.operator.parameters):
        outputs = ()
    if not outputs:
        if outcome.state in (IS_TRUE, IS_ANY) or (possible and outcome.state == IS_NULL):
            yield bound
        return
    bindings = outcome.bindings
    if possible and outcome.state in (IS_NULL, IS_ANY):
        bindings = ((UNKNOWN,) * len(outputs),)
    for binding in bindings:
        more = _unified(outputs, binding, bound, possible)
        if more is not None:
            yield more


def _unified(outputs: Sequence[Any], binding: tuple[Any, ...], bound: Bound, possible: bool) -> Bound | None:
    """Return what is bound when the outputs of a call are these values, or None if that contradicts what is."""
    more = dict(bound)
    for output, value in zip(outputs, binding, strict=True):
        if isinstance(output, Variable) and output.name not in more:
            more[output.name] = value
            continue
        held = output.value if isinstance(output, Constant) else more[output.name]
        same = equal(held, value)
        if same is False or (same is None and not possible):
            return None
    return more


def _expression(expression: Expression, wanted: bool, bound: Bound, known: Known, possible: bool) -> Iterator[Bound]:
    """Yield the substitutions that make an expression inside an `Exists` come out as wanted."""
    if isinstance(expression, Not):
        yield from _expression(expression.term, not wanted, bound, known, possible)
    elif isinstance(expression, (And, Or)) and isinstance(expression, And) == wanted:
        yield from _conjunction(list(expression.terms), wanted, bound, known, possible)
    elif isinstance(expression, (And, Or)):
        for term in expression.terms:
            yield from _expression(term, wanted, bound, known, possible)
    elif isinstance(expression, Fixed):
        if expression.value is wanted or (possible and expression.value is None):
            yield bound
    else:
        yield from _one(Check(expression, wanted), bound, known, possible)


def _conjunction(terms: list[Expression], wanted: bool, bound: Bound, known: Known, possible: bool) -> Iterator[Bound]:
    """Yield the substitutions of a conjunction: its parts that bind come before those that only test."""
    if not terms:
        yield bound
        return
    at = next(
        (i for i, term in enumerate(terms) if isinstance(term, Constraint) and names_in(term) <= bound.keys()), -1
    )
    if at < 0:
        at = min(range(len(terms)), key=lambda i: _lateness(terms[i], wanted))
    for more in _expression(terms[at], wanted, bound, known, possible):
        yield from _conjunction(terms[:at] + terms[at + 1 :], wanted, more, known, possible)


def _lateness(term: Expression, wanted: bool) -> int:
    """Return when a part of a conjunction is to be tested: calls that bind, then alternatives, then negations."""
    if isinstance(term, Not):
        return _lateness(term.term, not wanted)
    if isinstance(term, Call):
        return 0 if wanted else 3
    if isinstance(term, (And, Or)):
        return 1 if isinstance(term, And) == wanted else 2
    return 4 if isinstance(term, Constraint) else 5
