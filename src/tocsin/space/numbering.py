"""Pre-order numbers with room: a concept is the interval of everything below it, and of what may yet come there.

The interval of a row is ``[code, last]``: its own code, then the intervals of its children side by side, then its own
free room ``[free, last]``, from which new children take theirs. So a new concept changes no interval that is there. A
concept with further parents lies in the interval of its first one; each of the others, and what is above it, has the
concept's whole interval as well.

The bounds of every set that sentences about concepts can make are *marks*: codes, the neighbours of codes, ends. Marks
keep their order and their distinctness when a hierarchy is numbered anew, for which room of `SPARE` is always left.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.space.books import BookFullError
from tocsin.space.hierarchy import NO_ROW, Hierarchy

Codes = npt.NDArray[np.int64]

FIRST = 2**20
END = 2**62
SPARE = 3
_CROWD = 15


class Numbering(NamedTuple):
    """The interval of each row, int64[rows] each; the entry behind the last row is that of all roots together."""

    code: Codes
    last: Codes
    free: Codes


def numbered(hierarchy: Hierarchy) -> Numbering:
    """Return intervals for all rows, the room in each in proportion to the number of rows below it.

    >>> goods = Hierarchy.of({"computer": [], "laptop": ["computer"], "desktop": ["computer"]})
    >>> code, last, _ = numbered(goods)
    >>> bool(code[0] < code[1] <= last[1] < code[2] <= last[2] < last[0])
    True
    """
    count = len(hierarchy)
    parent = np.where(hierarchy.first_parent == NO_ROW, count, hierarchy.first_parent)
    depth = _depths(parent, count)
    weight = np.ones(count + 1, np.int64)
    by_level = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[by_level], np.arange(depth.max(initial=0) + 2))
    levels = [by_level[start:end] for start, end in pairwise(bounds.tolist())]
    for rows in reversed(levels):
        np.add.at(weight, parent[rows], weight[rows])
    unit = (END - FIRST) // int(weight[count])
    if unit < 2 * SPARE:
        raise BookFullError
    code, last, free = (np.zeros(count + 1, np.int64) for _ in range(3))
    code[count], last[count] = FIRST - 1, END - 1
    free[count] = FIRST + unit * int(weight[:count][parent == count].sum())
    for rows in levels:
        rows = rows[np.argsort(parent[rows], kind="stable")]  # siblings side by side, in the order of their rows
        spans = unit * weight[rows]
        before = np.cumsum(spans) - spans
        first = np.searchsorted(parent[rows], parent[rows])
        code[rows] = code[parent[rows]] + 1 + before - before[first]
        last[rows] = code[rows] + spans - 1
        free[rows] = code[rows] + 1 + spans - unit
    return Numbering(code, last, free)


def extended(numbering: Numbering, hierarchy: Hierarchy) -> Numbering:
    """Return the numbering with the new rows of a grown hierarchy in free room; BookFullError if there is too little.

    Rows that are numbered keep their intervals.
    """
    old, count = len(numbering.code) - 1, len(hierarchy)
    first_parent = {row: hierarchy.parents[row][0] for row in range(old, count)}
    children: dict[int, list[int]] = {}
    for row in first_parent:
        children.setdefault(first_parent[row], []).append(row)
    weight = np.ones(count + 1, np.int64)
    walked = [row for row in children if row < old]
    order = [child for row in walked for child in children[row]]
    for row in order:  # grows while it is walked
        order += children.get(row, [])
    for row in reversed(order):
        if first_parent[row] >= old:
            weight[first_parent[row]] += weight[row]
    code, last, free = (np.concatenate([side[:-1], np.zeros(count - old, np.int64), side[-1:]]) for side in numbering)
    for row in [*walked, *order]:
        below = children.get(row)
        if not below:
            continue
        wanted = int(weight[below].sum())
        room = int(last[row] - free[row]) + 1 - SPARE
        unit = room // (wanted + (_CROWD if row < old else 1))
        if unit < 2 * SPARE:
            raise BookFullError
        for child in below:
            code[child] = free[row]
            last[child] = code[child] + unit * int(weight[child]) - 1
            free[child] = code[child] + 1
            free[row] = last[child] + 1
    return Numbering(code, last, free)


def marks(numbering: Numbering, rows: int) -> Codes:
    """Return the marks of the first rows: of each its code, the code behind that, and the code behind its interval."""
    code, last = numbering.code[:rows], numbering.last[:rows]
    return np.concatenate([code, code + 1, last + 1])


class Elsewhere(NamedTuple):
    """The intervals that further parents give a row beside its own: row ``r`` has ``rows[offsets[r]:offsets[r + 1]]``,
    the rows whose intervals they are."""

    offsets: Codes
    rows: Codes

    @classmethod
    def of(cls, hierarchy: Hierarchy, numbering: Numbering) -> Elsewhere:
        """Return them for a hierarchy; in a tree there are none."""
        found: dict[int, set[int]] = {}
        if not hierarchy.is_tree:
            for row in hierarchy.order[::-1].tolist():
                held = found.get(row)
                if held:
                    held = found[row] = _outermost(held, row, numbering)
                for place, parent in enumerate(hierarchy.parents[row]):
                    carried = {row, *(held or ())} if place else held
                    if carried:
                        found.setdefault(parent, set()).update(carried)
        counts = np.zeros(len(hierarchy) + 2, np.int64)  # the row behind the last stands for what is no concept
        for row, held in found.items():
            counts[row + 1] = len(held)
        ordered = [each for row in sorted(found) for each in sorted(found[row])]
        return cls(np.cumsum(counts), np.array(ordered, np.int64))

    def intervals(self, rows: Codes, numbering: Numbering) -> tuple[list[Codes], list[Codes]]:
        """Return the further intervals of rows, place by place: lows and highs, crossed where a row has fewer."""
        counts = self.offsets[rows + 1] - self.offsets[rows]
        lows, highs = [], []
        for place in range(int(counts.max(initial=0))):
            has = counts > place
            which = self.rows[np.where(has, self.offsets[rows] + place, 0)]
            lows.append(np.where(has, numbering.code[which], 1))
            highs.append(np.where(has, numbering.last[which], 0))
        return lows, highs


def _outermost(rows: set[int], within: int, numbering: Numbering) -> set[int]:
    """Return the rows whose intervals are neither in that of a row nor in one another."""
    kept: set[int] = set()
    end = -1
    for row in sorted(rows, key=lambda each: int(numbering.code[each])):
        inside = numbering.code[within] <= numbering.code[row] <= numbering.last[within]
        if not inside and numbering.code[row] > end:
            kept.add(row)
            end = int(numbering.last[row])
    return kept


def _depths(parent: Codes, count: int) -> Codes:
    """Return how many steps each row is below the roots, by pointer doubling."""
    steps = np.append(np.ones(count, np.int64), 0)
    jump = np.append(parent, count)
    while (jump != count).any():
        steps += steps[jump]
        jump = jump[jump]
    return steps[:count] - 1
