"""Taking boxes into a segment that stays as it was planned: what is dead is left out, what is new goes to its slots.

The cuts and nodes of the segment stay; hashed nodes get new pages. A box on an axis that the segment lacks has no
place in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments.building import mixed
from tocsin.kernels.segments.coding import rank_of
from tocsin.kernels.segments.layout import (
    A_ABOVE_NULL,
    A_AXIS,
    A_BASE,
    A_COUNT,
    A_CUTS,
    A_KEY,
    A_LOOKUP,
    A_SHIFT,
    A_SLOTS,
    AXES,
    AXIS_FIELDS,
    AXIS_TABLE,
    BUCKETS,
    CUTS,
    EMBEDDED_KEY,
    EMBEDDED_SLOT,
    HASH_KEYS,
    HIGHS,
    KEYS,
    LOOKUP,
    LOWS,
    N_CELLS,
    N_EMBEDDED,
    N_EMBEDDED_END,
    N_HASH,
    N_KEY,
    N_MASK,
    N_PARENT,
    N_START,
    N_STRIDE,
    N_WIDE,
    NODE_FIELDS,
    NODE_TABLE,
    NODES,
    PREDICATES,
    SET_START,
    SINGLES,
    STARTS,
    WORDS,
    longs_section,
    words_section,
)
from tocsin.kernels.segments.nodes import home_slot

NULL = np.int64(np.iinfo(np.int64).min)
HIGHEST = np.int64(np.iinfo(np.int64).max)
DOUBTFUL = np.int64(-(1 << 31))


class Arrivals(NamedTuple):
    """New boxes as `number_predicates` sees them: box ``b`` has predicates ``held[row_start[b]:row_start[b + 1]]``, of
    which ``p`` is the entries ``first[p]`` to ``first[p] + length[p]`` of ``axis``, ``low`` and ``high``."""

    row_start: Any
    held: Any
    first: Any
    length: Any
    axis: Any
    low: Any
    high: Any


class Coding(NamedTuple):
    """Predicates as a segment sees them: their word, their cell if it is one (else -1), whether their bounds are
    cuts. ``axis``: that of the segment, -1 where it has none."""

    axis: Any
    word: Any
    cell: Any
    aligned: Any


class Pages(NamedTuple):
    """The pages of nodes: where the hash table of each begins (-1: none), its mask, how many pages it had and has."""

    where: Any
    mask: Any
    held: Any
    grown: Any


@inlined
def rank_on(segment, record, code):  # type: ignore[no-untyped-def]
    """Return the number of cuts of an axis at or below a code, but for the one above NULL."""
    table = longs_section(segment, AXIS_TABLE)
    cuts = longs_section(segment, CUTS)[table[record + A_CUTS] : table[record + A_CUTS] + table[record + A_COUNT]]
    where = table[record + A_LOOKUP]
    lookup = words_section(segment, LOOKUP)[where : where + table[record + A_SLOTS]]
    return rank_of(code, cuts, lookup, table[record + A_BASE], table[record + A_SHIFT])


@kernel
def is_cut(segment, record, code):  # type: ignore[no-untyped-def]
    """Return whether a predicate may begin at a code of an axis without sharing its cell with what is below."""
    table = longs_section(segment, AXIS_TABLE)
    if code == NULL + 1 and table[record + A_ABOVE_NULL]:
        return True
    rank = rank_on(segment, record, code)
    return rank > 0 and longs_section(segment, CUTS)[table[record + A_CUTS] + rank - 1] == code


@kernel
def is_value(segment, axis, low, high):  # type: ignore[no-untyped-def]
    """Return whether an interval is one cell of an axis of the segment."""
    record = axis * AXIS_FIELDS
    if not is_cut(segment, record, low) or high == HIGHEST or not is_cut(segment, record, high + 1):
        return False
    return rank_on(segment, record, low) == rank_on(segment, record, high)


@kernel
def code_predicates(segment, new):  # type: ignore[no-untyped-def]
    """Return new predicates in the codes of a segment."""
    table, axes = longs_section(segment, AXIS_TABLE), segment.header[AXES]
    count = len(new.first)
    coding = Coding(
        np.full(count, -1, np.int64),
        np.empty(count, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count, np.bool_),
    )
    top = np.int64(0)
    for axis in range(axes):
        top = max(top, table[axis * AXIS_FIELDS + A_AXIS])
    local, another = np.full(top + 1, -1, np.int64), np.full(axes, -1, np.int64)
    for axis in range(axes):  # an axis divided into levels is there several times
        another[axis] = local[table[axis * AXIS_FIELDS + A_AXIS]]
        local[table[axis * AXIS_FIELDS + A_AXIS]] = axis
    for predicate in range(count):
        begin, end = new.first[predicate], new.first[predicate] + new.length[predicate] - 1
        if new.axis[begin] > top or local[new.axis[begin]] < 0:
            continue
        axis = local[new.axis[begin]]
        while another[axis] >= 0 and not is_value(segment, axis, new.low[begin], new.high[end]):
            axis = another[axis]
        record = axis * AXIS_FIELDS
        above_null, cells = table[record + A_ABOVE_NULL], table[record + A_COUNT] + table[record + A_ABOVE_NULL] + 1
        low, high = new.low[begin], new.high[end]
        lowest = rank_on(segment, record, low) + (above_null if low != NULL else 0)
        highest = rank_on(segment, record, high) + (above_null if high != NULL else 0)
        aligned = begin == end and (low == NULL or is_cut(segment, record, low))
        aligned &= high == HIGHEST or is_cut(segment, record, high + 1)
        if lowest == highest:
            coding.cell[predicate] = lowest
        decided = aligned and cells <= BUCKETS
        if cells > BUCKETS:
            lowest, highest = lowest * BUCKETS // cells, highest * BUCKETS // cells
        word = (axis << 16) | (lowest << 8) | (highest - lowest)
        coding.axis[predicate], coding.aligned[predicate] = axis, aligned
        coding.word[predicate] = word if decided else word + DOUBTFUL
    return coding


@kernel
def children_of(segment):  # type: ignore[no-untyped-def]
    """Return where the children of each node begin in a list of nodes, and that list."""
    table, nodes = longs_section(segment, NODE_TABLE), segment.header[NODES]
    starts = np.zeros(nodes + 1, np.int64)
    for node in range(1, nodes):
        starts[table[node * NODE_FIELDS + N_PARENT] + 1] += 1
    for node in range(nodes):
        starts[node + 1] += starts[node]
    following, children = starts.copy(), np.empty(max(nodes - 1, 0), np.int64)
    for node in range(1, nodes):
        parent = table[node * NODE_FIELDS + N_PARENT]
        children[following[parent]] = node
        following[parent] += 1
    return starts, children


@kernel
def emptiest(segment, pages, node, page, key_axis, cell_on, added):  # type: ignore[no-untyped-def]
    """Return the slot with the fewest boxes among the embedded children of a page that fit, and its axis; or the
    page's own slot and -1. Slots count from the first of their node; in a new page the first one that fits is it.
    """
    table, starts = longs_section(segment, NODE_TABLE), words_section(segment, STARTS)
    keys, slots = words_section(segment, EMBEDDED_KEY), words_section(segment, EMBEDDED_SLOT)
    record = node * NODE_FIELDS
    base = page * table[record + N_STRIDE]
    best, best_axis, least = base, np.int64(-1), np.int64(0)
    for child in range(table[record + N_EMBEDDED], table[record + N_EMBEDDED_END]):
        axis = np.int64(keys[child]) if child < table[record + N_WIDE] else key_axis[keys[child]]
        if cell_on[axis] < 0 or (best_axis >= 0 and page >= pages.held[node]):
            continue
        slot, company = base + slots[child] + cell_on[axis], np.int64(0)
        if page < pages.held[node]:
            whole = table[record + N_START] + slot
            company = np.int64(starts[whole + 1] - starts[whole] + added[whole])
        if best_axis < 0 or company < least:
            best, best_axis, least = slot, axis, company
    if page < pages.held[node]:
        added[table[record + N_START] + best] += 1
    return best, best_axis


@kernel
def pages_of(segment):  # type: ignore[no-untyped-def]
    """Return the pages of a segment's nodes as they are."""
    table, nodes, hash_keys = (
        longs_section(segment, NODE_TABLE),
        segment.header[NODES],
        longs_section(segment, HASH_KEYS),
    )
    held = np.ones(nodes, np.int64)
    where, mask = np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    for node in range(1, nodes):
        record = node * NODE_FIELDS
        held[node] = held[table[record + N_PARENT]] * table[record + N_CELLS]
        where[node], mask[node] = table[record + N_HASH], table[record + N_MASK]
        if where[node] >= 0:
            held[node] = 0
            for slot in range(where[node], where[node] + mask[node] + 1):
                held[node] += hash_keys[slot] >= 0
    return Pages(where, mask, held, held.copy())


@kernel
def enter_page(pages, tables, node, key):  # type: ignore[no-untyped-def]
    """Return the page of a hashed node under a key, a new one if need be, and the tables, longer if need be.

    ``tables`` is (keys, pages, length in use). A node whose table is half full gets one of twice the size at the end.
    """
    hash_keys, hash_pages, used = tables
    begin, mask = pages.where[node], pages.mask[node]
    slot = home_slot(key, mask)
    while hash_keys[begin + slot] >= 0:
        if hash_keys[begin + slot] == key:
            return np.int64(hash_pages[begin + slot]), (hash_keys, hash_pages, used)
        slot = (slot + 1) & mask
    page = pages.grown[node]
    pages.grown[node] += 1
    hash_keys[begin + slot], hash_pages[begin + slot] = key, page
    if 2 * pages.grown[node] > mask + 1:
        size = 2 * (mask + 1)
        if used + size > len(hash_keys):
            longer = np.full(2 * (used + size), -1, np.int64)
            others = np.zeros(2 * (used + size), np.int64)
            longer[:used], others[:used] = hash_keys[:used], hash_pages[:used]
            hash_keys, hash_pages = longer, others
        for old in range(begin, begin + mask + 1):
            if hash_keys[old] >= 0:
                slot = home_slot(hash_keys[old], size - 1)
                while hash_keys[used + slot] >= 0:
                    slot = (slot + 1) & (size - 1)
                hash_keys[used + slot], hash_pages[used + slot] = hash_keys[old], hash_pages[old]
        pages.where[node], pages.mask[node] = used, size - 1
        used += size
    return page, (hash_keys, hash_pages, used)


@kernel
def find_slots(segment, new, coding, pages, tables):  # type: ignore[no-untyped-def]
    """Return the node of each new box (-1: the bitmaps, -2: it has no place) and its slot from the first of the node.

    Also returns, for each place in ``new.held``, whether the slot implies that predicate, and the tables of
    `enter_page`. A computed page of a node is there whether a box has been in it or not.
    """
    table, starts = longs_section(segment, NODE_TABLE), words_section(segment, STARTS)
    axes_table, axes = longs_section(segment, AXIS_TABLE), segment.header[AXES]
    key_axis = np.zeros(max(segment.header[KEYS], 1), np.int64)
    for axis in range(axes):
        if axes_table[axis * AXIS_FIELDS + A_KEY] >= 0:
            key_axis[axes_table[axis * AXIS_FIELDS + A_KEY]] = axis
    child_start, children = children_of(segment)
    nodes, slots = np.full(len(new.row_start) - 1, -1, np.int64), np.zeros(len(new.row_start) - 1, np.int64)
    implied, added = np.zeros(len(new.held), np.bool_), np.zeros(len(starts), np.int32)
    cell_on, used = np.full(axes, -1, np.int64), np.zeros(axes, np.bool_)
    for box in range(len(nodes)):
        places = range(new.row_start[box], new.row_start[box + 1])
        for place in places:
            if coding.axis[new.held[place]] < 0:
                nodes[box] = -2
            else:
                cell_on[coding.axis[new.held[place]]] = coding.cell[new.held[place]]
        node, page, going = np.int64(0), np.int64(0), nodes[box] > -2
        while going:
            going = False
            for child in children[child_start[node] : child_start[node + 1]]:
                key = table[child * NODE_FIELDS + N_KEY]
                axis = key if key >= 0 else key_axis[-1 - key]
                if cell_on[axis] >= 0:
                    page = page * table[child * NODE_FIELDS + N_CELLS] + cell_on[axis]
                    if pages.where[child] >= 0:
                        page, tables = enter_page(pages, tables, child, page)
                    node, going, used[axis] = child, True, True
                    break
        if nodes[box] > -2:
            slot, axis = emptiest(segment, pages, node, page, key_axis, cell_on, added)
            if axis >= 0:
                used[axis] = True
            if node > 0 or axis >= 0:
                nodes[box], slots[box] = node, slot
        for place in places:
            axis = coding.axis[new.held[place]]
            if axis >= 0:
                implied[place] = used[axis] and coding.aligned[new.held[place]] and coding.cell[new.held[place]] >= 0
                cell_on[axis], used[axis] = -1, False
    return nodes, slots, implied, tables


@kernel
def grown_nodes(segment, pages, tables):  # type: ignore[no-untyped-def]
    """Return the table of nodes and the hash tables with the pages that have grown, and where slots end."""
    hash_keys, hash_pages, _ = tables
    table, nodes = longs_section(segment, NODE_TABLE).copy(), segment.header[NODES]
    room, slots = np.int64(0), np.int64(0)
    for node in range(nodes):
        room += pages.mask[node] + 1 if pages.where[node] >= 0 else 0
    new_keys, new_pages = np.empty(room, np.int64), np.empty(room, np.int64)
    room = np.int64(0)
    for node in range(nodes):
        record = node * NODE_FIELDS
        if pages.where[node] >= 0:
            size = pages.mask[node] + 1
            new_keys[room : room + size] = hash_keys[pages.where[node] : pages.where[node] + size]
            new_pages[room : room + size] = hash_pages[pages.where[node] : pages.where[node] + size]
            table[record + N_HASH], table[record + N_MASK] = room, size - 1
            room += size
        elif node > 0:
            pages.grown[node] = pages.grown[table[record + N_PARENT]] * table[record + N_CELLS]
        table[record + N_START] = slots
        slots += pages.grown[node] * table[record + N_STRIDE]
    return table, new_keys, new_pages, slots


@inlined
def hash_of_predicate(axis, lows, highs, begin, end):  # type: ignore[no-untyped-def]
    """Return a hash of the intervals ``begin:end`` on an axis."""
    code = mixed(np.uint64(1), axis)
    for interval in range(begin, end):
        code = mixed(mixed(code, lows[interval]), highs[interval])
    return code


@inlined
def interval_range(segment, predicate):  # type: ignore[no-untyped-def]
    """Return where the intervals of a predicate of a segment begin and end."""
    singles, set_start = segment.header[SINGLES], words_section(segment, SET_START)
    begin, end = np.int64(predicate), np.int64(predicate) + 1
    if predicate >= singles:
        begin, end = np.int64(set_start[predicate - singles]), np.int64(set_start[predicate - singles + 1])
    return begin, end


@kernel
def find_shared(segment, shared, new, coding):  # type: ignore[no-untyped-def]
    """Return for each new predicate the one among ``shared``, predicates of the segment, that is the same, or -1."""
    words = words_section(segment, WORDS)
    lows, highs = longs_section(segment, LOWS), longs_section(segment, HIGHS)
    size = 8
    while size < 2 * len(shared):
        size *= 2
    slots = np.full(size, -1, np.int64)
    for predicate in shared:
        begin, end = interval_range(segment, predicate)
        code = hash_of_predicate((words[predicate] >> 16) & 0x3FFF, lows, highs, begin, end)
        slot = np.int64(code >> np.uint64(20)) & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = predicate
    found = np.full(len(new.first), -1, np.int64)
    for predicate in range(len(found)):
        first, length = new.first[predicate], np.int64(new.length[predicate])
        code = hash_of_predicate(coding.axis[predicate], new.low, new.high, first, first + length)
        slot = np.int64(code >> np.uint64(20)) & (size - 1)
        while slots[slot] >= 0 and found[predicate] < 0:
            begin, end = interval_range(segment, slots[slot])
            same = end - begin == length and (words[slots[slot]] >> 16) & 0x3FFF == coding.axis[predicate]
            for k in range(length if same else 0):
                same &= lows[begin + k] == new.low[first + k] and highs[begin + k] == new.high[first + k]
            if same:
                found[predicate] = slots[slot]
            slot = (slot + 1) & (size - 1)
    return found


@kernel
def often_used(segment, least):  # type: ignore[no-untyped-def]
    """Return the predicates of a segment that at least so many rows have."""
    uses = np.zeros(segment.header[WORDS + 1] - segment.header[WORDS], np.int32)
    for predicate in words_section(segment, PREDICATES):
        uses[predicate] += 1
    return np.flatnonzero(uses >= least)
