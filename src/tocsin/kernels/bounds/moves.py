"""Two sorted lists of bounds an axis: which boxes overlap a query, and which begin or cease to when it moves.

A run holds boxes at *positions* and, for each axis, its lower bounds ascending and its upper bounds ascending, each
with the other end of its interval beside it. A lower bound of NULL and an upper bound of HIGHEST exclude nothing and
are not listed (but for an interval that holds nothing else). An interval that is one of several on its axis (a set) is
listed as ``~position``.

A query ``[low, high]`` misses an interval whose lower bound is above ``high`` or whose upper bound is below ``low``.
So when it moves, only those intervals change whose lower bound lies between the old and the new ``high``, or whose
upper bound lies between the old and the new ``low``: that is all that `begun_in_run` looks at. What ceases to overlap
has begun to when the step is taken backwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments.checking import AHEAD, Found, with_room

NULL = np.int64(np.iinfo(np.int64).min)
HIGHEST = np.int64(np.iinfo(np.int64).max)

CROSSED = 1 << 12
"""How many crossed bounds are listed before they are verified, about."""


class Listed(NamedTuple):
    """One list of bounds: axis ``a`` owns ``first[a]:first[a + 1]`` (int64[axes + 1]) of ``code`` (int64, ascending),
    ``other`` (int64, the other end) and ``position`` (int32)."""

    first: Any
    code: Any
    other: Any
    position: Any


class Run(NamedTuple):
    """Boxes in positions, and their bounds in order.

    ``numbers`` int32[positions]; ``offsets`` int64[positions + 1] and ``axis`` int32, ``low`` and ``high`` int64 are
    the boxes as in `tocsin.index.boxes`; ``lower`` and ``upper`` their bounds. ``covering`` int64[axes, 3]: how many
    positions have a single interval on an axis whose lower bound is listed, the greatest width of those, and which of
    ``masks`` uint64[masks, words] has the bits of their positions (-1: none). ``sets`` int32: the positions with
    several intervals on an axis.
    """

    numbers: Any
    offsets: Any
    axis: Any
    low: Any
    high: Any
    lower: Any
    upper: Any
    covering: Any
    sets: Any
    masks: Any


@inlined
def first_above(codes, begin, end, code):  # type: ignore[no-untyped-def]
    """Return the first place in ``codes[begin:end]`` with a code above this one, or ``end``."""
    while begin < end:
        middle = (begin + end) >> 1
        if codes[middle] <= code:
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def first_from(codes, begin, end, code):  # type: ignore[no-untyped-def]
    """Return the first place in ``codes[begin:end]`` with this code or one above, or ``end``."""
    while begin < end:
        middle = (begin + end) >> 1
        if codes[middle] < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def list_bounds(offsets, axis, ends, others, axes, unbounded):  # type: ignore[no-untyped-def]
    """Return (first, code, other, position) of one list of bounds, not yet in order within an axis."""
    first = np.zeros(axes + 1, np.int64)
    for entry in range(len(axis)):
        if ends[entry] != unbounded or others[entry] == unbounded:
            first[axis[entry] + 1] += 1
    for each in range(axes):
        first[each + 1] += first[each]
    code, other = np.empty(first[axes], np.int64), np.empty(first[axes], np.int64)
    position, filled = np.empty(first[axes], np.int32), first.copy()
    for box in range(len(offsets) - 1):
        for entry in range(offsets[box], offsets[box + 1]):
            if ends[entry] != unbounded or others[entry] == unbounded:
                here = axis[entry]
                several = entry > offsets[box] and axis[entry - 1] == here
                several |= entry + 1 < offsets[box + 1] and axis[entry + 1] == here
                place = filled[here]
                filled[here] += 1
                code[place], other[place], position[place] = ends[entry], others[entry], ~box if several else box
    return first, code, other, position


@kernel
def cover_axes(offsets, axis, low, high, axes):  # type: ignore[no-untyped-def]
    """Return ``covering`` and ``sets`` of a run that has no masks."""
    covering = np.zeros((axes, 3), np.int64)
    covering[:, 2] = -1
    sets, found = np.empty(len(offsets) - 1, np.int32), 0
    for box in range(len(offsets) - 1):
        begin, end, several = offsets[box], offsets[box + 1], False
        for entry in range(begin, end):
            here = axis[entry]
            if (entry > begin and axis[entry - 1] == here) or (entry + 1 < end and axis[entry + 1] == here):
                several = True
            elif low[entry] != NULL or high[entry] == NULL:
                covering[here, 0] += 1
                fits = low[entry] >= 0 or high[entry] <= HIGHEST + low[entry]  # in 64 bits; no overflow may happen
                covering[here, 1] = max(covering[here, 1], high[entry] - low[entry] if fits else HIGHEST)
        sets[found] = box
        found += several
    return covering, sets[:found].copy()


@kernel
def meets(offsets, axes, lows, highs, position, query_low, query_high, row):  # type: ignore[no-untyped-def]
    """Return whether the box at a position overlaps a query."""
    entry, end, given = offsets[position], offsets[position + 1], query_low.shape[0]
    while entry < end:
        axis = axes[entry]
        least = query_low[axis, row] if axis < given else NULL
        most = query_high[axis, row] if axis < given else NULL
        met = False
        while entry < end and axes[entry] == axis:
            met |= lows[entry] <= most and least <= highs[entry]
            entry += 1
        if not met:
            return False
    return True


class Step(NamedTuple):
    """Queries before and after: int64[axes, rows] each, as in `tocsin.index.boxes.Queries`. ``died`` int64[positions]
    and ``version`` say which boxes are there, as in `tocsin.kernels.segments.checking.Asked`."""

    before_low: Any
    before_high: Any
    after_low: Any
    after_high: Any
    died: Any
    version: Any


class Crossed(NamedTuple):
    """Bounds that rows have come to: ``row``, ``axis``, ``position`` int32, and the interval ``low`` to ``high``."""

    row: Any
    axis: Any
    position: Any
    low: Any
    high: Any


@kernel
def crossings(room):  # type: ignore[no-untyped-def]
    """Return empty lists of crossed bounds with some room."""
    row, axis, position = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    return Crossed(row, axis, position, np.empty(room, np.int64), np.empty(room, np.int64))


@kernel
def cross(listed, start, stop, reach, lower, row, axis, crossed, count):  # type: ignore[no-untyped-def]
    """Append the intervals of ``start`` to ``stop`` in a list whose other end is within ``reach``."""
    codes, others, positions = listed.code, listed.other, listed.position
    out_row, out_axis, out_position, out_low, out_high = crossed
    for place in range(start, stop):
        code, other = codes[place], others[place]
        position = positions[place]
        out_row[count], out_axis[count] = row, axis
        out_position[count] = position if position >= 0 else ~position
        out_low[count], out_high[count] = (code, other) if lower else (other, code)
        count += other >= reach if lower else other <= reach
    return count


@kernel
def list_crossed(run, step, begin, end, crossed):  # type: ignore[no-untyped-def]
    """List the intervals that rows from ``begin`` on overlap after a step and not before, one axis looked at alone.

    Stop at ``end`` or when there are many; return the lists, how many they hold and the next row.
    """
    axes, room, count, row = len(run.lower.first) - 1, len(crossed.row), 0, begin
    before_low, before_high, after_low, after_high = step.before_low, step.before_high, step.after_low, step.after_high
    lower_first, lower_code = run.lower.first, run.lower.code
    upper_first, upper_code = run.upper.first, run.upper.code
    befores, afters = before_low.shape[0], after_low.shape[0]
    while row < end and 2 * count <= room:
        for axis in range(axes):
            low = before_low[axis, row] if axis < befores else NULL
            high = before_high[axis, row] if axis < befores else NULL
            least = after_low[axis, row] if axis < afters else NULL
            most = after_high[axis, row] if axis < afters else NULL
            if most > high:
                start = first_above(lower_code, lower_first[axis], lower_first[axis + 1], high)
                stop = first_above(lower_code, start, lower_first[axis + 1], most)
                if stop > start:
                    crossed, room = with_crossings(crossed, count, stop - start)
                    count = cross(run.lower, start, stop, least, True, row, axis, crossed, count)
            if least < low:
                start = first_from(upper_code, upper_first[axis], upper_first[axis + 1], least)
                stop = first_from(upper_code, start, upper_first[axis + 1], low)
                if stop > start:
                    crossed, room = with_crossings(crossed, count, stop - start)
                    count = cross(run.upper, start, stop, most, False, row, axis, crossed, count)
        row += 1
    return crossed, count, row


@kernel
def with_crossings(crossed, count, more):  # type: ignore[no-untyped-def]
    """Return the lists with room for so many more, and that room."""
    room = len(crossed.row)
    if count + more <= room:
        return crossed, room
    room = max(2 * room, count + more)
    longer = crossings(room)
    longer.row[:count], longer.axis[:count] = crossed.row[:count], crossed.axis[:count]
    longer.position[:count] = crossed.position[:count]
    longer.low[:count], longer.high[:count] = crossed.low[:count], crossed.high[:count]
    return longer, room


@kernel
def tell(run, step, crossed, listed, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs whose box overlaps the row after the step and not before, each once.

    Of several intervals of one box that a row came to, that on the lowest axis tells, and on one axis the lowest.
    """
    numbers, offsets, axes, lows, highs = run.numbers, run.offsets, run.axis, run.low, run.high
    before_low, before_high, after_low, after_high = step.before_low, step.before_high, step.after_low, step.after_high
    rows, on, positions, bound_low, bound_high = crossed
    died, version, befores, afters = step.died, step.version, before_low.shape[0], after_low.shape[0]
    found = with_room(found, count, listed)
    found_rows, found_numbers = found.rows, found.numbers
    for i in range(listed):
        row, position, axis = rows[i], positions[i], on[i]
        prefetch(offsets, np.int64(positions[min(i + 2 * AHEAD, listed - 1)]))
        soon = offsets[positions[min(i + AHEAD, listed - 1)]]
        prefetch(axes, soon)
        prefetch(lows, soon)
        prefetch(highs, soon)
        entry, end = offsets[position], offsets[position + 1]
        met = len(died) == 0 or died[position] > version
        while met and entry < end:
            here = axes[entry]
            least = after_low[here, row] if here < afters else NULL
            most = after_high[here, row] if here < afters else NULL
            met, was, mine = False, False, True
            low = before_low[here, row] if here < befores else NULL
            high = before_high[here, row] if here < befores else NULL
            while entry < end and axes[entry] == here:
                if lows[entry] <= most and least <= highs[entry]:
                    mine &= met or (lows[entry] == bound_low[i] and highs[entry] == bound_high[i])
                    met = True
                was |= lows[entry] <= high and low <= highs[entry]
                entry += 1
            if here <= axis:
                met &= was if here < axis else mine and not was
        found_rows[count], found_numbers[count] = row, numbers[position]
        count += met
    return found, count


@kernel
def begun_in_run(run, step, crossed, found):  # type: ignore[no-untyped-def]
    """Return the pairs of all rows whose box overlaps the row after the step and not before, in ``found`` or longer
    arrays, and how many there are; ``crossed`` is to write to, and returned as it was last needed."""
    begin, end, count = 0, step.before_low.shape[1], 0
    while begin < end:
        crossed, listed, begin = list_crossed(run, step, begin, end, crossed)
        found, count = tell(run, step, crossed, listed, found, count)
    return found, count, crossed


@kernel
def moved_in_run(run, old, new, died, version):  # type: ignore[no-untyped-def]
    """Return (rows, numbers) of the pairs that begin and of those that cease to overlap, ``old`` and ``new`` being
    (low, high)."""
    (low, high), (least, most), crossed = old, new, crossings(CROSSED)
    none = Found(np.empty(16, np.int32), np.empty(16, np.int32))
    entered, came, crossed = begun_in_run(run, Step(low, high, least, most, died, version), crossed, none)
    none = Found(np.empty(16, np.int32), np.empty(16, np.int32))
    left, went, crossed = begun_in_run(run, Step(least, most, low, high, died, version), crossed, none)
    return entered.rows[:came], entered.numbers[:came], left.rows[:went], left.numbers[:went]


@kernel
def count_crossed(run, step, begin, end):  # type: ignore[no-untyped-def]
    """Return how many bounds lie on the way of the rows from ``begin`` to ``end``, in either direction."""
    axes, count = len(run.lower.first) - 1, 0
    before_low, before_high, after_low, after_high = step.before_low, step.before_high, step.after_low, step.after_high
    lower_first, lower_code = run.lower.first, run.lower.code
    upper_first, upper_code = run.upper.first, run.upper.code
    befores, afters = before_low.shape[0], after_low.shape[0]
    for row in range(begin, end):
        for axis in range(axes):
            low = before_low[axis, row] if axis < befores else NULL
            high = before_high[axis, row] if axis < befores else NULL
            least = after_low[axis, row] if axis < afters else NULL
            most = after_high[axis, row] if axis < afters else NULL
            if high != most:
                start = first_above(lower_code, lower_first[axis], lower_first[axis + 1], min(high, most))
                count += first_above(lower_code, start, lower_first[axis + 1], max(high, most)) - start
            if low != least:
                start = first_from(upper_code, upper_first[axis], upper_first[axis + 1], min(low, least))
                count += first_from(upper_code, start, upper_first[axis + 1], max(low, least)) - start
    return count
