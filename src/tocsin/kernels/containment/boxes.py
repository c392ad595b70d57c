"""Kernels of containment: which boxes lie inside which, over rows of closed intervals, and the plain scan.

Box ``outer`` contains box ``inner`` if on each axis that ``outer`` constrains, ``inner`` is constrained too, and each
of its intervals there lies in one of the intervals of ``outer``. That is exact, because the intervals of a box on an
axis are disjoint and not adjacent. Rows never hold an interval of all codes: it constrains nothing, and is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined, kernel

NULL = np.int64(np.iinfo(np.int64).min)
TOP = np.int64(np.iinfo(np.int64).max)
"""The coordinate of an axis that a box does not constrain: above every other."""

VISITED, COMPARED = 0, 1
"""Places in ``tally``: nodes visited, boxes compared."""


class Rows(NamedTuple):
    """Boxes by slot. Slot ``s`` has the entries ``start[s] : start[s] + length[s]`` of ``axis``, ``low`` and ``high``,
    sorted by axis, then by ``low``."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    axis: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


class Question(NamedTuple):
    """What is asked of an index: ``rows`` are the boxes asked about, ``limit`` is how many answers each may have, and
    ``inside`` whether boxes inside them are wanted rather than boxes around them."""

    rows: Rows
    limit: int
    inside: bool


@kernel
def contains(outer: Rows, outer_slot: Any, inner: Rows, inner_slot: Any) -> Any:
    """Return whether one box contains another."""
    at, end = outer.start[outer_slot], outer.start[outer_slot] + outer.length[outer_slot]
    place, last = inner.start[inner_slot], inner.start[inner_slot] + inner.length[inner_slot]
    while at < end:
        axis = outer.axis[at]
        while place < last and inner.axis[place] < axis:
            place += 1
        if place == last or inner.axis[place] != axis:
            return False
        while place < last and inner.axis[place] == axis:
            while at < end and outer.axis[at] == axis and outer.high[at] < inner.high[place]:
                at += 1
            if at == end or outer.axis[at] != axis or outer.low[at] > inner.low[place]:
                return False
            place += 1
        while at < end and outer.axis[at] == axis:
            at += 1
    return True


@kernel
def answers(question: Question, row: Any, rows: Rows, slot: Any) -> Any:
    """Return whether the box of a slot answers a question."""
    if question.inside:
        return contains(question.rows, row, rows, slot)
    return contains(rows, slot, question.rows, row)


@inlined
def coordinate(rows: Rows, slot: Any, dimension: Any) -> Any:
    """Return a coordinate of the corner of a box: dimension ``2 a`` has the low end on axis ``a``, turned round, and
    ``2 a + 1`` the high end. Of two boxes, one can only contain the other if each of its coordinates is as great."""
    axis = dimension >> 1
    value = TOP
    for at in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
        if rows.axis[at] == axis:
            if dimension & 1:
                value = rows.high[at]
            else:
                value = ~rows.low[at]
                break
        elif rows.axis[at] > axis:
            break
    return value


@kernel
def put_corner(rows: Rows, slot: Any, corner: Any) -> None:
    """Write the coordinates of a box into ``corner``, which has `TOP` everywhere; axes beyond it are left out."""
    for at in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
        dimension = 2 * np.int64(rows.axis[at])
        if dimension + 1 < len(corner):
            if corner[dimension] == TOP:
                corner[dimension] = ~rows.low[at]
            corner[dimension + 1] = rows.high[at]


@kernel
def clear_corner(rows: Rows, slot: Any, corner: Any) -> None:
    """Make `TOP` again what `put_corner` wrote."""
    for at in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
        dimension = 2 * np.int64(rows.axis[at])
        if dimension + 1 < len(corner):
            corner[dimension] = TOP
            corner[dimension + 1] = TOP


@kernel
def tidy_rows(offsets: Any, axis: Any, low: Any, high: Any) -> Any:
    """Return boxes as rows without intervals of all codes, and -1; or, if their entries are empty or out of order, the
    first box that is at fault."""
    boxes = len(offsets) - 1
    start, count = np.empty(boxes, np.int64), np.empty(boxes, np.int32)
    into, kept_axis = 0, np.empty(len(axis), np.int32)
    kept_low, kept_high = np.empty(len(axis), np.int64), np.empty(len(axis), np.int64)
    fault = -1
    for box in range(boxes):
        start[box] = into
        for at in range(offsets[box], offsets[box + 1]):
            bad = low[at] > high[at] or axis[at] < 0
            if at > offsets[box]:
                bad |= axis[at] < axis[at - 1]
                if axis[at] == axis[at - 1]:
                    bad |= high[at - 1] >= low[at] or high[at - 1] + 1 >= low[at]
            if bad and fault < 0:
                fault = box
            if low[at] != NULL or high[at] != TOP:
                kept_axis[into], kept_low[into], kept_high[into] = axis[at], low[at], high[at]
                into += 1
        count[box] = into - start[box]
    return Rows(start, count, kept_axis[:into], kept_low[:into], kept_high[:into]), fault


@kernel
def copy_rows(given: Rows, rows: Rows, slots: Any, used: Any) -> Any:
    """Put boxes into slots, their entries from ``used`` on; return where those end. There must be room."""
    for box in range(len(slots)):
        slot = slots[box]
        rows.start[slot] = used
        rows.length[slot] = given.length[box]
        for at in range(given.start[box], given.start[box] + given.length[box]):
            rows.axis[used], rows.low[used], rows.high[used] = given.axis[at], given.low[at], given.high[at]
            used += 1
    return used


@kernel
def gather_rows(rows: Rows, slots: Any) -> Any:
    """Return the boxes of slots as the arrays of `index.boxes.Boxes`."""
    offsets = np.zeros(len(slots) + 1, np.int64)
    for box in range(len(slots)):
        offsets[box + 1] = offsets[box] + rows.length[slots[box]]
    axis = np.empty(offsets[-1], np.int32)
    low, high = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    for box in range(len(slots)):
        start, into = rows.start[slots[box]], offsets[box]
        for at in range(rows.length[slots[box]]):
            axis[into + at], low[into + at], high[into + at] = (
                rows.axis[start + at],
                rows.low[start + at],
                rows.high[start + at],
            )
    return offsets, axis, low, high


@kernel
def needless(rows: Rows, starts: Any) -> Any:
    """Return for each box whether another of its subscription contains it; of equal ones the first is needed.

    Subscription ``s`` has the boxes ``starts[s]:starts[s + 1]``.
    """
    spare = np.zeros(starts[-1], np.bool_)
    for owner in range(len(starts) - 1):
        for one in range(starts[owner], starts[owner + 1]):
            for other in range(starts[owner], starts[owner + 1]):
                if one != other and not spare[other] and contains(rows, other, rows, one):
                    spare[one] = True
                    break
    return spare


@kernel
def note(found: Any, count: Any, row: Any, slot: Any) -> Any:
    """Append a pair to ``found`` int32[2, room], or to a longer copy of it; return the array."""
    if count == found.shape[1]:
        grown = np.empty((2, 2 * count), np.int32)
        grown[:, :count] = found
        found = grown
    found[0, count], found[1, count] = row, slot
    return found


class Line(NamedTuple):
    """Slots in a line without gaps, and where each stands in it."""

    slots: npt.NDArray[np.int32]
    place_of: npt.NDArray[np.int32]


@kernel
def append_to_line(line: Line, live: Any, slots: Any) -> None:
    """Add slots to a line of ``live`` ones. There must be room."""
    for slot in slots:
        line.slots[live], line.place_of[slot] = slot, live
        live += 1


@kernel
def remove_from_line(line: Line, live: Any, slots: Any) -> None:
    """Take slots out of a line of ``live`` ones; the last one takes the place of each."""
    for slot in slots:
        live -= 1
        last, place = line.slots[live], line.place_of[slot]
        line.slots[place], line.place_of[last] = last, place


@kernel
def scan_rows(rows: Rows, line: Line, live: Any, question: Question, tally: Any) -> Any:
    """Ask one box after another whether it answers; return the pairs and how many there are.

    The scan of a question ends with its last wanted answer, the test of a box with the first axis that fails.
    """
    found, count = np.empty((2, 256), np.int32), 0
    for row in range(len(question.rows.start)):
        begin = count
        for place in range(live):
            if count - begin >= question.limit:
                break
            tally[COMPARED] += 1
            slot = line.slots[place]
            if answers(question, row, rows, slot):
                found = note(found, count, row, slot)
                count += 1
    return found, count
