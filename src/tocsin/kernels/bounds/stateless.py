"""Stateless filtering with sorted bounds: which boxes of a run overlap each query.

Where some axis that all boxes constrain leaves few of them, those few are verified. Otherwise, as the subject-space
paper does, every box is taken to match but those that some bound excludes: lower bounds above the query, upper bounds
below it. What is excluded is a bit in a word, so that all of it stays in the cache.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.bounds.moves import HIGHEST, NULL, first_above, first_from, meets
from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.checking import with_room
from tocsin.kernels.vectors import trailing_zeros

FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

FEW = 4
"""An axis is worth following if it leaves one box in so many, or fewer."""


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
        widest = covering[axis, 1]
        farthest = NULL if widest == HIGHEST or least < NULL + widest else least - widest
        start = first_from(codes, first[axis], first[axis + 1], farthest)
        stop = first_above(codes, start, first[axis + 1], most)
        if stop - start < best_stop - best_start:
            chosen, best_start, best_stop = axis, start, stop
    return chosen, best_start, best_stop


@kernel
def exclude(run, low, high, row, excluded):  # type: ignore[no-untyped-def]
    """Set the bits of the boxes that a single interval excludes, and of those whose sets do."""
    lower_first, lower_code, lower_position = run.lower.first, run.lower.code, run.lower.position
    upper_first, upper_code, upper_position = run.upper.first, run.upper.code, run.upper.position
    one = np.uint64(1)
    for axis in range(len(lower_first) - 1):
        least = low[axis, row] if axis < low.shape[0] else NULL
        most = high[axis, row] if axis < low.shape[0] else NULL
        stop = lower_first[axis + 1]
        for place in range(first_above(lower_code, lower_first[axis], stop, most), stop):
            position = lower_position[place]
            if position >= 0:
                excluded[position >> 6] |= one << np.uint64(position & 63)
        start = upper_first[axis]
        for place in range(start, first_from(upper_code, start, upper_first[axis + 1], least)):
            position = upper_position[place]
            if position >= 0:
                excluded[position >> 6] |= one << np.uint64(position & 63)
    offsets, axes, lows, highs = run.offsets, run.axis, run.low, run.high
    for position in run.sets:
        if not meets(offsets, axes, lows, highs, position, low, high, row):
            excluded[position >> 6] |= one << np.uint64(position & 63)


@kernel
def overlap_run(run, asked, begin, end, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs of the rows from ``begin`` to ``end`` with the boxes of a run."""
    low, high, died, version, numbers = asked.low, asked.high, asked.died, asked.version, run.numbers
    offsets, axes, lows, highs = run.offsets, run.axis, run.low, run.high
    lower_other, lower_position = run.lower.other, run.lower.position
    held = len(numbers)
    excluded = np.zeros((held + 63) >> 6, np.uint64)
    for row in range(begin, end):
        chosen, start, stop = narrowest(run, low, high, row)
        found = with_room(found, count, stop - start)
        found_rows, found_numbers = found.rows, found.numbers
        if chosen >= 0 and (stop - start) * FEW <= held:
            least = low[chosen, row] if chosen < low.shape[0] else NULL
            for place in range(start, stop):
                if lower_other[place] < least:
                    continue
                position = lower_position[place]
                found_rows[count], found_numbers[count] = row, numbers[position]
                count += (len(died) == 0 or died[position] > version) and meets(
                    offsets, axes, lows, highs, position, low, high, row
                )
            continue
        found = with_room(found, count, held)
        found_rows, found_numbers = found.rows, found.numbers
        excluded[:] = 0
        if held & 63:
            excluded[-1] = FULL << np.uint64(held & 63)
        exclude(run, low, high, row, excluded)
        first = count
        for word in range(len(excluded)):
            bits = ~excluded[word]
            while bits:
                position = (word << 6) + trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                found_numbers[count] = numbers[position]
                count += len(died) == 0 or died[position] > version
        found_rows[first:count] = row
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
def begun_in_fresh(fresh, boxes, step, begin, end, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs of the rows from ``begin`` to ``end`` with those of the first ``boxes`` boxes that they overlap
    after a step and not before."""
    died, version, numbers = step.died, step.version, fresh.numbers
    before_low, before_high, after_low, after_high = step.before_low, step.before_high, step.after_low, step.after_high
    offsets, axes, lows, highs = fresh.offsets, fresh.axis, fresh.low, fresh.high
    for row in range(begin, end):
        found = with_room(found, count, boxes)
        found_rows, found_numbers = found.rows, found.numbers
        for box in range(boxes):
            if died[box] > version and meets(offsets, axes, lows, highs, box, after_low, after_high, row):
                found_rows[count], found_numbers[count] = row, numbers[box]
                count += not meets(offsets, axes, lows, highs, box, before_low, before_high, row)
    return found, count
