"""Regions against regions, pair by pair: which box overlaps which stored row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import kernel

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


@kernel
def pairs_meet(pool, row_low, row_high, numbers, rows):  # type: ignore[no-untyped-def]
    """Return for each pair whether the box of a number overlaps a row, ``row_low`` and ``row_high`` int64[rows,
    axes]."""
    starts, lengths, axes, lows, highs = pool.start, pool.length, pool.axis, pool.low, pool.high
    met = np.empty(len(numbers), np.bool_)
    for i in range(len(numbers)):
        entry, row = starts[numbers[i]], rows[i]
        end = entry + lengths[numbers[i]]
        holds = True
        while holds and entry < end:
            axis = axes[entry]
            least, most = row_low[row, axis], row_high[row, axis]
            holds = False
            while entry < end and axes[entry] == axis:
                holds |= lows[entry] <= most and least <= highs[entry]
                entry += 1
        met[i] = holds
    return met


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
