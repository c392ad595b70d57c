"""The cost model: which axes become keys, for which boxes.

The plan is a tree of nodes. Each box goes down from the root: at a node it takes the first child whose axis it has a
key for, and stays where there is none. A child is worth its lookup if it spares a query more candidates than the
lookup costs. Boxes whose candidates would cost a query more than the bitmaps do are left to the bitmaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tocsin.index.boxes import Int64s
from tocsin.index.segments.predicates import Float64s, Predicates
from tocsin.kernels.segments.planning import axis_gains, take_axis

LOOKUP = 8.0
"""What a lookup in a child whose pages are computed costs a query, in nanoseconds on the machine it was measured on."""

HASHED = 40.0
"""The same for a child whose pages are hashed."""

CANDIDATE = 0.8
"""What a candidate box costs a query: most are tested 16 at once."""

BITMAP = 0.014
"""What a box in the bitmaps costs a query of a full batch."""

SAMPLE = 65_536
"""How many boxes the planner looks at."""

ROOMY = 2
"""How many slots a node may spend on each box below it before the pages of its children are hashed."""

SMALL = 4_096
"""So many pages or slots are computed in any case."""

DEPTH = 6
"""The greatest number of key axes of a node."""

NODES = 2_000
"""The greatest number of nodes of a plan."""


@dataclass
class Node:
    """A node of a plan: its parent, the axis that leads to it, its children in the order of choice.

    ``kept``: whether boxes may end here, or go to the bitmaps instead. ``pages``: how many it has, at most.
    ``lookup``: what it costs a query to get here. ``boxes`` and ``candidates`` are estimates for those that end here:
    how many there are, and how many of them a query meets.
    """

    parent: int
    axis: int
    depth: int
    children: list[int] = field(default_factory=list)
    kept: bool = True
    pages: float = 1.0
    lookup: float = 0.0
    boxes: float = 0.0
    candidates: float = 0.0


@dataclass(frozen=True)
class Plan:
    """A tree of nodes, the root first, parents before children, for so many boxes."""

    nodes: list[Node]
    boxes: float

    def path(self, node: int) -> list[int]:
        """Return the axes from the root to a node."""
        axes: list[int] = []
        while node > 0:
            axes.append(self.nodes[node].axis)
            node = self.nodes[node].parent
        return axes[::-1]

    @property
    def cost(self) -> float:
        """What the nodes, and the boxes in them, cost a query in nanoseconds."""
        return sum(node.lookup for node in self.nodes) + CANDIDATE * self.candidates

    @property
    def in_bitmaps(self) -> float:
        """How many boxes are expected to be left to the bitmaps."""
        return self.boxes - sum(node.boxes for node in self.nodes if node.kept)

    @property
    def candidates(self) -> float:
        """How many boxes in nodes a query is expected to be checked against."""
        return sum(node.candidates for node in self.nodes if node.kept)


def plan(predicates: Predicates, boxes: int, weight: float = 1.0) -> Plan:
    """Choose nodes for so many boxes, of which each stands for ``weight``."""
    step = max(1, boxes // SAMPLE)
    return _Growth(predicates, weight * step, np.arange(0, boxes, step, dtype=np.int64)).result()


class _Growth:
    """A plan that grows, node by node, over a sample of boxes of which each stands for ``weight``."""

    def __init__(self, predicates: Predicates, weight: float, members: Int64s) -> None:
        self._predicates = predicates
        self._weight = weight
        boxes = len(predicates.row_start) - 1
        self._reach: Float64s = np.ones(boxes)
        self._replicated = np.zeros(boxes, np.bool_)
        self._nodes = [Node(parent=-1, axis=-1, depth=0)]
        self._boxes = len(members) * weight
        waiting = [(0, members)]
        for node, here in waiting:
            waiting.extend(self._branch(node, here))

    def result(self) -> Plan:
        """Return the plan without the nodes that the bitmaps undercut."""
        for node in reversed(self._nodes):
            node.children = [child for child in node.children if self._is_of_use(child)]
            node.kept = node.parent >= 0 and node.candidates * CANDIDATE < node.boxes * BITMAP
        order = [0]
        for number in order:
            order.extend(self._nodes[number].children)
        place = {number: i for i, number in enumerate(order)}
        nodes = [self._nodes[number] for number in order]
        for node in nodes:
            node.parent = place.get(node.parent, -1)
            node.children = [place[child] for child in node.children]
        grown = Plan(nodes, self._boxes)
        spared = BITMAP * sum(node.boxes for node in nodes if node.kept)
        return grown if spared > grown.cost else Plan([Node(parent=-1, axis=-1, depth=0, kept=False)], self._boxes)

    def _is_of_use(self, number: int) -> bool:
        """Return whether a node, whose descendants are decided, has children or boxes worth its lookup."""
        node = self._nodes[number]
        spared = node.boxes * BITMAP - node.candidates * CANDIDATE
        return bool(node.children) or spared > node.lookup

    def _branch(self, number: int, members: Int64s) -> list[tuple[int, Int64s]]:
        """Give a node its children, best first, and return them with their boxes."""
        node = self._nodes[number]
        used = np.zeros(len(self._predicates.axes), np.bool_)
        above = number
        while above > 0:
            used[self._nodes[above].axis] = True
            above = self._nodes[above].parent
        here = min(1.0, self._reach[members].sum() * self._weight)
        here_boxes = len(members) * self._weight
        grown = []
        while node.depth < DEPTH and len(self._nodes) < NODES and len(members) and len(used):
            gains = np.zeros(len(used))
            rows = (self._predicates.row_start, self._predicates.held, used)
            of = self._predicates
            axis_gains(members, self._reach, self._replicated, rows, of.axis_of, of.cells, of.chance, gains)
            axis = int(np.argmax(gains))
            pages = node.pages * of.axes[axis].cells
            room = max(SMALL, ROOMY * here_boxes)
            lookup = here * (LOOKUP if pages <= room else HASHED)
            if gains[axis] * self._weight * CANDIDATE <= lookup:
                break
            keys = take_axis(members, axis, self._replicated, rows, of.axis_of, of.cells)
            moved = members[keys >= 0]
            self._reach[moved] *= of.chance[keys[keys >= 0]]
            self._replicated[moved] |= of.cells[keys[keys >= 0]] > 1
            members = members[keys < 0]
            child = Node(parent=number, axis=axis, depth=node.depth + 1, lookup=lookup)
            child.pages = min(pages, max(SMALL, len(moved) * self._weight))
            self._nodes.append(child)
            node.children.append(len(self._nodes) - 1)
            grown.append((len(self._nodes) - 1, moved))
        node.boxes = len(members) * self._weight
        node.candidates = float(self._reach[members].sum()) * self._weight
        return grown
