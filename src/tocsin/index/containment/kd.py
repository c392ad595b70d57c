"""`kd`: containment by a k-d tree over the corners of boxes.

| covering paper, section IV-C | here |
|---|---|
| internal nodes hold a discriminator, leaves are buckets | `kernels/containment/kd.py`: `Tree` |
| overflow limit, underflow limit | `overflow`, `underflow` |
| search from the rightmost leaf | `search_tree` |

Departures: the dimensions take turns, but one on which a bucket does not fall apart is passed over, so that axes that
few boxes constrain cost nothing; boxes that are alike in all dimensions stay in one bucket however many they are; a
tree grown deep by boxes that came in order is filled anew in random order.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tocsin.errors import ContainmentError
from tocsin.index.blocks import longer
from tocsin.index.boxes import Int32s
from tocsin.index.containment.held import Asked
from tocsin.kernels.containment.boxes import Question
from tocsin.kernels.containment.kd import DEEP, NODES, Tree, insert_slots, remove_slots, search_tree


class KdTree(Asked):
    """Boxes as points in a tree. ``overflow`` and ``underflow`` bound how many a bucket holds.

    >>> from tocsin.index.boxes import Boxes
    >>> index = KdTree(overflow=16)
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.contain(Boxes.of([{0: [(2, 2)]}, {1: [(2, 2)]}]), k=1)
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "kd"

    def __init__(self, *, overflow: int = 24, underflow: int = 6) -> None:
        if not 0 <= underflow < overflow:
            raise ContainmentError(
                f"a bucket holds from underflow to overflow boxes, and at least one: not {underflow} to {overflow}"
            )
        super().__init__()
        self._overflow, self._underflow = overflow, underflow
        self._filled = 0
        self._tree = self._empty()

    def _added(self, slots: Int32s) -> None:
        self._grow(len(slots))
        insert_slots(self._tree, self._rows, slots, 2 * self._axes, self._overflow)
        if self._tree.state[DEEP] and self._live >= 2 * self._filled:
            self._filled = self._live
            self._tree = self._empty()
            slots = np.random.default_rng(self._live).permutation(self._live_slots())
            self._grow(len(slots))
            insert_slots(self._tree, self._rows, slots, 2 * self._axes, self._overflow)

    def _removing(self, slots: Int32s) -> None:
        remove_slots(self._tree, self._rows, slots, self._overflow, self._underflow)

    def _asked(self, question: Question) -> Any:
        return search_tree(self._tree, self._rows, question, 2 * self._axes, self.tally)

    def _structure(self) -> tuple[Any, ...]:
        return self._tree

    def _empty(self) -> Tree:
        one, left, right, parent, first, size = (np.empty(64, np.int32) for _ in range(6))
        following, state = np.empty(len(self._number_of), np.int32), np.array([0, -1, 0, 0], np.int64)
        return Tree(one, np.empty(64, np.int64), left, right, parent, first, size, following, state)

    def _grow(self, boxes: int) -> None:
        """See that the tree has room for the nodes of so many more boxes."""
        tree = self._tree
        needed = int(tree.state[NODES]) + 2 * boxes + 2
        if needed > len(tree.dimension):
            room = max(needed, 2 * len(tree.dimension))
            tree = tree._replace(**{name: longer(getattr(tree, name), room, 0) for name in Tree._fields[:7]})
        if len(self._number_of) > len(tree.following):
            tree = tree._replace(following=longer(tree.following, len(self._number_of), -1))
        self._tree = tree


CONTAINMENT = KdTree
