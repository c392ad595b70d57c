"""Bitmaps where pairs are many: what queries meet stays bits, which are turned over and read row by row.

Where one box in fifty or more is met, a candidate for each pair would cost far more than the bitmaps themselves.
Instead, the queries that certainly meet a box are found as those that may are, by bitmaps; only the few whose buckets
leave doubt become candidates. Sixty-four boxes by 512 queries are then transposed, and each query has its boxes as
words of bits, one after another: pairs are listed in order of row and need no sorting.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.checking import is_gone, keep_met, with_room
from tocsin.kernels.segments.layout import words_section
from tocsin.kernels.vectors import LANES, meet, ones, surely_meet, trailing_zeros, transpose

CHUNK = 64 * LANES
"""How many queries share one table."""

DENSE = 48
"""Bits are kept as bits where a query may meet one box in so many, or more."""

SAMPLED = 64
"""How many boxes are looked at to tell."""


@kernel
def are_dense(segment, begin, tables, queries):  # type: ignore[no-untyped-def]
    """Return whether queries meet so many of the boxes at positions from ``begin`` on that bits are better kept."""
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, (upper, lower) = words_section(segment, at.WORDS), tables
    end = segment.header[at.POSITIONS]
    met, total, tried = np.empty(LANES, np.uint64), 0, 0
    for position in range(begin, end, max(1, (end - begin) // SAMPLED)):
        meet(words, predicates, row_start[position], row_start[position + 1], upper, lower, met)
        for lane in range(LANES):
            total += ones(met[lane])
        tried += 1
    return end - begin >= 64 and total * DENSE >= tried * queries


@kernel
def fill_block(segment, asked, first, tables, queries, block, candidates):  # type: ignore[no-untyped-def]
    """Fill a block with the queries that certainly meet each of the 64 boxes from position ``first`` on; list (query,
    position) of those that may. Returns how many are listed."""
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, marks, singles = words_section(segment, at.WORDS), segment.marks, segment.header[at.SINGLES]
    (upper, lower), (candidate_query, candidate_position) = tables, candidates
    died, version, listed = asked.died, asked.version, 0
    sure, met = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    for bit in range(64):
        position = first + bit
        mark = np.int64(marks[position]) if position < len(marks) else np.int64(at.REPLICA)
        if mark & at.REPLICA or is_gone(mark, died, position, version):
            for lane in range(LANES):
                block[bit, lane] = 0
            continue
        start, end = row_start[position], row_start[position + 1]
        surely_meet(words, predicates, start, end, upper, lower, sure, singles)
        if mark & at.DOUBT:
            lanes = meet(words, predicates, start, end, upper, lower, met)
            while lanes:
                lane = trailing_zeros(np.uint64(lanes))
                lanes &= lanes - 1
                word = met[lane] & ~sure[lane]
                while word:
                    query = 64 * lane + trailing_zeros(word)
                    word &= word - np.uint64(1)
                    candidate_query[listed], candidate_position[listed] = query, position
                    listed += query < queries
        for lane in range(LANES):
            block[bit, lane] = sure[lane]
    return listed


@kernel
def fill_lines(segment, asked, rows, coded, begin, tables, lines):  # type: ignore[no-untyped-def]
    """Fill ``lines`` uint64[tiles, 513, LANES]: bit ``b`` of word ``w`` of line ``q`` of tile ``t`` says that query
    ``q`` meets the box ``(8 * t + w) * 64 + b`` positions after ``begin``. Returns how many bits are set."""
    block, one, total = np.empty((64, LANES), np.uint64), np.uint64(1), 0
    queries, positions = np.empty(64 * CHUNK, np.int32), np.empty(64 * CHUNK, np.int32)
    for word in range(lines.shape[0] * LANES):
        tile, place = word // LANES, word % LANES
        first = begin + 64 * word
        listed = fill_block(segment, asked, first, tables, len(rows), block, (queries, positions))
        kept = keep_met(segment, asked, rows, coded, (queries[:listed], positions[:listed]))
        for i in range(kept):
            query = queries[i]
            block[positions[i] - first, query >> 6] |= one << np.uint64(query & 63)
        transpose(block)
        for lane in range(LANES):
            for bit in range(64):
                lines[tile, 64 * lane + bit, place] = block[bit, lane]
                total += ones(block[bit, lane])
    return total


@kernel
def match_dense(segment, asked, rows, coded, begin, tables, found, count):  # type: ignore[no-untyped-def]
    """Match a chunk of at most 512 rows with the boxes at positions from ``begin`` on; append the pairs by row."""
    numbers = words_section(segment, at.NUMBERS)
    held = segment.header[at.POSITIONS] - begin
    lines = np.empty(
        ((held + CHUNK - 1) // CHUNK, CHUNK + 1, LANES), np.uint64
    )  # one more: not all in one set of a cache
    found = with_room(found, count, fill_lines(segment, asked, rows, coded, begin, tables, lines))
    found_rows, found_numbers = found.rows, found.numbers
    for query in range(len(rows)):
        start = count
        for tile in range(lines.shape[0]):
            for word in range(LANES):
                bits, first = lines[tile, query, word], begin + (tile * LANES + word) * 64
                while bits:
                    found_numbers[count] = numbers[first + trailing_zeros(bits)]
                    bits &= bits - np.uint64(1)
                    count += 1
        found_rows[start:count] = rows[query]
    return found, count
