"""From texts to boxes, a million at a time.

A text is taken apart at its outermost ANDs. Each piece is a template with constants; all pieces of one template,
whatever texts they come from, are filled together. Where every piece of a text is one box, the text's box is their
intersection; any other text is filled as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import ExpressionError, TypeClashError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.kernels.language.conjuncts import merge_conjuncts
from tocsin.kernels.operators.programs import ACCEPT
from tocsin.language import symbolic
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.literals import Literals, SplitTexts, conjuncts_of, split_texts, whole_texts
from tocsin.language.parser import Template
from tocsin.language.symbolic import Check
from tocsin.language.tree import Constant, Leaf, Operand
from tocsin.space.alone import Alone
from tocsin.space.axes import Axes
from tocsin.space.blame import first_place, place_of_misfit
from tocsin.space.codes import ValueProblem
from tocsin.space.domains import possible
from tocsin.space.folding import changed_axes, satisfiable
from tocsin.space.plan import Plan, Plans, Shape
from tocsin.space.programs import Skeleton
from tocsin.space.sets import Sets, Supply, evaluate, filled_leaves, literals_of
from tocsin.space.widths import by_width

_NONE = np.empty(0, np.int64)
_ROWS = np.zeros(1, np.int32)

_TOGETHER = 4_096
"""Templates with more texts are filled by themselves, whatever others are like them."""

_TEMPLATES = 64
"""So many templates that are alike are filled together, at most: what they need meanwhile stays small."""


_AT_ONCE = 131_072
"""So many texts are read together, at most: what a text needs meanwhile is ten times what stays of it."""


class FilledProgram(NamedTuple):
    """The programs of some texts, all of one skeleton: for each instruction its sets, or the leaves of its atom.

    There are ``texts`` programs; box ``boxes[i]`` has the program ``program_of[i]`` of them. Boxes of one text share
    theirs.
    """

    texts: int
    skeleton: Skeleton
    sets: list[Sets | None]
    leaves: list[list[Leaf] | None]
    boxes: Int64s
    program_of: Int64s


class FilledCondition(NamedTuple):
    """What operators must decide for some texts: for each part its leaves, one a text, and whether it must be TRUE.

    Box ``boxes[i]`` has the condition of text ``text_of[i]`` of ``texts``.
    """

    texts: int
    wanted: tuple[bool, ...]
    leaves: list[list[Leaf]]
    boxes: Int64s
    text_of: Int64s

    def checks(self, text: int) -> tuple[Check, ...]:
        """Return what must come out how for one of the texts."""
        return tuple(Check(leaves[text], wanted) for leaves, wanted in zip(self.leaves, self.wanted, strict=True))


_NO_CODE = np.empty(0, np.int32)
_ACCEPTS = Skeleton(ACCEPT, _NO_CODE, _NO_CODE, _NO_CODE, _NO_CODE, (), ())


def accepting() -> FilledProgram:
    """Return a program that accepts everything: its box is to be looked at, though no part of it is left to verify."""
    return FilledProgram(1, _ACCEPTS, [], [], np.zeros(1, np.int64), np.zeros(1, np.int64))


class Filled(NamedTuple):
    """What a batch of texts became. ``rows`` names the text of each box; a text without box can never match."""

    rows: Int32s
    boxes: Boxes
    programs: list[FilledProgram]
    problems: dict[int, ExpressionError]
    conditions: list[FilledCondition]


class Planner:
    """Plans templates, remembers the plans and fills them.

    >>> from tocsin.space import Number, Space
    >>> planner = Planner(Axes(Space({"price": Number("int64")})))
    >>> filled = planner.fill(pa.array(["price < 400", "price < 5 OR price = 7", "prize < 5"]))
    >>> filled.rows.tolist(), filled.boxes.high.tolist(), list(filled.problems)
    ([0, 1], [399, 4, 7], [2])
    """

    def __init__(self, axes: Axes, *, ranged: bool = False) -> None:
        self._plans = Plans(axes, ranged)
        self._alone = Alone(self._plans)
        self.check, self.checked = self._plans.check, self._plans.checked

    def fill(self, texts: pa.StringArray) -> Filled:
        """Return the boxes of these texts (none null); texts that are refused are among the problems."""
        alone = self._alone.box(texts[0].as_py()) if len(texts) == 1 else None
        if alone is not None:
            return Filled(_ROWS[: len(alone)], alone, [], {}, [])
        if len(texts) <= _AT_ONCE:
            return self._together(texts)
        return _one_after_another(
            [self._together(texts.slice(start, _AT_ONCE)) for start in range(0, len(texts), _AT_ONCE)]
        )

    def _together(self, texts: pa.StringArray) -> Filled:
        """Return the boxes of texts, without those that no value satisfies."""
        filled = self._read(texts)
        plans = self._plans
        kept, boxes = possible(
            filled.boxes, plans.axes.codecs, nulls=plans.nulls, spans=plans.everything, grows=plans.grows
        )
        if plans.spans and (changed := changed_axes(plans.axes)).any():
            met = np.flatnonzero(satisfiable(plans.axes, boxes, changed))
            kept, boxes = kept[met], boxes.take(met)
        if len(kept) == len(filled.rows):
            return filled if boxes is filled.boxes else filled._replace(boxes=boxes)
        place = np.full(len(filled.rows), -1)
        place[kept] = np.arange(len(kept))

        def placed(part: Any, which: Int64s) -> dict[str, Int64s]:
            found = place[part.boxes]
            return {"boxes": found[found >= 0], "which": which[found >= 0]}

        programs = [
            each._replace(boxes=now["boxes"], program_of=now["which"])
            for each in filled.programs
            if len((now := placed(each, each.program_of))["boxes"])
        ]
        conditions = [
            each._replace(boxes=now["boxes"], text_of=now["which"])
            for each in filled.conditions
            if len((now := placed(each, each.text_of))["boxes"])
        ]
        return Filled(filled.rows[kept], boxes, programs, filled.problems, conditions)

    def _read(self, texts: pa.StringArray) -> Filled:
        offsets, pieces = conjuncts_of(texts)
        row_of = np.repeat(np.arange(len(texts)), np.diff(offsets))
        alone = np.diff(offsets) == 1
        split = split_texts(pieces)
        first = _Pass(self._plans, split)
        mergeable = ~alone
        mergeable[row_of[first.intricate]] = False
        first.fill((alone | mergeable)[row_of])
        mergeable[row_of[~first.simple]] = False
        whole = np.flatnonzero(~alone & ~mergeable)
        parts = [part.only(alone[row_of[part.rows]]).renamed(row_of) for part in first.parts] if alone.any() else []
        failed = {int(row_of[piece]): error for piece, error in first.failed.items() if alone[row_of[piece]]}
        if mergeable.any():
            parts.append(_merged(first.parts, offsets, row_of, mergeable))
        if len(whole):
            lengths = pieces.ends[offsets[whole + 1] - 1] - pieces.starts[offsets[whole]]
            second = _Pass(self._plans, whole_texts(split, offsets, whole, lengths))
            second.fill()
            parts += [part.renamed(whole) for part in second.parts]
            failed |= {int(whole[row]): error for row, error in second.failed.items()}
        problems = {row: self._explained(texts[row].as_py(), failed[row]) for row in sorted(failed)}
        return _joined(parts, problems)

    def _explained(self, text: str, otherwise: ExpressionError) -> ExpressionError:
        """Return what is wrong with one text, with its place."""
        try:
            expression = self._plans.planned(text)
        except ExpressionError as error:
            return error
        place = place_of_misfit(self._plans.axes.space, expression)
        return type(otherwise)(otherwise.reason, text, first_place(expression) if place is None else place)


class _Part(NamedTuple):
    """The boxes of one conjunction for some rows."""

    rows: Int64s
    boxes: Boxes
    program: FilledProgram | None
    program_of: Int64s
    condition: FilledCondition | None = None

    def only(self, wanted: npt.NDArray[np.bool_]) -> _Part:
        """Return the part of these rows."""
        if wanted.all():
            return self
        keep = np.flatnonzero(wanted)
        return self._replace(rows=self.rows[keep], boxes=self.boxes.take(keep), program_of=self.program_of[keep])

    def renamed(self, names: Int64s) -> _Part:
        """Return the part with other numbers for its rows."""
        return self._replace(rows=names[self.rows])


class _Pass:
    """One pass over texts or pieces of texts: ``parts`` are their boxes, ``failed`` those refused; ``simple`` says of
    which the plan is simple (see `Plan`), and ``intricate``, before they are filled, of which it cannot be."""

    def __init__(self, plans: Plans, split: SplitTexts) -> None:
        self._plans = plans
        self._split = split
        self.parts: list[_Part] = []
        self.failed: dict[int, ExpressionError] = {}
        template_of = self._split.template_of
        self.simple, self.intricate = np.zeros(len(template_of), bool), template_of < 0
        for row in np.flatnonzero(template_of < 0):
            self.failed[int(row)] = ExpressionError("the text is refused")
        order = np.argsort(template_of, kind="stable")
        order = order[np.searchsorted(template_of[order], 0) :]
        counts = np.bincount(template_of[order])
        ends = np.cumsum(counts).tolist()
        self._shapes: list[tuple[Shape, Int64s]] = []
        for template, end, count in zip(self._split.templates, ends, counts.tolist(), strict=False):
            if count:
                shape, rows = plans.shape(template), order[end - count : end]
                if shape.simple is False:
                    self.intricate[rows] = True
                self._shapes.append((shape, rows))

    def fill(self, wanted: npt.NDArray[np.bool_] | None = None) -> None:
        """Fill the texts or pieces that are wanted; without that all of them."""
        alike: dict[Hashable, list[tuple[Shape, Int64s]]] = {}
        wanted = None if wanted is None or wanted.all() else wanted
        for shape, held in self._shapes:
            rows = held if wanted is None else held[wanted[held]]
            if not len(rows):
                continue
            if shape.key is None or len(rows) > _TOGETHER:
                self._fill(shape.template, rows, {})
            else:
                alike.setdefault(shape.key, []).append((shape, rows))
        for several in alike.values():
            for start in range(0, len(several), _TEMPLATES):
                self._fill_alike(several[start : start + _TEMPLATES])

    def _fill_alike(self, several: list[tuple[Shape, Int64s]]) -> None:
        """Fill templates that differ in their axes only: together, or where something is wrong, one after another."""
        if len(several) > 1:
            rows = np.concatenate([rows for _, rows in several])
            axes = np.array([shape.axes for shape, _ in several], np.int32)
            try:
                self._fill_or_raise(
                    several[0][0].template, rows, {}, np.repeat(axes, [len(rows) for _, rows in several], axis=0)
                )
                return
            except (ValueProblem, ValueError, ExpressionError):
                pass
        for shape, rows in several:
            self._fill(shape.template, rows, {})

    def _fill(self, template: Template, rows: Int64s, bound: dict[int, Constant]) -> None:
        """Fill a template for these rows; those that cannot be are noted."""
        try:
            while len(rows):
                try:
                    self._fill_or_raise(template, rows, bound)
                    return
                except ValueProblem as problem:
                    self.failed[int(rows[problem.row])] = TypeClashError(problem.reason)
                    rows = np.delete(rows, problem.row)
        except ValueError as error:  # a numeral with too many digits is among them
            if len(rows) == 1:
                self.failed[int(rows[0])] = ExpressionError(str(error))
            else:
                for row in rows:
                    self._fill(template, np.array([row]), bound)
        except ExpressionError as error:
            self.failed |= dict.fromkeys(map(int, rows), error)

    def _fill_or_raise(
        self, template: Template, rows: Int64s, bound: dict[int, Constant], axes: Int32s | None = None
    ) -> None:
        """Fill a template; where a slot's value shapes the plan, do so for each of its values. With ``axes``, each
        row's own, rows are of templates of the same shape."""

        def supply(operand: Operand) -> Literals:
            if isinstance(operand, Constant):
                return literals_of(operand)
            given = self._split.literals(rows, operand.number, template.classes[operand.number], operand.negative)
            return replace(given, kind=operand.kind)

        try:
            plan = self._plans.plan(template, bound)
        except NeedsValueError as need:
            if len(rows) == 1:
                self._fill(
                    template,
                    rows,
                    {
                        slot: self._split.literals(rows, slot, each).constant(0)
                        for slot, each in enumerate(template.classes)
                    },
                )
                return
            which, values = self._split.literals(rows, need.slot, template.classes[need.slot]).distinct()
            for position, value in enumerate(values):
                self._fill(template, rows[which == position], {**bound, need.slot: value})
            return
        groups = by_width(plan, self._plans.axes.codecs, rows, supply)
        if len(groups) > 1:
            for group in groups:
                self._fill(template, group, bound)
            return
        self.parts += self._filled(plan, rows, supply, axes)
        self.simple[rows] = plan.simple

    def _filled(self, plan: Plan, rows: Int64s, supply: Supply, axes: Int32s | None) -> list[_Part]:
        """Return the boxes of these rows, part by part, all or none."""
        parts = []
        programs: dict[int, FilledProgram] = {}
        known: dict[tuple[int, symbolic.Set], Sets] = {}  # boxes of one plan have most of their sets in common

        def evaluated(axis: int, inside: symbolic.Set) -> Sets:
            found = known.get((axis, inside))
            if found is None:
                found = known[axis, inside] = evaluate(inside, self._plans.axes.codecs[axis], supply)
            return found

        for planned in plan.boxes:
            sets = [evaluated(axis, inside) for axis, inside in zip(planned.axes, planned.sets, strict=True)]
            keep, boxes = _boxes_of(np.array(planned.axes, np.int32) if axes is None else axes, sets, len(rows))
            skeleton = planned.program
            if skeleton is not None and id(skeleton) not in programs:
                programs[id(skeleton)] = self._filled_program(skeleton, evaluated, supply, len(rows))
            condition = self._filled_condition(planned.condition, supply, len(rows)) if planned.condition else None
            parts.append(_Part(rows[keep], boxes, programs.get(id(skeleton)), keep, condition))
        return parts

    @staticmethod
    def _filled_condition(checks: tuple[Check, ...], supply: Supply, count: int) -> FilledCondition:
        leaves = [_known_leaves(check.leaf, supply, count) for check in checks]
        return FilledCondition(count, tuple(check.wanted for check in checks), leaves, _NONE, _NONE)

    @staticmethod
    def _filled_program(
        skeleton: Skeleton, evaluated: Callable[[int, symbolic.Set], Sets], supply: Supply, count: int
    ) -> FilledProgram:
        sets: list[Sets | None] = []
        leaves: list[list[Leaf] | None] = []
        for axis, inside, leaf in zip(skeleton.axis, skeleton.sets, skeleton.leaves, strict=True):
            if inside is not None:
                found = evaluated(axis, inside)
                sets.append(Sets(*(np.broadcast_to(side, (side.shape[0], count)) for side in found)))
                leaves.append(None)
            elif leaf is not None:
                sets.append(None)
                leaves.append(_known_leaves(leaf, supply, count))
        return FilledProgram(count, skeleton, sets, leaves, _NONE, _NONE)


def _merged(parts: list[_Part], offsets: Int64s, row_of: Int64s, mergeable: npt.NDArray[np.bool_]) -> _Part:
    """Return one box for each mergeable row: the intersection of the boxes of its pieces, if none of those is empty."""
    wanted = [part.only(mergeable[row_of[part.rows]]) for part in parts]
    pieces = np.concatenate([_NONE, *(part.rows for part in wanted)])
    has_box = np.zeros(len(row_of) + 1, np.int64)
    has_box[pieces + 1] = 1
    boxed = np.cumsum(has_box)[offsets]
    complete = np.flatnonzero(mergeable & (np.diff(boxed) == np.diff(offsets)))
    boxes = Boxes.concatenate([part.boxes for part in wanted])
    kept = np.zeros(len(mergeable), bool)
    kept[complete] = True
    order = np.argsort(pieces, kind="stable")
    order = order[kept[row_of[pieces[order]]]]
    boxes = boxes.take(order)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets)[complete])])
    merged = Boxes(*merge_conjuncts(starts, boxes.offsets, boxes.axis, boxes.low, boxes.high))
    first = merged.offsets[:-1]
    empty = np.zeros(len(complete), bool)
    filled = first < merged.offsets[1:]
    empty[filled] = merged.axis[first[filled]] < 0
    return _Part(complete, merged, None, np.arange(len(complete))).only(~empty)


def _boxes_of(axes: Int32s, sets: list[Sets], count: int) -> tuple[Int64s, Boxes]:
    """Return which of the rows have a box (no set on any axis is empty), and those boxes. ``axes`` are those of all
    rows, or each row's own."""
    possible = np.ones(count, bool)
    for each in sets:
        possible &= each.nonempty.any(axis=0)
    keep = np.flatnonzero(possible)
    axes = axes[keep] if axes.ndim == 2 else axes
    sizes = [each.low.shape[0] for each in sets]
    if sizes == [1]:
        low, high = (np.broadcast_to(side, (1, count))[0, keep] for side in sets[0])
        return keep, Boxes(np.arange(len(keep) + 1), np.broadcast_to(axes.ravel(), len(keep)), low, high)
    low, high = (
        np.concatenate(
            [np.broadcast_to(each[side], (size, count))[:, keep] for each, size in zip(sets, sizes, strict=True)]
        )
        if sets
        else np.empty((0, len(keep)), np.int64)
        for side in (0, 1)
    )
    used = (low <= high).T
    entry_axis = np.broadcast_to(np.repeat(axes, sizes, axis=-1), used.shape)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(used.sum(axis=1))])
    return keep, Boxes(offsets, entry_axis[used], low.T[used], high.T[used])


def _joined(parts: list[_Part], problems: dict[int, ExpressionError]) -> Filled:
    """Return all parts together, in the order of their rows."""
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, np.int64)
    order = np.argsort(rows, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    programs: dict[int, FilledProgram] = {}
    conditions: list[FilledCondition] = []
    start = 0
    for part in parts:
        if part.condition is not None and len(part.rows):
            placed = place[start : start + len(part.rows)]
            conditions.append(part.condition._replace(boxes=placed, text_of=part.program_of))
        if part.program is not None and len(part.rows):
            held = programs.get(id(part.program), part.program)
            programs[id(part.program)] = held._replace(
                boxes=np.concatenate([held.boxes, place[start : start + len(part.rows)]]),
                program_of=np.concatenate([held.program_of, part.program_of]),
            )
        start += len(part.rows)
    boxes = Boxes.concatenate([part.boxes for part in parts])
    in_order = len(parts) <= 1 or bool(np.all(np.diff(order) == 1))
    return Filled(
        rows[order].astype(np.int32),
        boxes if in_order else boxes.take(order),
        list(programs.values()),
        problems,
        conditions,
    )


def _one_after_another(several: list[Filled]) -> Filled:
    """Return what batches of `_AT_ONCE` texts became as one."""
    first_row = [_AT_ONCE * at for at in range(len(several))]
    first_box = np.cumsum([0, *(len(each.rows) for each in several)])
    return Filled(
        np.concatenate([each.rows + np.int32(start) for each, start in zip(several, first_row, strict=True)]),
        Boxes.concatenate([each.boxes for each in several]),
        [
            program._replace(boxes=program.boxes + start)
            for each, start in zip(several, first_box, strict=False)
            for program in each.programs
        ],
        {
            row + start: error
            for each, start in zip(several, first_row, strict=True)
            for row, error in each.problems.items()
        },
        [
            condition._replace(boxes=condition.boxes + start)
            for each, start in zip(several, first_box, strict=False)
            for condition in each.conditions
        ],
    )


def _known_leaves(leaf: Leaf, supply: Supply, count: int) -> list[Leaf]:
    """Return the leaf for each row, its slot replaced by what the row says."""
    which, known = filled_leaves(leaf, supply)
    return [known[each] for each in which.tolist()] if len(which) == count else known * count
