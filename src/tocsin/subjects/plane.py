"""One space with its regions: the rows of publications and the boxes of subscriptions, and an index of each.

Both sides are the same to an index. The boxes of subscriptions are asked with rows, the rows of publications with
boxes, and either side may move: that is all there is to the symmetry of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import index as engines
from tocsin.errors import RegionError, SpaceError
from tocsin.index.bounds import Bounds
from tocsin.index.boxes import LOWEST, NULL, Boxes, Int32s, Int64s, Pairs, Queries
from tocsin.kernels.subjects import (
    Members,
    boxes_of_rows,
    have_sets,
    match_members,
    pairs_meet,
    queries_of_boxes,
    queries_of_rows,
)
from tocsin.language.symbolic import AxisKey
from tocsin.operators.operator import Operator
from tocsin.operators.programs import Programs
from tocsin.space.axes import Axes, recoded
from tocsin.space.codes import Codec, Integers, ValueProblem
from tocsin.space.decoding import decoded, single
from tocsin.space.events import Encoded
from tocsin.space.filling import Planner, accepting
from tocsin.space.folding import changed_axes, range_of_codes, witnessed
from tocsin.space.intervals import codes_of, is_set
from tocsin.space.listed import Texts
from tocsin.space.reading import Column
from tocsin.space.space import Space
from tocsin.subjects.coding import Coder, Given, expected
from tocsin.subjects.conditions import CONDITIONAL, RowConditions
from tocsin.subjects.stores import Interests, Rows

BULK = 1_024
"""So many boxes at once are put in order at once."""

FEW_PROGRAMS = 256
"""Up to so many programs, those of boxes that are gone stay."""


class Plane:
    """The regions of one space. One thread at a time."""

    def __init__(
        self,
        space: Space,
        engine: str | None,
        options: Mapping[str, Any],
        operators: Iterable[Operator] | None = None,
    ) -> None:
        if space.repeated:
            names = ", ".join(sorted(".".join(path) for path in space.repeated))
            raise SpaceError(f"{names}: a region has no repeated dimension; declare it plain and give a set of values")
        self.space = space
        # where open dimensions are any, questions are ranges, for which bounds are 2 to 3 times faster
        self._engine = engine if engine is not None else ("bounds" if space.unspecified == "any" else "adaptive")
        self._options = dict(options)
        self.conditions = RowConditions(space, operators or ())
        self.conditional_owners: set[int] = set()
        self.axes = Axes(space, {} if operators is None else self.conditions.operators)
        for name in space:
            self.axes.number(AxisKey(tuple(name.split("."))))
        for path in space.derived:  # what a formula makes may be the least whole number at any time
            if type(self.axes.codecs[self.axes.number(AxisKey(path))]) is Integers:
                self.axes.number(AxisKey(path, "least"))
        self.any = space.unspecified == "any"
        self.programs = Programs()
        self.planner, self.coder = Planner(self.axes, ranged=True), Coder(self.axes)
        self.rows, self.interests = Rows(len(self.axes)), Interests()
        self._changed, self._any_changed = np.zeros(0, bool), False
        self._make_indexes()

    def _make_indexes(self) -> None:
        self.plain = engines.create(self._engine, **self._options)
        self.verified = engines.create(self._engine, **self._options)
        self.objects = Bounds()

    # Reading what regions say. Nothing is stored but keys.

    def boxes_of_text(self, texts: pa.Array) -> tuple[Int32s, Boxes, Int32s, dict[int, Any]]:
        """Return (text, boxes, program) of expressions, and those refused; programs are stored."""
        filled = self.planner.fill(texts)
        programs = np.full(len(filled.rows), -1, np.int32)
        for program in filled.programs:
            programs[program.boxes] = self.programs.add(program)
        if filled.conditions:
            programs = self.conditions.numbered(programs, self.conditions.conditions.add_all(filled))
        self.widen()
        boxes = filled.boxes
        if self._has_changed_texts() and (asks := self._changed[boxes.axis]).any():
            folded = np.unique(np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))[asks])
            plain = folded[programs[folded] < 0]
            if len(plain):  # what asks for the case or the end of a text is verified
                programs[plain] = self.programs.add(accepting())[0]
        return filled.rows, boxes, programs, filled.problems

    def _has_changed_texts(self) -> bool:
        """Return whether an axis is that of texts in another case or reversed; learns the axes that are new."""
        if len(self._changed) < len(self.axes):
            self._changed = changed_axes(self.axes)
            self._any_changed = bool(self._changed.any())
        return self._any_changed

    def box_of(self, given: Given) -> Boxes:
        """Return the boxes of a subscription's region given by values, intervals and sets; None constrains nothing.

        It is one box, but for sets of whole numbers with the least, which has an axis of its own: of these the least
        and all others are boxes apart, since the intervals of one box on two axes would meet crosswise.
        """
        boxes: list[dict[int, list[tuple[int, int]]]] = [{}]
        single = {name: each for name, each in given.items() if not is_set(each)}
        for path, value in {**self.coder.named(given), **dict(self.coder.meant(single))}.items():
            if value is None:
                continue
            groups = [value]
            places = [each for each in self.coder.places[path] if not isinstance(each.codec, Texts)]
            if is_set(value) and len(places) > 1:
                groups = self._alike(".".join(path), places[1].codec, value)
            found: list[dict[int, list[tuple[int, int]]]] = [{} for _ in groups]
            for one, group in zip(found, groups, strict=True):
                for axis, codec in places or self.coder.places[path][:1]:
                    one[axis] = self._intervals(".".join(path), codec, group)
                    if type(codec) is Integers and any(LOWEST in each for each in one[axis]):
                        self.coder.tell_least_apart(path)
            boxes = [{**box, **one} for box in boxes for one in found]
        return Boxes.of(boxes)

    def _alike(self, name: str, codec: Codec, members: Any) -> list[frozenset[Any]]:
        """Return a set as sets whose members have the same codes on an axis beside that of the dimension."""
        groups: dict[tuple[int, int], list[Any]] = {}
        for member in members:
            groups.setdefault(self._intervals(name, codec, frozenset([member]))[0], []).append(member)
        return [frozenset(group) for group in groups.values()] or [frozenset()]

    @staticmethod
    def _intervals(name: str, codec: Codec, value: Any) -> list[tuple[int, int]]:
        """Return the intervals of a value, an interval or a set of them, in order and apart."""
        members = list(value) if is_set(value) else [value]
        try:
            intervals = sorted(codes_of(codec, member, keep=True) for member in members)
        except ValueProblem as problem:
            raise RegionError(f"dimension {name}: {problem.reason}; {expected(codec, value)} is expected") from None
        merged: list[tuple[int, int]] = []
        for low, high in intervals:
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], high)
            else:
                merged.append((low, high))
        if not merged:
            raise RegionError(f"dimension {name}: the set is empty")
        return merged

    def widen(self) -> None:
        """Give stored rows their codes on axes that are new."""
        known = self.rows.low.shape[1]
        if known == len(self.axes):
            return
        indexed = self.objects.contents()[0]
        for axis in range(known, len(self.axes)):
            own = self.axes.number(AxisKey(self.axes.keys[axis].path))
            free = self.rows.owner < 0
            low, high = (np.where(free, NULL, side[:, own]) for side in (self.rows.low, self.rows.high))
            self.rows.widen(*self.coder.derived(axis, low, high))
        self.objects = Bounds()
        self.insert_rows(indexed)

    # Asking

    @staticmethod
    def question(low: Int64s, high: Int64s) -> Queries:
        """Return codes, int64[axes, rows], as questions."""
        return Queries.points(low) if (low == high).all() else Queries(low, high)

    def stored(self, rows: Int32s) -> Queries:
        """Return stored rows as questions."""
        shape = len(self.axes), len(rows)
        low, high = np.empty(shape, np.int64), np.empty(shape, np.int64)
        points = queries_of_rows(self.rows.low, self.rows.high, rows, low, high)
        return Queries.points(low) if points else Queries(low, high)

    def boxes_of_rows(self, numbers: Int32s) -> Boxes:
        """Return stored rows as boxes."""
        return Boxes(*boxes_of_rows(self.rows.low, self.rows.high, numbers.astype(np.int64), self.any))

    def boxes_near(self, numbers: Int32s) -> Pairs:
        """Return (place among the rows, box number) of the boxes that may overlap stored rows."""
        asked = self.stored(numbers)
        return _both(self.plain.overlap(asked), self.verified.overlap(asked) if len(self.verified) else None)

    def rows_near(self, numbers: Int32s) -> Pairs:
        """Return (place among the boxes, row number) of the rows that may overlap stored boxes."""
        return self.objects.overlap(Queries(*queries_of_boxes(self.interests.pool, numbers, len(self.axes))))

    def rows_met(self, numbers: Int32s) -> Pairs:
        """Return (place among the boxes, row number) of the rows that overlap stored boxes without programs."""
        near = self.rows_near(numbers)
        several = have_sets(self.interests.pool, numbers)
        if not several.any():  # then the index was asked about nothing else
            return near
        met = self.meet(numbers[near.rows], near.numbers)
        return Pairs(near.rows[met], near.numbers[met])

    def match(self, ours: Members, theirs: Members, pairs: tuple[Int64s, Int64s], matched: Int64s) -> None:
        """Add to ``matched``, int64[2, pairs], which regions of publications and of subscriptions overlap each other;
        ``pairs`` are positions in rows (``ours``) and boxes (``theirs``)."""
        rows, boxes = self.rows, self.interests
        doubtful = match_members(boxes.pool, boxes.program, (rows.low, rows.high), ours, theirs, pairs, matched)
        if len(doubtful):
            pair, row, box = doubtful[self._accept(theirs.numbers[doubtful[:, 2]], ours.numbers[doubtful[:, 1]])].T
            np.bitwise_or.at(matched[0], pair, ours.bits[row])
            np.bitwise_or.at(matched[1], pair, theirs.bits[box])

    def meet(self, boxes: Int32s, rows: Int32s) -> npt.NDArray[np.bool_]:
        """Return for each pair of box and row number whether they overlap, programs included."""
        met: npt.NDArray[np.bool_] = pairs_meet(self.interests.pool, self.rows.low, self.rows.high, boxes, rows)
        unsure = np.flatnonzero(met & (self.interests.program[boxes] >= 0))
        if len(unsure):
            met[unsure] = self._accept(boxes[unsure], rows[unsure])
        return met

    def _accept(self, boxes: Int32s, rows: Int32s) -> npt.NDArray[np.bool_]:
        """Return which boxes have a program that accepts the row, and a condition that it satisfies."""
        numbers = self.interests.program[boxes]
        programs = self.conditions.programs_of(numbers)
        found = programs < 0
        unsure = np.flatnonzero(~found)
        if len(unsure):
            distinct, which = np.unique(rows[unsure], return_inverse=True)
            encoded = self._encoded(distinct)
            found[unsure] = self.programs.accept(encoded, which.astype(np.int32), programs[unsure], self.any)
        if self._has_changed_texts():
            pool = self.interests.pool
            for pair in np.flatnonzero(found).tolist():
                start = pool.start[boxes[pair]]
                mine = slice(start, start + pool.length[boxes[pair]])
                entries = pool.axis[mine], pool.low[mine], pool.high[mine]
                texts = partial(range_of_codes, self.axes, self.rows.low[rows[pair]], self.rows.high[rows[pair]])
                found[pair] = witnessed(self.axes, entries, self._changed, texts)
        asked = np.flatnonzero(found & (numbers >= CONDITIONAL))
        if len(asked):
            absent = self.coder.absent
            found[asked] = self.conditions.accept(self.axes, self.rows, absent, rows[asked], numbers[asked])
        return found

    def _encoded(self, numbers: Int32s) -> Encoded:
        """Return stored rows as events, for programs."""
        low, high = self.rows.low[numbers], self.rows.high[numbers]
        queries = Queries(np.ascontiguousarray(low.T), np.ascontiguousarray(high.T))
        absent = (low == self.coder.absent[0]) & (high == self.coder.absent[1])
        paths = {key.path: axis for axis, key in reversed(list(enumerate(self.axes.keys)))}
        ranged = {path: ~single(self.axes, path, low.T, high.T) & ~absent[:, axis] for path, axis in paths.items()}
        atoms = [path for path, axis in paths.items() if isinstance(self.axes.codecs[axis], (Texts, Integers))]
        columns = {path: Column(decoded(self.axes, path, low.T, high.T)) for path in atoms}
        return Encoded(len(numbers), queries, None, columns, None, ranged)

    # Changing

    def insert_boxes(self, numbers: Int32s) -> None:
        """Index stored boxes."""
        calling = self.interests.program[numbers] >= CONDITIONAL
        self.conditional_owners.update(self.interests.owner[numbers[calling]].tolist())
        self._each_index(numbers, lambda index, some: index.insert(some, self.interests.boxes(some)))
        for index in (self.plain, self.verified):
            if isinstance(index, Bounds) and len(numbers) >= BULK:
                index.settle()  # publications will ask about them

    def remove_boxes(self, numbers: Int32s) -> None:
        """Take boxes out of the index and forget them."""
        self._each_index(numbers, lambda index, some: index.remove(some))
        self.conditional_owners.difference_update(self.interests.owner[numbers].tolist())
        self.interests.drop(numbers)
        held = max(len(self.programs), len(self.conditions))
        if held > max(FEW_PROGRAMS, 4 * len(self.verified)):
            self._forget_programs()

    def _forget_programs(self) -> None:
        """Drop the programs of boxes that are gone: what is held follows the boxes, however many came and went."""
        boxes = np.flatnonzero(self.interests.owner >= 0).astype(np.int32)
        boxes = boxes[self.interests.program[boxes] >= 0]
        numbers = self.interests.program[boxes]
        programs = self.conditions.programs_of(numbers)
        live, which = np.unique(programs[programs >= 0], return_inverse=True)
        self.programs = self.programs.renumbered(live)
        programs[programs >= 0] = which
        self.interests.reprogram(boxes, self.conditions.compacted(numbers, programs))

    def _each_index(self, numbers: Int32s, call: Any) -> None:
        sure = self.interests.program[numbers] < 0
        for index, some in ((self.plain, numbers[sure]), (self.verified, numbers[~sure])):
            if len(some):
                call(index, some)

    def insert_rows(self, numbers: Int32s) -> None:
        """Index stored rows."""
        if len(numbers):
            self.objects.insert(numbers, self.boxes_of_rows(numbers))

    def remove_rows(self, numbers: Int32s) -> None:
        """Take rows out of the index and forget them."""
        if len(numbers):
            self.objects.remove(numbers)
            self.rows.drop(numbers)

    def relabel(self) -> None:
        """Spread the labels of every book anew, and write everything in them."""
        live = np.flatnonzero(self.rows.owner >= 0).astype(np.int32)
        boxes = np.flatnonzero(self.interests.owner >= 0).astype(np.int32)
        pool, (leaf_axis, *leaf_sides) = self.interests.pool, self.programs.bounds()
        used = {}
        stored = self.rows.low.shape[1]
        for axis, _ in self.axes.listed():
            held = [self.rows.low[live, axis], self.rows.high[live, axis]] if axis < stored else []
            held += [pool.low[pool.axis == axis], pool.high[pool.axis == axis]]
            used[axis] = np.unique(np.concatenate([*held, *(side[leaf_axis == axis] for side in leaf_sides)]))
        self.axes, changes = self.axes.relabelled(used, self.space)
        low, high, leaf_low, leaf_high = pool.low.copy(), pool.high.copy(), *(side.copy() for side in leaf_sides)
        for axis, (old, new) in changes.items():
            for sides, where in (((low, high), pool.axis == axis), ((leaf_low, leaf_high), leaf_axis == axis)):
                for side in sides:
                    side[where] = recoded(side[where], old, new)
            for side in (self.rows.low, self.rows.high) if axis < stored else ():
                side[live, axis] = recoded(side[live, axis], old, new)
        self.interests.recode(low, high)
        programs = self.conditions.programs_of(self.interests.program[boxes])
        self.programs = self.programs.only(np.unique(programs[programs >= 0]), leaf_low, leaf_high)
        self.planner, self.coder = Planner(self.axes, ranged=True), Coder(self.axes)
        self._make_indexes()
        self.insert_boxes(boxes)
        self.widen()
        self.insert_rows(live)


def _both(ones: Pairs, others: Pairs | None) -> Pairs:
    """Return two answers together, in no particular order."""
    if others is None or not len(others.rows):
        return ones
    return Pairs(np.concatenate([ones.rows, others.rows]), np.concatenate([ones.numbers, others.numbers]))
