"""Kernels written by hand for one workload each, to compare `adaptive` with: W0, W1, W2 and R of `bench/workloads.py`.

They know what no general engine may: how many axes and values there are, which predicates every subscription has and on
which axes, that nothing is ever removed and that numbers are positions. Events are points int64[axes, rows]; pairs come
back sorted by row.

W0, W1 and W2 are reached by the two fixed equalities and one free one, through a table with a place for each
combination; what is left of a subscription takes two bytes a predicate at most. A batch is taken in the order of the
two fixed values, so that what lies under them is fetched once. R stands in blocks of 64 subscriptions on the same five
axes, with a mask of 64 bits for each (block, axis, bucket); a block is held against a chunk of events before the next
one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.checking import Found, sort_by_row, with_room
from tocsin.kernels.vectors import trailing_zeros

AXES = 32
"""Axes of W0, W1 and W2."""

VALUES = 36
"""Their values are 1 to 35."""

BLOCK_BUCKETS = 128
"""Buckets of an axis of R."""

BLOCK_AXES = 5
"""Intervals of a subscription of R."""

CHUNK = 4096
"""Events of R held against a block at once: so many that the masks of a block are worth fetching."""


class Filed(NamedTuple):
    """Subscriptions of W0, W1 or W2 by two fixed values, a free axis and its value.

    ``starts`` int32[36 * 36 * 32 * 36 + 1], ``numbers`` int32[n], ``rest`` uint8[n, bytes left to check].
    """

    starts: Any
    numbers: Any
    rest: Any


class Blocks(NamedTuple):
    """Subscriptions of R. Block ``b`` has the positions from ``64 * b`` on; a number of -1 fills it up.

    ``axes`` int32[blocks, 5], ``masks`` uint64[blocks, 5, buckets], ``low`` and ``high`` int64[64 * blocks, 5].
    """

    numbers: Any
    axes: Any
    masks: Any
    low: Any
    high: Any


@kernel
def file_subscriptions(offsets, axis, low, free, rest):  # type: ignore[no-untyped-def]
    """File subscriptions under axes 0 and 1 and, of their equalities from entry ``free`` on, the one with the least
    company.

    ``rest`` uint8[n, bytes] has what is left of each, as it is to be checked; for W0 it is filled here, with the other
    two equalities (axis, value).
    """
    count = len(offsets) - 1
    slots, load = np.empty(count, np.int32), np.zeros(VALUES * VALUES * AXES * VALUES + 1, np.int32)
    for box in range(count):
        begin, end = offsets[box], offsets[box + 1]
        page = (low[begin] * VALUES + low[begin + 1]) * AXES
        best: Any = np.int64(-1)
        chosen: Any = np.int64(-1)
        for entry in range(begin + free, end):
            slot = (page + axis[entry]) * VALUES + low[entry]
            if best < 0 or load[slot] < load[best]:
                best, chosen = slot, entry
        slots[box] = best
        load[best] += 1
        if free == 2:
            byte = 0
            for entry in range(begin + free, end):
                if entry != chosen and byte < rest.shape[1]:
                    rest[box, byte], rest[box, byte + 1] = axis[entry], low[entry]
                    byte += 2
    starts = np.zeros(len(load), np.int32)
    for slot in range(len(load) - 1):
        starts[slot + 1] = starts[slot] + load[slot]
    place, numbers, sorted_rest = starts.copy(), np.empty(count, np.int32), np.empty_like(rest)
    for box in range(count):
        position = place[slots[box]]
        place[slots[box]] += 1
        numbers[position] = box
        sorted_rest[position] = rest[box]
    return Filed(starts, numbers, sorted_rest)


@kernel
def order_events(codes):  # type: ignore[no-untyped-def]
    """Return the rows in the order of their page, which are the values of axes 0 and 1, and the values of each:
    uint8[rows, axes]. So the subscriptions of a page are read once, while they are in the cache."""
    rows = codes.shape[1]
    values, starts = np.empty((rows, AXES), np.uint8), np.zeros(VALUES * VALUES + 1, np.int64)
    for axis in range(AXES):
        for row in range(rows):
            values[row, axis] = codes[axis, row]
    for row in range(rows):
        starts[np.int64(values[row, 0]) * VALUES + values[row, 1] + 1] += 1
    for page in range(VALUES * VALUES):
        starts[page + 1] += starts[page]
    order = np.empty(rows, np.int32)
    for row in range(rows):
        page = np.int64(values[row, 0]) * VALUES + values[row, 1]
        order[starts[page]] = row
        starts[page] += 1
    return order, values


@kernel
def match_filed(filed, codes, free, found):  # type: ignore[no-untyped-def]
    """Match events with W0, W1 or W2, whose free axes begin at ``free``.

    What is left to check: in W0 the two other equalities, in W1 ``>`` on axis 2, in W2 ``<`` on the axes from 2 to 6
    and ``>`` on axis 7.
    """
    starts, numbers, rest = filed.starts, filed.numbers, filed.rest
    order, values = order_events(codes)
    rows, pairs, count = found.rows, found.numbers, 0
    for row in order:
        page = (np.int64(values[row, 0]) * VALUES + values[row, 1]) * AXES
        for axis in range(free, AXES):
            slot = (page + axis) * VALUES + values[row, axis]
            begin, end = starts[slot], starts[slot + 1]
            if count + end - begin > len(rows):
                rows, pairs = with_room(Found(rows, pairs), count, end - begin)
            for position in range(begin, end):
                if free == 2:
                    holds = values[row, rest[position, 0]] == rest[position, 1]
                    holds &= values[row, rest[position, 2]] == rest[position, 3]
                elif free == 3:
                    holds = values[row, 2] >= rest[position, 0]
                else:
                    holds = (values[row, 2] <= rest[position, 0]) & (values[row, 3] <= rest[position, 1])
                    holds &= (values[row, 4] <= rest[position, 2]) & (values[row, 5] <= rest[position, 3])
                    holds &= (values[row, 6] <= rest[position, 4]) & (values[row, 7] >= rest[position, 5])
                rows[count], pairs[count] = row, numbers[position]
                count += holds
    return sort_by_row(Found(rows, pairs), count, 0, len(order))


@kernel
def bucket_of_code(code, cuts):  # type: ignore[no-untyped-def]
    """Return the number of cuts at or below a code."""
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def fill_blocks(order, starts, boxes, cuts):  # type: ignore[no-untyped-def]
    """Put subscriptions of R into blocks; ``order`` has them by their axes, ``starts`` where each block begins in it.

    ``boxes`` is (axis, low, high), five entries a subscription; ``cuts`` int64[buckets - 1] divide every axis alike.
    """
    axis, low, high = boxes
    blocks = len(starts) - 1
    numbers, axes = np.full(64 * blocks, -1, np.int32), np.empty((blocks, BLOCK_AXES), np.int32)
    masks = np.zeros((blocks, BLOCK_AXES, BLOCK_BUCKETS), np.uint64)
    lows, highs = np.zeros((64 * blocks, BLOCK_AXES), np.int64), np.zeros((64 * blocks, BLOCK_AXES), np.int64)
    for block in range(blocks):
        for bit in range(starts[block + 1] - starts[block]):
            box = order[starts[block] + bit]
            numbers[64 * block + bit] = box
            for k in range(BLOCK_AXES):
                entry = box * BLOCK_AXES + k
                axes[block, k] = axis[entry]
                lows[64 * block + bit, k], highs[64 * block + bit, k] = low[entry], high[entry]
                for bucket in range(bucket_of_code(low[entry], cuts), bucket_of_code(high[entry], cuts) + 1):
                    masks[block, k, bucket] |= np.uint64(1) << np.uint64(bit)
    return Blocks(numbers, axes, masks, lows, highs)


@kernel
def match_chunk(blocks, codes, buckets, first, found, count):  # type: ignore[no-untyped-def]
    """Hold every block against a chunk of events, of which the first is row ``first``; append the pairs.

    ``codes`` int64[axes, events] and ``buckets`` uint8[axes, events] are those of the chunk alone.
    """
    numbers, axes, masks, lows, highs = blocks
    rows, pairs, events = found.rows, found.numbers, codes.shape[1]
    for block in range(len(axes)):
        a, b, c, d, e = axes[block]
        if count + 64 * events > len(rows):
            rows, pairs = with_room(Found(rows, pairs), count, 64 * events)
        for event in range(events):
            word = masks[block, 0, buckets[a, event]] & masks[block, 1, buckets[b, event]]
            word &= masks[block, 2, buckets[c, event]] & masks[block, 3, buckets[d, event]]
            word &= masks[block, 4, buckets[e, event]]
            while word:
                place = 64 * block + trailing_zeros(word)
                word &= word - np.uint64(1)
                holds = (lows[place, 0] <= codes[a, event]) & (codes[a, event] <= highs[place, 0])
                holds &= (lows[place, 1] <= codes[b, event]) & (codes[b, event] <= highs[place, 1])
                holds &= (lows[place, 2] <= codes[c, event]) & (codes[c, event] <= highs[place, 2])
                holds &= (lows[place, 3] <= codes[d, event]) & (codes[d, event] <= highs[place, 3])
                holds &= (lows[place, 4] <= codes[e, event]) & (codes[e, event] <= highs[place, 4])
                rows[count], pairs[count] = first + event, numbers[place]
                count += holds
    return Found(rows, pairs), count


@kernel
def match_r(blocks, codes, cuts, found):  # type: ignore[no-untyped-def]
    """Match events with R."""
    count, rows = 0, codes.shape[1]
    for first in range(0, rows, CHUNK):
        some = codes[:, first : first + CHUNK].copy()
        buckets = np.empty(some.shape, np.uint8)
        for axis in range(some.shape[0]):
            for event in range(some.shape[1]):
                buckets[axis, event] = bucket_of_code(some[axis, event], cuts)
        found, count = match_chunk(blocks, some, buckets, first, found, count)
    return sort_by_row(found, count, 0, rows)
