"""The path for boxes that keys reach: a tree of nodes, one table lookup each.

A node stands for a set of *key axes*. Its *pages* are the combinations of their cells that boxes have. A page is a row
of *slots*: the first holds boxes that end at the node, the others those of its embedded children, a slot for each cell
of one more axis. So the lookups that follow a page stay within one stretch of memory, and a batch sorted by page reads
each stretch once. The page of a child is computed from its parent's page and its cell, or found in a hash table where
few of the combinations exist.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.checking import AHEAD, verify
from tocsin.kernels.segments.layout import longs_section, words_section
from tocsin.kernels.segments.sieve import list_passing
from tocsin.kernels.vectors import AT_ONCE

SLOTS = 4096
"""How many slots are listed before their boxes are checked."""

MIXER = np.uint64(0x9E3779B97F4A7C15)


@inlined
def home_slot(key, mask):  # type: ignore[no-untyped-def]
    """Return where the search for a key begins in a hash table of ``mask + 1`` slots."""
    return np.int64((np.uint64(key) * MIXER) >> np.uint64(32)) & mask


@kernel
def fill_hash(keys, slots, pages):  # type: ignore[no-untyped-def]
    """Put key ``i`` with page ``i`` into a hash table whose free slots have key -1."""
    mask = len(slots) - 1
    for page in range(len(keys)):
        slot = home_slot(keys[page], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = keys[page]
        pages[slot] = page


@kernel
def look_up(key, hash_keys, hash_pages, begin, mask):  # type: ignore[no-untyped-def]
    """Return the page filed under a key in the hash table that begins there; -1 where there is none."""
    slot = home_slot(key, mask)
    while True:
        there = hash_keys[begin + slot]
        if there == key:
            return np.int64(hash_pages[begin + slot])
        if there < 0:
            return np.int64(-1)
        slot = (slot + 1) & mask


@inlined
def page_below(table, node, page, cell, hash_keys, hash_pages):  # type: ignore[no-untyped-def]
    """Return the page of the node whose record begins at ``node``, given its parent's page and the cell of its axis."""
    key = page * table[node + at.N_CELLS] + cell
    if table[node + at.N_HASH] >= 0:
        key = look_up(key, hash_keys, hash_pages, table[node + at.N_HASH], table[node + at.N_MASK])
    return key


@inlined
def cell_of(key, coded, query):  # type: ignore[no-untyped-def]
    """Return the cell of a query under a key."""
    if key >= 0:
        return np.int64(coded.low[query, key])
    return np.int64(coded.cells[query, -1 - key])


@kernel
def page_of(segment, coded, number, pages):  # type: ignore[no-untyped-def]
    """Fill the page of each query in one node, -1 where it has none there."""
    table = longs_section(segment, at.NODE_TABLE)
    hash_keys, hash_pages = longs_section(segment, at.HASH_KEYS), words_section(segment, at.HASH_PAGES)
    node = number * at.NODE_FIELDS
    if number == 0:
        pages[:] = 0
        return
    page_of(segment, coded, table[node + at.N_PARENT], pages)
    key = table[node + at.N_KEY]
    for query in range(len(pages)):
        if pages[query] >= 0:
            cell = cell_of(key, coded, query)
            pages[query] = page_below(table, node, pages[query], cell, hash_keys, hash_pages)


@kernel
def order_by_page(segment, coded):  # type: ignore[no-untyped-def]
    """Return the order of queries in which neighbours share pages of the node chosen for it."""
    chosen, queries = segment.header[at.SORT_NODE], len(coded.low)
    order = np.arange(queries, dtype=np.int32)
    if chosen == 0 or queries < 64:
        return order
    keys = np.empty(queries, np.int64)
    page_of(segment, coded, chosen, keys)
    top = keys.max() + 1
    shift = 0
    while top >> shift > 2 * queries:
        shift += 1
    starts = np.zeros((top >> shift) + 2, np.int64)
    for query in range(queries):
        starts[((keys[query] + 1) >> shift) + 1] += 1
    for key in range(len(starts) - 1):
        starts[key + 1] += starts[key]
    for query in range(queries):
        key = (keys[query] + 1) >> shift
        order[starts[key]] = query
        starts[key] += 1
    return order


@inlined
def mark_of(marks, page):  # type: ignore[no-untyped-def]
    """Return the mark of a page among those of all nodes."""
    return (marks[np.uint64(page >> 4)] >> ((page & 15) << 1)) & 3


@kernel
def enter_node(segment, coded, queries, number, pages, reached):  # type: ignore[no-untyped-def]
    """Find the page of each query in a node, given those in its parent; list the queries whose page has boxes.

    ``pages`` int32[nodes, queries] is -1 where neither a page nor what is below it has boxes. ``reached`` is two
    arrays, of which the first receives those queries and the second the first slot of their pages; returns how many.
    """
    table, marks = longs_section(segment, at.NODE_TABLE), words_section(segment, at.PAGE_MARKS)
    hash_keys, hash_pages = longs_section(segment, at.HASH_KEYS), words_section(segment, at.HASH_PAGES)
    live, bases = reached
    node = number * at.NODE_FIELDS
    key, cells, where, mask = (
        table[node + at.N_KEY],
        table[node + at.N_CELLS],
        table[node + at.N_HASH],
        table[node + at.N_MASK],
    )
    start, stride, before = table[node + at.N_START], table[node + at.N_STRIDE], table[node + at.N_PAGES]
    above, here = pages[table[node + at.N_PARENT]], pages[number]
    if number == 0:
        above[:] = 0
    elif where < 0:
        for i in range(len(queries)):
            page = np.int64(max(above[i], 0)) * cells + cell_of(key, coded, queries[i])
            here[i] = page if above[i] >= 0 else -1
    else:
        for i in range(len(queries)):
            bases[i] = above[i] * cells + cell_of(key, coded, queries[i])
            prefetch(hash_keys, where + home_slot(bases[i], mask))
        for i in range(len(queries)):
            here[i] = look_up(bases[i], hash_keys, hash_pages, where, mask) if above[i] >= 0 else -1
    count = 0
    for i in range(len(queries)):
        page = np.int64(here[i])
        mark = mark_of(marks, before + page if page >= 0 else 0)
        mark = mark if page >= 0 else 0
        here[i] = page if mark & at.LEADS else -1
        live[count], bases[count] = queries[i], start + page * stride
        count += mark & at.FILED
    return count


@kernel
def list_slots(segment, coded, queries, slots):  # type: ignore[no-untyped-def]
    """List the slots that each query reaches, node by node; return how many there are.

    ``slots`` is two int32 arrays, query and slot, with room for every node and embedded child of each query.
    """
    table, nodes = longs_section(segment, at.NODE_TABLE), segment.header[at.NODES]
    embedded_key, embedded_slot = words_section(segment, at.EMBEDDED_KEY), words_section(segment, at.EMBEDDED_SLOT)
    buckets, cells = coded.low, coded.cells
    slot_query, slot_number = slots
    pages = np.empty((nodes, len(queries)), np.int32)
    live, bases = np.empty(len(queries), np.int32), np.empty(len(queries), np.int64)
    listed = 0
    for number in range(nodes):
        count = enter_node(segment, coded, queries, number, pages, (live, bases))
        node = number * at.NODE_FIELDS
        first, wide, end = table[node + at.N_EMBEDDED], table[node + at.N_WIDE], table[node + at.N_EMBEDDED_END]
        for i in range(count):
            query, base = live[i], bases[i]
            slot_query[listed], slot_number[listed] = query, base
            listed += 1
            for child in range(first, wide):
                slot_query[listed] = query
                slot_number[listed] = base + embedded_slot[child] + buckets[query, embedded_key[child]]
                listed += 1
            for child in range(wide, end):
                slot_query[listed] = query
                slot_number[listed] = base + embedded_slot[child] + cells[query, embedded_key[child]]
                listed += 1
    return listed


@kernel
def list_stretches(segment, slots, count, ends):  # type: ignore[no-untyped-def]
    """Replace the first ``count`` slots by the positions at which they begin, where they are not empty.

    ``ends`` int32[] receives the positions at which they end. Returns how many stretches there are, and their length
    together.
    """
    starts, (first, second) = words_section(segment, at.STARTS), checked_first(segment)
    slot_query, slot_number = slots
    stretches, total = 0, 0
    for i in range(count):
        prefetch(starts, np.int64(slot_number[min(i + AHEAD, count - 1)]))
        slot = slot_number[i]
        begin, end = starts[slot], starts[slot + 1]
        slot_query[stretches], slot_number[stretches], ends[stretches] = slot_query[i], begin, end
        prefetch(first, np.int64(begin))
        prefetch(second, np.int64(begin))
        stretches += begin < end
        total += end - begin
    return stretches, total


@inlined
def checked_first(segment):  # type: ignore[no-untyped-def]
    """Return the words of the first and of the second check of each position; twice the first where it has no other."""
    first, second = words_section(segment, at.FIRST), words_section(segment, at.SECOND)
    return first, second if len(second) else first


@kernel
def first_checks(segment, buckets, stretches, count, candidates):  # type: ignore[no-untyped-def]
    """List the boxes of these stretches whose first checks hold; return how many there are.

    ``stretches`` is three arrays: query, first position, last plus one. ``candidates`` is two: query, position.
    """
    return list_passing(checked_first(segment), stretches, count, buckets, candidates)


@kernel
def other_checks(segment, buckets, candidates):  # type: ignore[no-untyped-def]
    """Keep those candidates, (query, position) each, whose other checks hold as well; return how many there are."""
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, marks, (_, latest) = words_section(segment, at.WORDS), segment.marks, checked_first(segment)
    done = 1 if segment.header[at.SECOND] == segment.header[at.SECOND + 1] else 2
    queries, positions = candidates
    last, kept = len(queries) - 1, 0
    for i in range(len(queries)):
        query, position = queries[i], positions[i]
        queries[kept], positions[kept] = query, position
        if latest[position] & at.DECIDES:
            kept += 1
            continue
        prefetch(row_start, np.int64(positions[min(i + AHEAD, last)]))
        prefetch(predicates, np.int64(row_start[positions[min(i + AHEAD // 2, last)]]))
        soon = row_start[positions[min(i + AHEAD // 4, last)]] + done
        prefetch(words, np.int64(predicates[min(soon, len(predicates) - 1)]))
        holds = True
        for place in range(row_start[position] + done, row_start[position + 1] - (marks[position] & at.IMPLIED)):
            word = words[predicates[place]]
            bucket = buckets[query, (word >> 16) & 0x3FFF]
            if np.uint32(bucket - ((word >> 8) & 255)) > np.uint32(word & 255):
                holds = False
                break
        kept += holds
    return kept


@kernel
def match_points(segment, asked, rows, coded, found, count):  # type: ignore[no-untyped-def]
    """Match rows that are points with the boxes in nodes; append the pairs.

    A few queries at a time, in plain loops that know what they will read: the slots that they reach, the stretches of
    positions in them, the first check of each box, the other checks.
    """
    order = order_by_page(segment, coded)
    each = segment.header[at.NODES] + segment.header[at.EMBEDDED]
    group = max(1, SLOTS // each)
    room = min(group, len(rows)) * each + 1
    queries, slots, ends = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    candidate_query, candidate_position = np.empty(1024, np.int32), np.empty(1024, np.int32)
    for begin in range(0, len(order), group):
        reached = list_slots(segment, coded, order[begin : begin + group], (queries, slots))
        stretches, total = list_stretches(segment, (queries, slots), reached, ends)
        if total + AT_ONCE > len(candidate_query):
            room = 2 * total + AT_ONCE
            candidate_query, candidate_position = np.empty(room, np.int32), np.empty(room, np.int32)
        candidates = (candidate_query, candidate_position)
        passed = first_checks(segment, coded.low, (queries, slots, ends), stretches, candidates)
        kept = other_checks(segment, coded.low, (candidate_query[:passed], candidate_position[:passed]))
        candidates = (candidate_query[:kept], candidate_position[:kept])
        found, count = verify(segment, asked, rows, coded, candidates, found, count)
    return found, count
