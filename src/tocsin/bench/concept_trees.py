"""The workload of the concept-tree paper, Table 1: six attributes, four with a tree of values, two numeric.

Each tree has two children a node and the same height. A subscription constrains all six attributes: a concept drawn
evenly from all of its tree, or an interval of a numeric range. An event has a concept, drawn likewise, or a number for
each. A concept is its pre-order number, so that what is below it is an interval.

The paper says neither how wide its intervals are nor how many subscriptions match. Here they are a third of the range
at height 5, and as wide at other heights as gives the same number of matches: else the height would change the answer
and not only the way to it. ``broad`` is the share of subscriptions that every event matches, for figure 8 (d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tocsin.index import Boxes, Queries
from tocsin.index.boxes import Int32s, Int64s

TREES, NUMERIC = 4, 2

RANGE = 1_000_000
"""Numbers are 0 to one below this."""

SEED = 2022


class Tree(NamedTuple):
    """A tree in pre-order. ``high``: the last concept below each; ``parent``: -1 for the root."""

    high: Int64s
    parent: Int32s

    @property
    def size(self) -> int:
        """How many concepts there are."""
        return len(self.high)

    @property
    def below(self) -> Int64s:
        """How many concepts are at or below each."""
        return self.high - np.arange(self.size) + 1

    @property
    def chance(self) -> float:
        """How likely one concept is at or below another, both drawn evenly."""
        return float(self.below.sum()) / self.size**2


def complete_tree(height: int, width: int = 2) -> Tree:
    """Return the tree in which each concept above the last level has ``width`` below it.

    >>> complete_tree(1).high.tolist(), complete_tree(1).parent.tolist()
    ([2, 1, 2], [-1, 0, 0])
    >>> complete_tree(5).size
    63
    """
    high, parent = np.zeros(1, np.int64), np.full(1, -1, np.int32)
    for _ in range(height):
        size = len(high)
        shifts = 1 + size * np.arange(width)
        inner = np.concatenate([np.where(parent < 0, 0, parent + shift) for shift in shifts])
        high = np.concatenate([[width * size], *(high + shift for shift in shifts)])
        parent = np.concatenate([[-1], inner]).astype(np.int32)
    return Tree(high, parent)


class Drawn(NamedTuple):
    """Subscriptions as they are drawn. ``concepts``: int32[subscriptions, TREES]; ``low`` and ``high``:
    int64[subscriptions, NUMERIC]."""

    concepts: Int32s
    low: Int64s
    high: Int64s


@dataclass(frozen=True)
class ConceptWorkload:
    """Table 1 at one height.

    >>> workload = ConceptWorkload(5)
    >>> workload.boxes(3)[1].low[:6].tolist()
    [23, 54, 23, 1, 357207, 268418]
    """

    height: int
    broad: float = 0.0
    seed: int = SEED

    @property
    def tree(self) -> Tree:
        """The tree of each of the four attributes."""
        return complete_tree(self.height)

    @property
    def width(self) -> float:
        """The width of numeric intervals, as a share of the range."""
        here, highest = self.tree.chance**TREES, complete_tree(5).chance ** TREES
        return float((highest / here) ** (1 / NUMERIC) / 3)

    def draw(self, n: int) -> Drawn:
        """Draw ``n`` subscriptions; fewer are the beginning of more."""
        concepts, low = np.empty((n, TREES), np.int32), np.empty((n, NUMERIC), np.int64)
        wide = max(1, round(self.width * RANGE))
        for attribute in range(TREES):
            concepts[:, attribute] = self._stream(attribute).integers(self.tree.size, size=n)
        for attribute in range(NUMERIC):
            low[:, attribute] = self._stream(TREES + attribute).integers(0, RANGE - wide, size=n, endpoint=True)
        high = low + wide - 1
        matching = self._stream(TREES + NUMERIC).random(n) < self.broad
        concepts[matching], low[matching], high[matching] = 0, 0, RANGE - 1
        return Drawn(concepts, low, high)

    def boxes(self, n: int) -> tuple[Int32s, Boxes]:
        """Return ``n`` subscriptions as an index takes them: axes 0 to 3 are trees, 4 and 5 numeric."""
        drawn = self.draw(n)
        low = np.concatenate([drawn.concepts, drawn.low], axis=1)
        high = np.concatenate([self.tree.high[drawn.concepts], drawn.high], axis=1)
        axes = np.tile(np.arange(TREES + NUMERIC, dtype=np.int32), n)
        offsets = np.arange(n + 1, dtype=np.int64) * (TREES + NUMERIC)
        return np.arange(n, dtype=np.int32), Boxes(offsets, axes, low.ravel(), high.ravel())

    def queries(self, rows: int) -> Queries:
        """Return ``rows`` events."""
        tops = [self.tree.size] * TREES + [RANGE] * NUMERIC
        lines = [self._stream(100 + attribute).integers(top, size=rows) for attribute, top in enumerate(tops)]
        return Queries.points(np.stack(lines))

    def _stream(self, attribute: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.height, attribute])
