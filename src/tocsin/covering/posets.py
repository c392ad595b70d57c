"""`G*` and the strict poset: every covering relation, written out or implied by paths.

Both are dear to keep, as the covering paper says (sections III-A and III-D): one that covers all others touches all of
them. They are here to be compared with `G_k`, and for whoever needs to know all relations.
"""

from __future__ import annotations

import numpy as np

from tocsin.covering.graph import Change, Graph
from tocsin.covering.subscriptions import Given


class FullGraph(Graph):
    """``G*``: every node hangs on every other that covers it.

    >>> from tocsin.index.boxes import Boxes
    >>> graph = FullGraph()
    >>> boxes = Boxes.of([{0: [(0, 9)]}, {0: [(1, 8)]}, {0: [(2, 7)]}])
    >>> graph.subscribe_many("abc", boxes).forward
    [0]
    >>> graph.parents(2)
    [0, 1]
    """

    def _linked(self, nodes: list[int], given: Given) -> Change:
        self.queries["subscribe"] += len(nodes)
        new = set(nodes)
        self._index.insert(self._numbers_of(nodes), given.boxes)
        for place, parent in sorted(zip(*(side.tolist() for side in self._covers(given, None, nodes)), strict=True)):
            self._edge(parent, nodes[place])
        withdraw: dict[int, None] = {}
        for place, child in zip(*(side.tolist() for side in self._covered(given)), strict=True):
            if child not in new:
                self._edge(nodes[place], child)
                if child in self._roots:
                    del self._roots[child]
                    withdraw[child] = None
        forward = [node for node in nodes if not self._parents.get(node)]
        self._roots.update(dict.fromkeys(forward))
        return Change(forward, list(withdraw))

    def _unlinked(self, nodes: list[int]) -> Change:
        withdraw = [node for node in nodes if self._roots.pop(node, 0) is None]
        going = set(nodes)
        freed = {child: None for node in nodes for child in sorted(self._loosen(node))}
        forward = [child for child in freed if child not in going and not self._parents[child]]
        self._roots.update(dict.fromkeys(forward))
        return Change(forward, withdraw)

    def _edge(self, parent: int, child: int) -> None:
        self._parents[child] = (*self._parents.get(child, ()), parent)
        self._children.setdefault(parent, set()).add(child)


class StrictPoset(FullGraph):
    """The strict poset: ``G*`` without the edges that paths imply.

    >>> from tocsin.index.boxes import Boxes
    >>> graph = StrictPoset()
    >>> boxes = Boxes.of([{0: [(0, 9)]}, {0: [(1, 8)]}, {0: [(2, 7)]}])
    >>> graph.subscribe_many("abc", boxes).forward
    [0]
    >>> graph.parents(2)
    [1]
    """

    def _linked(self, nodes: list[int], given: Given) -> Change:
        self.queries["subscribe"] += len(nodes)
        dethroned: list[int] = []
        for place, node in enumerate(nodes):
            begin, end = int(given.starts[place]), int(given.starts[place + 1])
            boxes = given.boxes.take(np.arange(begin, end))
            dethroned += self._link(node, Given(boxes, np.array([0, end - begin]), []))
        new = set(nodes)
        return Change([node for node in nodes if node in self._roots], [node for node in dethroned if node not in new])

    def _link(self, node: int, given: Given) -> list[int]:
        """Put a node between the least of those that cover it and the greatest of those that it covers; return which
        are roots no longer.

        A node that covers it is among the least if none that hangs on that one covers it too; and the same downwards.
        """
        above = set(self._covers(given, None)[1].tolist())
        below = set(self._covered(given)[1].tolist())
        self._index.insert(self._numbers_of([node]), given.boxes)
        parents = sorted(one for one in above if not above.intersection(self._children.get(one, ())))
        children = sorted(one for one in below if not below.intersection(self._parents.get(one, ())))
        for child in children:
            for parent in set(self._parents.get(child, ())).intersection(parents):
                self._parents[child] = tuple(one for one in self._parents[child] if one != parent)
                self._children[parent].discard(child)
            self._edge(node, child)
        for parent in parents:
            self._edge(parent, node)
        if not parents:
            self._roots[node] = None
        return [child for child in children if self._roots.pop(child, 0) is None]

    def _unlinked(self, nodes: list[int]) -> Change:
        withdraw = [node for node in nodes if self._roots.pop(node, 0) is None]
        going = set(nodes)
        forward: dict[int, None] = {}
        for node in nodes:
            parents = self._parents.get(node, ())
            for child in sorted(self._loosen(node)):
                higher = self._ancestors(child)
                for parent in parents:
                    if parent not in higher:
                        self._edge(parent, child)
                if not self._parents[child] and child not in going:
                    forward[child] = None
        self._roots.update(forward)
        return Change(list(forward), withdraw)

    def _ancestors(self, node: int) -> set[int]:
        """Return all nodes above one."""
        found: set[int] = set()
        waiting = list(self._parents.get(node, ()))
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self._parents.get(one, ()))
        return found
