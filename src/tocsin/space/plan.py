"""What a template comes to: its boxes, symbolic in the constants. A template is planned once and remembered."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from tocsin.errors import ExpressionError, UnsupportedExpressionError
from tocsin.kernels.operators.programs import ACCEPT, REJECT
from tocsin.language import normal, symbolic
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.literals import refusal
from tocsin.language.parser import Template, deeply, parse
from tocsin.language.scopes import alternatives, bound_in
from tocsin.language.tree import And, Call, Constant, Constraint, Exists, Expression, Not, Or
from tocsin.language.variables import has_operators, is_operator_part, names_in
from tocsin.space.axes import Axes
from tocsin.space.blame import first_place
from tocsin.space.check import Checked
from tocsin.space.programs import Skeleton, compile_rest


class PlannedBox(NamedTuple):
    """One conjunction: a set on each of its axes, its program, and what operators must decide."""

    axes: tuple[int, ...]
    sets: tuple[symbolic.Set, ...]
    program: Skeleton | None
    condition: tuple[symbolic.Check, ...] = ()


class Plan(NamedTuple):
    """The boxes of a template. ``simple`` if there is at most one, without program and without a repeated field: such
    plans can be intersected box by box."""

    boxes: tuple[PlannedBox, ...]
    simple: bool


class Shape(NamedTuple):
    """A template: templates of the same ``key`` differ in their ``axes`` only. None: it is like no other.

    ``simple``: as its plan (see `Plan`); None if that takes a constant's value to tell, False if there is no plan.
    """

    template: Template
    key: Hashable
    axes: tuple[int, ...]
    simple: bool | None


class Plans:
    """The plans of templates, over the axes of one matcher. ``ranged``: events span ranges, so that alternatives over
    different axes are multiplied out; a test of its own for each would take one value here and another there."""

    MOST = 10_000

    def __init__(self, axes: Axes, ranged: bool = False) -> None:
        self.axes = axes
        self._ranged = ranged
        self._shapes: dict[str, Shape] = {}
        self._plans: dict[tuple[str, tuple[tuple[int, Constant], ...]], Plan | NeedsValueError] = {}

    @property
    def spans(self) -> bool:
        """Whether fields may span their domain, or ranges of it."""
        return self._ranged or self.axes.space.unspecified == "any"

    @property
    def everything(self) -> bool:
        """Whether fields may span their whole domain; a range holds none of the values that lie beyond it."""
        return self.axes.space.unspecified == "any"

    @property
    def nulls(self) -> bool:
        """Whether NULL may be there. In a region that spans what is left out it is not; an element of a list may be."""
        return not (self._ranged and self.axes.space.unspecified == "any") or bool(self.axes.space.repeated)

    @property
    def grows(self) -> bool:
        """Whether boxes that hold no concept yet are kept for when hierarchies grow: where fields may span their
        domain they would match now, so there all boxes are made anew when a hierarchy grows (see `matcher.growth`)."""
        return not self.spans

    def check(self, text: str) -> Expression:
        """Return the expression of a text, its names resolved; raise what is wrong with it."""
        problem = refusal(text)
        if problem:
            raise problem
        return self.checked(text).expression

    def checked(self, text: str) -> Checked:
        """Return the expression of a text with what is known of its leaves."""
        return deeply(text, lambda: Checked(self.axes.space, text, parse(text), [], self.axes.operators))

    def planned(self, text: str) -> Expression:
        """Return the expression of a text as `check` does; raise what is wrong with its plan too, with a place."""
        expression = self.check(text)
        try:
            deeply(text, lambda: self._made(self.checked(text)))
        except ExpressionError as error:
            raise type(error)(
                error.reason, text, first_place(expression) if error.offset is None else error.offset
            ) from None
        return expression

    def plan(self, template: Template, bound: dict[int, Constant]) -> Plan:
        """Return the plan of a template some of whose slots are bound; NeedsValueError if more of them must be."""
        key = template.template, tuple(bound.items())
        plan = self._plans.get(key)
        if plan is None:
            try:
                plan = deeply(template.template, lambda: self._of_template(template, bound))
            except NeedsValueError as need:
                plan = need
            if len(self._plans) >= self.MOST:
                self._plans.clear()
            self._plans[key] = plan
        if isinstance(plan, NeedsValueError):
            raise NeedsValueError(plan.slot)
        return plan

    def shape(self, text: str) -> Shape:
        """Return the shape of a template: of what is like others, one box, which a set of constants on each axis says
        wholly."""
        shape = self._shapes.get(text)
        if shape is None:
            if len(self._shapes) >= self.MOST:
                self._shapes.clear()
            self._shapes[text] = shape = self._shape_of(Template(text))
        return shape

    def _shape_of(self, template: Template) -> Shape:
        try:
            plan = self.plan(template, {})
        except ExpressionError:
            return Shape(template, None, (), False)
        except NeedsValueError:
            return Shape(template, None, (), None)
        if not plan.simple or len(plan.boxes) != 1:
            return Shape(template, None, (), plan.simple)
        box = plan.boxes[0]
        codecs = tuple(self.axes.codecs[axis].alike for axis in box.axes)
        key = None if None in codecs else (tuple(template.classes), codecs, box.sets)
        return Shape(template, key, box.axes, True)

    def _of_template(self, template: Template, bound: dict[int, Constant]) -> Plan:
        tree = template.parse(bound)
        return self._made(Checked(self.axes.space, template.template, tree, template.classes, self.axes.operators))

    def _made(self, checked: Checked) -> Plan:
        repeated, spans = self.axes.space.repeated, self.spans
        node = normal.positive(checked.expression, repeated, checked.opaque)
        skeletons: dict[tuple[symbolic.Node, ...], Skeleton] = {}  # boxes with the same rest share its program
        operators = has_operators(checked.expression)
        found = normal.conjunctions(node, repeated, multiply=spans or operators)
        planned = [self._planned(one, skeletons) for one in found]
        boxes = tuple(box for box in planned if box.program is None or box.program.start != REJECT)
        simple = not any(box.program or box.condition or any(map(self.axes.is_repeated, box.axes)) for box in boxes)
        return Plan(boxes, simple and len(boxes) <= 1)

    def _planned(
        self, conjunction: normal.Conjunction, skeletons: dict[tuple[symbolic.Node, ...], Skeleton]
    ) -> PlannedBox:
        numbered = sorted((self.axes.number(key), inside) for key, inside in conjunction.sets.items())
        program = None
        condition = tuple(
            each for each in conjunction.rest if isinstance(each, symbolic.Check) and is_operator_part(each.leaf)
        )
        check_bound(condition)
        rest = tuple(each for each in conjunction.rest if each not in condition)
        if rest:
            program = skeletons.get(rest) or compile_rest(rest, self.axes)
            skeletons[rest] = program
        axes, sets = tuple(number for number, _ in numbered), tuple(inside for _, inside in numbered)
        return PlannedBox(axes, sets, None if program and program.start == ACCEPT else program, condition)


def check_bound(condition: tuple[symbolic.Check, ...]) -> None:
    """Refuse a conjunction that compares a variable which no operator call in it, outside NOT, binds."""
    bound = names_in(tuple(each.leaf for each in condition if each.wanted and isinstance(each.leaf, Call)))
    for each in condition:
        _check_bound(each.leaf, bound)


def _check_bound(part: Expression, bound: frozenset[str]) -> None:
    if isinstance(part, Exists):
        for alternative in alternatives(part.term):
            within = bound | bound_in(alternative)
            for each in alternative:
                _check_bound(each, within)
    elif isinstance(part, (And, Or)):
        for each in part.terms:
            _check_bound(each, bound)
    elif isinstance(part, Not):
        _check_bound(part.term, bound)
    elif isinstance(part, Constraint) and (free := names_in(part) - bound):
        name = min(free)
        raise UnsupportedExpressionError(
            f":{name} is compared where nothing binds it; join it by AND to a call that has it", offset=part.place
        )
