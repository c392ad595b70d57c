"""Axes whose predicates nest, as a hierarchy of concepts does, divided into levels that hash like equalities.

A concept is an interval, and those of one *height* (the longest way down from it) are disjoint: on a division of the
axis at their ends alone, each is a single cell, and a query is in at most one of them. So every level of such an axis
counts as an axis of its own when boxes are planned and filed. A query looks once at each level instead of a box lying
under every cell of its interval.
"""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.bitmap.trees import nest, node_heights

MOST_LEVELS = 24
"""How many levels an axis is divided into at most; what is higher stays together."""

LEVEL_SIZE = 4
"""A level of fewer intervals is not worth a look of its own: each holds for too many queries."""

TRIED = 4_096
"""So many intervals are held against each other before all of an axis are."""


def levels_of(axis: Int32s, low: Int64s, high: Int64s, single: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64s:
    """Return the level of each predicate on its axis: 0 for all where they do not nest, for sets, and for broad ones.

    ``low`` and ``high`` are those of the first interval; ``single`` says that it is the only one.

    >>> low, high = np.array([*range(8), 0, 2, 4, 6, 0, 4, 0]), np.array([*range(8), 1, 3, 5, 7, 3, 7, 7])
    >>> levels_of(np.zeros(15, np.int32), low, high, np.ones(15, np.bool_)).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0]
    """
    levels = np.zeros(len(axis), np.int64)
    wide = np.flatnonzero(single & (low < high))
    for number in np.unique(axis[wide]).tolist():
        some = wide[axis[wide] == number]
        if len(some) >= LEVEL_SIZE and _nests(low[some[:TRIED]], high[some[:TRIED]]):
            here = np.flatnonzero(single & (axis == number))
            levels[here] = _levels(low[here], high[here])
    return levels


def _nests(low: Int64s, high: Int64s) -> bool:
    order = np.lexsort((~high, low))
    return len(nest(low[order], high[order])) > 0


def _levels(low: Int64s, high: Int64s) -> Int64s:
    """Return the levels of the single intervals of one axis, which are distinct."""
    order = np.lexsort((~high, low))
    parent = nest(low[order], high[order])
    if not len(parent):
        return np.zeros(len(low), np.int64)
    height = node_heights(parent)
    kept = np.flatnonzero(np.bincount(height) >= LEVEL_SIZE)[:MOST_LEVELS]
    if len(kept) < 2:
        return np.zeros(len(low), np.int64)
    level_of_height = np.zeros(int(height.max()) + 1, np.int64)
    level_of_height[kept] = np.arange(1, len(kept) + 1)
    levels = np.empty(len(low), np.int64)
    levels[order] = level_of_height[height]
    return levels
