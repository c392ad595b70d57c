"""Boxes outside, 512 queries inside: the path for boxes that no key reaches cheaply, and for queries that are ranges.

For a chunk of queries, a table has one row of 512 bits for each (axis, bucket): the queries whose bucket lies below. The
queries that may satisfy an interval are then one row and not another, and those of a box an intersection of such
rows. It needs no memory beyond the boxes, and treats points and ranges alike.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.checking import alive, box_holds, checks_of, may_hold, with_room
from tocsin.kernels.compile import kernel
from tocsin.kernels.segments import (
    A_ABOVE_NULL,
    A_COUNT,
    AXES,
    AXIS_FIELDS,
    AXIS_TABLE,
    BUCKETS,
    REPLICA,
    longs_section,
)
from tocsin.kernels.vectors import LANES, meet, trailing_zeros

CHUNK = 64 * LANES
"""How many queries share one table."""


@kernel
def fill_table(axis_table, axes, buckets, table):  # type: ignore[no-untyped-def]
    """Fill the table of up to 512 queries: row ``256 * axis + bucket`` has those whose bucket is below that one."""
    for axis in range(axes):
        cuts = axis_table[axis * AXIS_FIELDS + A_COUNT] + axis_table[axis * AXIS_FIELDS + A_ABOVE_NULL]
        top = 256 * axis + min(cuts + 1, BUCKETS)
        table[256 * axis : top + 1] = 0
        for query in range(len(buckets)):
            table[256 * axis + 1 + buckets[query, axis], query >> 6] |= np.uint64(1) << np.uint64(query & 63)
        for row in range(256 * axis + 1, top):
            for lane in range(LANES):
                table[row + 1, lane] |= table[row, lane]


@kernel
def match_bitmaps(segment, asked, rows, coded, positions, found, count):  # type: ignore[no-untyped-def]
    """Match a chunk of at most 512 rows with the boxes at ``positions`` (first and last plus one); append the pairs."""
    begin, end = positions
    checks = checks_of(segment)
    axis_table = longs_section(segment, AXIS_TABLE)
    axes = segment.header[AXES]
    upper = np.empty((256 * axes, LANES), np.uint64)
    fill_table(axis_table, axes, coded.low, upper)
    lower = upper
    if coded.high is not coded.low:
        lower = np.empty((256 * axes, LANES), np.uint64)
        fill_table(axis_table, axes, coded.high, lower)
    met = np.empty(LANES, np.uint64)
    for position in range(begin, end):
        first, last = checks.row_start[position], checks.row_start[position + 1]
        lanes = meet(checks.words, checks.predicates[first:last], upper, lower, met)
        if lanes == 0 or segment.marks[position] & REPLICA or not alive(asked, position):
            continue
        doubt = False
        for place in range(first, last):
            doubt |= checks.words[checks.predicates[place]] < 0
        found = with_room(found, count, CHUNK)
        while lanes:
            lane = trailing_zeros(np.uint64(lanes))
            lanes &= lanes - 1
            word = met[lane]
            while word:
                query = 64 * lane + trailing_zeros(word)
                word &= word - np.uint64(1)
                if query >= len(rows):
                    break
                if not doubt or box_holds(
                    checks, axis_table, first, last, coded.low[query], coded.high[query], asked, rows[query]
                ):
                    found.rows[count] = rows[query]
                    found.numbers[count] = checks.numbers[position]
                    count += 1
    return found, count


@kernel
def match_rows(segment, asked, rows, coded, positions, found, count):  # type: ignore[no-untyped-def]
    """Do the same for a few rows, one after another: cheaper below about five of them."""
    begin, end = positions
    checks = checks_of(segment)
    axis_table = longs_section(segment, AXIS_TABLE)
    for query in range(len(rows)):
        low, high = coded.low[query], coded.high[query]
        for position in range(begin, end):
            word = checks.first[position]
            local = (word >> 16) & 0x7FFF
            if not may_hold(word, low[local], high[local]) or segment.marks[position] & REPLICA:
                continue
            first, last = checks.row_start[position], checks.row_start[position + 1]
            if box_holds(checks, axis_table, first, last, low, high, asked, rows[query]) and alive(asked, position):
                found = with_room(found, count, 1)
                found.rows[count] = rows[query]
                found.numbers[count] = checks.numbers[position]
                count += 1
    return found, count
