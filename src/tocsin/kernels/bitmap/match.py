"""Matching with bit arrays: one array a query, from which every axis takes away the boxes that it does not satisfy.

Index spaces: *slot* (the place of a box in all bit arrays), *row* (a bit array), *interval* (a distinct interval of an
axis, those of one axis side by side; in a tree, its nodes), *place* (what a code on an axis leads to: a node, a bucket,
or the place outside all nodes, which is the first of its axis), *group* (eight words, 512 slots).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.bitmap.grids import bucket_of
from tocsin.kernels.compile import kernel
from tocsin.kernels.pool import longer
from tocsin.kernels.vectors import trailing_zeros

NULL = np.iinfo(np.int64).min

GROUP = 8
"""Words that are passed over together when all are empty."""

AXIS, KIND, CELL, CELLS, PLACE, INTERVAL, INTERVALS, DIRECT, LEAST_HIGH, MOST_LOW, AXIS_FIELDS = range(11)
"""Columns of ``Bitmaps.axes``: the axis; its kind; its first cell and how many; its first place; its first interval and
how many; where its direct table begins, or -1; the least high end and the greatest low end."""

TREE, GRID, EARLY_GRID = range(3)
"""Kinds of axes: a tree or table, a grid for the boxes that are left when all others are done, and one whose rows are
intersected with theirs because boxes would be left in most groups anyway."""


class Bitmaps(NamedTuple):
    """Boxes in bit arrays. Nothing here changes.

    ``numbers``: int32[slots], ascending. ``rows``: uint64[rows, words]. ``axes``: int64[axes, AXIS_FIELDS], trees
    before grids. ``cell_start``: int64, ``cell_place``: int32. ``direct``: int32, the place of each code from an axis's
    second cell up to its last. ``place_row``: int32, the boxes that are satisfied or may be; ``place_rest``: int32, for
    a tree the first interval on the path whose boxes the row lacks, for a grid the row of the boxes in doubt, or -1.
    ``above``: int32[intervals], the next interval whose boxes the row lacks, or -1; ``own_start``: int32[intervals + 1]
    and ``own_slots``: int32, the boxes of each interval of a tree. ``ends``: int64[intervals, 2], both closed.
    ``offsets``: int64[slots + 1] and ``entries``: int32, the intervals of each box.
    """

    numbers: npt.NDArray[np.int32]
    rows: npt.NDArray[np.uint64]
    axes: npt.NDArray[np.int64]
    cell_start: npt.NDArray[np.int64]
    cell_place: npt.NDArray[np.int32]
    direct: npt.NDArray[np.int32]
    place_row: npt.NDArray[np.int32]
    place_rest: npt.NDArray[np.int32]
    above: npt.NDArray[np.int32]
    own_start: npt.NDArray[np.int32]
    own_slots: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int32]


@kernel
def find_place(axis, cell_start, cell_place, direct, code):  # type: ignore[no-untyped-def]
    """Return the place that a code leads to on an axis (a line of ``Bitmaps.axes``)."""
    first, last = axis[CELL], axis[CELL] + axis[CELLS] - 1
    if axis[DIRECT] < 0:
        return cell_place[first + bucket_of(cell_start[first : last + 1], code)]
    if first == last or code < cell_start[first + 1]:
        return cell_place[first]
    if code >= cell_start[last]:
        return cell_place[last]
    return direct[axis[DIRECT] + code - cell_start[first + 1]]


@kernel
def intersect(live, rows, plain, count, sid, groups):  # type: ignore[no-untyped-def]
    """Put into ``sid`` the live slots that are in all of the first ``count`` rows of ``plain``; list the groups that
    have any, and return how many those are.

    ``plain`` has room for three more, into which the last row is repeated.
    """
    if count == 0:
        sid[:] = live
    else:
        plain[count : count + 3] = plain[count - 1]
    for start in range(0, count, 4):
        base = live if start == 0 else sid
        one, two = rows[plain[start]], rows[plain[start + 1]]
        three, four = rows[plain[start + 2]], rows[plain[start + 3]]
        for word in range(len(sid)):
            sid[word] = base[word] & one[word] & two[word] & three[word] & four[word]
    listed = 0
    for group in range(len(sid) // GROUP):
        some = np.uint64(0)
        for word in range(group * GROUP, group * GROUP + GROUP):
            some |= sid[word]
        groups[listed] = group
        listed += some != 0
    return listed


@kernel
def overlaps(bitmaps, slot, first, last, low, high):  # type: ignore[no-untyped-def]
    """Return whether an interval of a box, from ``first`` up to before ``last``, overlaps another."""
    entries, ends = bitmaps.entries, bitmaps.ends
    for entry in range(bitmaps.offsets[slot], bitmaps.offsets[slot + 1]):
        interval = entries[entry]
        if first <= interval < last and ends[interval, 0] <= high and low <= ends[interval, 1]:
            return True
    return False


@kernel
def keep_listed(bitmaps, interval, sid, kept, count):  # type: ignore[no-untyped-def]
    """Append to ``kept`` the boxes of a tree's interval, and of those above it that rows lack, that are in ``sid``."""
    own_start, own_slots, above = bitmaps.own_start, bitmaps.own_slots, bitmaps.above
    while interval >= 0:
        for at in range(own_start[interval], own_start[interval + 1]):
            slot = own_slots[at]
            kept[count] = slot
            count += (sid[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1) != 0
        interval = above[interval]
    return count


@kernel
def pass_tree(row, sid, groups, listed, kept, count):  # type: ignore[no-untyped-def]
    """Leave in ``sid`` what is in a row, and the kept slots."""
    for index in range(listed):
        first = groups[index] * GROUP
        for word in range(first, first + GROUP):
            sid[word] &= row[word]
    for slot in kept[:count]:
        sid[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@kernel
def pass_bucket(bitmaps, axis, place, code, sid, groups, listed):  # type: ignore[no-untyped-def]
    """Leave in ``sid`` what a code satisfies on a grid (a line of ``Bitmaps.axes``); boxes in doubt are held against
    the code itself.
    """
    first_interval, last_interval = axis[INTERVAL], axis[INTERVAL] + axis[INTERVALS]
    possible, doubt = bitmaps.rows[bitmaps.place_row[place]], bitmaps.rows[bitmaps.place_rest[place]]
    for index in range(listed):
        first = groups[index] * GROUP
        for word in range(first, first + GROUP):
            left = sid[word]
            if left != 0:
                doubtful = left & doubt[word]
                kept = left & possible[word] & ~doubtful
                while doubtful != 0:
                    bit = trailing_zeros(doubtful)
                    doubtful &= doubtful - np.uint64(1)
                    if overlaps(bitmaps, word * 64 + bit, first_interval, last_interval, code, code):
                        kept |= np.uint64(1) << np.uint64(bit)
                sid[word] = kept


@kernel
def collect(numbers, sid, groups, listed, row, found, count):  # type: ignore[no-untyped-def]
    """Append the pairs of a row with what is left in ``sid``. ``found``: rows and numbers, which may be replaced by
    longer ones.
    """
    rows, boxes = found
    for index in range(listed):
        if count + 64 * GROUP > len(rows):
            rows, boxes = longer(rows, 2 * (count + 64 * GROUP)), longer(boxes, 2 * (count + 64 * GROUP))
        first = groups[index] * GROUP
        for word in range(first, first + GROUP):
            left = sid[word]
            while left != 0:
                boxes[count] = numbers[word * 64 + trailing_zeros(left)]
                left &= left - np.uint64(1)
                rows[count] = row
                count += 1
    return (rows, boxes), count


@kernel
def match_points(bitmaps, live, codes):  # type: ignore[no-untyped-def]
    """Match points, int64[axes, rows]; return rows and numbers.

    Whole rows are intersected first; then come trees of which boxes are still listed, then the boxes that grids leave
    in doubt, which are looked at one by one.
    """
    axes, place_row, place_rest = bitmaps.axes, bitmaps.place_row, bitmaps.place_rest
    sid, groups = np.empty(len(live), np.uint64), np.empty(len(live) // GROUP + 1, np.int32)
    plain, later = np.empty(len(axes) + 3, np.int64), np.empty((len(axes), 2), np.int64)
    kept = np.empty(len(bitmaps.own_slots) + 1, np.int32)
    found, count = (np.empty(1024, np.int32), np.empty(1024, np.int32)), 0
    for row in range(codes.shape[1]):
        plains, laters = 0, 0
        for line in range(len(axes)):
            axis = axes[line]
            code = codes[axis[AXIS], row] if axis[AXIS] < codes.shape[0] else np.int64(NULL)
            place = find_place(axis, bitmaps.cell_start, bitmaps.cell_place, bitmaps.direct, code)
            if place_rest[place] >= 0 or axis[KIND] == GRID:
                later[laters, 0], later[laters, 1] = line, place
                laters += 1
            if axis[KIND] == EARLY_GRID or (axis[KIND] == TREE and place_rest[place] < 0):
                plain[plains] = place_row[place]
                plains += 1
        listed = intersect(live, bitmaps.rows, plain, plains, sid, groups)
        for at in range(laters if listed else 0):
            line, place = later[at]
            whole = bitmaps.rows[place_row[place]]
            if axes[line, KIND] == TREE:
                held = keep_listed(bitmaps, place_rest[place], sid, kept, 0)
                pass_tree(whole, sid, groups, listed, kept, held)
            elif place_rest[place] < 0:
                pass_tree(whole, sid, groups, listed, kept, 0)
            else:
                code = codes[axes[line, AXIS], row] if axes[line, AXIS] < codes.shape[0] else np.int64(NULL)
                pass_bucket(bitmaps, axes[line], place, code, sid, groups, listed)
        found, count = collect(bitmaps.numbers, sid, groups, listed, row, found, count)
    return found[0][:count].copy(), found[1][:count].copy()
