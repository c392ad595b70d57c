"""Kernels of the containment path of `adaptive`: boxes grouped by the axes they constrain, a tree for each group.

A box can only contain another if it constrains no axis that the other does not: most groups are out of the question at
once. In a group all boxes have corners of the same dimensions (see `containment.coordinate`), dense and without gaps. A
node of its tree knows the least and the greatest coordinate below it in *every* dimension; a leaf is a chain of blocks
that keep the coordinates of up to `LANES` boxes column by column, to be compared all at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.containment.boxes import TOP, Rows

LANES = 32
"""Boxes in a block at most."""

DEEPEST = 96
"""The depth beyond which leaves grow rather than split."""

AXES, MANY, ROOT, HELD, GONE, MARK = range(6)
"""Columns of ``Groups.groups``: where its axes begin and how many they are, its root, how many boxes it holds, how many
it lost since it was built, and 63 bits of which its axes set some."""

DIMENSION, LEFT, RIGHT, BLOCK = range(4)
"""Columns of ``Groups.nodes``; ``DIMENSION`` is -1 for a leaf, which has its first block in ``BLOCK``."""

FILLED, NEXT, SLOTS = range(3)
"""Columns of ``Groups.blocks``: boxes in it, the next of its chain or -1, and from there on their slots."""

GROUPS, NODES, BLOCKS, COLUMNS, CORNERS, DEEP = range(6)
"""Places in ``Groups.state``: how much of each table is in use; a group with a leaf that could not be split, or -1."""


class Groups(NamedTuple):
    """``axes``: those of all groups; ``group_of``: int32[slots]; ``splits`` and ``corner_at``: of nodes; ``corners``:
    for each node its least coordinates, then its greatest; ``column_at``: of blocks; ``columns``: LANES for each
    dimension."""

    groups: npt.NDArray[np.int64]
    axes: npt.NDArray[np.int32]
    group_of: npt.NDArray[np.int32]
    nodes: npt.NDArray[np.int32]
    splits: npt.NDArray[np.int64]
    corner_at: npt.NDArray[np.int64]
    corners: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int32]
    column_at: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


@kernel
def mark_of(rows: Rows, slot: Any) -> Any:
    """Return a word with a bit for each axis of a box; different axes may share one."""
    mark = np.int64(0)
    for at in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
        mark |= np.int64(1) << (rows.axis[at] % 63)
    return mark


@kernel
def _same_axes(rows: Rows, one: Any, other: Any) -> Any:
    """Return whether two boxes constrain the same axes."""
    at, end = rows.start[one], rows.start[one] + rows.length[one]
    place, last = rows.start[other], rows.start[other] + rows.length[other]
    while at < end and place < last:
        axis = rows.axis[at]
        if rows.axis[place] != axis:
            return False
        while at < end and rows.axis[at] == axis:
            at += 1
        while place < last and rows.axis[place] == axis:
            place += 1
    return at == end and place == last


@kernel
def _number_schemas(rows: Rows, slots: Any, keys: Any, first: Any) -> Any:
    """Do what `schema_keys` does with room for half as many sets as ``first`` is long; return how many there are, or -1
    if there are more."""
    size = len(first)
    table = np.full(size, -1, np.int32)
    known = 0
    for place in range(len(slots)):
        slot = slots[place]
        word, before = np.uint64(1469598103934665603), np.int32(-1)
        for at in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
            if rows.axis[at] != before:
                before = rows.axis[at]
                word = (word ^ np.uint64(before)) * np.uint64(1099511628211)
                word ^= word >> np.uint64(29)
        spot = np.int64(word & np.uint64(size - 1))
        while table[spot] >= 0 and not _same_axes(rows, slots[first[table[spot]]], slot):
            spot = (spot + 1) & (size - 1)
        if table[spot] < 0:
            if 2 * known >= size:
                return -1
            table[spot], first[known] = known, place
            known += 1
        keys[place] = table[spot]
    return known


@kernel
def schema_keys(rows: Rows, slots: Any) -> Any:
    """Number the sets of axes that boxes constrain; return the number for each box, and for each number the place of
    its first box."""
    keys = np.empty(len(slots), np.int32)
    size, known = 16, -1
    first = np.empty(size, np.int32)
    while known < 0:
        first = np.empty(size, np.int32)
        known = _number_schemas(rows, slots, keys, first)
        size *= 4
    return keys, first[:known]


@kernel
def local_corner(groups: Groups, group: Any, rows: Rows, slot: Any, corner: Any) -> Any:
    """Write the coordinates of a box in the dimensions of a group; TOP where it does not constrain the axis. Return
    how many axes of the group it constrains, and how many in all."""
    first, many = groups.groups[group, AXES], groups.groups[group, MANY]
    at, end = rows.start[slot], rows.start[slot] + rows.length[slot]
    shared, own = 0, 0
    for place in range(many):
        corner[2 * place] = TOP
        corner[2 * place + 1] = TOP
    place = 0
    while at < end:
        axis = rows.axis[at]
        own += 1
        while place < many and groups.axes[first + place] < axis:
            place += 1
        here = place < many and groups.axes[first + place] == axis
        if here:
            shared += 1
            corner[2 * place] = ~rows.low[at]
        while at < end and rows.axis[at] == axis:
            if here:
                corner[2 * place + 1] = rows.high[at]
            at += 1
    return shared, own


@kernel
def _new_leaf(groups: Groups, wide: Any) -> Any:
    """Return a leaf with an empty block."""
    state = groups.state
    node = state[NODES]
    state[NODES] += 1
    groups.nodes[node, DIMENSION] = -1
    groups.nodes[node, BLOCK] = _new_block(groups, wide)
    at = state[CORNERS]
    groups.corner_at[node] = at
    for j in range(wide):
        groups.corners[at + j] = TOP
        groups.corners[at + wide + j] = ~TOP
    state[CORNERS] += 2 * wide
    return node


@kernel
def _new_block(groups: Groups, wide: Any) -> Any:
    state = groups.state
    block = state[BLOCKS]
    state[BLOCKS] += 1
    groups.blocks[block, FILLED], groups.blocks[block, NEXT] = 0, -1
    groups.column_at[block] = state[COLUMNS]
    state[COLUMNS] += wide * LANES
    return block


@inlined
def _widen(groups: Groups, node: Any, wide: Any, corner: Any) -> None:
    """Let a node know of a box below it."""
    at = groups.corner_at[node]
    for j in range(wide):
        groups.corners[at + j] = min(groups.corners[at + j], corner[j])
        groups.corners[at + wide + j] = max(groups.corners[at + wide + j], corner[j])


@kernel
def _append(groups: Groups, leaf: Any, wide: Any, slot: Any, corner: Any) -> None:
    """Put a box into a leaf: the first block of its chain has room, or a new one goes before it."""
    block = groups.nodes[leaf, BLOCK]
    if groups.blocks[block, FILLED] == LANES:
        more = _new_block(groups, wide)
        groups.state[DEEP] = groups.group_of[slot]
        groups.blocks[more, NEXT] = block
        groups.nodes[leaf, BLOCK] = more
        block = more
    lane = groups.blocks[block, FILLED]
    groups.blocks[block, SLOTS + lane] = slot
    groups.blocks[block, FILLED] += 1
    at = groups.column_at[block]
    for j in range(wide):
        groups.columns[at + j * LANES + lane] = corner[j]


@kernel
def best_split(values: Any, turn: Any) -> Any:
    """Return the dimension and the coordinate that divide some boxes best, int64[wide, boxes]; -1 if none does.

    From dimension ``turn`` on, the first that divides them into halves as even as three to one.
    """
    wide, size = values.shape
    chosen, split, best = np.int64(-1), np.int64(0), 0
    for step in range(wide):
        dimension = (turn + step) % wide
        ordered = np.sort(values[dimension])
        for place in range(1, size):
            if ordered[place] != ordered[place - 1] and min(place, size - place) > best:
                chosen, split, best = np.int64(dimension), ordered[place], min(place, size - place)
        if 8 * best >= 3 * size:
            break
    return chosen, split


@kernel
def _split(groups: Groups, leaf: Any, wide: Any, turn: Any) -> None:
    """Make a leaf of one full block a node of two leaves, the left one in its block."""
    block = groups.nodes[leaf, BLOCK]
    at = groups.column_at[block]
    values = groups.columns[at : at + wide * LANES].copy().reshape(wide, LANES)
    slots = groups.blocks[block, SLOTS : SLOTS + LANES].copy()
    dimension, split = best_split(values, turn)
    if dimension < 0:
        return
    left, right = _new_leaf(groups, wide), _new_leaf(groups, wide)
    groups.nodes[left, BLOCK] = block
    groups.blocks[block, FILLED] = 0
    groups.nodes[leaf, DIMENSION], groups.splits[leaf] = dimension, split
    groups.nodes[leaf, LEFT], groups.nodes[leaf, RIGHT] = left, right
    corner = np.empty(wide, np.int64)
    for lane in range(LANES):
        corner[:] = values[:, lane]
        child = left if corner[dimension] < split else right
        _widen(groups, child, wide, corner)
        _append(groups, child, wide, slots[lane], corner)


@kernel
def insert_slots(groups: Groups, rows: Rows, slots: Any, begin: Any) -> Any:
    """Add boxes from place ``begin`` of ``slots`` on, each to its group; return the place of the first for which there
    is no room in a table, or how many there are."""
    corner = np.empty(2 * groups.groups[: groups.state[GROUPS], MANY].max(), np.int64)
    for place in range(begin, len(slots)):
        slot = slots[place]
        group = groups.group_of[slot]
        wide = 2 * groups.groups[group, MANY]
        state = groups.state
        if (
            state[NODES] + 3 > len(groups.nodes)
            or state[BLOCKS] + 4 > len(groups.blocks)
            or state[COLUMNS] + 4 * wide * LANES > len(groups.columns)
            or state[CORNERS] + 6 * wide > len(groups.corners)
        ):
            return place
        local_corner(groups, group, rows, slot, corner)
        node = groups.groups[group, ROOT]
        if node < 0:
            node = groups.groups[group, ROOT] = _new_leaf(groups, wide)
        depth = 0
        while True:
            _widen(groups, node, wide, corner)
            dimension = groups.nodes[node, DIMENSION]
            if dimension < 0:
                block = groups.nodes[node, BLOCK]
                full = groups.blocks[block, FILLED] == LANES and groups.blocks[block, NEXT] < 0
                if full and depth < DEEPEST and wide > 0:
                    _split(groups, node, wide, depth)
                    dimension = groups.nodes[node, DIMENSION]
                if dimension < 0:
                    break
            node = groups.nodes[node, LEFT if corner[dimension] < groups.splits[node] else RIGHT]
            depth += 1
        _append(groups, node, wide, slot, corner)
        groups.groups[group, HELD] += 1
    return len(slots)


@kernel
def remove_slots(groups: Groups, rows: Rows, slots: Any) -> None:
    """Take boxes out of their blocks; what nodes know stays as it was, which is safe."""
    corner = np.empty(2 * groups.groups[: groups.state[GROUPS], MANY].max(), np.int64)
    for slot in slots:
        group = groups.group_of[slot]
        wide = 2 * groups.groups[group, MANY]
        local_corner(groups, group, rows, slot, corner)
        node = groups.groups[group, ROOT]
        while groups.nodes[node, DIMENSION] >= 0:
            left = corner[groups.nodes[node, DIMENSION]] < groups.splits[node]
            node = groups.nodes[node, LEFT if left else RIGHT]
        first = groups.nodes[node, BLOCK]
        block, lane = first, -1
        while lane < 0:
            for place in range(groups.blocks[block, FILLED]):
                if groups.blocks[block, SLOTS + place] == slot:
                    lane = place
            if lane < 0:
                block = groups.blocks[block, NEXT]
        last = groups.blocks[first, FILLED] - 1
        groups.blocks[block, SLOTS + lane] = groups.blocks[first, SLOTS + last]
        into, source = groups.column_at[block] + lane, groups.column_at[first] + last
        for j in range(wide):
            groups.columns[into + j * LANES] = groups.columns[source + j * LANES]
        groups.blocks[first, FILLED] = last
        if last == 0 and groups.blocks[first, NEXT] >= 0:
            groups.nodes[node, BLOCK] = groups.blocks[first, NEXT]
        groups.groups[group, HELD] -= 1
        groups.groups[group, GONE] += 1


@kernel
def _has_room(groups: Groups, leaves: Any, blocks: Any, wide: Any) -> Any:
    """Return whether so many leaves and blocks more would fit."""
    state = groups.state
    return (
        state[NODES] + leaves <= len(groups.nodes)
        and state[BLOCKS] + leaves + blocks <= len(groups.blocks)
        and state[COLUMNS] + (leaves + blocks) * wide * LANES <= len(groups.columns)
        and state[CORNERS] + 2 * leaves * wide <= len(groups.corners)
    )


@kernel
def _divide(corners: Any, order: Any, begin: Any, end: Any, turn: Any) -> Any:
    """Divide the boxes at ``order[begin:end]`` by the best split of a sample; return it with the place where the right
    part begins, or dimension -1 if all are alike."""
    size, wide = end - begin, corners.shape[1]
    dimension, split = np.int64(-1), np.int64(0)
    for taken in (min(64, size), size):
        if dimension < 0:
            sample = np.empty((wide, taken), np.int64)
            for place in range(taken):
                sample[:, place] = corners[order[begin + place * size // taken]]
            dimension, split = best_split(sample, turn)
    middle = begin
    if dimension >= 0:
        for place in range(begin, end):
            if corners[order[place], dimension] < split:
                order[middle], order[place] = order[place], order[middle]
                middle += 1
    return dimension, split, middle


@kernel
def build_group(groups: Groups, group: Any, rows: Rows, slots: Any) -> Any:
    """Make a new tree for a group of these boxes, divided evenly; return False if there is no room for it.

    What it had before is left to be collected.
    """
    wide = 2 * groups.groups[group, MANY]
    corners = np.empty((len(slots), wide), np.int64)
    for place in range(len(slots)):
        local_corner(groups, group, rows, slots[place], corners[place])
    if not _has_room(groups, 1, 0, wide):
        return False
    order = np.arange(len(slots))
    first = groups.state[NODES]
    waiting = np.empty((DEEPEST + 2, 4), np.int64)  # begin, end, node and depth; each level leaves one part behind
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, len(slots), _new_leaf(groups, wide), 0
    count = 1
    while count:
        count -= 1
        begin, end, node, depth = waiting[count, 0], waiting[count, 1], waiting[count, 2], waiting[count, 3]
        dimension, split, middle = np.int64(-1), np.int64(0), begin
        if end - begin > LANES and depth < DEEPEST and wide > 0:
            dimension, split, middle = _divide(corners, order, begin, end, depth)
        if not _has_room(groups, 2, (end - begin) // LANES + 1 if dimension < 0 else 0, wide):
            return False
        if dimension < 0:
            for place in order[begin:end]:
                _widen(groups, node, wide, corners[place])
                _append(groups, node, wide, slots[place], corners[place])
            continue
        left, right = _new_leaf(groups, wide), _new_leaf(groups, wide)
        groups.nodes[node, DIMENSION], groups.splits[node] = dimension, split
        groups.nodes[node, LEFT], groups.nodes[node, RIGHT] = left, right
        for first_of, end_of, child in ((begin, middle, left), (middle, end, right)):
            waiting[count, 0], waiting[count, 1], waiting[count, 2] = first_of, end_of, child
            waiting[count, 3] = depth + 1
            count += 1
    for place in range(groups.state[NODES] - 1, first - 1, -1):
        if groups.nodes[place, DIMENSION] >= 0:
            for child in (groups.nodes[place, LEFT], groups.nodes[place, RIGHT]):
                at = groups.corner_at[child]
                _widen(groups, place, wide, groups.corners[at : at + wide])
                _widen(groups, place, wide, groups.corners[at + wide : at + 2 * wide])
    groups.groups[group, ROOT], groups.groups[group, HELD], groups.groups[group, GONE] = first, len(slots), 0
    return True
