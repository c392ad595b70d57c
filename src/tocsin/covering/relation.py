"""`G_k`: every subscription that others cover hangs on up to k of them, and is not forwarded.

Departures from the paper. With ``k=1`` only the nodes that are forwarded are searched: whatever covers a subscription
is itself covered by one of those, so nothing is missed; and what hangs on a node that leaves goes to the node that this
one hung on. ``among="all"`` searches all of them and asks anew, as printed.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np

from tocsin.covering.graph import Change, Graph
from tocsin.covering.subscriptions import Given
from tocsin.errors import CoveringError
from tocsin.index.boxes import Boxes, Int64s
from tocsin.index.containment.held import Held
from tocsin.index.containment.protocol import create_containment


class RelationGraph(Graph):
    """``G_k``: every node that some other covers hangs on up to ``k`` of those.

    ``index``: which containment index finds them, ``options`` are its own. ``absorb``: whether a node that is forwarded
    is withdrawn when one comes that covers it (as printed it stays). ``among``: see above; "roots" needs k = 1.

    >>> graph = RelationGraph()
    >>> graph.subscribe("a", Boxes.of([{0: [(3, 4)]}])).forward
    [0]
    >>> graph.subscribe("b", Boxes.of([{0: [(3, 4)]}])).forward
    []
    >>> graph.subscribe("c", Boxes.of([{0: [(0, 9)]}]))
    Change(forward=[1], withdraw=[0])
    >>> graph.owners(0), graph.parents(0), graph.roots()
    (['a', 'b'], [1], [1])
    """

    def __init__(
        self,
        k: int = 1,
        index: str = "adaptive",
        *,
        absorb: bool = True,
        among: Literal["roots", "all"] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise CoveringError(f"k is on how many nodes one may hang, a number from 1 on, not {k!r}")
        among = among or ("roots" if k == 1 else "all")
        if among not in ("roots", "all") or (among == "roots" and k > 1):
            raise CoveringError(f"among is 'all' or, with k = 1, 'roots'; not {among!r} with k = {k}")
        super().__init__(index, store=Held() if among == "roots" else None, **options)
        self.k = k
        self._only_roots = among == "roots"
        self._absorb = absorb

    def _linked(self, nodes: list[int], given: Given) -> Change:
        self.queries["subscribe"] += len(nodes)
        if not self._only_roots:
            numbers = self._numbers_of(nodes)
            if len(nodes) == 1:
                covers = self._covers(given, self.k)
                self._index.insert(numbers, given.boxes)
            else:
                self._index.insert(numbers, given.boxes)
                covers = self._covers(given, self.k, nodes)
            return self._absorbing(self._settled(nodes, covers))
        return self._rooted(nodes, given, [])

    def _rooted(self, nodes: list[int], given: Given, withdraw: list[int]) -> Change:
        """Hang nodes on roots, or on each other; those left are new roots."""
        place, parent = self._covers(given, 1)
        self._hang_all(nodes, place, parent)
        left = np.setdiff1d(np.arange(len(nodes)), place)
        fresh = [nodes[one] for one in left.tolist()]
        if not fresh:
            return Change([], withdraw)
        if len(fresh) > 1:
            place, parent = self._covers_among(fresh)
            self._hang_all(fresh, place, parent)
            hung = set(place.tolist())
            fresh = [node for one, node in enumerate(fresh) if one not in hung]
        self._put(fresh)
        self._roots.update(dict.fromkeys(fresh))
        return self._absorbing(fresh) if not withdraw else Change(fresh, withdraw)

    def _covers_among(self, nodes: list[int]) -> tuple[Int64s, Int64s]:
        """Return pairs of place and node: for each node one of the others that covers it, if any does."""
        index, given = self._index, self._given(nodes)
        self._index = create_containment(index.name)
        try:
            self._index.insert(self._numbers_of(nodes), given.boxes)
            return self._covers(given, 1, nodes)
        finally:
            self._index = index

    def _settled(self, nodes: list[int], covers: tuple[Int64s, Int64s]) -> list[int]:
        """Hang nodes on what covers them; return those that nothing covers, now roots."""
        place, parent = covers
        self._hang_all(nodes, place, parent)
        left = np.setdiff1d(np.arange(len(nodes)), place).tolist()
        fresh = [nodes[one] for one in left]
        self._roots.update(dict.fromkeys(fresh))
        return fresh

    def _absorbing(self, fresh: list[int]) -> Change:
        """Let the roots that new ones cover hang on those. What an unsubscription uncovers never covers a root: that
        one would have been covered too."""
        absorbed: list[int] = []
        if fresh and self._absorb:
            for place, node in zip(*(side.tolist() for side in self._covered(self._given(fresh))), strict=True):
                if node != fresh[place] and node in self._roots:
                    self._hang(node, [fresh[place]])
                    del self._roots[node]
                    absorbed.append(node)
            if self._only_roots and absorbed:
                self._index.remove(self._numbers_of(absorbed))
        return Change(fresh, absorbed)

    def _unlinked(self, nodes: list[int]) -> Change:
        withdraw = [node for node in nodes if node in self._roots]
        for node in withdraw:
            del self._roots[node]
        going = set(nodes)
        if self._only_roots and withdraw:
            self._index.remove(self._numbers_of(withdraw))
        elif not self._only_roots and any(node in self._numbers for node in nodes):
            self._drop(nodes)
        orphans: dict[int, None] = {}
        for node in nodes:
            above = self._parents.get(node, ())
            for child in self._loosen(node):
                if self._only_roots and above:
                    self._hang(child, above)
                else:
                    orphans[child] = None
        left = [node for node in orphans if node not in going and not self._parents[node]]
        self.queries["unsubscribe"] += len(left)
        if not left:
            return Change([], withdraw)
        if self._only_roots:
            return self._rooted(left, self._given(left), withdraw)
        return Change(self._settled(left, self._covers(self._given(left), self.k, left)), withdraw)

    def _drop(self, nodes: list[int]) -> None:
        """Take nodes out of the index, which is also the store, at once: what follows must not find them."""
        numbers = self._numbers_of(nodes)
        self._index.remove(numbers)
        self._free.extend(numbers.tolist())
        for node in nodes:
            held = self._numbers.pop(node, None)
            self._several -= held is not None and not isinstance(held, int)

    def _hang_all(self, nodes: list[int], place: Int64s, parent: Int64s) -> None:
        for one, above in zip(place.tolist(), parent.tolist(), strict=True):
            self._hang(nodes[one], [above])


def maximal_boxes(boxes: Boxes) -> Boxes:
    """Return the boxes that no other of them contains, of equal ones one: together they hold what all hold.

    >>> maximal_boxes(Boxes.of([{0: [(1, 5)], 1: [(2, 2)]}, {0: [(1, 5)]}, {0: [(0, 2)]}, {0: [(1, 5)]}])).high.tolist()
    [5, 2]
    """
    graph = RelationGraph()
    graph.subscribe_many(range(len(boxes)), boxes)
    rows = sorted(cast(int, graph.owners(root)[0]) for root in graph.roots())
    return boxes.take(np.array(rows, np.int64))
