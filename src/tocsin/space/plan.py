"""From texts to boxes: a template is planned once, then filled with the constants of every text that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.errors import ExpressionError, TypeClashError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.kernels.programs import ACCEPT, REJECT
from tocsin.language import normal
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.literals import Literals, SplitTexts, refusal, split_texts
from tocsin.language.parser import Template, deeply, parse
from tocsin.language.tree import Constant, Expression, Leaf, Operand, Slot
from tocsin.space.axes import Axes
from tocsin.space.check import Checked
from tocsin.space.codes import ValueProblem
from tocsin.space.programs import Skeleton, compile_rest
from tocsin.space.sets import Sets, evaluate


class PlannedBox(NamedTuple):
    """One conjunction: a set on each of its axes, and the program that verifies the rest."""

    axes: tuple[int, ...]
    sets: tuple[normal.Set, ...]
    program: Skeleton | None


Plan = tuple[PlannedBox, ...]


class FilledProgram(NamedTuple):
    """The programs of some boxes, all of one skeleton: for each instruction its sets, or the leaves of its atom."""

    boxes: Int64s
    skeleton: Skeleton
    sets: list[Sets | None]
    leaves: list[list[Leaf] | None]


class Filled(NamedTuple):
    """What a batch of texts became. ``rows`` names the text of each box; a text without box can never match."""

    rows: Int32s
    boxes: Boxes
    programs: list[FilledProgram]
    problems: dict[int, ExpressionError]


class Planner:
    """Plans templates and remembers the plans.

    >>> from tocsin.space import Number, Space
    >>> planner = Planner(Axes(Space({"price": Number("int64")})))
    >>> filled = planner.fill(pa.array(["price < 400", "price < 5 OR price = 7", "prize < 5"]))
    >>> filled.rows.tolist(), filled.boxes.high.tolist(), list(filled.problems)
    ([0, 1], [399, 4, 7], [2])
    """

    MOST_PLANS = 10_000

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._plans: dict[tuple[str, tuple[tuple[int, Constant], ...]], Plan | NeedsValueError] = {}

    def fill(self, texts: pa.StringArray) -> Filled:
        """Return the boxes of these texts (none null); texts that are refused are among the problems."""
        split = split_texts(texts)
        parts: list[_Part] = []
        problems: dict[int, ExpressionError] = {}
        for row in np.flatnonzero(split.template_of < 0):
            problems[int(row)] = refusal(texts[int(row)].as_py()) or ExpressionError("the text is refused")
        order = np.argsort(split.template_of, kind="stable")
        order = order[np.searchsorted(split.template_of[order], 0) :]
        starts = np.flatnonzero(np.diff(split.template_of[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if len(order) else []:
            template = Template(split.templates[split.template_of[rows[0]]])
            self._fill_template(texts, split, template, rows, {}, parts, problems)
        return _joined(parts, problems)

    def check(self, text: str) -> Expression:
        """Return the expression of a text, its names resolved; raise what is wrong with it."""
        problem = refusal(text)
        if problem:
            raise problem
        return deeply(text, lambda: Checked(self._axes.space, text, parse(text), []).expression)

    def _fill_template(
        self,
        texts: pa.StringArray,
        split: SplitTexts,
        template: Template,
        rows: Int64s,
        bound: dict[int, Constant],
        parts: list[_Part],
        problems: dict[int, ExpressionError],
    ) -> None:
        """Fill a template for these rows; where a slot's value shapes the plan, for each of its values."""

        def supply(operand: Operand) -> Literals:
            if isinstance(operand, Constant):
                return literals_of(operand)
            given = split.literals(rows, operand.number, template.classes[operand.number], operand.negative)
            return replace(given, kind=operand.kind)

        try:
            try:
                parts.extend(self._filled(self._plan(template, bound), rows, supply))
            except NeedsValueError as need:
                given = split.literals(rows, need.slot, template.classes[need.slot])
                which, values = given.distinct()
                for position, value in enumerate(values):
                    chosen = rows[which == position]
                    self._fill_template(texts, split, template, chosen, {**bound, need.slot: value}, parts, problems)
        except ValueProblem as problem:
            row = int(rows[problem.row])
            problems[row] = self._explained(texts[row].as_py(), TypeClashError(problem.reason))
            rest = np.delete(rows, problem.row)
            if len(rest):
                self._fill_template(texts, split, template, rest, bound, parts, problems)
        except ValueError as error:  # a numeral with too many digits is among them
            if len(rows) == 1:
                problems[int(rows[0])] = self._explained(texts[int(rows[0])].as_py(), ExpressionError(str(error)))
            else:
                for row in rows:
                    self._fill_template(texts, split, template, np.array([row]), bound, parts, problems)
        except ExpressionError as error:
            for row in rows:
                problems[int(row)] = self._explained(texts[int(row)].as_py(), error)

    def _explained(self, text: str, otherwise: ExpressionError) -> ExpressionError:
        """Return what is wrong with one text, with its place."""
        try:
            self.check(text)
        except ExpressionError as error:
            return error
        return type(otherwise)(otherwise.reason, text, otherwise.offset if otherwise.offset is None else 0)

    def _plan(self, template: Template, bound: dict[int, Constant]) -> Plan:
        key = template.template, tuple(bound.items())
        plan = self._plans.get(key)
        if plan is None:
            try:
                plan = deeply(template.template, lambda: self._made(template, bound))
            except NeedsValueError as need:
                plan = need
            if len(self._plans) >= self.MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        if isinstance(plan, NeedsValueError):
            raise NeedsValueError(plan.slot)
        return plan

    def _made(self, template: Template, bound: dict[int, Constant]) -> Plan:
        repeated = self._axes.space.repeated
        tree = template.parse(bound)
        checked = Checked(self._axes.space, template.template, tree, template.classes)
        node = normal.positive(checked.expression, repeated, checked.opaque)
        return tuple(self._planned(found) for found in normal.conjunctions(node, repeated))

    def _planned(self, conjunction: normal.Conjunction) -> PlannedBox:
        numbered = sorted((self._axes.number(key), inside) for key, inside in conjunction.sets.items())
        program = compile_rest(conjunction.rest, self._axes) if conjunction.rest else None
        axes, sets = tuple(number for number, _ in numbered), tuple(inside for _, inside in numbered)
        return PlannedBox(axes, sets, None if program and program.start == ACCEPT else program)

    def _filled(self, plan: Plan, rows: Int64s, supply: Callable[[Operand], Literals]) -> list[_Part]:
        """Return the boxes of these rows, part by part, all or none."""
        parts = []
        for planned in plan:
            if planned.program and planned.program.start == REJECT:
                continue
            sets = [
                evaluate(inside, self._axes.codecs[axis], supply)
                for axis, inside in zip(planned.axes, planned.sets, strict=True)
            ]
            keep, boxes = _boxes_of(planned.axes, sets, len(rows))
            program = self._filled_program(planned.program, supply, len(rows), keep) if planned.program else None
            parts.append(_Part(rows[keep], boxes, program))
        return parts

    def _filled_program(
        self, skeleton: Skeleton, supply: Callable[[Operand], Literals], count: int, keep: Int64s
    ) -> FilledProgram:
        sets: list[Sets | None] = []
        leaves: list[list[Leaf] | None] = []
        for axis, inside, leaf in zip(skeleton.axis, skeleton.sets, skeleton.leaves, strict=True):
            if inside is not None:
                found = evaluate(inside, self._axes.codecs[axis], supply)
                low, high = (np.broadcast_to(side, (side.shape[0], count))[:, keep] for side in found)
                sets.append(Sets(low, high))
                leaves.append(None)
            elif leaf is not None:
                sets.append(None)
                leaves.append(_known_leaves(leaf, supply, keep))
        return FilledProgram(np.arange(len(keep)), skeleton, sets, leaves)


class _Part(NamedTuple):
    """The boxes of one conjunction for some rows."""

    rows: Int64s
    boxes: Boxes
    program: FilledProgram | None


def _boxes_of(axes: tuple[int, ...], sets: list[Sets], count: int) -> tuple[Int64s, Boxes]:
    """Return which of the rows have a box (no set on any axis is empty), and those boxes."""
    possible = np.ones(count, bool)
    for each in sets:
        possible &= each.nonempty.any(axis=0)
    keep = np.flatnonzero(possible)
    sizes = [each.low.shape[0] for each in sets]
    low, high = (
        np.concatenate(
            [np.broadcast_to(each[side], (size, count))[:, keep] for each, size in zip(sets, sizes, strict=True)]
        )
        if sets
        else np.empty((0, len(keep)), np.int64)
        for side in (0, 1)
    )
    used = (low <= high).T
    entry_axis = np.broadcast_to(np.repeat(np.array(axes, np.int32), sizes), used.shape)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(used.sum(axis=1))])
    return keep, Boxes(offsets, entry_axis[used], low.T[used], high.T[used])


def _joined(parts: list[_Part], problems: dict[int, ExpressionError]) -> Filled:
    """Return all parts together, in the order of their rows."""
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, np.int64)
    order = np.argsort(rows, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    programs, start = [], 0
    for part in parts:
        if part.program is not None:
            programs.append(part.program._replace(boxes=place[start : start + len(part.rows)]))
        start += len(part.rows)
    boxes = Boxes.concatenate([part.boxes for part in parts])
    in_order = len(parts) <= 1 or bool(np.all(np.diff(order) == 1))
    return Filled(rows[order].astype(np.int32), boxes if in_order else boxes.take(order), programs, problems)


def _known_leaves(leaf: Leaf, supply: Callable[[Operand], Literals], keep: Int64s) -> list[Leaf]:
    """Return the leaf for each row, its slot replaced by what the row says."""
    slots = [(field.name, getattr(leaf, field.name)) for field in fields(leaf)]
    for name, slot in slots:
        if isinstance(slot, Slot):
            which, constants = supply(slot).distinct()
            known = [replace(leaf, **{name: constant}) for constant in constants]  # type: ignore[arg-type]
            return [known[each] for each in which[keep]]
    return [leaf] * len(keep)


def literals_of(constant: Operand) -> Literals:
    """Return a known constant as literals of one row."""
    if isinstance(constant, Slot):
        raise TypeError(constant)
    if constant.kind == "integer" and isinstance(constant.value, int) and abs(constant.value) < 10**18:
        return Literals(constant.kind, integers=np.array([constant.value], np.int64))
    text = constant.value if isinstance(constant.value, str) else _numeral(constant)
    return Literals(constant.kind, pa.array([text], pa.string()))


def _numeral(constant: Constant) -> str:
    """Return the numeral of a constant without suffix, or the name of a truth value."""
    return repr(constant.value) if constant.kind == "double" else str(constant.value)
