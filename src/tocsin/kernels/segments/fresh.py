"""The mutable part of `adaptive`: boxes as they came, in chains of blocks over sets of axes.

A box stands in the first table on all of whose axes it demands a single value; the last table has no axis and takes
the rest. The values choose one of the table's chains. A chain is made of blocks of 16 boxes, each with two *words*
like those of a segment's predicates: of an axis outside the table on which the box demands a single value, with 8 bits
hashed from it, or an interval, with its place among up to 254 *cuts* of that axis. So 16 boxes are compared with a
query at once, by both words, and few are left to be compared exactly.

Boxes are only appended, and chains only grow, so that a reader who knows an earlier count sees that earlier state by
passing over newer boxes, and over places whose slot is not written yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments.checking import AHEAD, with_room
from tocsin.kernels.segments.lines import BLOCK, LINE, PAIRS, both_hold, turn
from tocsin.kernels.vectors import trailing_zeros

TABLE_AXES = 3
"""The greatest number of axes of a table."""

HEADS = 16_384
"""Chains a table, a power of two; where there is only the table without an axis, that has one."""

COLUMNS = LINE
"""How many columns there may be: axes with their hashes, or with their places among cuts."""

RANKED = 1 << 32
"""Added to its axis, says that a column has places among cuts."""

CUTS = 254
"""How many cuts an axis may have."""

TOGETHER = 128
"""How many queries are treated together."""

UNKNOWN = np.iinfo(np.int32).max
"""The slot of a place that has none yet."""

ALWAYS = 255
"""A word that fits every query."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
SMALL_MIXER = np.uint64(0x9E3779B1)
NULL = np.int64(np.iinfo(np.int64).min)


class Fresh(NamedTuple):
    """The arrays of a fresh part.

    ``numbers`` int32[room], ``offsets`` int64[room + 1], ``axis`` int32[entries], ``low`` and ``high`` int64[entries]:
    the boxes. ``words`` uint8[BLOCK * blocks]: those of each block, for `both_hold`. ``slots`` int32[16 * blocks].
    ``following`` int32[blocks]: the next older block of the chain, or -1. ``heads`` int32[tables, chains]: the newest
    block of each chain. ``lengths`` int32[tables, chains]: how many boxes are in it. ``filed`` int64[tables]: how many
    are in all chains of a table. ``tables`` int64[tables, TABLE_AXES]: the axes of each, then -1. ``columns``
    int64[COLUMNS]: their axes, then -1. ``cut_start`` int64[axes + 1], ``cuts`` int64: the cuts of each axis, which
    never change.
    """

    numbers: Any
    offsets: Any
    axis: Any
    low: Any
    high: Any
    words: Any
    slots: Any
    following: Any
    heads: Any
    lengths: Any
    filed: Any
    tables: Any
    columns: Any
    cut_start: Any
    cuts: Any


@inlined
def stirred(seed, code):  # type: ignore[no-untyped-def]
    """Return a hash of a code and what came before it."""
    word = (seed ^ np.uint64(code)) * MIXER
    return word ^ (word >> np.uint64(31))


@inlined
def hash_of(code):  # type: ignore[no-untyped-def]
    """Return a hash of a code, by operations that vectors have."""
    folded = (np.uint64(code) ^ (np.uint64(code) >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return np.uint8(((folded * SMALL_MIXER) >> np.uint64(24)) & np.uint64(255))


@inlined
def place_among(cuts, begin, end, code):  # type: ignore[no-untyped-def]
    """Return how many of the cuts ``begin:end``, which rise, are at or below a code."""
    low, left = begin, end - begin
    while left > 1:  # without a branch that depends on the code
        half = left >> 1
        low += half * np.int64(cuts[low + half - 1] <= code)
        left -= half
    return low - begin + np.int64(left > 0 and cuts[low] <= code)


@kernel
def word_of(fresh, entry):  # type: ignore[no-untyped-def]
    """Return the word of the only interval of a box on an axis; one that fits every query where there is no column."""
    axis, low, high = np.int64(fresh.axis[entry]), fresh.low[entry], fresh.high[entry]
    wanted, first, last = axis, np.int64(hash_of(low)), np.int64(0)
    if low < high:
        known = axis + 1 < len(fresh.cut_start)
        begin, end = (fresh.cut_start[axis], fresh.cut_start[axis + 1]) if known else (np.int64(0), np.int64(0))
        if begin == end:
            return np.int64(ALWAYS)
        wanted = axis + RANKED
        first, last = place_among(fresh.cuts, begin, end, low), place_among(fresh.cuts, begin, end, high)
        last -= first
    for column in range(COLUMNS):
        if fresh.columns[column] < 0:
            fresh.columns[column] = wanted
        if fresh.columns[column] == wanted:
            return np.int64((column << 16) | (first << 8) | last)
    return np.int64(ALWAYS)


@kernel
def chain_of_box(fresh, table, begin, end):  # type: ignore[no-untyped-def]
    """Return the chain for a box in a table, or -1 if it does not demand a single value on each of its axes."""
    word = np.uint64(1)
    for place in range(TABLE_AXES):
        axis = fresh.tables[table, place]
        if axis < 0:
            break
        found: Any = np.int64(-1)
        for entry in range(begin, end):
            if fresh.axis[entry] == axis:
                found = entry if found < 0 and fresh.low[entry] == fresh.high[entry] else end
        if found < 0 or found == end:
            return np.int64(-1)
        word = stirred(word, fresh.low[found])
    return np.int64(word >> np.uint64(40)) & (fresh.heads.shape[1] - 1)


@kernel
def words_of_box(fresh, table, begin, end):  # type: ignore[no-untyped-def]
    """Return the two narrowest words of a box in a table, of its values and intervals on axes outside the table."""
    first, second = np.int64(ALWAYS), np.int64(ALWAYS)
    for entry in range(begin, end):
        axis = fresh.axis[entry]
        alone = entry == begin or fresh.axis[entry - 1] != axis
        alone &= entry + 1 == end or fresh.axis[entry + 1] != axis
        for place in range(TABLE_AXES):
            alone &= fresh.tables[table, place] != axis
        if alone:
            word = word_of(fresh, entry)
            if word & 255 < first & 255:
                first, second = word, first
            elif word & 255 < second & 255:
                second = word
    return first, second


@inlined
def write_word(fresh, block, place, word):  # type: ignore[no-untyped-def]
    """Write a word into its place among the 32 of a block."""
    for part in range(3):
        fresh.words[block * BLOCK + part * 2 * PAIRS + place] = (word >> (16 - 8 * part)) & 255


@kernel
def append_boxes(fresh, count, blocks, numbers, boxes):  # type: ignore[no-untyped-def]
    """Append boxes, (offsets, axis, low, high), after the first ``count``; there must be room. Return the blocks
    in use, and how many boxes the longest of the chains has to which one was added."""
    offsets, axis, low, high = boxes
    longest = np.int32(0)
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
            if chain < 0:
                continue
            block, length = fresh.heads[table, chain], fresh.lengths[table, chain]
            lane = length % PAIRS
            if lane == 0:
                fresh.following[blocks] = block
                block = blocks
                fresh.heads[table, chain] = block
                blocks += 1
            fresh.slots[block * PAIRS + lane] = slot
            first, second = words_of_box(fresh, table, begin, end)
            write_word(fresh, block, lane, first)
            write_word(fresh, block, PAIRS + lane, second)
            fresh.lengths[table, chain] = length + 1
            fresh.filed[table] += 1
            longest = max(longest, np.int32(length + 1))
            break
    return blocks, longest


@kernel
def fill_places(cuts, codes, places):  # type: ignore[no-untyped-def]
    """Fill in how many of the cuts, which rise, are at or below each code: all codes take a step before any takes the
    next, so that vectors do it."""
    low, left, count = np.zeros(len(codes), np.uint64), np.uint64(len(cuts)), np.uint64(len(codes))
    while left > 1:
        half = left >> np.uint64(1)
        for i in range(count):
            low[i] += half * np.uint64(cuts[low[i] + half - np.uint64(1)] <= codes[i])
        left -= half
    for i in range(count):
        places[i] = low[i] + np.uint64(left > 0 and cuts[low[i]] <= codes[i])


@kernel
def fill_columns(fresh, codes, rows, columns):  # type: ignore[no-untyped-def]
    """Fill ``columns`` uint8[COLUMNS, rows] with the hashes of some queries, and their places among cuts; return how
    many columns there are."""
    cuts, known = fresh.cuts, 0
    while known < COLUMNS and fresh.columns[known] >= 0:
        known += 1
    for column in range(known):
        ranked, axis, line = fresh.columns[column] >= RANKED, fresh.columns[column] % RANKED, columns[column]
        if axis >= codes.shape[0]:
            line[:] = 0 if ranked else hash_of(NULL)  # NULL is below every cut
            continue
        together = rows[len(rows) - 1] - rows[0] == len(rows) - 1
        given = codes[axis][rows[0] : rows[0] + len(rows)] if together else codes[axis][rows]
        if ranked:
            fill_places(cuts[fresh.cut_start[axis] : fresh.cut_start[axis + 1]], given, line)
        else:
            for i in range(np.uint64(len(given))):  # a loop that vectors do
                line[i] = hash_of(given[i])
    return known


@kernel
def first_blocks(fresh, table, low, rows, blocks):  # type: ignore[no-untyped-def]
    """Fill in the newest block of each row's chain in a table, -1 where there is none."""
    tables, heads, words = fresh.tables, fresh.heads, fresh.words
    for i in range(len(rows)):
        word = np.uint64(1)
        for place in range(TABLE_AXES):
            axis = tables[table, place]
            if axis < 0:
                break
            word = stirred(word, low[axis, rows[i]] if axis < low.shape[0] else NULL)
        blocks[i] = heads[table, np.int64(word >> np.uint64(40)) & (heads.shape[1] - 1)]
        prefetch(words, np.int64(blocks[i]) * BLOCK)
        prefetch(words, np.int64(blocks[i]) * BLOCK + BLOCK - 1)


@kernel
def list_candidates(fresh, boxes, low, rows, lines, candidates):  # type: ignore[no-untyped-def]
    """List (row, slot) of those of the first ``boxes`` whose words fit; return the two lists, longer if need be, and
    how many there are.

    All rows go along their chains in step, so that the next block of each is on its way while the others are looked at.
    """
    following, words, slots = fresh.following, fresh.words, fresh.slots
    found_rows, found_slots = candidates
    blocks, going = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    count = 0
    for table in range(len(fresh.tables)):
        if not fresh.filed[table]:
            continue
        first_blocks(fresh, table, low, rows, blocks)
        still = 0
        for i in range(len(rows)):
            going[still] = i
            still += blocks[i] >= 0
        while still:
            if count + PAIRS * still > len(found_rows):
                room = 2 * count + PAIRS * still
                longer, others = np.empty(room, np.int32), np.empty(room, np.int32)
                longer[:count], others[:count] = found_rows[:count], found_slots[:count]
                found_rows, found_slots = longer, others
            left = 0
            for k in range(still):
                i = going[k]
                block = np.int64(blocks[i])
                fits = both_hold(words, block, lines, i)
                while fits:
                    slot = slots[block * PAIRS + trailing_zeros(np.uint64(fits))]
                    found_rows[count], found_slots[count] = rows[i], slot
                    fits &= fits - 1
                    count += slot < boxes
                blocks[i] = following[block]
                prefetch(words, np.int64(blocks[i]) * BLOCK)
                prefetch(words, np.int64(blocks[i]) * BLOCK + BLOCK - 1)
                prefetch(following, np.int64(blocks[i]))
                going[left] = i
                left += blocks[i] >= 0
            still = left
    return found_rows, found_slots, count


@kernel
def match_listed(fresh, asked, candidates, found, count):  # type: ignore[no-untyped-def]
    """Append those of the listed (row, slot) that are pairs: of boxes alive, and met by the query."""
    offsets, axes, lows, highs, numbers = fresh.offsets, fresh.axis, fresh.low, fresh.high, fresh.numbers
    low, high, died, version, given = asked.low, asked.high, asked.died, asked.version, asked.low.shape[0]
    rows, slots = candidates
    found = with_room(found, count, len(rows))
    found_rows, found_numbers, last = found.rows, found.numbers, len(rows) - 1
    for i in range(len(rows)):
        row, slot = rows[i], slots[i]
        ahead = np.int64(slots[min(i + AHEAD, last)])
        prefetch(offsets, ahead)
        prefetch(died, ahead)
        prefetch(numbers, ahead)
        soon = offsets[slots[min(i + AHEAD // 2, last)]]
        prefetch(axes, soon)
        prefetch(lows, soon)
        prefetch(highs, soon)
        if died[slot] <= version:
            continue
        entry, end, met = offsets[slot], offsets[slot + 1], True
        while entry < end and met:
            axis = axes[entry]
            least = low[axis, row] if axis < given else NULL
            most = high[axis, row] if axis < given else NULL
            met = False
            while entry < end and axes[entry] == axis:
                met |= lows[entry] <= most and least <= highs[entry]
                entry += 1
        found_rows[count], found_numbers[count] = row, numbers[slot]
        count += met
    return found, count


@kernel
def match_fresh(fresh, boxes, asked, points, ranges, found, count):  # type: ignore[no-untyped-def]
    """Match the rows listed in ``points`` and in ``ranges`` with the first ``boxes`` boxes; append the pairs."""
    columns, lines = np.zeros((COLUMNS, TOGETHER), np.uint8), np.zeros((TOGETHER + 1, LINE), np.uint8)
    rows, slots = np.empty(1024, np.int32), np.empty(1024, np.int32)
    for begin in range(0, len(points), TOGETHER):
        some = points[begin : begin + TOGETHER]
        turn(columns, fill_columns(fresh, asked.low, some, columns), len(some), lines)
        rows, slots, listed = list_candidates(fresh, boxes, asked.low, some, lines, (rows, slots))
        found, count = match_listed(fresh, asked, (rows[:listed], slots[:listed]), found, count)
    everything = np.arange(boxes if len(ranges) else 0, dtype=np.int32)
    for row in ranges:
        same = np.full(boxes, row, np.int32)
        found, count = match_listed(fresh, asked, (same, everything), found, count)
    return found, count
