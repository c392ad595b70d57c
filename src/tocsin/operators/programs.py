"""The programs of all subscriptions, and their running over candidate pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.checks import check, check_length, check_rising, check_within
from tocsin.kernels.operators.programs import (
    ACCEPT,
    ATOM_FALSE,
    ATOM_TRUE,
    EVERY,
    IS_ANY,
    REJECT,
    SOME,
    UNKNOWN,
    Code,
    neighbours,
    run_programs,
)
from tocsin.language.tree import Leaf
from tocsin.operators.atoms import Atoms, evaluate_atom
from tocsin.operators.conditions import Conditions
from tocsin.operators.growing import Growing
from tocsin.space.events import Encoded
from tocsin.space.filling import FilledProgram
from tocsin.space.programs import Skeleton

_MANY = 1_024
"""Fewer pairs are run in the order in which they come."""


def _spans(starts: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of spans, one after another."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


def _check_saved(arrays: Mapping[str, npt.NDArray[Any]], atoms: int) -> None:
    """Refuse programs that lead outside their arrays, or back: each step of a program is to an earlier instruction, so
    that it ends."""
    offsets, skeleton = arrays["skeleton_offsets"], arrays["program_skeleton"]
    instructions, leaves = len(arrays["operation"]), len(arrays["leaf_atom"])
    check_rising("instructions", offsets, 0, instructions)
    lengths = np.diff(offsets)
    place = np.arange(instructions) - np.repeat(offsets[:-1], lengths) if len(lengths) else np.arange(0)
    check_length("instructions", instructions, len(place))
    for name in ("axis", "on_true", "on_false"):
        check_length(name, len(arrays[name]), instructions)
    for jump in (arrays["on_true"], arrays["on_false"]):
        check_within("jumps", jump, min(ACCEPT, REJECT), instructions)
        check(bool(np.all(jump < place)), "a jump that does not lead back")
    check_within("operations", arrays["operation"], min(SOME, EVERY), max(ATOM_TRUE, ATOM_FALSE) + 1)
    check_length("starts of programs", len(arrays["skeleton_start"]), len(lengths))
    check_within("starts of programs", arrays["skeleton_start"], min(ACCEPT, REJECT), instructions)
    check(bool(np.all(arrays["skeleton_start"] < lengths)), "a program that begins beyond its end")
    check_within("skeletons", skeleton, 0, len(lengths))
    check_length("leaves of programs", len(arrays["program_leaf"]), len(skeleton))
    check_within("leaves of programs", arrays["program_leaf"], 0, leaves + 1)
    check(bool(np.all(arrays["program_leaf"] + lengths[skeleton] <= leaves)), "leaves that are not there")
    check_within("atoms", arrays["leaf_atom"], -1, atoms)
    check_length("axes of leaves", len(arrays["leaf_axis"]), leaves)
    check_length("intervals of leaves", len(arrays["leaf_offsets"]), leaves + 1)
    check_rising("intervals of leaves", arrays["leaf_offsets"], 0, len(arrays["low"]))
    check_length("intervals", len(arrays["high"]), len(arrays["low"]))
    of_tests = arrays["operation"] < min(ATOM_TRUE, ATOM_FALSE)
    check_within("axes of tests", arrays["axis"][of_tests], 0, 2**31)


class Programs:
    """Programs by number: append-only, so that readers need no lock. Dead ones are dropped by building anew."""

    def __init__(self) -> None:
        self.atoms = Atoms()
        self.conditions = Conditions()
        self._skeletons: dict[int, int] = {}
        self._kept: list[Skeleton] = []
        self._skeleton_offsets = Growing(np.int64, 0)
        self._skeleton_start = Growing(np.int32)
        self._instructions = [Growing(np.int32) for _ in range(4)]
        self._program_skeleton = Growing(np.int32)
        self._program_leaf = Growing(np.int64)
        self._leaf_offsets = Growing(np.int64, 0)
        self._leaf_atom = Growing(np.int32)
        self._leaf_axis = Growing(np.int32)
        self._bounds = Growing(np.int64), Growing(np.int64)
        self._code = self._snapshot()

    def __len__(self) -> int:
        return len(self._program_skeleton)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the programs as plain arrays; their atoms are kept apart."""
        return {**self._code._asdict(), "leaf_axis": self._leaf_axis.array}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], atoms: Iterable[Leaf]) -> Programs:
        """Return the programs that `to_arrays` wrote, with their atoms in the order of their numbers. ValueError if
        these arrays cannot be what it wrote."""
        programs = cls()
        for leaf in atoms:
            programs.atoms.number(leaf)
        _check_saved(arrays, len(programs.atoms))
        operation, axis, on_true, on_false = (arrays[name] for name in ("operation", "axis", "on_true", "on_false"))
        for number, start in enumerate(arrays["skeleton_start"]):
            span = slice(*arrays["skeleton_offsets"][number : number + 2])
            unknown: tuple[None, ...] = (None,) * (span.stop - span.start)
            jumps = on_true[span], on_false[span]
            programs._skeleton(Skeleton(int(start), operation[span], axis[span], *jumps, unknown, unknown))
        programs._program_skeleton = Growing.of(arrays["program_skeleton"])
        programs._program_leaf = Growing.of(arrays["program_leaf"])
        programs._leaf_offsets = Growing.of(arrays["leaf_offsets"])
        programs._leaf_atom = Growing.of(arrays["leaf_atom"])
        programs._leaf_axis = Growing.of(arrays["leaf_axis"])
        programs._bounds = Growing.of(arrays["low"]), Growing.of(arrays["high"])
        programs._code = programs._snapshot()
        return programs

    @property
    def nbytes(self) -> int:
        """The memory of all programs."""
        return sum(array.nbytes for array in self._code)

    def add(self, filled: FilledProgram) -> Int32s:
        """Add the programs of some texts; return the number of the program of each of their boxes."""
        count = filled.texts
        instructions = len(filled.skeleton.operation)
        first = len(self)
        counts = np.zeros((count, instructions), np.int64)
        atoms = np.full((count, instructions), -1, np.int32)
        lows, highs = [np.empty((count, 0), np.int64)], [np.empty((count, 0), np.int64)]
        for position in range(instructions):
            sets, leaves = filled.sets[position], filled.leaves[position]
            if sets is not None:
                counts[:, position] = sets.nonempty.sum(axis=0)
                lows.append(sets.low.T)
                highs.append(sets.high.T)
            elif leaves is not None:
                atoms[:, position] = [self.atoms.number(leaf) for leaf in leaves]
        low, high = np.concatenate(lows, axis=1), np.concatenate(highs, axis=1)
        used = low <= high
        leaf_start = len(self._leaf_atom)
        self._bounds[0].extend(low[used])
        self._bounds[1].extend(high[used])
        self._leaf_offsets.extend(self._leaf_offsets.array[-1] + np.cumsum(counts.ravel()))
        self._leaf_atom.extend(atoms.ravel())
        self._leaf_axis.extend(np.tile(filled.skeleton.axis, count))
        self._program_skeleton.extend(np.full(count, self._skeleton(filled.skeleton), np.int32))
        self._program_leaf.extend(leaf_start + instructions * np.arange(count, dtype=np.int64))
        self._code = self._snapshot()
        return (first + filled.program_of).astype(np.int32)

    def accept(self, encoded: Encoded, rows: Int32s, programs: Int32s, any_unspecified: bool) -> npt.NDArray[np.bool_]:
        """Return which pairs of event row and program the programs accept."""
        code, facts = self._code, encoded.facts
        rows, programs = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(programs, np.int32)
        at = code.skeleton_start[code.program_skeleton[programs]].copy()
        answer = np.full(len(rows), UNKNOWN, np.int8)
        order = neighbours(programs, len(self)) if len(rows) >= _MANY else np.arange(len(rows), dtype=np.int32)
        known: dict[int, npt.NDArray[np.int8]] = {}
        while True:
            waiting = run_programs(code, facts, rows, programs, order, at, answer)
            pending = np.flatnonzero(waiting >= 0)
            if not len(pending):
                accepted: npt.NDArray[np.bool_] = at == ACCEPT
                return accepted
            by_atom = pending[np.argsort(waiting[pending], kind="stable")]
            starts = np.flatnonzero(np.diff(waiting[by_atom], prepend=-1))
            for pairs in np.split(by_atom, starts[1:]):
                atom = int(waiting[pairs[0]])
                answer[pairs] = self._answers(atom, rows[pairs], encoded, known, any_unspecified)

    def bounds(self) -> tuple[Int32s, Int64s, Int64s]:
        """Return the axis, low and high of every interval."""
        counts = np.diff(self._leaf_offsets.array)
        return np.repeat(self._leaf_axis.array, counts), self._bounds[0].array, self._bounds[1].array

    def tests_of(self, program: int) -> tuple[Int32s, Int64s, Int64s]:
        """Return the axis, low and high of every interval of one program."""
        skeleton, first = int(self._program_skeleton.array[program]), int(self._program_leaf.array[program])
        length = int(np.diff(self._skeleton_offsets.array[skeleton : skeleton + 2])[0])
        offsets = self._leaf_offsets.array[first : first + length + 1]
        axes = np.repeat(self._leaf_axis.array[first : first + length], np.diff(offsets))
        here = slice(int(offsets[0]), int(offsets[-1]))
        return axes, self._bounds[0].array[here], self._bounds[1].array[here]

    def renumbered(self, live: Int32s) -> Programs:
        """Return the live programs alone, each numbered by its place among them."""
        kept = self.only(live, *self.bounds()[1:])
        kept._program_skeleton = Growing.of(kept._program_skeleton.array[live])
        kept._program_leaf = Growing.of(kept._program_leaf.array[live])
        kept._code = kept._snapshot()
        return kept

    def only(self, live: Int32s, low: Int64s, high: Int64s) -> Programs:
        """Return the live programs under their old numbers, the others emptied; ``low`` and ``high`` replace all
        `bounds`."""
        kept = Programs()
        counts = np.diff(self._leaf_offsets.array)
        lengths = np.zeros(len(self), np.int64)
        lengths[live] = np.diff(self._skeleton_offsets.array)[self._program_skeleton.array[live]]
        leaves = _spans(self._program_leaf.array, lengths)
        intervals = _spans(self._leaf_offsets.array[:-1][leaves], counts[leaves])
        atoms = self._leaf_atom.array[leaves].tolist()
        for skeleton in self._kept:
            kept._skeleton(skeleton)
        kept._program_skeleton.extend(self._program_skeleton.array)
        kept._program_leaf.extend(np.cumsum(lengths) - lengths)
        kept._leaf_offsets.extend(np.cumsum(counts[leaves]))
        kept._leaf_axis.extend(self._leaf_axis.array[leaves])
        kept._leaf_atom.extend(
            np.array([atom if atom < 0 else kept.atoms.number(self.atoms.leaf(atom)) for atom in atoms], np.int32)
        )
        kept._bounds[0].extend(low[intervals])
        kept._bounds[1].extend(high[intervals])
        kept._code = kept._snapshot()
        return kept

    def _answers(
        self,
        atom: int,
        rows: Int32s,
        encoded: Encoded,
        known: dict[int, npt.NDArray[np.int8]],
        any_unspecified: bool,
    ) -> npt.NDArray[np.int8]:
        """Return what is known of an atom for these rows, evaluating it for those not seen before."""
        states = known.setdefault(atom, np.full(encoded.count, UNKNOWN, np.int8))
        unseen = np.unique(rows[states[rows] == UNKNOWN])
        if len(unseen):
            leaf = self.atoms.leaf(atom)
            column = encoded.columns[leaf.field.path]  # type: ignore[union-attr]
            states[unseen] = evaluate_atom(leaf, column, unseen.astype(np.int64), any_unspecified)
            if column.open is not None:
                states[np.intersect1d(unseen, column.open_rows())] = IS_ANY
            spanning = encoded.ranged.get(leaf.field.path)  # type: ignore[union-attr]
            if spanning is not None:
                states[unseen[spanning[unseen]]] = IS_ANY
        return states[rows]

    def _skeleton(self, skeleton: Skeleton) -> int:
        """Return the number of a skeleton, a new one if it is new. Skeletons are kept, so their identity is theirs
        alone."""
        number = self._skeletons.get(id(skeleton))
        if number is None:
            number = self._skeletons[id(skeleton)] = len(self._kept)
            self._kept.append(skeleton)
            columns = skeleton.operation, skeleton.axis, skeleton.on_true, skeleton.on_false
            for held, column in zip(self._instructions, columns, strict=True):
                held.extend(column)
            self._skeleton_offsets.extend(np.array([len(self._instructions[0])]))
            self._skeleton_start.extend(np.array([skeleton.start]))
        return number

    def _snapshot(self) -> Code:
        operation, axis, on_true, on_false = self._instructions
        return Code(
            self._skeleton_offsets.array,
            self._skeleton_start.array,
            operation.array,
            axis.array,
            on_true.array,
            on_false.array,
            self._program_skeleton.array,
            self._program_leaf.array,
            self._leaf_offsets.array,
            self._leaf_atom.array,
            self._bounds[0].array,
            self._bounds[1].array,
        )
