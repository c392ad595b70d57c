"""Why a subscription matches an event, or does not: clause by clause, the nearest miss first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.kernels.operators.programs import IS_ANY, IS_FALSE, IS_TRUE
from tocsin.language import normal, symbolic
from tocsin.language.printer import field_text, to_text
from tocsin.language.symbolic import Check
from tocsin.language.tree import And, Call, Comparison, Constraint, Expression, Fixed, IsNull, Leaf, Membership, Not, Or
from tocsin.language.variables import has_operators, is_operator_part, names_in, parts_of
from tocsin.matcher.meanings import bound_text, constant_number, number_of, value_text
from tocsin.operators.atoms import evaluate_atom
from tocsin.operators.bindings import Known, substitution, three_valued
from tocsin.operators.joins import TooManyBindingsError
from tocsin.operators.values import shown, truth
from tocsin.space.axes import Axes
from tocsin.space.check import Checked
from tocsin.space.codes import ValueProblem
from tocsin.space.events import Encoder
from tocsin.space.nested import elements_of
from tocsin.space.sets import evaluate, literals_of
from tocsin.space.space import Space
from tocsin.space.types import Number

_SIGNS = {True: "✓", False: "✗", None: "?"}
_ALL = 0.0
_LONG = 200
_FAR = 1e9


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of the expression: its text, whether it holds (None: unknown, a NULL is in it), and why.

    ``miss`` says how far it is from holding: 0 if it holds, else the relative distance to the bound, or large where
    there is no distance. ``parts`` are the alternatives or conditions inside.
    """

    text: str
    holds: bool | None
    why: str = ""
    miss: float = _ALL
    parts: tuple[Clause, ...] = ()

    def lines(self, depth: int = 1) -> list[str]:
        """Return the clause and its parts as lines of text."""
        head = f"{'  ' * depth}{_SIGNS[self.holds]} {self.text}"
        return [
            f"{head}    {self.why}" if self.why else head,
            *(line for part in self.parts for line in part.lines(depth + 1)),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the clause as JSON values."""
        return {
            "text": self.text,
            "holds": self.holds,
            "why": self.why,
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a subscription matches an event, and the clauses that decide it, the nearest miss first."""

    id: Any
    matches: bool
    clauses: tuple[Clause, ...]

    def __bool__(self) -> bool:
        return self.matches

    def __str__(self) -> str:
        head = f"{self.id} {'matches' if self.matches else 'does not match'}"
        return "\n".join([head, *(line for clause in self.clauses for line in clause.lines())])

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {"id": self.id, "matches": self.matches, "clauses": [clause.to_json() for clause in self.clauses]}


def explain(
    space: Space,
    id: Hashable,
    checked: Checked,
    event: Mapping[str, Any],
    known: Known | None = None,
    matches: bool | None = None,
) -> Explanation:
    """Explain one subscription, whose names are resolved, for one event; ``known`` is what operators say of it, and
    ``matches``, unless it is to be found here, whether it matches."""
    expression = checked.expression
    explainer = _Explainer(space, checked.opaque, event, known)
    explainer.bind(expression)
    whole = explainer.clause(expression)
    clauses = whole.parts if isinstance(expression, And) else (whole,)
    if matches is None:
        matches = whole.holds is True if explainer.satisfied is None else explainer.satisfied
    shown = clauses if matches else tuple(clause for clause in clauses if clause.holds is not True)
    return Explanation(id, matches, tuple(sorted(shown, key=lambda clause: clause.miss)))


def nearest(explanations: Iterable[Explanation]) -> Explanation:
    """Return the first explanation of a match, or else that of the nearest miss. There is at least one."""
    found: list[Explanation] = []
    for each in explanations:
        if each.matches:
            return each
        found.append(each)
    return min(found, key=lambda each: sum(clause.miss for clause in each.clauses))


class _Explainer:
    def __init__(
        self, space: Space, opaque: frozenset[Leaf], event: Mapping[str, Any], known: Known | None = None
    ) -> None:
        self._space, self._opaque, self._event = space, opaque, event
        self._known = known._replace(leaf=self._comes_out) if known is not None else None
        self._bound: Mapping[str, Any] = {}
        self.satisfied: bool | None = None
        self._encoder = Encoder(Axes(space))

    def bind(self, expression: Expression) -> None:
        """Find values for the variables: such that the expression holds, or else such that the calls do."""
        operators = self._known is not None and has_operators(expression)
        found = None
        if operators or self._space.unspecified == "any":
            found = self._decided(expression)
            self.satisfied = found is not None
        if self._known is None or not operators:
            return
        calls = [Check(call, True) for call in parts_of(expression, Call)]
        for count in range(len(calls), 0, -1):
            with suppress(TooManyBindingsError):
                found = found if found is not None else substitution(calls[:count], self._known)
        self._bound = found or {}

    def _decided(self, expression: Expression) -> Mapping[str, Any] | None:
        """Return the substitution under which the event satisfies the expression as it is planned, box by box; None if
        it does not."""
        node = normal.positive(expression, self._space.repeated, self._opaque)
        boxes = normal.conjunctions(node, self._space.repeated, multiply=True)
        found = (self._inside(each) for each in boxes)
        return next((each for each in found if each is not None), None)

    def _inside(self, conjunction: normal.Conjunction) -> Mapping[str, Any] | None:
        axes = Axes(self._space)
        tests = [symbolic.Test(axis, inside) for axis, inside in conjunction.sets.items()]
        checks, others = [], []
        for each in conjunction.rest:
            if isinstance(each, Check) and is_operator_part(each.leaf):
                checks.append(each)
            else:
                others.append(each)
        if not all(self._satisfied(each, axes) for each in (*tests, *others)):
            return None
        if not checks or self._known is None:
            return None if checks else {}
        with suppress(TooManyBindingsError):
            return substitution(checks, self._known)
        return None

    def clause(self, expression: Expression) -> Clause:
        """Return what an expression comes to."""
        if isinstance(expression, Not):
            inner = self.clause(expression.term)
            holds = None if inner.holds is None else not inner.holds
            return Clause(to_text(expression), holds, inner.why, _ALL if holds else 1.0, inner.parts)
        if isinstance(expression, (And, Or)):
            parts = [self.clause(term) for term in expression.terms]
            misses = [part.miss for part in parts]
            miss = sum(misses) if isinstance(expression, And) else min(misses)
            holds = _joined([part.holds for part in parts], isinstance(expression, And))
            ordered = sorted(parts, key=lambda part: part.miss)
            return Clause(to_text(expression), holds, "", miss, tuple(ordered))
        if is_operator_part(expression):
            return self._operator_part(expression)
        if isinstance(expression, Fixed):
            return Clause(to_text(expression), expression.value, "", _ALL if expression.value else _FAR)
        return self._leaf(expression)

    def _operator_part(self, leaf: Any) -> Clause:
        """Return what a call came to, or a constraint under the values that were found."""
        assert self._known is not None  # operators are there where expressions call them
        if isinstance(leaf, Constraint):
            names = sorted(names_in(leaf))
            holds = truth(leaf, self._bound, self._known.fields) if names_in(leaf) <= self._bound.keys() else None
            why = ", ".join(f"{name} is {shown(self._bound.get(name, 'not bound'), _LONG, str)}" for name in names)
            return Clause(to_text(leaf), holds, why, _ALL if holds else 10.0)
        why = ""
        try:
            holds = three_valued([Check(leaf, True)], self._known)
        except TooManyBindingsError as error:
            holds, why = None, str(error)
        if isinstance(leaf, Call):
            outcome = self._known.outcome(leaf)
            found = [", ".join(shown(value, _LONG) for value in each) for each in outcome.bindings[:3]]
            more = f" and {len(outcome.bindings) - 3} more" if len(outcome.bindings) > 3 else ""
            failed = f"{outcome.failure}: {outcome.message}".removesuffix(": ")
            why = failed if outcome.failure else f"returned {' or '.join(found)}{more}"
            why = why if outcome.failure or found else ""
        return Clause(to_text(leaf), holds, why, _ALL if holds else _FAR)

    def _leaf(self, leaf: Leaf) -> Clause:
        field = leaf.field  # type: ignore[union-attr]
        given = self._encoder.value(self._event, field.path)
        if given is not None and field.path in self._space.repeated:
            given = elements_of(given, field.path)
        try:
            outcome = {wanted: self._comes_out(leaf, wanted) for wanted in (True, False)}
        except ValueProblem as problem:  # what can never match keeps constants that were not read
            return Clause(to_text(leaf), None, problem.reason, _FAR)
        holds = True if outcome[True] else False if outcome[False] else None
        return Clause(to_text(leaf), holds, self._why(leaf, holds, given), self._miss(leaf, holds, given))

    def _comes_out(self, leaf: Leaf, wanted: bool) -> bool:
        """Return whether the leaf comes out TRUE, or FALSE, for the event."""
        axes = Axes(self._space)
        node = normal.positive(leaf if wanted else Not(leaf), self._space.repeated, self._opaque)
        return self._satisfied(node, axes)

    def _satisfied(self, node: symbolic.Node, axes: Axes) -> bool:
        if isinstance(node, symbolic.AllOf):
            return all(self._satisfied(term, axes) for term in node.terms)
        if isinstance(node, symbolic.AnyOf):
            return any(self._satisfied(term, axes) for term in node.terms)
        if isinstance(node, symbolic.Check):
            column = Encoder(axes).lazy_column(self._event, node.leaf.field.path)  # type: ignore[union-attr]
            state = evaluate_atom(node.leaf, column, np.zeros(1, np.int64), self._space.unspecified == "any")[0]
            return bool(state == IS_ANY or state == (IS_TRUE if node.wanted else IS_FALSE))
        number = axes.number(node.axis)
        inside = evaluate(node.inside, axes.codecs[number], literals_of)
        encoded = Encoder(axes).one(self._event)
        low, high, facts = encoded.queries.low[number], encoded.queries.high[number], encoded.facts
        met = ((inside.low <= high) & (low <= inside.high)).any(axis=0)
        repeated = facts.repeated_of[number]
        if repeated < 0 or (self._space.unspecified == "any" and not facts.present[repeated, 0]):
            return bool(met[0])
        elements = met[facts.element_offsets.shape[1] - 1 :]  # the first queries are the events themselves
        return bool(
            elements.any() if isinstance(node, symbolic.Test) else facts.present[repeated, 0] and elements.all()
        )

    def _why(self, leaf: Leaf, holds: bool | None, given: Any) -> str:
        """Return the value, and where it lies from the bound."""
        name = field_text(leaf.field)  # type: ignore[union-attr]
        if given is None:
            return f"{name} is not given" if not isinstance(leaf, IsNull) else f"{name} is NULL"
        shown = f"{name} is {value_text(self._space, leaf.field.path, leaf, given)}"  # type: ignore[union-attr]
        distance = self._distance(leaf, given)
        if holds or distance is None:
            return shown
        side = "above" if distance > 0 else "below"
        bound = bound_text(self._space, leaf.field.path, leaf.constant)  # type: ignore[union-attr]
        return f"{shown}, {side} {bound} by {abs(distance):.12g}" if distance else f"{shown}, equal to {bound}"

    def _distance(self, leaf: Leaf, given: Any) -> float | None:
        """Return how far a number is from the constant it is compared with."""
        if not isinstance(leaf, Comparison) or not isinstance(self._space.scalar(leaf.field.path), Number):
            return None
        value = number_of(self._space, leaf.field.path, given)
        bound = constant_number(self._space, leaf.field.path, leaf.constant)
        if value is None or bound is None or (distance := value - bound) != distance:
            return None
        return distance

    def _miss(self, leaf: Leaf, holds: bool | None, given: Any) -> float:
        if holds:
            return _ALL
        distance = self._distance(leaf, given) if given is not None else None
        if distance is not None and isinstance(leaf, Comparison):
            bound = constant_number(self._space, leaf.field.path, leaf.constant)
            return abs(distance) / max(1.0, abs(bound or 0.0))
        return _FAR if given is None else 10.0 + isinstance(leaf, Membership)


def _joined(outcomes: list[bool | None], all_needed: bool) -> bool | None:
    """Return three-valued AND or OR."""
    if (not all_needed) in outcomes:
        return not all_needed
    return None if None in outcomes else all_needed
