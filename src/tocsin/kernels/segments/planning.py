"""What the planner asks of boxes: what an axis would gain as a key, and which child each box goes to."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel

REPLICAS = 4
"""The greatest number of cells under which a predicate may be filed."""


@inlined
def is_key(cells, replicated):  # type: ignore[no-untyped-def]
    """Return whether a predicate of so many cells may be a key; only one key of a box may have several."""
    return cells == 1 or (cells <= REPLICAS and not replicated)


@inlined
def has_value(box, row_start, predicates, used, predicate_axis, predicate_cells):  # type: ignore[no-untyped-def]
    """Return whether a box has a key of a single cell on an axis not used above; it then needs no replicas."""
    for place in range(row_start[box], row_start[box + 1]):
        predicate = predicates[place]
        if predicate_cells[predicate] == 1 and not used[predicate_axis[predicate]]:
            return True
    return False


@kernel
def axis_gains(members, reach, replicated, rows, predicate_axis, predicate_cells, chance, gains):  # type: ignore[no-untyped-def]
    """Add to each axis how many candidates a query would be spared if it were the next key of these boxes.

    ``rows`` is (row_start, predicates, axes used above: bool[axes]). ``reach``: the chance of each box to be a
    candidate as it is.
    """
    row_start, predicates, used = rows
    for member in members:
        single = replicated[member] or has_value(member, row_start, predicates, used, predicate_axis, predicate_cells)
        for place in range(row_start[member], row_start[member + 1]):
            predicate = predicates[place]
            axis = predicate_axis[predicate]
            if not used[axis] and is_key(predicate_cells[predicate], single):
                gains[axis] += reach[member] * (1.0 - chance[predicate])


@kernel
def take_axis(members, axis, replicated, rows, predicate_axis, predicate_cells):  # type: ignore[no-untyped-def]
    """Return for each box which of its predicates is a key on this axis, or -1."""
    row_start, predicates, used = rows
    taken = np.full(len(members), -1, np.int32)
    for i in range(len(members)):
        member = members[i]
        single = replicated[member] or has_value(member, row_start, predicates, used, predicate_axis, predicate_cells)
        for place in range(row_start[member], row_start[member + 1]):
            predicate = predicates[place]
            if predicate_axis[predicate] == axis and is_key(predicate_cells[predicate], single):
                taken[i] = predicate
    return taken


@kernel
def route(boxes, replicated, child_of_axis, rows, predicate_axis, predicate_cells):  # type: ignore[no-untyped-def]
    """Return for each box the first child that it has a key for, and that key; -1 where there is none.

    ``child_of_axis`` int64[axes] numbers the children in the order in which they were chosen, -1 elsewhere. ``rows`` as
    for `axis_gains`.
    """
    row_start, predicates, used = rows
    child, key = np.full(len(boxes), -1, np.int64), np.full(len(boxes), -1, np.int32)
    for i in range(len(boxes)):
        box = boxes[i]
        single = replicated[i] or has_value(box, row_start, predicates, used, predicate_axis, predicate_cells)
        for place in range(row_start[box], row_start[box + 1]):
            predicate = predicates[place]
            wanted = child_of_axis[predicate_axis[predicate]]
            better = wanted >= 0 and (child[i] < 0 or wanted < child[i])
            if better and is_key(predicate_cells[predicate], single):
                child[i], key[i] = wanted, predicate
    return child, key


@kernel
def count_cells(first_cell, last_cell, interval_start):  # type: ignore[no-untyped-def]
    """Return how many distinct cells the intervals of each predicate cover; they are sorted, and may share one."""
    counts = np.zeros(len(interval_start) - 1, np.int64)
    for predicate in range(len(counts)):
        last = np.int64(-1)
        for interval in range(interval_start[predicate], interval_start[predicate + 1]):
            begin = max(first_cell[interval], last + 1)
            counts[predicate] += max(last_cell[interval] - begin + 1, 0)
            last = max(last, last_cell[interval])
    return counts


@kernel
def list_cells(keys, counts, first_cell, last_cell, interval_start):  # type: ignore[no-untyped-def]
    """Return the cells of each key, one after another."""
    total = np.int64(0)
    for key in keys:
        total += counts[key]
    cells = np.empty(total, np.int64)
    n = 0
    for key in keys:
        last = np.int64(-1)
        for interval in range(interval_start[key], interval_start[key + 1]):
            for cell in range(max(first_cell[interval], last + 1), last_cell[interval] + 1):
                cells[n] = cell
                n += 1
            last = max(last, last_cell[interval])
    return cells
