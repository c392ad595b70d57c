"""The path for boxes that keys reach: a tree of nodes, one table lookup each.

A node stands for a set of *key axes*. Its *pages* are the combinations of their cells that boxes have. A page is a row of
*slots*: the first holds boxes that end at the node, the others those of its embedded children, a slot for each cell of
one more axis. So the lookups that follow a page stay within one stretch of memory, and a batch sorted by page reads
each stretch once. The page of a child is computed from its parent's page and its cell, or found in a hash table where
few of the combinations exist.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.checking import alive, box_holds, checks_of, with_room
from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments import (
    AXIS_TABLE,
    E_KEY,
    E_SLOT,
    EMBEDDED_FIELDS,
    EMBEDDED_TABLE,
    HASH_KEYS,
    HASH_PAGES,
    N_CELLS,
    N_EMBEDDED,
    N_EMBEDDED_END,
    N_HASH,
    N_KEY,
    N_MASK,
    N_PARENT,
    N_START,
    N_STRIDE,
    NODE_FIELDS,
    NODE_TABLE,
    NODES,
    REPLICA,
    SORT_NODE,
    STARTS,
    longs_section,
    words_section,
)

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


@inlined
def page_below(node, page, cell, hash_keys, hash_pages):  # type: ignore[no-untyped-def]
    """Return the page of a node, given its parent's page and the cell of its axis; -1 where there is none."""
    key = page * node[N_CELLS] + cell
    if node[N_HASH] < 0:
        return key
    slot = home_slot(key, node[N_MASK])
    while True:
        there = hash_keys[node[N_HASH] + slot]
        if there == key:
            return np.int64(hash_pages[node[N_HASH] + slot])
        if there < 0:
            return np.int64(-1)
        slot = (slot + 1) & node[N_MASK]


@kernel
def find_pages(segment, cells, pages):  # type: ignore[no-untyped-def]
    """Fill the page of every node for one query, -1 where it reaches no box."""
    table = longs_section(segment, NODE_TABLE)
    hash_keys, hash_pages = longs_section(segment, HASH_KEYS), words_section(segment, HASH_PAGES)
    pages[0] = 0
    for number in range(1, segment.header[NODES]):
        node = table[number * NODE_FIELDS : (number + 1) * NODE_FIELDS]
        page = pages[node[N_PARENT]]
        if page >= 0:
            page = page_below(node, page, cells[node[N_KEY]], hash_keys, hash_pages)
        pages[number] = page


@kernel
def order_by_page(segment, cells):  # type: ignore[no-untyped-def]
    """Return the order of queries in which neighbours share pages of the node chosen for it."""
    chosen = segment.header[SORT_NODE]
    order = np.arange(len(cells))
    if chosen == 0 or len(cells) < 64:
        return order
    pages = np.empty(segment.header[NODES], np.int64)
    keys = np.empty(len(cells), np.int64)
    top = np.int64(0)
    for query in range(len(cells)):
        find_pages(segment, cells[query], pages)
        keys[query] = pages[chosen] + 1
        top = max(top, keys[query])
    shift = 0
    while top >> shift > 2 * len(cells):
        shift += 1
    starts = np.zeros((top >> shift) + 2, np.int64)
    for query in range(len(cells)):
        starts[(keys[query] >> shift) + 1] += 1
    for key in range(len(starts) - 1):
        starts[key + 1] += starts[key]
    for query in range(len(cells)):
        key = keys[query] >> shift
        order[starts[key]] = query
        starts[key] += 1
    return order


@kernel
def match_slot(segment, checks, asked, row, buckets, slot, found, count):  # type: ignore[no-untyped-def]
    """Check the boxes of one slot, ``(first, last + 1)``, against one point; append the pairs."""
    found = with_room(found, count, slot[1] - slot[0])
    axis_table = longs_section(segment, AXIS_TABLE)
    for position in range(slot[0], slot[1]):
        word = checks.first[position]
        bucket = buckets[(word >> 16) & 0x7FFF]
        if np.uint32(bucket - ((word >> 8) & 255)) > np.uint32(word & 255):
            continue
        begin = checks.row_start[position]
        end = checks.row_start[position + 1] - (segment.marks[position] & ~REPLICA)
        if (end - begin > 1 or word < 0) and not box_holds(
            checks, axis_table, begin, end, buckets, buckets, asked, row
        ):
            continue
        if alive(asked, position):
            found.rows[count] = row
            found.numbers[count] = checks.numbers[position]
            count += 1
    return found, count


@kernel
def match_points(segment, asked, rows, coded, found, count):  # type: ignore[no-untyped-def]
    """Match rows that are points with the boxes in nodes; append the pairs."""
    checks = checks_of(segment)
    table, embedded = longs_section(segment, NODE_TABLE), longs_section(segment, EMBEDDED_TABLE)
    starts = words_section(segment, STARTS)
    nodes = segment.header[NODES]
    pages = np.empty(nodes, np.int64)
    order = order_by_page(segment, coded.cells)
    for query in order:
        cells, buckets, row = coded.cells[query], coded.low[query], rows[query]
        find_pages(segment, cells, pages)
        for number in range(nodes):
            if pages[number] < 0:
                continue
            node = table[number * NODE_FIELDS : (number + 1) * NODE_FIELDS]
            base = node[N_START] + pages[number] * node[N_STRIDE]
            begin, end = starts[base], starts[base + 1]
            if begin < end:
                found, count = match_slot(segment, checks, asked, row, buckets, (begin, end), found, count)
            if end == starts[base + node[N_STRIDE]]:
                continue
            for child in range(node[N_EMBEDDED], node[N_EMBEDDED_END]):
                slot = base + embedded[child * EMBEDDED_FIELDS + E_SLOT]
                slot += cells[embedded[child * EMBEDDED_FIELDS + E_KEY]]
                begin, end = starts[slot], starts[slot + 1]
                if begin < end:
                    found, count = match_slot(segment, checks, asked, row, buckets, (begin, end), found, count)
    return found, count
