"""Deciding one box against one query, and collecting the pairs found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import brief, inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.layout import longs_section, words_section

NULL = np.int64(np.iinfo(np.int64).min)

AHEAD = 12
"""How many steps before its use a cache line is asked for."""


class Asked(NamedTuple):
    """Queries and their state of the index: ``low`` and ``high`` int64[axes, rows], the version that is asked about.

    ``died`` int64[positions] has the version at which each box was removed; it is empty where none was. Of a segment it
    is read only where a mark says that the box was.
    """

    low: Any
    high: Any
    died: Any
    version: Any


class Found(NamedTuple):
    """Pairs found so far: parallel arrays with room to grow."""

    rows: Any
    numbers: Any


@kernel
def with_room(found, count, more):  # type: ignore[no-untyped-def]
    """Return the pairs with room for so many more."""
    if count + more <= len(found.rows):
        return found
    size = max(2 * len(found.rows), count + more)
    rows, numbers = np.empty(size, np.int32), np.empty(size, np.int32)
    rows[:count] = found.rows[:count]
    numbers[:count] = found.numbers[:count]
    return Found(rows, numbers)


@inlined
def may_hold(word, low, high):  # type: ignore[no-untyped-def]
    """Return whether the buckets of a query leave room for the predicate of this word."""
    lowest = (word >> 8) & 255
    return low <= lowest + (word & 255) and high >= lowest


@inlined
def is_gone(mark, died, position, version):  # type: ignore[no-untyped-def]
    """Return whether the box of this mark at a position had been removed."""
    return mark & at.STRUCK != 0 and len(died) > 0 and died[position] <= version


@kernel
def verify(segment, asked, rows, coded, candidates, found, count):  # type: ignore[no-untyped-def]
    """Append those candidates, (query, position) each, that are pairs, given that their buckets leave it possible."""
    queries, positions = candidates
    found = with_room(found, count, len(queries))
    unsure = len(queries)
    if coded.high is coded.low:
        count, unsure = append_sure(segment, rows, coded, candidates, found, count)
    return append_unsure(segment, asked, rows, coded, (queries[:unsure], positions[:unsure]), found, count)


@kernel
def append_sure(segment, rows, coded, candidates, found, count):  # type: ignore[no-untyped-def]
    """Append the candidates about which buckets leave no doubt and move the others, and those removed at some time, to
    the front of the lists.

    Of most boxes no predicate ever does; otherwise a bucket strictly inside those of a single interval leaves none.
    """
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, numbers, singles = (
        words_section(segment, at.WORDS),
        words_section(segment, at.NUMBERS),
        segment.header[at.SINGLES],
    )
    buckets, (queries, positions) = coded.low, candidates
    found_rows, found_numbers, marks, unsure = found.rows, found.numbers, segment.marks, 0
    for i in range(len(queries)):
        query, position = queries[i], positions[i]
        ahead = np.int64(positions[min(i + AHEAD, len(queries) - 1)])
        prefetch(numbers, ahead)
        prefetch(marks, ahead)
        doubt, mark = np.int64(0), marks[position]
        if mark & at.DOUBT:  # it is below zero as soon as one word is, and the query's bucket at one of its ends
            for place in range(row_start[position], row_start[position + 1]):
                predicate = np.int64(predicates[place])
                word = np.int64(words[predicate])
                above = np.int64(buckets[query, (word >> 16) & 0x3FFF]) - ((word >> 8) & 255)
                doubt |= word & ((above - 1) | ((word & 255) - 1 - above) | (singles - 1 - predicate))
        sure = doubt >= 0 and mark & at.STRUCK == 0
        found_rows[count], found_numbers[count] = rows[query], numbers[position]
        queries[unsure], positions[unsure] = query, position
        count += sure
        unsure += not sure
    return count, unsure


@kernel
def append_unsure(segment, asked, rows, coded, candidates, found, count):  # type: ignore[no-untyped-def]
    """Append those candidates, (query, position) each, that are pairs, given that their buckets leave it possible."""
    numbers, (queries, positions) = words_section(segment, at.NUMBERS), candidates
    found = with_room(found, count, len(queries))
    found_rows, found_numbers = found.rows, found.numbers
    for i in range(keep_met(segment, asked, rows, coded, candidates)):
        found_rows[count], found_numbers[count] = rows[queries[i]], numbers[positions[i]]
        count += 1
    return found, count


@kernel
def keep_met(segment, asked, rows, coded, candidates):  # type: ignore[no-untyped-def]
    """Move those candidates that are pairs to the front of their lists; return how many there are.

    Codes are compared only where buckets leave doubt: one strictly inside those of a single interval leaves none.
    """
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, set_start = words_section(segment, at.WORDS), words_section(segment, at.SET_START)
    lows, highs, table = (
        longs_section(segment, at.LOWS),
        longs_section(segment, at.HIGHS),
        longs_section(segment, at.AXIS_TABLE),
    )
    marks, singles, kept = segment.marks, segment.header[at.SINGLES], 0
    low_buckets, high_buckets, low_codes, high_codes = coded.low, coded.high, asked.low, asked.high
    died, version, axes, (queries, positions) = asked.died, asked.version, asked.low.shape[0], candidates
    for i in range(len(queries)):
        query, position = queries[i], positions[i]
        ahead = positions[min(i + AHEAD, len(queries) - 1)]
        if marks[ahead] & at.DOUBT:  # most often bounds of one box lie side by side
            first, last = np.int64(predicates[row_start[ahead]]), np.int64(predicates[row_start[ahead + 1] - 1])
            prefetch(lows, first)
            prefetch(highs, first)
            prefetch(lows, last)
            prefetch(highs, last)
        if marks[ahead] & at.STRUCK:
            prefetch(died, np.int64(ahead))
        mark = marks[position]
        met = not is_gone(mark, died, position, version)
        if met and mark & at.DOUBT:
            for place in range(row_start[position], row_start[position + 1]):
                predicate = predicates[place]
                word = words[predicate]
                local, lowest = (word >> 16) & 0x3FFF, (word >> 8) & 255
                if word >= 0 or (
                    predicate < singles
                    and low_buckets[query, local] < lowest + (word & 255)
                    and high_buckets[query, local] > lowest
                ):
                    continue
                axis, begin, end = table[local * at.AXIS_FIELDS + at.A_AXIS], predicate, predicate + 1
                low = low_codes[axis, rows[query]] if axis < axes else NULL
                high = high_codes[axis, rows[query]] if axis < axes else NULL
                if predicate >= singles:
                    begin, end = set_start[predicate - singles], set_start[predicate - singles + 1]
                met = False
                for interval in range(begin, end):
                    met |= lows[interval] <= high and low <= highs[interval]
                if not met:
                    break
        queries[kept], positions[kept] = query, position
        kept += met
    return kept


@kernel
def is_by_row(found, begin, end):  # type: ignore[no-untyped-def]
    """Return whether the pairs from ``begin`` to ``end`` are sorted by row."""
    rows, pair = found.rows, begin + 1
    while pair < end and rows[pair] >= rows[pair - 1]:
        pair += 1
    return pair >= end


@brief
def are_few_by_row(found, begin, end):  # type: ignore[no-untyped-def]
    """Return the same for a few pairs."""
    return is_by_row(found, begin, end)


@kernel
def append_by_row(found, count, begin, end, sorted_pairs, total):  # type: ignore[no-untyped-def]
    """Write the first ``count`` pairs, whose rows are those from ``begin`` to ``end``, sorted by row after the first
    ``total`` of other pairs, where there is room."""
    rows, numbers = found.rows, found.numbers
    sorted_rows, sorted_numbers = sorted_pairs.rows, sorted_pairs.numbers
    starts = np.zeros(end - begin + 1, np.int64)
    for pair in range(count):
        starts[rows[pair] - begin + 1] += 1
    starts[0] = total
    for row in range(end - begin):
        starts[row + 1] += starts[row]
        sorted_rows[starts[row] : starts[row + 1]] = row + begin
    for pair in range(count):
        row = rows[pair] - begin
        sorted_numbers[starts[row]] = numbers[pair]
        starts[row] += 1


@brief
def append_few_by_row(found, count, begin, end, sorted_pairs, total):  # type: ignore[no-untyped-def]
    """Do the same for a few pairs."""
    append_by_row(found, count, begin, end, sorted_pairs, total)


@kernel
def sort_by_row(found, count, begin, end):  # type: ignore[no-untyped-def]
    """Return the first ``count`` pairs sorted by row, of which there are those from ``begin`` to ``end``."""
    pairs = Found(np.empty(count, np.int32), np.empty(count, np.int32))
    append_by_row(found, count, begin, end, pairs, 0)
    return pairs
