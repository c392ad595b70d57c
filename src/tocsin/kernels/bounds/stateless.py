"""Stateless filtering with sorted bounds: which boxes of a run overlap each query.

Where some axis that all boxes constrain leaves few of them, those few are verified. Otherwise, as the subject-space
paper does, every box is taken to match but those that some bound excludes: lower bounds above the query, upper bounds
below it. What is excluded is a bit in a word, so that all of it stays in the cache. An axis that many boxes constrain
has a mask of them: where a query excludes most of these, all of them are excluded at once, 64 in a step, but for the
few that it overlaps.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.bounds.moves import HIGHEST, NULL, first_above, first_from, meets
from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments.checking import Found, sort_by_row, with_room
from tocsin.kernels.vectors import ones, trailing_zeros

FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

FEW = 4
"""An axis is worth following if it leaves one box in so many, or fewer."""


SPARED = 1 << 12
"""No more lower bounds than this are looked through to spare their boxes when all others are excluded."""


SOME = 8
"""How many numbers are written at once."""


@inlined
def farthest(least, widest):  # type: ignore[no-untyped-def]
    """Return the lowest code at which an interval of at most this width may begin and reach ``least``."""
    return NULL if widest == HIGHEST or least < NULL + widest else least - widest


@kernel
def narrowest(run, low, high, row):  # type: ignore[no-untyped-def]
    """Return (axis, start, stop): the shortest stretch of lower bounds outside of which no box of the run can overlap
    the row; the axis is -1 where there is none."""
    chosen, best_start, best_stop = -1, np.int64(0), np.int64(len(run.numbers))
    first, codes, covering = run.lower.first, run.lower.code, run.covering
    for axis in range(len(first) - 1):
        if covering[axis, 0] < len(run.numbers):
            continue
        least = low[axis, row] if axis < low.shape[0] else NULL
        most = high[axis, row] if axis < low.shape[0] else NULL
        start = first_from(codes, first[axis], first[axis + 1], farthest(least, covering[axis, 1]))
        stop = first_above(codes, start, first[axis + 1], most)
        if stop - start < best_stop - best_start:
            chosen, best_start, best_stop = axis, start, stop
    return chosen, best_start, best_stop


@kernel
def mask_axes(offsets, axis, low, high, covering):  # type: ignore[no-untyped-def]
    """Return the masks of a run, and write in ``covering`` which axis has which.

    An axis has one if its single intervals all have a listed lower bound and are at least as many as there are words.
    """
    words, axes = (len(offsets) + 62) >> 6, len(covering)
    unlisted, count = np.zeros(axes, np.bool_), 0
    for entry in range(len(axis)):
        unlisted[axis[entry]] |= low[entry] == NULL and high[entry] != NULL
    for each in range(axes):
        if covering[each, 0] >= max(words, 1) and not unlisted[each]:
            covering[each, 2] = count
            count += 1
    masks, one = np.zeros((count, words), np.uint64), np.uint64(1)
    for box in range(len(offsets) - 1):
        begin, end = offsets[box], offsets[box + 1]
        for entry in range(begin, end):
            here = axis[entry]
            several = (entry > begin and axis[entry - 1] == here) or (entry + 1 < end and axis[entry + 1] == here)
            if covering[here, 2] >= 0 and not several:
                masks[covering[here, 2], box >> 6] |= one << np.uint64(box & 63)
    return masks


@inlined
def exclude_listed(positions, start, stop, excluded):  # type: ignore[no-untyped-def]
    """Set the bits of the boxes that a stretch of a list has a single interval of."""
    for place in range(start, stop):
        position = positions[place]
        if position >= 0:
            excluded[position >> 6] |= np.uint64(1) << np.uint64(position & 63)


@kernel
def exclude_others(lower, start, stop, least, mask, spared, excluded):  # type: ignore[no-untyped-def]
    """Set the bits of a mask but for the boxes in a stretch of lower bounds whose interval reaches ``least``; those of
    them that were not excluded before are listed in ``spared``, which has room for the stretch."""
    one, count = np.uint64(1), 0
    for place in range(start, stop):
        position = lower.position[place]
        if position >= 0 and lower.other[place] >= least:
            spared[count] = position
            count += (excluded[position >> 6] >> np.uint64(position & 63)) & one == 0
    for word in range(len(excluded)):
        excluded[word] |= mask[word]
    for place in range(count):
        position = spared[place]
        excluded[position >> 6] &= ~(one << np.uint64(position & 63))


@kernel
def exclude(run, low, high, row, spared, excluded):  # type: ignore[no-untyped-def]
    """Set the bits of the boxes that a single interval excludes, and of those whose sets do."""
    lower, upper, covering = run.lower, run.upper, run.covering
    for axis in range(len(lower.first) - 1):
        least = low[axis, row] if axis < low.shape[0] else NULL
        most = high[axis, row] if axis < low.shape[0] else NULL
        begin, end = lower.first[axis], lower.first[axis + 1]
        stop = first_above(lower.code, begin, end, most)
        first = upper.first[axis]
        last = first_from(upper.code, first, upper.first[axis + 1], least)
        if covering[axis, 2] >= 0 and end - stop + last - first > len(excluded) >> 2:
            start = first_from(lower.code, begin, stop, farthest(least, covering[axis, 1]))
            if stop - start <= len(spared) and 2 * (stop - start) < end - stop + last - first:
                exclude_others(lower, start, stop, least, run.masks[covering[axis, 2]], spared, excluded)
                continue
        exclude_listed(lower.position, stop, end, excluded)
        exclude_listed(upper.position, first, last, excluded)
    offsets, axes, lows, highs = run.offsets, run.axis, run.low, run.high
    for position in run.sets:
        if not meets(offsets, axes, lows, highs, position, low, high, row):
            excluded[position >> 6] |= np.uint64(1) << np.uint64(position & 63)


@kernel
def write_met(met, values, written, count):  # type: ignore[no-untyped-def]
    """Append the values of the positions whose bit is set, for which there is room and for ``SOME`` more; return how
    many there are then.

    They are written some at a time, whether there are as many or not: a third less time than to look for the last.
    """
    one, last, whole = np.uint64(1), np.uint64(1 << 63), max(len(met) - 1, 0)
    for word in range(whole):
        bits, first, place = met[word], np.uint64(word) << np.uint64(6), np.uint64(count)
        more = ones(bits)
        for _ in range(0, more, SOME):
            for each in range(SOME):
                written[place + np.uint64(each)] = values[first | np.uint64(trailing_zeros(bits | last))]
                bits &= bits - one
            place += np.uint64(SOME)
        count += more
    for word in range(whole, len(met)):
        bits = met[word]
        while bits:
            written[count] = values[(word << 6) + trailing_zeros(bits)]
            bits &= bits - one
            count += 1
    return count


@kernel
def write_all_met(met, values, written):  # type: ignore[no-untyped-def]
    """Write the values of the positions whose bit is set in each row of ``met``, row after row."""
    count = 0
    for row in range(len(met)):
        count = write_met(met[row], values, written, count)


@kernel
def append_others(excluded, numbers, died, version, found_numbers, count):  # type: ignore[no-untyped-def]
    """Append the numbers of the boxes alive whose bit is not set, for which there is room and for ``SOME`` more; return
    how many there are then. All bits are turned around."""
    for word in range(len(excluded)):
        excluded[word] = ~excluded[word]
    if len(died) == 0:
        return write_met(excluded, numbers, found_numbers, count)
    for word in range(len(excluded)):
        bits = excluded[word]
        while bits:
            position = (word << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            found_numbers[count] = numbers[position]
            count += died[position] > version
    return count


@kernel
def mark_run(run, asked, marks, counts):  # type: ignore[no-untyped-def]
    """Set in ``marks``, uint64[rows, words], the bits of the boxes alive that each row overlaps, and write into
    ``counts`` how many they are."""
    held, died, one = len(run.numbers), asked.died, np.uint64(1)
    alive, spared = np.full(marks.shape[1], FULL), np.empty(SPARED, np.int32)
    if held & 63:
        alive[-1] = ~(FULL << np.uint64(held & 63))
    for position in range(len(died)):
        if died[position] <= asked.version:
            alive[position >> 6] &= ~(one << np.uint64(position & 63))
    for row in range(len(marks)):
        met, count = marks[row], 0
        met[:] = 0
        exclude(run, asked.low, asked.high, row, spared, met)
        for word in range(len(met)):
            met[word] = ~met[word] & alive[word]
            count += ones(met[word])
        counts[row] = count


@kernel
def append_stretch(run, asked, row, stretch, found, count):  # type: ignore[no-untyped-def]
    """Append those of a stretch of lower bounds, (axis, start, stop), whose boxes overlap the row."""
    low, high, died, numbers = asked.low, asked.high, asked.died, run.numbers
    offsets, axes, lows, highs = run.offsets, run.axis, run.low, run.high
    chosen, start, stop = stretch
    least = low[chosen, row] if chosen < low.shape[0] else NULL
    for place in range(start, stop):
        if run.lower.other[place] >= least:
            position = run.lower.position[place]
            found.rows[count], found.numbers[count] = row, numbers[position]
            count += (len(died) == 0 or died[position] > asked.version) and meets(
                offsets, axes, lows, highs, position, low, high, row
            )
    return count


@kernel
def overlap_run(run, asked, begin, end, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs of the rows from ``begin`` to ``end`` with the boxes of a run."""
    held, already = len(run.numbers), count
    excluded, spared = np.zeros((held + 63) >> 6, np.uint64), np.empty(SPARED, np.int32)
    for row in range(begin, end):
        chosen, start, stop = narrowest(run, asked.low, asked.high, row)
        few = chosen >= 0 and (stop - start) * FEW <= held
        room = stop - start if few else held + SOME
        if count + room > len(found.rows):  # as if the rows to come had as many
            found = with_room(found, count, room + (count - already) // max(row - begin, 1) * (end - row - 1))
        if few:
            count = append_stretch(run, asked, row, (chosen, start, stop), found, count)
            continue
        excluded[:] = 0
        if held & 63:
            excluded[-1] = FULL << np.uint64(held & 63)
        exclude(run, asked.low, asked.high, row, spared, excluded)
        first, count = count, append_others(excluded, run.numbers, asked.died, asked.version, found.numbers, count)
        found.rows[first:count] = row
    return found, count


@kernel
def overlap_fresh(fresh, boxes, asked, begin, end, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs of the rows from ``begin`` to ``end`` with the first ``boxes`` boxes, of no particular order."""
    low, high, died, numbers = asked.low, asked.high, asked.died, fresh.numbers
    offsets, axes, lows, highs = fresh.offsets, fresh.axis, fresh.low, fresh.high
    for row in range(begin, end):
        found = with_room(found, count, boxes)
        found_rows, found_numbers = found.rows, found.numbers
        for box in range(boxes):
            if died[box] > asked.version:
                found_rows[count], found_numbers[count] = row, numbers[box]
                count += meets(offsets, axes, lows, highs, box, low, high, row)
    return found, count


@kernel
def moved_in_fresh(fresh, boxes, old, new, died, version, moved):  # type: ignore[no-untyped-def]
    """Return the pairs that begin and that cease to overlap, as `moved_in_run` does, those given in ``moved`` and those
    with the first ``boxes`` boxes, of no particular order."""
    (low, high), (least, most), (come, came, gone, went) = old, new, moved
    entered, begun, left, ceased = Found(come, came), len(come), Found(gone, went), len(gone)
    offsets, axes, lows, highs, numbers = fresh.offsets, fresh.axis, fresh.low, fresh.high, fresh.numbers
    for box in range(boxes):
        for row in range(low.shape[1] if died[box] > version else 0):
            before = meets(offsets, axes, lows, highs, box, low, high, row)
            after = meets(offsets, axes, lows, highs, box, least, most, row)
            if after and not before:
                entered = with_room(entered, begun, 1)
                entered.rows[begun], entered.numbers[begun] = row, numbers[box]
                begun += 1
            elif before and not after:
                left = with_room(left, ceased, 1)
                left.rows[ceased], left.numbers[ceased] = row, numbers[box]
                ceased += 1
    rows = low.shape[1]
    if rows > 1 and (begun > len(come) or ceased > len(gone)):
        entered, left = sort_by_row(entered, begun, 0, rows), sort_by_row(left, ceased, 0, rows)
    return entered.rows[:begun], entered.numbers[:begun], left.rows[:ceased], left.numbers[:ceased]
