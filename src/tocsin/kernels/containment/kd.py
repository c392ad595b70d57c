"""Kernels of `kd`: a k-d tree over the corners of boxes, whose leaves are buckets.

A box with ``n`` axes is a point with ``2 n`` coordinates (see `containment.coordinate`); the boxes that contain it are
the points that are as great in every coordinate. Leaves chain their slots in ``following``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.containment.boxes import (
    COMPARED,
    TOP,
    VISITED,
    Question,
    Rows,
    answers,
    clear_corner,
    coordinate,
    note,
    put_corner,
)

NODES, FREE, LIVE, DEEP = range(4)
"""Places in ``Tree.state``: nodes made so far, the first of the free ones (chained by ``left``) or -1, boxes held, and
whether a leaf has reached `DEPTH`."""

DEPTH = 96
"""The greatest depth of a leaf; those there grow beyond the overflow limit."""


class Tree(NamedTuple):
    """Nodes by number, the root is 0. ``dimension``: -1 for a leaf; ``split``: coordinates below it are on the left;
    ``first`` and ``size``: the slots of a leaf; ``following`` int32[slots] chains them; ``state``: int64[4].
    """

    dimension: npt.NDArray[np.int32]
    split: npt.NDArray[np.int64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    state: npt.NDArray[np.int64]


@kernel
def leaf_of(tree: Tree, rows: Rows, slot: Any) -> Any:
    """Return the leaf that a box belongs to, and its depth."""
    node, depth = 0, 0
    while tree.dimension[node] >= 0:
        left = coordinate(rows, slot, tree.dimension[node]) < tree.split[node]
        node = tree.left[node] if left else tree.right[node]
        depth += 1
    return node, depth


@kernel
def _new_leaf(tree: Tree, parent: Any) -> Any:
    state = tree.state
    node = state[FREE]
    if node >= 0:
        state[FREE] = tree.left[node]
    else:
        node = state[NODES]
        state[NODES] += 1
    tree.dimension[node], tree.parent[node], tree.first[node], tree.size[node] = -1, parent, -1, 0
    return node


@kernel
def _chain(tree: Tree, leaf: Any, slot: Any) -> None:
    tree.following[slot] = tree.first[leaf]
    tree.first[leaf] = slot
    tree.size[leaf] += 1


@kernel
def _split_at(values: Any, most_even: Any) -> Any:
    """Return a value such that as near to half of the values as possible are below it, or TOP if all are equal or the
    halves are less even than ``most_even``; and how many the smaller half has."""
    values = np.sort(values)
    size = len(values)
    best, at = most_even, 0
    for place in range(1, size):
        if values[place] != values[place - 1] and min(place, size - place) > best:
            best, at = min(place, size - place), place
    return (values[at] if at else TOP), best, at > 0


@kernel
def _split(tree: Tree, rows: Rows, leaf: Any, dimensions: Any) -> None:
    """Make a leaf a node: on the next dimension after its parent's, in turn, on which its boxes fall into two parts of
    a quarter each; if there is none, on the one that divides them best. Boxes equal on all of them stay together."""
    size = tree.size[leaf]
    values, slots = np.empty(size, np.int64), np.empty(size, np.int32)
    slot = tree.first[leaf]
    for place in range(size):
        slots[place] = slot
        slot = tree.following[slot]
    parent = tree.parent[leaf]
    turn = (tree.dimension[parent] + 1) % dimensions if parent >= 0 else 0
    chosen, split, best = -1, np.int64(0), 0
    for step in range(dimensions):
        dimension = (turn + step) % dimensions
        for place in range(size):
            values[place] = coordinate(rows, slots[place], dimension)
        at, even, better = _split_at(values, best)
        if better:
            chosen, split, best = dimension, at, even
            if 4 * best >= size:
                break
    if chosen < 0:
        return
    left, right = _new_leaf(tree, leaf), _new_leaf(tree, leaf)
    tree.dimension[leaf], tree.split[leaf], tree.left[leaf], tree.right[leaf] = chosen, split, left, right
    for slot in slots:
        _chain(tree, left if coordinate(rows, slot, chosen) < split else right, slot)


@kernel
def insert_slots(tree: Tree, rows: Rows, slots: Any, dimensions: Any, overflow: Any) -> None:
    """Add boxes. There must be two nodes of room for each. A leaf beyond the overflow limit is split; one that could
    not be is tried again only when it has doubled."""
    if tree.state[NODES] == 0:
        _new_leaf(tree, -1)
    for slot in slots:
        leaf, depth = leaf_of(tree, rows, slot)
        _chain(tree, leaf, slot)
        size = tree.size[leaf]
        if size > overflow and (size == overflow + 1 or size & (size - 1) == 0):
            if depth < DEPTH:
                _split(tree, rows, leaf, dimensions)
            else:
                tree.state[DEEP] = 1
    tree.state[LIVE] += len(slots)


@kernel
def remove_slots(tree: Tree, rows: Rows, slots: Any, overflow: Any, underflow: Any) -> None:
    """Take boxes out. A leaf below the underflow limit is joined with its sibling, if that is a leaf and both together
    stay within the overflow limit."""
    for slot in slots:
        leaf, _ = leaf_of(tree, rows, slot)
        before, at = -1, tree.first[leaf]
        while at != slot:
            before, at = at, tree.following[at]
        if before < 0:
            tree.first[leaf] = tree.following[slot]
        else:
            tree.following[before] = tree.following[slot]
        tree.size[leaf] -= 1
        while tree.size[leaf] < underflow and tree.parent[leaf] >= 0:
            parent = tree.parent[leaf]
            sibling = tree.left[parent] + tree.right[parent] - leaf
            if tree.dimension[sibling] >= 0 or tree.size[leaf] + tree.size[sibling] > overflow:
                break
            tree.dimension[parent], tree.first[parent], tree.size[parent] = -1, -1, 0
            for joined in (leaf, sibling):
                at = tree.first[joined]
                while at >= 0:
                    following = tree.following[at]
                    _chain(tree, parent, at)
                    at = following
                tree.left[joined] = tree.state[FREE]
                tree.state[FREE] = joined
            leaf = parent
    tree.state[LIVE] -= len(slots)


@kernel
def search_tree(tree: Tree, rows: Rows, question: Question, dimensions: Any, tally: Any) -> Any:
    """Answer questions, each from the rightmost leaf on (from the leftmost where boxes inside are wanted); return the
    pairs and how many there are."""
    found, count = np.empty((2, 256), np.int32), 0
    corner = np.full(max(dimensions, 2), TOP)
    stack = np.empty(DEPTH + 2, np.int32)
    for row in range(len(question.rows.start)):
        put_corner(question.rows, row, corner)
        begin, waiting = count, 0
        if tree.state[LIVE] > 0:
            stack[0], waiting = 0, 1
        while waiting and count - begin < question.limit:
            waiting -= 1
            node = stack[waiting]
            tally[VISITED] += 1
            while tree.dimension[node] >= 0:
                wanted, split = corner[tree.dimension[node]], tree.split[node]
                near, far = tree.right[node], tree.left[node]
                open_far = wanted < split
                if question.inside:
                    near, far, open_far = far, near, wanted >= split
                if open_far:
                    stack[waiting] = far
                    waiting += 1
                node = near
                tally[VISITED] += 1
            slot = tree.first[node]
            while slot >= 0 and count - begin < question.limit:
                tally[COMPARED] += 1
                if answers(question, row, rows, slot):
                    found = note(found, count, row, slot)
                    count += 1
                slot = tree.following[slot]
        clear_corner(question.rows, row, corner)
    return found, count
