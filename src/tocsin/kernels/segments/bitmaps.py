"""Boxes outside, 512 queries inside: the path for boxes that no key reaches cheaply, and for queries that are ranges.

For a chunk of queries, a table has one row of 512 bits for each (axis, bucket): the queries whose bucket lies below.
The queries that may satisfy an interval are then one row and not another, and those of a box an intersection of such
rows. It needs no memory beyond the boxes, and treats points and ranges alike.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.checking import may_hold, verify
from tocsin.kernels.segments.layout import (
    A_ABOVE_NULL,
    A_COUNT,
    AXES,
    AXIS_FIELDS,
    AXIS_TABLE,
    BUCKETS,
    FIRST,
    POSITIONS,
    PREDICATES,
    REPLICA,
    ROW_START,
    RUN_END,
    RUN_START,
    WORDS,
    longs_section,
    words_section,
)
from tocsin.kernels.vectors import AT_ONCE, LANES, may_hold_from, meet, trailing_zeros

CHUNK = 64 * LANES
"""How many queries share one table."""

LISTED = 1 << 14
"""How many candidates are listed before they are verified."""


@kernel
def fill_table(axis_table, axes, buckets, table):  # type: ignore[no-untyped-def]
    """Fill the table of up to 512 queries: row ``256 * axis + bucket`` has those whose bucket is below that one."""
    for axis in range(axes):
        cuts = axis_table[axis * AXIS_FIELDS + A_COUNT] + axis_table[axis * AXIS_FIELDS + A_ABOVE_NULL]
        top = 256 * axis + min(cuts + 1, BUCKETS)
        table[256 * axis : top + 1] = 0
        for query in range(len(buckets)):
            table[256 * axis + 1 + np.int64(buckets[query, axis]), query >> 6] |= np.uint64(1) << np.uint64(query & 63)
        for row in range(256 * axis + 1, top):
            for lane in range(LANES):
                table[row + 1, lane] |= table[row, lane]


@kernel
def empty_table(axes):  # type: ignore[no-untyped-def]
    """Return a table for so many axes whose rows are cache lines."""
    room = np.empty(256 * axes * LANES + LANES, np.uint64)
    skipped = (-(room.ctypes.data >> 3)) & (LANES - 1)
    return room[skipped : skipped + 256 * axes * LANES].reshape((256 * axes, LANES))


@kernel
def list_met(segment, begin, tables, queries, candidates):  # type: ignore[no-untyped-def]
    """List (query, position) of the boxes from ``begin`` on that queries may meet, until the lists or the boxes end.

    ``tables`` is (upper, lower) as for `meet`. Returns how many there are and the next position. A run whose root no
    query meets is passed over.
    """
    run_start, run_end = words_section(segment, RUN_START), words_section(segment, RUN_END)
    run = np.searchsorted(run_start, begin)
    root = np.int64(run_start[run]) if run < len(run_start) else np.int64(-1)
    row_start, predicates = words_section(segment, ROW_START), words_section(segment, PREDICATES)
    words, marks = words_section(segment, WORDS), segment.marks
    (upper, lower), (candidate_query, candidate_position) = tables, candidates
    met = np.empty(LANES, np.uint64)
    listed, position = 0, begin
    while position < len(marks) and listed + CHUNK <= len(candidate_query):
        lanes = meet(words, predicates, row_start[position], row_start[position + 1], upper, lower, met)
        if position == root:
            passed = lanes == 0
            position = np.int64(run_end[run]) if passed else position
            run += 1
            root = np.int64(run_start[run]) if run < len(run_start) else np.int64(-1)
            if passed:
                continue
        if marks[position] & REPLICA:
            lanes = 0
        while lanes:
            lane = trailing_zeros(np.uint64(lanes))
            lanes &= lanes - 1
            word = met[lane]
            while word:
                query = 64 * lane + trailing_zeros(word)
                word &= word - np.uint64(1)
                candidate_query[listed], candidate_position[listed] = query, position
                listed += query < queries
        position += 1
    return listed, position


@kernel
def match_bitmaps(segment, asked, rows, coded, begin, found, count):  # type: ignore[no-untyped-def]
    """Match a chunk of at most 512 rows with the boxes at positions from ``begin`` on; append the pairs."""
    axis_table, axes = longs_section(segment, AXIS_TABLE), segment.header[AXES]
    upper = empty_table(axes)
    fill_table(axis_table, axes, coded.low, upper)
    lower = upper
    if coded.high is not coded.low:
        lower = empty_table(axes)
        fill_table(axis_table, axes, coded.high, lower)
    queries, positions = np.empty(LISTED, np.int32), np.empty(LISTED, np.int32)
    while begin < segment.header[POSITIONS]:
        listed, begin = list_met(segment, begin, (upper, lower), len(rows), (queries, positions))
        found, count = verify(segment, asked, rows, coded, (queries[:listed], positions[:listed]), found, count)
    return found, count


@kernel
def list_first(first, begin, end, coded, query, positions):  # type: ignore[no-untyped-def]
    """List the positions from ``begin`` to ``end`` whose first words leave it possible that a query meets their
    boxes."""
    low, high, listed = coded.low, coded.high, 0
    if high is low:
        for here in range(begin, end, AT_ONCE):
            held = may_hold_from(first, here, low, query) & ((1 << min(end - here, AT_ONCE)) - 1)
            while held:
                positions[listed] = here + trailing_zeros(np.uint64(held))
                held &= held - 1
                listed += 1
        return listed
    for position in range(begin, end):
        word = first[position]
        local = (word >> 16) & 0x3FFF
        positions[listed] = position
        listed += may_hold(word, low[query, local], high[query, local])
    return listed


@kernel
def list_behind(segment, begin, coded, query, positions):  # type: ignore[no-untyped-def]
    """Do the same from ``begin`` on to the end; runs whose root the query does not meet are passed over."""
    first, row_start = words_section(segment, FIRST), words_section(segment, ROW_START)
    predicates, words = words_section(segment, PREDICATES), words_section(segment, WORDS)
    run_start, run_end = words_section(segment, RUN_START), words_section(segment, RUN_END)
    low, high, listed = coded.low, coded.high, 0
    for run in range(len(run_start)):
        root, passed = run_start[run], False
        for place in range(row_start[root], row_start[root + 1]):
            word = words[predicates[place]]
            local = (word >> 16) & 0x3FFF
            if not may_hold(word, low[query, local], high[query, local]):
                passed = True
                break
        end = root if passed else run_end[run]
        if end > begin:
            listed += list_first(first, begin, end, coded, query, positions[listed:])
        begin = np.int64(run_end[run])
    return listed + list_first(first, begin, segment.header[POSITIONS], coded, query, positions[listed:])


@kernel
def match_rows(segment, asked, rows, coded, begin, found, count):  # type: ignore[no-untyped-def]
    """Do the same for a few rows, one after another: cheaper below about five of them."""
    row_start = words_section(segment, ROW_START)
    predicates, words, marks = words_section(segment, PREDICATES), words_section(segment, WORDS), segment.marks
    low, high, end = coded.low, coded.high, segment.header[POSITIONS]
    queries, positions = np.empty(end - begin, np.int32), np.empty(end - begin, np.int32)
    for query in range(len(rows)):
        kept = 0
        for i in range(list_behind(segment, begin, coded, query, positions)):
            position = positions[i]
            possible = marks[position] & REPLICA == 0
            for place in range(row_start[position], row_start[position + 1]):
                word = words[predicates[place]]
                local = (word >> 16) & 0x3FFF
                if not may_hold(word, low[query, local], high[query, local]):
                    possible = False
                    break
            queries[kept], positions[kept] = query, position
            kept += possible
        found, count = verify(segment, asked, rows, coded, (queries[:kept], positions[:kept]), found, count)
    return found, count
