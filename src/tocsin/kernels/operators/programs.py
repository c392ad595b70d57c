"""Running verification programs over candidate pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

BLOCK = 5
"""Programs whose numbers differ only in so many of the lowest bits lie together in memory."""

ACCEPT = -1
REJECT = -2

# Operations of instructions.
SOME = 0  # the value on the axis, or some element of a repeated one, is in the set
EVERY = 1  # the repeated field is there and each of its elements is in the set
ATOM_TRUE = 2  # the atom is TRUE of the event
ATOM_FALSE = 3  # the atom is FALSE of the event

# What is known of an atom for an event.
UNKNOWN = 0
IS_TRUE = 1
IS_FALSE = 2
IS_NULL = 3
IS_ANY = 4  # the field is unspecified and spans its domain: it satisfies whatever is wanted


class Code(NamedTuple):
    """All programs. Skeleton ``s`` owns the instructions from ``skeleton_offsets[s]`` on; jumps count from there.

    Program ``p`` has the skeleton ``program_skeleton[p]`` and, for instruction ``i``, the leaf ``program_leaf[p] +
    i``: its intervals are ``leaf_offsets[leaf]:leaf_offsets[leaf + 1]`` of ``low`` and ``high``, its atom is
    ``leaf_atom[leaf]``.
    """

    skeleton_offsets: npt.NDArray[np.int64]
    skeleton_start: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    axis: npt.NDArray[np.int32]
    on_true: npt.NDArray[np.int32]
    on_false: npt.NDArray[np.int32]
    program_skeleton: npt.NDArray[np.int32]
    program_leaf: npt.NDArray[np.int64]
    leaf_offsets: npt.NDArray[np.int64]
    leaf_atom: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


class Facts(NamedTuple):
    """What is known of the events: codes int64[axes, rows] as in queries, and the elements of repeated axes.

    ``repeated_of[axis]`` is -1 or which repeated axis it is; the elements of repeated axis ``r`` in a row are
    ``element_offsets[r, row]:element_offsets[r, row + 1]`` of ``elements``; ``present[r, row]`` says that the field is
    there, and ``absent_is_any`` that one that is not spans its domain.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    repeated_of: npt.NDArray[np.int32]
    element_offsets: npt.NDArray[np.int64]
    elements: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]
    absent_is_any: bool


@kernel
def _meets(code: Code, leaf: int, low: int, high: int) -> bool:
    """Return whether one of the leaf's intervals has a code in common with ``low`` to ``high``."""
    for at in range(code.leaf_offsets[leaf], code.leaf_offsets[leaf + 1]):
        if code.low[at] <= high and low <= code.high[at]:
            return True
    return False


@kernel
def _holds(code: Code, facts: Facts, operation: int, axis: int, leaf: int, row: int) -> bool:
    """Return whether a test of codes holds."""
    if axis >= len(facts.repeated_of):
        return False
    repeated = facts.repeated_of[axis]
    if repeated < 0:
        return bool(_meets(code, leaf, facts.low[axis, row], facts.high[axis, row]))
    if facts.absent_is_any and not facts.present[repeated, row]:
        return True
    for at in range(facts.element_offsets[repeated, row], facts.element_offsets[repeated, row + 1]):
        if _meets(code, leaf, facts.elements[at], facts.elements[at]) != (operation == EVERY):
            return operation == SOME
    return operation == EVERY and facts.present[repeated, row]


@kernel
def neighbours(programs: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """Return the order of pairs in which programs that lie together in memory, of ``count``, follow each other."""
    ends = np.zeros((count >> BLOCK) + 2, np.int32)
    for pair in range(len(programs)):
        ends[(programs[pair] >> BLOCK) + 1] += 1
    for block in range(1, len(ends)):
        ends[block] += ends[block - 1]
    order = np.empty(len(programs), np.int32)
    for pair in range(len(programs)):
        block = programs[pair] >> BLOCK
        order[ends[block]] = pair
        ends[block] += 1
    return order


@kernel
def run_programs(
    code: Code,
    facts: Facts,
    rows: npt.NDArray[np.int32],
    programs: npt.NDArray[np.int32],
    order: npt.NDArray[np.int32],
    at: npt.NDArray[np.int32],
    answer: npt.NDArray[np.int8],
) -> npt.NDArray[np.int32]:
    """Run each pair's program until it ends or meets an atom that is not known; return the atom each waits for, or -1.

    Pairs are run in the ``order`` given. ``at`` holds the instruction of each pair, and ACCEPT or REJECT when it has
    ended; ``answer`` what is known of the atom that the pair waited for.
    """
    waiting = np.full(len(rows), -1, np.int32)
    for pair in order:
        skeleton = code.program_skeleton[programs[pair]]
        base = code.skeleton_offsets[skeleton]
        leaves = code.program_leaf[programs[pair]]
        known = answer[pair]
        while at[pair] >= 0:
            instruction = base + at[pair]
            operation = code.operation[instruction]
            if operation >= ATOM_TRUE:
                if known == UNKNOWN:
                    waiting[pair] = code.leaf_atom[leaves + at[pair]]
                    break
                holds = known == IS_ANY or known == (IS_TRUE if operation == ATOM_TRUE else IS_FALSE)
                known = UNKNOWN
            else:
                holds = _holds(code, facts, operation, code.axis[instruction], leaves + at[pair], rows[pair])
            at[pair] = code.on_true[instruction] if holds else code.on_false[instruction]
    return waiting
