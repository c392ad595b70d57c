"""The mutable part of `adaptive`: boxes as they came, in chains of blocks over sets of axes.

A box stands in the first table on all of whose axes it demands a single value; the last table has no axis and takes
the rest. The values choose one of the table's chains. A chain is made of blocks of 16 boxes, each with two *words*
like those of a segment's predicates: an axis outside the table on which the box demands a single value, and 8 bits
hashed from it. So 16 boxes are compared with a query at once, and few are left to be compared exactly.

Boxes are only appended, and chains only grow, so that a reader who knows an earlier count sees that earlier state by
passing over newer boxes. A box's slot is written before its first word, which until then fits no query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments.checking import AHEAD, with_room
from tocsin.kernels.vectors import AT_ONCE, may_hold_from, trailing_zeros

TABLE_AXES = 3
"""The greatest number of axes of a table."""

HEADS = 4096
"""Chains a table."""

COLUMNS = 64
"""How many axes may have hashes."""

TOGETHER = 64
"""How many queries are treated together."""

NEVER = 255 << 8
"""A word that fits no query: hashes are below 255."""

ALWAYS = 255
"""A word that fits every query."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
NULL = np.int64(np.iinfo(np.int64).min)


class Fresh(NamedTuple):
    """The arrays of a fresh part.

    ``numbers`` int32[room], ``offsets`` int64[room + 1], ``axis`` int32[entries], ``low`` and ``high`` int64[entries]:
    the boxes. ``words`` int32[32 * blocks]: of each block the first words, then the second ones. ``slots`` int32[16 *
    blocks]. ``following`` int32[blocks]: the next older block of the chain, or -1. ``heads`` int32[tables, HEADS]: the
    newest block of each chain. ``filled`` int32[tables, HEADS]: how much of it is used. ``tables`` int64[tables,
    TABLE_AXES]: the axes of each, then -1. ``columns`` int64[COLUMNS]: the axes that have hashes, then -1.
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
    filled: Any
    tables: Any
    columns: Any


@inlined
def stirred(seed, code):  # type: ignore[no-untyped-def]
    """Return a hash of a code and what came before it."""
    word = (seed ^ np.uint64(code)) * MIXER
    return word ^ (word >> np.uint64(31))


@inlined
def hash_of(code):  # type: ignore[no-untyped-def]
    """Return a hash of a code in 0..254."""
    return np.int64(((np.uint64(code) * MIXER) >> np.uint64(40)) % np.uint64(255))


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
    return np.int64(word >> np.uint64(40)) & (HEADS - 1)


@kernel
def words_of_box(fresh, table, begin, end):  # type: ignore[no-untyped-def]
    """Return two words of a box in a table: of values that it demands on axes outside the table, as far as there
    are any."""
    first, second = np.int64(ALWAYS), np.int64(ALWAYS)
    for entry in range(begin, end):
        axis = fresh.axis[entry]
        alone = fresh.low[entry] == fresh.high[entry]
        alone &= entry == begin or fresh.axis[entry - 1] != axis
        alone &= entry + 1 == end or fresh.axis[entry + 1] != axis
        for place in range(TABLE_AXES):
            alone &= fresh.tables[table, place] != axis
        if alone:
            for column in range(COLUMNS):
                if fresh.columns[column] < 0:
                    fresh.columns[column] = axis
                if fresh.columns[column] == axis:
                    second = first
                    first = np.int64((column << 16) | (hash_of(fresh.low[entry]) << 8))
                    break
    return first, second


@kernel
def append_boxes(fresh, count, blocks, numbers, boxes):  # type: ignore[no-untyped-def]
    """Append boxes, (offsets, axis, low, high), after the first ``count``; there must be room. Return the blocks
    in use."""
    offsets, axis, low, high = boxes
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
            block, lane = fresh.heads[table, chain], fresh.filled[table, chain]
            if block < 0 or lane == AT_ONCE:
                fresh.following[blocks] = block
                block, lane = blocks, 0
                fresh.heads[table, chain] = block
                blocks += 1
            fresh.slots[block * AT_ONCE + lane] = slot
            first, second = words_of_box(fresh, table, begin, end)
            fresh.words[(2 * block + 1) * AT_ONCE + lane] = second
            fresh.words[2 * block * AT_ONCE + lane] = first
            fresh.filled[table, chain] = lane + 1
            break
    return blocks


@kernel
def hash_rows(columns, codes, rows, hashes):  # type: ignore[no-untyped-def]
    """Fill ``hashes`` uint8[rows, COLUMNS] with the hashes of some queries on the axes that have them."""
    for column in range(COLUMNS):
        axis = columns[column]
        if axis < 0:
            break
        for i in range(len(rows)):
            hashes[i, column] = hash_of(codes[axis, rows[i]] if axis < codes.shape[0] else NULL)


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
        blocks[i] = heads[table, np.int64(word >> np.uint64(40)) & (HEADS - 1)]
        prefetch(words, np.int64(blocks[i]) * 2 * AT_ONCE)


@kernel
def list_candidates(fresh, low, rows, hashes, candidates):  # type: ignore[no-untyped-def]
    """List (row, slot) of the boxes whose words fit; return the two lists, longer if need be, and how many there are.

    All rows go along their chains in step, so that the next block of each is on its way while the others are looked at.
    """
    following, words, slots = fresh.following, fresh.words, fresh.slots
    found_rows, found_slots = candidates
    blocks, going = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    count = 0
    for table in range(len(fresh.tables)):
        first_blocks(fresh, table, low, rows, blocks)
        still = 0
        for i in range(len(rows)):
            going[still] = i
            still += blocks[i] >= 0
        while still:
            if count + AT_ONCE * still > len(found_rows):
                room = 2 * count + AT_ONCE * still
                longer, others = np.empty(room, np.int32), np.empty(room, np.int32)
                longer[:count], others[:count] = found_rows[:count], found_slots[:count]
                found_rows, found_slots = longer, others
            left = 0
            for k in range(still):
                i = going[k]
                block = np.int64(blocks[i])
                fits = may_hold_from(words, block * 2 * AT_ONCE, hashes, i)
                if fits:
                    fits &= may_hold_from(words, (block * 2 + 1) * AT_ONCE, hashes, i)
                while fits:
                    found_rows[count] = rows[i]
                    found_slots[count] = slots[block * AT_ONCE + trailing_zeros(np.uint64(fits))]
                    fits &= fits - 1
                    count += 1
                blocks[i] = following[block]
                prefetch(words, np.int64(blocks[i]) * 2 * AT_ONCE)
                prefetch(words, (np.int64(blocks[i]) * 2 + 1) * AT_ONCE)
                prefetch(following, np.int64(blocks[i]))
                going[left] = i
                left += blocks[i] >= 0
            still = left
    return found_rows, found_slots, count


@kernel
def match_listed(fresh, boxes, asked, candidates, found, count):  # type: ignore[no-untyped-def]
    """Append those of the listed (row, slot) that are pairs: of the first ``boxes`` boxes, alive, and met by the
    query."""
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
        soon = offsets[slots[min(i + AHEAD // 2, last)]]
        prefetch(axes, soon)
        prefetch(lows, soon)
        prefetch(highs, soon)
        if slot >= boxes or died[slot] <= version:
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
    hashes = np.zeros((TOGETHER + 1, COLUMNS), np.uint8)
    rows, slots = np.empty(1024, np.int32), np.empty(1024, np.int32)
    for begin in range(0, len(points), TOGETHER):
        some = points[begin : begin + TOGETHER]
        hash_rows(fresh.columns, asked.low, some, hashes)
        rows, slots, listed = list_candidates(fresh, asked.low, some, hashes, (rows, slots))
        found, count = match_listed(fresh, boxes, asked, (rows[:listed], slots[:listed]), found, count)
    everything = np.arange(boxes if len(ranges) else 0, dtype=np.int32)
    for row in ranges:
        same = np.full(boxes, row, np.int32)
        found, count = match_listed(fresh, boxes, asked, (same, everything), found, count)
    return found, count
