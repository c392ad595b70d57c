"""Matching queries that are ranges with bit arrays, and the few boxes that are in none yet."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.bitmap.grids import bucket_of
from tocsin.kernels.bitmap.match import (
    AXIS,
    CELL,
    CELLS,
    GROUP,
    INTERVAL,
    INTERVALS,
    KIND,
    LEAST_HIGH,
    MOST_LOW,
    NULL,
    PLACE,
    TREE,
    collect,
    find_place,
    intersect,
    keep_listed,
    overlaps,
    pass_tree,
)
from tocsin.kernels.compile import kernel
from tocsin.kernels.pool import longer
from tocsin.kernels.vectors import trailing_zeros


@kernel
def keep_between(bitmaps, axis, low, high, sid, kept, count):  # type: ignore[no-untyped-def]
    """Append to ``kept`` the boxes in ``sid`` with an interval of a tree that begins above ``low`` and up to ``high``:
    in pre-order such intervals lie side by side.
    """
    starts = bitmaps.ends[axis[INTERVAL] : axis[INTERVAL] + axis[INTERVALS], 0]
    first = axis[INTERVAL] + np.searchsorted(starts, low, side="right")
    last = axis[INTERVAL] + np.searchsorted(starts, high, side="right")
    for at in range(bitmaps.own_start[first], bitmaps.own_start[last]):
        slot = bitmaps.own_slots[at]
        kept[count] = slot
        count += (sid[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1) != 0
    return count


@kernel
def pass_buckets(bitmaps, axis, low, high, sid, groups, listed):  # type: ignore[no-untyped-def]
    """Leave in ``sid`` what a range satisfies on the axis of a grid.

    A bucket strictly between those of its ends satisfies every box that has any part of an interval there.
    """
    starts = bitmaps.cell_start[axis[CELL] : axis[CELL] + axis[CELLS]]
    first, last = axis[PLACE] + bucket_of(starts, low), axis[PLACE] + bucket_of(starts, high)
    first_interval, last_interval = axis[INTERVAL], axis[INTERVAL] + axis[INTERVALS]
    rows, place_row, place_rest = bitmaps.rows, bitmaps.place_row, bitmaps.place_rest
    for index in range(listed):
        for word in range(groups[index] * GROUP, groups[index] * GROUP + GROUP):
            left = sid[word]
            if left == 0:
                continue
            sure, doubtful = np.uint64(0), np.uint64(0)
            for place in range(first, last + 1):
                here = rows[place_row[place], word]
                if place_rest[place] >= 0 and place in (first, last):
                    doubtful |= rows[place_rest[place], word]
                    here &= ~rows[place_rest[place], word]
                sure |= here
            doubtful &= left & ~sure
            left &= sure
            while doubtful != 0:
                bit = trailing_zeros(doubtful)
                doubtful &= doubtful - np.uint64(1)
                if overlaps(bitmaps, word * 64 + bit, first_interval, last_interval, low, high):
                    left |= np.uint64(1) << np.uint64(bit)
            sid[word] = left


@kernel
def match_ranges(bitmaps, live, low, high):  # type: ignore[no-untyped-def]
    """Match closed ranges, int64[axes, rows] twice; return rows and numbers. An axis all of whose intervals a range
    overlaps is passed over.
    """
    axes = bitmaps.axes
    sid, groups = np.empty(len(live), np.uint64), np.empty(len(live) // GROUP + 1, np.int32)
    kept, none = np.empty(2 * len(bitmaps.own_slots) + 1, np.int32), np.empty(3, np.int64)
    found, count = (np.empty(1024, np.int32), np.empty(1024, np.int32)), 0
    for row in range(low.shape[1]):
        listed = intersect(live, bitmaps.rows, none, 0, sid, groups)
        for line in range(len(axes)):
            axis = axes[line]
            least = greatest = np.int64(NULL)
            if axis[AXIS] < low.shape[0]:
                least, greatest = low[axis[AXIS], row], high[axis[AXIS], row]
            if least <= axis[LEAST_HIGH] and greatest >= axis[MOST_LOW]:
                continue
            if axis[KIND] != TREE:
                pass_buckets(bitmaps, axis, least, greatest, sid, groups, listed)
            else:
                place = find_place(axis, bitmaps.cell_start, bitmaps.cell_place, bitmaps.direct, least)
                held = keep_listed(bitmaps, bitmaps.place_rest[place], sid, kept, 0)
                held = keep_between(bitmaps, axis, least, greatest, sid, kept, held)
                pass_tree(bitmaps.rows[bitmaps.place_row[place]], sid, groups, listed, kept, held)
        found, count = collect(bitmaps.numbers, sid, groups, listed, row, found, count)
    return found[0][:count].copy(), found[1][:count].copy()


@kernel
def match_unfiled(numbers, boxes, low, high):  # type: ignore[no-untyped-def]
    """Hold every box against every query, one after another; return rows and numbers."""
    rows, found, count = np.empty(1024, np.int32), np.empty(1024, np.int32), 0
    for row in range(low.shape[1]):
        if count + len(numbers) > len(rows):
            larger = 2 * (count + len(numbers))
            rows, found = longer(rows, larger), longer(found, larger)
        for box in range(len(numbers)):
            entry, end, met = boxes.offsets[box], boxes.offsets[box + 1], True
            while entry < end and met:
                axis, met = boxes.axis[entry], False
                least = low[axis, row] if axis < low.shape[0] else np.int64(NULL)
                greatest = high[axis, row] if axis < low.shape[0] else np.int64(NULL)
                while entry < end and boxes.axis[entry] == axis:
                    met |= boxes.low[entry] <= greatest and least <= boxes.high[entry]
                    entry += 1
            rows[count], found[count] = row, numbers[box]
            count += met
    return rows[:count].copy(), found[:count].copy()
