"""Intervals that nest, as a forest: parents, the cells between their ends, and bit arrays with the union of each path.

Nodes are the distinct intervals of an axis in pre-order: sorted by low end, and by descending high end where that is
the same. Index spaces: *node*, *cell* (a stretch of codes with the same deepest node), *slot* (the place of a box in
all bit arrays), *row* (a bit array, uint64[words]).
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel

LOWEST_CODE = np.iinfo(np.int64).min
HIGHEST_CODE = np.iinfo(np.int64).max


@kernel
def nest(low, high):  # type: ignore[no-untyped-def]
    """Return the parent of each node, -1 for a root; nothing if two intervals cross."""
    parent = np.full(len(low), -1, np.int32)
    above = -1
    for node in range(len(low)):
        while above >= 0 and high[above] < low[node]:
            above = parent[above]
        if above >= 0 and high[above] < high[node]:
            return parent[:0]
        parent[node] = above
        above = node
    return parent


@kernel
def node_heights(parent):  # type: ignore[no-untyped-def]
    """Return for each node the length of the longest way down from it; two nodes of one height are disjoint."""
    height = np.zeros(len(parent), np.int32)
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0:
            height[parent[node]] = max(height[parent[node]], height[node] + 1)
    return height


@kernel
def _open_cell(cell_start, cell_node, count, start, node):  # type: ignore[no-untyped-def]
    """Begin a cell; one that would be empty before it is overwritten. Return how many there are."""
    if cell_start[count - 1] == start:
        count -= 1
    cell_start[count], cell_node[count] = start, node
    return count + 1


@kernel
def tree_cells(low, high, parent):  # type: ignore[no-untyped-def]
    """Return where each cell begins, ascending from the lowest code there is, and its deepest node, -1 outside all."""
    cell_start, cell_node = np.empty(2 * len(low) + 1, np.int64), np.empty(2 * len(low) + 1, np.int32)
    cell_start[0], cell_node[0] = LOWEST_CODE, -1
    count, above = 1, -1
    for node in range(len(low)):
        while above >= 0 and high[above] < low[node]:
            count = _open_cell(cell_start, cell_node, count, high[above] + 1, parent[above])
            above = parent[above]
        count = _open_cell(cell_start, cell_node, count, low[node], node)
        above = node
    while above >= 0 and high[above] < HIGHEST_CODE:
        count = _open_cell(cell_start, cell_node, count, high[above] + 1, parent[above])
        above = parent[above]
    return cell_start[:count].copy(), cell_node[:count].copy()


@kernel
def choose_rows(parent, own_count, threshold):  # type: ignore[no-untyped-def]
    """Say which nodes get a row of their own: those with so many entries on the path since the last such ancestor.

    Also return the share of the boxes on its path that a code like the low end of a box meets, on average.
    """
    has_row, waiting = np.zeros(len(parent), np.bool_), np.zeros(len(parent), np.int64)
    on_path, met = np.zeros(len(parent), np.int64), 0.0
    for node in range(len(parent)):
        waiting[node] = on_path[node] = own_count[node]
        if parent[node] >= 0:
            on_path[node] += on_path[parent[node]]
            if not has_row[parent[node]]:
                waiting[node] += waiting[parent[node]]
        has_row[node] = waiting[node] >= threshold
        met += np.float64(own_count[node]) * np.float64(on_path[node])
    return has_row, met


@kernel
def set_bits(row, slots):  # type: ignore[no-untyped-def]
    """Set the bits of these slots."""
    for slot in slots:
        row[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@kernel
def fill_tree(rows, first_row, parent, has_row, own_start, own_slots):  # type: ignore[no-untyped-def]
    """Fill the rows of a forest, from ``first_row`` on; that one is there already, with the boxes free on this axis.

    A row has the boxes of its node and of all nodes above, and the free ones. Return for each node the last row at or
    above it, and the first node above whose boxes that row lacks as well, -1 if there is none.
    """
    node_row, above = np.empty(len(parent), np.int32), np.full(len(parent), -1, np.int32)
    used = first_row + 1
    for node in range(len(parent)):
        over = parent[node]
        node_row[node] = first_row if over < 0 else node_row[over]
        if over >= 0 and not has_row[over]:
            above[node] = over
        if has_row[node]:
            row = rows[used]
            row[:] = rows[node_row[node]]
            lacking = node
            while lacking >= 0:
                set_bits(row, own_slots[own_start[lacking] : own_start[lacking + 1]])
                lacking = above[lacking]
            node_row[node] = used
            used += 1
    return node_row, above
