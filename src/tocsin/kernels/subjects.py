"""Regions against regions, pair by pair: which box overlaps which stored row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel

NULL = np.int64(np.iinfo(np.int64).min)
LOWEST = NULL + 1
HIGHEST = np.int64(np.iinfo(np.int64).max)


class Pool(NamedTuple):
    """Boxes by number: ``start`` int64 and ``length`` int32 say which entries of ``axis`` int32, ``low`` and ``high``
    int64 are theirs."""

    start: Any
    length: Any
    axis: Any
    low: Any
    high: Any


class Members(NamedTuple):
    """The rows or boxes of several publications or subscriptions: those of ``i`` are ``first[i]:first[i + 1]``, which
    is int64; ``numbers`` int32, and ``bits`` int64 of the regions that they belong to."""

    first: Any
    numbers: Any
    bits: Any


@inlined
def meet(pool, row_low, row_high, number, row):  # type: ignore[no-untyped-def]
    """Return whether the box of a number overlaps a row."""
    entry = pool.start[number]
    end, holds = entry + pool.length[number], True
    while holds and entry < end:
        axis = pool.axis[entry]
        least, most = row_low[row, axis], row_high[row, axis]
        holds = False
        while entry < end and pool.axis[entry] == axis:
            holds |= pool.low[entry] <= most and least <= pool.high[entry]
            entry += 1
    return holds


@kernel
def pairs_meet(pool, row_low, row_high, numbers, rows):  # type: ignore[no-untyped-def]
    """Return for each pair whether the box of a number overlaps a row, ``row_low`` and ``row_high`` int64[rows,
    axes]."""
    met = np.empty(len(numbers), np.bool_)
    for i in range(len(numbers)):
        met[i] = meet(pool, row_low, row_high, numbers[i], rows[i])
    return met


@kernel
def match_members(pool, programs, sides, ours, theirs, pairs, matched):  # type: ignore[no-untyped-def]
    """Add to ``matched``, int64[2, pairs], the regions of both of each pair that overlap one of the other.

    ``pairs`` are positions in ``ours``, the rows (``sides`` are their low and high, int64[rows, axes]), and in
    ``theirs``, the boxes of ``pool``. Return (pair, place in ours, place in theirs) of what overlaps as far as boxes
    say but has a program, ``programs`` int32[boxes], to decide it.
    """
    (row_low, row_high), (pub, sub) = sides, pairs
    doubtful, count = np.empty((16, 3), np.int64), 0
    for i in range(len(pub)):
        for row in range(ours.first[pub[i]], ours.first[pub[i] + 1]):
            for box in range(theirs.first[sub[i]], theirs.first[sub[i] + 1]):
                number, our, their = theirs.numbers[box], ours.bits[row], theirs.bits[box]
                known = matched[0, i] & our == our and matched[1, i] & their == their
                if known or not meet(pool, row_low, row_high, number, ours.numbers[row]):
                    continue
                if programs[number] < 0:
                    matched[0, i] |= our
                    matched[1, i] |= their
                    continue
                if count == len(doubtful):
                    longer = np.empty((2 * count, 3), np.int64)
                    longer[:count] = doubtful
                    doubtful = longer
                doubtful[count, 0], doubtful[count, 1], doubtful[count, 2] = i, row, box
                count += 1
    return doubtful[:count]


@kernel
def filters_hold(terms, filters, who, matched, found):  # type: ignore[no-untyped-def]
    """Let ``found`` stay where the filter of ``who`` holds of the regions that are matched.

    ``terms`` is (first, must, never), int64 each: one of the terms ``first[f]:first[f + 1]`` of filter ``f`` must hold,
    and it does when all of its first mask and none of its second are matched.
    """
    first, must, never = terms
    for i in range(len(who)):
        filter, bits, holds = filters[who[i]], matched[i], False
        for term in range(first[filter], first[filter + 1]):
            holds |= bits & must[term] == must[term] and bits & never[term] == 0
        found[i] &= holds


@kernel
def queries_of_rows(row_low, row_high, rows, low, high):  # type: ignore[no-untyped-def]
    """Fill ``low`` and ``high``, int64[axes, rows], with some rows; return whether all of them are points."""
    points = True
    for i in range(len(rows)):
        for axis in range(row_low.shape[1]):
            low[axis, i], high[axis, i] = row_low[rows[i], axis], row_high[rows[i], axis]
            points &= low[axis, i] == high[axis, i]
    return points


@kernel
def moved_row(row_low, row_high, row, axes, codes, absent):  # type: ignore[no-untyped-def]
    """Return int64[4, axes, 1]: low and high of a row as it is, and as it is with single codes on some axes; and
    whether it then has a value that is not ``absent``, (low, high)."""
    count, says = row_low.shape[1], False
    sides = np.empty((4, count, 1), np.int64)
    for axis in range(count):
        sides[0, axis, 0] = sides[2, axis, 0] = row_low[row, axis]
        sides[1, axis, 0] = sides[3, axis, 0] = row_high[row, axis]
    for i in range(len(axes)):
        sides[2, axes[i], 0] = sides[3, axes[i], 0] = codes[i]
    for axis in range(count):
        says |= sides[2, axis, 0] != absent[0] or sides[3, axis, 0] != absent[1]
    return sides, says


@kernel
def owners_of_moves(entered, left, owner):  # type: ignore[no-untyped-def]
    """Return (row, owner, 0 or 1) of pairs that began and then of those that ceased, each (rows, numbers)."""
    (come, came), (gone, went) = entered, left
    count, begun = len(come) + len(gone), len(come)
    rows, others, kinds = np.empty(count, come.dtype), np.empty(count, owner.dtype), np.empty(count, np.int8)
    for i in range(begun):
        rows[i], others[i], kinds[i] = come[i], owner[came[i]], 0
    for i in range(len(gone)):
        rows[begun + i], others[begun + i], kinds[begun + i] = gone[i], owner[went[i]], 1
    return rows, others, kinds


@kernel
def boxes_of_rows(row_low, row_high, rows, spanning):  # type: ignore[no-untyped-def]
    """Return (offsets, axis, low, high) of some rows as boxes; where ``spanning``, an axis on which a row spans all
    values has no entry."""
    axes = row_low.shape[1]
    offsets = np.zeros(len(rows) + 1, np.int64)
    axis, low = np.empty(len(rows) * axes, np.int32), np.empty(len(rows) * axes, np.int64)
    high = np.empty(len(rows) * axes, np.int64)
    count = 0
    for i in range(len(rows)):
        for each in range(axes):
            least, most = row_low[rows[i], each], row_high[rows[i], each]
            if not (spanning and least == LOWEST and most == HIGHEST):
                axis[count], low[count], high[count] = each, least, most
                count += 1
        offsets[i + 1] = count
    return offsets, axis[:count].copy(), low[:count].copy(), high[:count].copy()


@kernel
def have_sets(pool, numbers):  # type: ignore[no-untyped-def]
    """Return which of some boxes have several intervals on an axis, so that their hull says too much."""
    several = np.zeros(len(numbers), np.bool_)
    for i in range(len(numbers)):
        first = pool.start[numbers[i]]
        for entry in range(first + 1, first + pool.length[numbers[i]]):
            several[i] |= pool.axis[entry] == pool.axis[entry - 1]
    return several


@kernel
def queries_of_boxes(pool, numbers, axes):  # type: ignore[no-untyped-def]
    """Return (low, high), int64[axes, boxes]: the hulls of some boxes, everything where a box says nothing."""
    low, high = np.full((axes, len(numbers)), NULL), np.full((axes, len(numbers)), HIGHEST)
    for i in range(len(numbers)):
        first = pool.start[numbers[i]]
        for entry in range(first, first + pool.length[numbers[i]]):
            axis = pool.axis[entry]
            if entry == first or pool.axis[entry - 1] != axis:
                low[axis, i] = pool.low[entry]
            high[axis, i] = pool.high[entry]
    return low, high
