"""Boxes outside, 512 queries inside: the path for boxes that no key reaches cheaply, and for queries that are ranges.

For a chunk of queries, a table has one row of 512 bits for each (axis, bucket): the queries whose bucket lies below.
The queries that may satisfy an interval are then one row and not another, and those of a box an intersection of such
rows. It needs no memory beyond the boxes, and treats points and ranges alike.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.checking import append_unsure, is_gone, may_hold, verify, with_room
from tocsin.kernels.segments.dense import CHUNK, are_dense, match_dense
from tocsin.kernels.segments.layout import (
    A_ABOVE_NULL,
    A_COUNT,
    AXES,
    AXIS_FIELDS,
    AXIS_TABLE,
    BUCKETS,
    FIRST,
    NUMBERS,
    POSITIONS,
    PREDICATES,
    REPLICA,
    ROW_START,
    RUN_END,
    RUN_START,
    SINGLES,
    WORDS,
    longs_section,
    words_section,
)
from tocsin.kernels.vectors import AT_ONCE, LANES, may_hold_from, meet, surely_meet, trailing_zeros

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
def append_met(segment, asked, begin, tables, rows, found, count, candidates):  # type: ignore[no-untyped-def]
    """Append the pairs of the boxes from ``begin`` on about which buckets leave no doubt, and list the others as
    candidates (query, position), until there is no room for more or the boxes end.

    ``tables`` is (upper, lower) as for `meet`. Returns how many pairs and candidates there are and the next position.
    A run whose root no query meets is passed over.
    """
    run_start, run_end = words_section(segment, RUN_START), words_section(segment, RUN_END)
    run = np.searchsorted(run_start, begin)
    root = np.int64(run_start[run]) if run < len(run_start) else np.int64(-1)
    row_start, predicates = words_section(segment, ROW_START), words_section(segment, PREDICATES)
    words, numbers = words_section(segment, WORDS), words_section(segment, NUMBERS)
    marks, singles, died, version = segment.marks, segment.header[SINGLES], asked.died, asked.version
    (upper, lower), (candidate_query, candidate_position) = tables, candidates
    found_rows, found_numbers = found.rows, found.numbers
    asking, met, sure = bits_below(len(rows)), np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    most, listed, position = len(found_rows) - CHUNK, 0, begin
    while position < len(marks) and count <= most and listed + CHUNK <= len(candidate_query):
        first, last = row_start[position], row_start[position + 1]
        lanes = meet(words, predicates, first, last, upper, lower, met)
        if position == root:
            passed = lanes == 0
            position = np.int64(run_end[run]) if passed else position
            run += 1
            root = np.int64(run_start[run]) if run < len(run_start) else np.int64(-1)
            if passed:
                continue
        if marks[position] & REPLICA or is_gone(marks[position], died, position, version):
            lanes = 0
        if lanes:
            surely_meet(words, predicates, first, last, upper, lower, sure, singles)
        number = numbers[position]
        while lanes:
            lane = trailing_zeros(np.uint64(lanes))
            lanes &= lanes - 1
            word, certain = met[lane] & asking[lane], sure[lane]
            while word:
                bit = trailing_zeros(word)
                word &= word - np.uint64(1)
                query, is_sure = 64 * lane + bit, np.int64((certain >> np.uint64(bit)) & np.uint64(1))
                found_rows[count], found_numbers[count] = rows[query], number
                candidate_query[listed], candidate_position[listed] = query, position
                count += is_sure
                listed += not is_sure
        position += 1
    return count, listed, position


@kernel
def bits_below(count):  # type: ignore[no-untyped-def]
    """Return a row of a table with the bits of the first ``count`` queries."""
    bits = np.zeros(LANES, np.uint64)
    for query in range(count):
        bits[query >> 6] |= np.uint64(1) << np.uint64(query & 63)
    return bits


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
    if are_dense(segment, begin, (upper, lower), len(rows)):
        return match_dense(segment, asked, rows, coded, begin, (upper, lower), found, count)
    queries, positions = np.empty(LISTED, np.int32), np.empty(LISTED, np.int32)
    while begin < segment.header[POSITIONS]:
        found = with_room(found, count, LISTED)
        count, listed, begin = append_met(
            segment, asked, begin, (upper, lower), rows, found, count, (queries, positions)
        )
        unsure = queries[:listed], positions[:listed]
        found, count = append_unsure(segment, asked, rows, coded, unsure, found, count)
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
