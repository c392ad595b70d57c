"""Two sorted lists of bounds an axis: which boxes overlap a query, and which begin or cease to when it moves.

A run holds boxes at *positions* and, for each axis, its lower bounds ascending and its upper bounds ascending, each
with the other end of its interval beside it, and with what its box says of one other axis. A lower bound of NULL and an
upper bound of HIGHEST exclude nothing and are not listed (but for an interval that holds nothing else). An interval
that is one of several on its axis (a set) is listed as ``~position``.

A query ``[low, high]`` misses an interval whose lower bound is above ``high`` or whose upper bound is below ``low``.
So when it moves, only those intervals change whose lower bound lies between the old and the new ``high``, or whose
upper bound lies between the old and the new ``low``: that is all that `begun_in_run` looks at. A box of one or two
axes is decided by what lies beside its bound, in memory order; of the others most are ruled out by it, and the few that
are left are looked up. What ceases to overlap has begun to when the step is taken backwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments.checking import AHEAD, Found, with_room

NULL = np.int64(np.iinfo(np.int64).min)
HIGHEST = np.int64(np.iinfo(np.int64).max)

CROSSED = 1 << 8
"""For how many crossed bounds of a row there is room at first."""


class Listed(NamedTuple):
    """One list of bounds: axis ``a`` owns ``first[a]:first[a + 1]`` (int64[axes + 1]) of ``code`` (int64, ascending),
    ``other`` (int64, the other end), ``position`` (int32) and ``beside`` (int64[bounds, 4]).

    Beside a bound is an interval of its box on another axis, in one cache line: the bound's other end, low and high of
    that interval, and the position above 31 bits of the axis and one that says whether the box has more to say (a third
    axis, a set, of which the hull is beside). A box without another axis has everything on its own beside its bounds.
    Where boxes have many axes, nothing is beside. ``coarse`` is every 64th of ``code``: few enough to stay in the
    cache.
    """

    first: Any
    code: Any
    other: Any
    position: Any
    beside: Any
    coarse: Any


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


@inlined
def block_above(coarse, begin, end, code):  # type: ignore[no-untyped-def]
    """Return which part of ``begin`` to ``end`` has the first place with a code above this one, or ends there."""
    block = first_above(coarse, (begin + 63) >> 6, (end + 63) >> 6, code)
    return max(begin, (block - 1) << 6), min(end, block << 6)


@inlined
def block_from(coarse, begin, end, code):  # type: ignore[no-untyped-def]
    """Return which part of ``begin`` to ``end`` has the first place with this code or one above, or ends there."""
    block = first_from(coarse, (begin + 63) >> 6, (end + 63) >> 6, code)
    return max(begin, (block - 1) << 6), min(end, block << 6)


@inlined
def first_above_near(codes, begin, end, code):  # type: ignore[no-untyped-def]
    """Return the same as `first_above`, sooner where it is not far from ``begin``."""
    reach = 8
    while begin + reach < end and codes[begin + reach] <= code:
        begin += reach
        reach *= 2
    return first_above(codes, begin, min(begin + reach, end), code)


@inlined
def first_from_near(codes, begin, end, code):  # type: ignore[no-untyped-def]
    """Return the same as `first_from`, sooner where it is not far from ``begin``."""
    reach = 8
    while begin + reach < end and codes[begin + reach] < code:
        begin += reach
        reach *= 2
    return first_from(codes, begin, min(begin + reach, end), code)


@kernel
def neighbour(axis, low, high, begin, end, here):  # type: ignore[no-untyped-def]
    """Return what lies beside the bounds on an axis of the box with entries ``begin`` to ``end``: twice the other axis
    and whether there is more, low and high."""
    peer, own = begin, 0
    while peer < end and axis[peer] <= here:  # the next axis, or else the first
        own += axis[peer] == here
        peer += 1
    peer = peer if peer < end else begin
    if axis[peer] == here:
        return 2 * np.int64(here) + (own > 1), NULL, HIGHEST
    least, most, same = low[peer], high[peer], 0
    for entry in range(begin, end):
        if axis[entry] == axis[peer]:
            least, most, same = min(least, low[entry]), max(most, high[entry]), same + 1
    return 2 * np.int64(axis[peer]) + (own > 1 or same > 1 or end - begin > 2), least, most


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
def put_beside(offsets, axis, low, high, listed):  # type: ignore[no-untyped-def]
    """Write what lies beside the bounds of a list, once they are in order."""
    first, others, positions, beside = listed.first, listed.other, listed.position, listed.beside
    for here in range(len(first) - 1):
        for place in range(first[here], first[here + 1]):
            position = positions[place] if positions[place] >= 0 else ~positions[place]
            said, least, most = neighbour(axis, low, high, offsets[position], offsets[position + 1], here)
            beside[place, 0], beside[place, 1], beside[place, 2] = others[place], least, most
            beside[place, 3] = np.int64(position) << 32 | said


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
    """Bounds that a row has come to: ``axis``, ``position`` int32, and the interval ``low`` to ``high``."""

    axis: Any
    position: Any
    low: Any
    high: Any


@kernel
def crossings(room):  # type: ignore[no-untyped-def]
    """Return empty lists of crossed bounds with some room."""
    axis, position = np.empty(room, np.int32), np.empty(room, np.int32)
    return Crossed(axis, position, np.empty(room, np.int64), np.empty(room, np.int64))


@kernel
def take_sides(step, row, sides):  # type: ignore[no-untyped-def]
    """Write what a row is on each axis into ``sides``, int64[axes, 4]: low and high before, and after."""
    before_low, before_high, after_low, after_high = step.before_low, step.before_high, step.after_low, step.after_high
    befores, afters = before_low.shape[0], after_low.shape[0]
    for axis in range(len(sides)):
        sides[axis, 0] = before_low[axis, row] if axis < befores else NULL
        sides[axis, 1] = before_high[axis, row] if axis < befores else NULL
        sides[axis, 2] = after_low[axis, row] if axis < afters else NULL
        sides[axis, 3] = after_high[axis, row] if axis < afters else NULL


@kernel
def cross(lower, upper, stretches, sides, crossed, told):  # type: ignore[no-untyped-def]
    """Look at the intervals that begin or end in some stretches and that a row now overlaps.

    Write into ``told``, positions, the boxes that do so all in all, and did not before, by what lies beside their
    bounds, and into ``crossed`` the intervals of boxes that have more to say. Return how many there are of both.
    """
    out_axis, out_position, out_low, out_high = crossed
    kept, count = 0, 0
    for i in range(len(stretches)):
        axis, start, stop, is_lower = stretches[i]
        least, most = sides[axis, 2], sides[axis, 3]
        beside, codes = (lower.beside, lower.code) if is_lower else (upper.beside, upper.code)
        for place in range(start, stop):
            other, low, high, said = beside[place, 0], beside[place, 1], beside[place, 2], beside[place, 3]
            if other < least if is_lower else other > most:
                continue
            peer = (said & 0xFFFFFFFF) >> 1
            # nobody can foresee what comes out, so that nothing may depend on it but how far the lists go
            met = (low <= sides[peer, 3]) & (sides[peer, 2] <= high)
            # of two intervals that a row came to at once, that on the lower axis tells
            met &= (peer > axis) | ((low <= sides[peer, 1]) & (sides[peer, 0] <= high))
            if said & 1:
                out_axis[kept], out_position[kept] = axis, said >> 32
                out_low[kept], out_high[kept] = (codes[place], other) if is_lower else (other, codes[place])
                kept += met
            else:
                told[count] = said >> 32
                count += met
    return kept, count


@kernel
def stretches(run, sides, found):  # type: ignore[no-untyped-def]
    """Write into ``found``, int64[2 * axes, 4], the stretches of bounds that a row has come to: axis, start, stop and
    whether they are lower bounds. Return how many there are, and how many bounds in all."""
    lower_first, lower_code, lower_coarse = run.lower.first, run.lower.code, run.lower.coarse
    upper_first, upper_code, upper_coarse = run.upper.first, run.upper.code, run.upper.coarse
    count, bounds = 0, 0
    for axis in range(len(sides)):
        low, high, least, most = sides[axis, 0], sides[axis, 1], sides[axis, 2], sides[axis, 3]
        if most > high:
            end = lower_first[axis + 1]
            near, far = block_above(lower_coarse, lower_first[axis], end, high)
            start = first_above(lower_code, near, far, high)
            stop = first_above_near(lower_code, start, end, most)
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = axis, start, stop, 1
            count += stop > start
            bounds += stop - start
        if least < low:
            end = upper_first[axis + 1]
            near, far = block_from(upper_coarse, upper_first[axis], end, least)
            start = first_from(upper_code, near, far, least)
            stop = first_from_near(upper_code, start, end, low)
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = axis, start, stop, 0
            count += stop > start
            bounds += stop - start
    return count, bounds


@kernel
def cross_all(lower, upper, stretches, sides, crossed):  # type: ignore[no-untyped-def]
    """Write into ``crossed`` the intervals that begin or end in some stretches and that a row now overlaps; return how
    many there are."""
    out_axis, out_position, out_low, out_high = crossed
    kept = 0
    for i in range(len(stretches)):
        axis, start, stop, is_lower = stretches[i]
        least, most = sides[axis, 2], sides[axis, 3]
        codes, others, positions = (
            (lower.code, lower.other, lower.position) if is_lower else (upper.code, upper.other, upper.position)
        )
        for place in range(start, stop):
            code, other, position = codes[place], others[place], positions[place]
            out_axis[kept], out_position[kept] = axis, position if position >= 0 else ~position
            out_low[kept], out_high[kept] = (code, other) if is_lower else (other, code)
            kept += other >= least if is_lower else other <= most
    return kept


@kernel
def tell(run, sides, crossed, listed, told, count):  # type: ignore[no-untyped-def]
    """Append to ``told`` the positions of those boxes that overlap a row after the step and not before, each once, of
    which bounds are listed in ``crossed``.

    Of several intervals of one box that a row came to, that on the lowest axis tells, and on one axis the lowest.
    """
    offsets, axes, lows, highs = run.offsets, run.axis, run.low, run.high
    on, positions, bound_low, bound_high = crossed
    for i in range(listed):
        position, axis = positions[i], on[i]
        prefetch(offsets, np.int64(positions[min(i + 2 * AHEAD, listed - 1)]))
        soon = offsets[positions[min(i + AHEAD, listed - 1)]]
        prefetch(axes, soon)
        prefetch(lows, soon)
        prefetch(highs, soon)
        entry, end, met = offsets[position], offsets[position + 1], True
        while met and entry < end:
            here = axes[entry]
            low, high, least, most = sides[here, 0], sides[here, 1], sides[here, 2], sides[here, 3]
            met, was, mine = False, False, True
            while entry < end and axes[entry] == here:
                if lows[entry] <= most and least <= highs[entry]:
                    mine &= met or (lows[entry] == bound_low[i] and highs[entry] == bound_high[i])
                    met = True
                was |= lows[entry] <= high and low <= highs[entry]
                entry += 1
            if here <= axis:
                met &= was if here < axis else mine and not was
        told[count] = position
        count += met
    return count


@kernel
def begun_in_run(run, step, found):  # type: ignore[no-untyped-def]
    """Return the pairs of all rows whose box overlaps the row after the step and not before, in ``found`` or longer
    arrays, and how many there are."""
    numbers, lower, upper, died, version = run.numbers, run.lower, run.upper, step.died, step.version
    axes, count = len(lower.first) - 1, 0
    sides, ways = np.empty((axes, 4), np.int64), np.empty((2 * axes + 1, 4), np.int64)
    crossed, told = crossings(CROSSED), np.empty(CROSSED, np.int32)
    for row in range(step.before_low.shape[1]):
        take_sides(step, row, sides)
        several, bounds = stretches(run, sides, ways)
        if bounds > len(told):
            crossed, told = crossings(2 * bounds), np.empty(2 * bounds, np.int32)
        if len(lower.beside):
            listed, begun = cross(lower, upper, ways[:several], sides, crossed, told)
        else:
            listed, begun = cross_all(lower, upper, ways[:several], sides, crossed), 0
        begun = tell(run, sides, crossed, listed, told, begun)
        if count + begun > len(found.rows):
            found = with_room(found, count, begun)
        found_rows, found_numbers = found.rows, found.numbers
        for i in range(begun):
            found_rows[count], found_numbers[count] = row, numbers[told[i]]
            count += len(died) == 0 or died[told[i]] > version
    return found, count


@kernel
def moved_in_run(run, old, new, died, version):  # type: ignore[no-untyped-def]
    """Return (rows, numbers) of the pairs that begin and of those that cease to overlap, ``old`` and ``new`` being
    (low, high)."""
    (low, high), (least, most) = old, new
    none = Found(np.empty(16, np.int32), np.empty(16, np.int32))
    entered, came = begun_in_run(run, Step(low, high, least, most, died, version), none)
    none = Found(np.empty(16, np.int32), np.empty(16, np.int32))
    left, went = begun_in_run(run, Step(least, most, low, high, died, version), none)
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
