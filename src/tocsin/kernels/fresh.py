"""The mutable part of `adaptive`: boxes as they came, chained in small hash tables over sets of axes.

A box stands in the first table on all of whose axes it demands a single value; the last table has no axis and takes the
rest. Boxes are only appended, and a chain only grows at its head, so that a reader who knows an earlier count sees that
earlier state by passing over newer boxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.checking import alive, code_at, with_room
from tocsin.kernels.compile import inlined, kernel

TABLE_AXES = 3
"""The greatest number of axes of a table."""

HEADS = 4096
"""Chains a table."""

MIXER = np.uint64(0x9E3779B97F4A7C15)


class Fresh(NamedTuple):
    """The arrays of a fresh part.

    ``numbers`` int32[room], ``offsets`` int64[room + 1], ``axis`` int32[entries], ``low`` and ``high`` int64[entries]: the boxes.
    ``following`` int32[room]: the next older box of the same chain, or -1. ``heads`` int32[tables, HEADS]. ``tables``
    int64[tables, TABLE_AXES]: the axes of each, then -1.
    """

    numbers: Any
    offsets: Any
    axis: Any
    low: Any
    high: Any
    following: Any
    heads: Any
    tables: Any


@inlined
def stirred(seed, code):  # type: ignore[no-untyped-def]
    """Return a hash of a code and what came before it."""
    word = (seed ^ np.uint64(code)) * MIXER
    return word ^ (word >> np.uint64(31))


@kernel
def chain_of_box(fresh, table, begin, end):  # type: ignore[no-untyped-def]
    """Return the chain for a box in a table, or -1 if it does not demand a single value on each of its axes."""
    word = np.uint64(1)
    for place in range(TABLE_AXES):
        axis = fresh.tables[table, place]
        if axis < 0:
            break
        found = -1
        for entry in range(begin, end):
            if fresh.axis[entry] == axis:
                found = entry if found < 0 and fresh.low[entry] == fresh.high[entry] else end
        if found < 0 or found == end:
            return np.int64(-1)
        word = stirred(word, fresh.low[found])
    return np.int64(word >> np.uint64(40)) & (HEADS - 1)


@kernel
def append_boxes(fresh, count, numbers, offsets, axis, low, high):  # type: ignore[no-untyped-def]
    """Append boxes after the first ``count``; there must be room."""
    for box in range(len(numbers)):
        slot = count + box
        begin = fresh.offsets[slot]
        end = begin + offsets[box + 1] - offsets[box]
        for entry in range(end - begin):
            fresh.axis[begin + entry] = axis[offsets[box] + entry]
            fresh.low[begin + entry] = low[offsets[box] + entry]
            fresh.high[begin + entry] = high[offsets[box] + entry]
        fresh.offsets[slot + 1] = end
        fresh.numbers[slot] = numbers[box]
        for table in range(len(fresh.tables)):
            chain = chain_of_box(fresh, table, begin, end)
            if chain >= 0:
                fresh.following[slot] = fresh.heads[table, chain]
                fresh.heads[table, chain] = slot
                break


@kernel
def meets(fresh, slot, asked, row):  # type: ignore[no-untyped-def]
    """Return whether a query meets the box at a slot: on every axis that it names, one interval at least."""
    entry, end = fresh.offsets[slot], fresh.offsets[slot + 1]
    while entry < end:
        axis = fresh.axis[entry]
        low, high = code_at(asked.low, axis, row), code_at(asked.high, axis, row)
        met = False
        while entry < end and fresh.axis[entry] == axis:
            met |= fresh.low[entry] <= high and low <= fresh.high[entry]
            entry += 1
        if not met:
            return False
    return True


@kernel
def match_fresh(fresh, boxes, asked, points, ranges, found, count):  # type: ignore[no-untyped-def]
    """Match the rows listed in ``points`` and in ``ranges`` with the first ``boxes`` boxes; append the pairs."""
    for row in points:
        for table in range(len(fresh.tables)):
            word = np.uint64(1)
            for place in range(TABLE_AXES):
                axis = fresh.tables[table, place]
                if axis < 0:
                    break
                word = stirred(word, code_at(asked.low, axis, row))
            slot = fresh.heads[table, np.int64(word >> np.uint64(40)) & (HEADS - 1)]
            while slot >= 0:
                if slot < boxes and meets(fresh, slot, asked, row) and alive(asked, slot):
                    found = with_room(found, count, 1)
                    found.rows[count], found.numbers[count] = row, fresh.numbers[slot]
                    count += 1
                slot = fresh.following[slot]
    for row in ranges:
        for slot in range(boxes):
            if meets(fresh, slot, asked, row) and alive(asked, slot):
                found = with_room(found, count, 1)
                found.rows[count], found.numbers[count] = row, fresh.numbers[slot]
                count += 1
    return found, count
