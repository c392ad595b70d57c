"""What all relation graphs have: which subscriptions are forwarded, and which others stand for the rest.

| paper (covering) | here |
|---|---|
| `G_k` and its algorithm, sections III-B and III-C | `relation.py` |
| `G*`, section III-A, and the strict poset | `posets.py` |

Departures. Equal subscriptions are one node with many owners: as printed, two equal ones can hang on each other and
nobody forwards either. What becomes uncovered is forwarded before what covered it is withdrawn. A subscription may have
several boxes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tocsin.covering.subscriptions import Given, tidied
from tocsin.errors import CoveringError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.containment.held import Held
from tocsin.index.containment.protocol import Containment, create_containment


class Change(NamedTuple):
    """What a neighbour is to be told, by the keys of nodes: ``forward`` all of these first, then ``withdraw`` those."""

    forward: list[int]
    withdraw: list[int]


class Graph(ABC):
    """What all relation graphs have: subscriptions under ids, nodes under keys that are never used again.

    A subclass has ``_linked`` and ``_unlinked``, which keep its edges. A node without box can never match: it has no
    edge and is never forwarded.
    """

    def __init__(self, index: str = "adaptive", *, store: Held | None = None, **options: Any) -> None:
        self._index: Containment = create_containment(index, **options)
        self._store: Any = self._index if store is None else store
        self._fresh = count()
        self._node_of: dict[Hashable, int] = {}
        self._node_by: dict[bytes, int] = {}
        self._digest_of: dict[int, bytes] = {}
        self._owners: dict[int, Any] = {}
        self._numbers: dict[int, Any] = {}
        self._node_at: Int64s = np.full(64, -1, np.int64)
        self._free: list[int] = []
        self._made = 0
        self._several = 0
        self._parents: dict[int, tuple[int, ...]] = {}
        self._children: dict[int, set[int]] = {}
        self._roots: dict[int, None] = {}
        self.queries = {"subscribe": 0, "unsubscribe": 0}

    # Changing

    def subscribe(self, id: Hashable, boxes: Boxes) -> Change:
        """Add a subscription of any number of boxes, one of which must hold; return what a neighbour is to be told.

        >>> from tocsin.covering import RelationGraph
        >>> graph = RelationGraph()
        >>> graph.subscribe("wide", Boxes.of([{0: [(0, 9)]}]))
        Change(forward=[0], withdraw=[])
        >>> graph.subscribe("narrow", Boxes.of([{0: [(3, 4)]}]))
        Change(forward=[], withdraw=[])
        >>> graph.unsubscribe("wide")
        Change(forward=[1], withdraw=[0])
        """
        return self.subscribe_many([id], boxes, np.zeros(len(boxes), np.int64))

    def subscribe_many(self, ids: Iterable[Hashable], boxes: Boxes, of: Any = None) -> Change:
        """Add subscriptions, all or none; ``of`` names for each box the place of its subscription in ``ids``, ascending
        (without it each has one box)."""
        listed = list(ids)
        _refuse_repeats(listed)
        for id in listed:
            if id in self._node_of:
                raise CoveringError(f"there is a subscription {id!r} already; unsubscribe it first")
        given = tidied(boxes, of, len(listed))
        new: list[int] = []
        nodes: list[int] = []
        for place, (id, key) in enumerate(zip(listed, given.keys, strict=True)):
            digest = hashlib.blake2b(key, digest_size=16).digest()
            node = self._node_by.get(digest)
            if node is None:
                node = self._node_by[digest] = next(self._fresh)
                self._digest_of[node] = digest
                self._owners[node] = id
                new.append(place)
                nodes.append(node)
            else:
                held = self._owners[node]
                if type(held) is not _Owners:
                    held = self._owners[node] = _Owners({held: None})
                held[id] = None
            self._node_of[id] = node
        return self._add(nodes, given.some(new))

    def unsubscribe(self, id: Hashable) -> Change:
        """Remove a subscription; return what a neighbour is to be told."""
        return self.unsubscribe_many([id])

    def unsubscribe_many(self, ids: Iterable[Hashable]) -> Change:
        """Remove subscriptions, all or none."""
        listed = list(ids)
        _refuse_repeats(listed)
        for id in listed:
            if id not in self._node_of:
                raise CoveringError(f"there is no subscription {id!r}, or no longer")
        gone: list[int] = []
        for id in listed:
            node = self._node_of.pop(id)
            owners = self._owners[node]
            if type(owners) is _Owners:
                del owners[id]
            if type(owners) is not _Owners or not owners:
                del self._owners[node], self._node_by[self._digest_of.pop(node)]
                gone.append(node)
        change = self._unlinked(gone)
        self._forget(gone)
        return change

    # Looking

    def __len__(self) -> int:
        """Return the number of subscriptions."""
        return len(self._node_of)

    def __contains__(self, id: object) -> bool:
        return id in self._node_of

    @property
    def nodes(self) -> int:
        """How many different subscriptions there are."""
        return len(self._owners)

    def node(self, id: Hashable) -> int:
        """Return the key of the node of a subscription."""
        if id not in self._node_of:
            raise CoveringError(f"there is no subscription {id!r}")
        return self._node_of[id]

    def roots(self) -> list[int]:
        """Return the nodes that are forwarded, in the order in which they were."""
        return list(self._roots)

    def owners(self, node: int) -> list[Hashable]:
        """Return the ids of the subscriptions that are this node."""
        self._check(node)
        held = self._owners[node]
        return list(held) if type(held) is _Owners else [held]

    def parents(self, node: int) -> list[int]:
        """Return the nodes that this one hangs on: each covers it."""
        self._check(node)
        return list(self._parents.get(node, ()))

    def children(self, node: int) -> list[int]:
        """Return the nodes that hang on this one."""
        self._check(node)
        return sorted(self._children.get(node, ()))

    def boxes(self, node: int) -> Boxes:
        """Return the boxes of a node, without those that others of it contain."""
        self._check(node)
        held: Boxes = self._store.boxes(self._numbers_of([node]))
        return held

    def never(self) -> list[int]:
        """Return the nodes without box, whose subscriptions can never match."""
        return [node for node in self._owners if node not in self._numbers]

    # For subclasses

    @abstractmethod
    def _linked(self, nodes: list[int], given: Given) -> Change:
        """Hang new nodes, each with a box at least, where they belong; return what to forward and withdraw."""

    @abstractmethod
    def _unlinked(self, nodes: list[int]) -> Change:
        """Take nodes out, and hang what hung on them elsewhere; return what to forward and withdraw."""

    def _add(self, nodes: list[int], given: Given) -> Change:
        """Give numbers to the boxes of new nodes and link those that have some."""
        counts = np.diff(given.starts)
        numbers = self._take_numbers(len(given.boxes))
        self._node_at[numbers] = np.repeat(np.array(nodes, np.int64), counts)
        listed, starts = numbers.tolist(), given.starts.tolist()
        for place, node in enumerate(nodes):
            begin, end = starts[place], starts[place + 1]
            if end - begin == 1:
                self._numbers[node] = listed[begin]
            elif end > begin:
                self._numbers[node] = numbers[begin:end]
                self._several += 1
        if self._store is not self._index:
            self._store.insert(numbers, given.boxes)
        some = np.flatnonzero(counts)
        if len(some) < len(nodes):
            starts_of_some = np.concatenate([[0], np.cumsum(counts[some])])
            given = Given(given.boxes, starts_of_some, [])
            nodes = [nodes[place] for place in some.tolist()]
        return self._linked(nodes, given) if nodes else Change([], [])

    def _forget(self, nodes: list[int]) -> None:
        """Free what nodes that are linked to nothing had."""
        numbers = self._numbers_of(nodes)
        if len(numbers):
            self._store.remove(numbers)
            self._free.extend(numbers.tolist())
        for node in nodes:
            held = self._numbers.pop(node, None)
            self._several -= held is not None and not isinstance(held, int)

    def _numbers_of(self, nodes: list[int]) -> Int32s:
        """Return the box numbers of nodes, one after another."""
        held = [self._numbers[node] for node in nodes if node in self._numbers]
        if self._several:
            return np.concatenate([np.empty(0, np.int32), *(np.atleast_1d(some) for some in held)]).astype(np.int32)
        return np.array(held, np.int32)

    def _given(self, nodes: list[int]) -> Given:
        """Return nodes as subscriptions."""
        counts = [1 if isinstance(self._numbers[node], int) else len(self._numbers[node]) for node in nodes]
        return Given(self._store.boxes(self._numbers_of(nodes)), np.cumsum([0, *counts], dtype=np.int64), [])

    def _put(self, nodes: list[int]) -> None:
        """Let nodes be found by the index."""
        numbers = self._numbers_of(nodes)
        self._index.insert(numbers, self._store.boxes(numbers))

    def _covers(self, given: Given, k: int | None, own: list[int] | None = None) -> tuple[Int64s, Int64s]:
        """Return pairs of place and node: up to k nodes found by the index that cover each subscription.

        ``own`` are their nodes, if the index may find those too.
        """
        counts = np.diff(given.starts)
        places = np.repeat(np.arange(len(counts)), counts)
        found: list[tuple[Int64s, Int64s]] = []
        for alone in (True, False):
            rows = np.flatnonzero((counts[places] == 1) == alone)
            if not len(rows):
                continue
            boxes = given.boxes if len(rows) == len(given.boxes) else given.boxes.take(rows)
            bounded = alone and k is not None and (k == 1 or not self._several)
            pairs = self._index.contain(boxes, k + (own is not None) if bounded and k is not None else None)
            place, node = places[rows[pairs.rows]], self._node_at[pairs.numbers]
            if own is not None:
                others = node != np.array(own, np.int64)[place]
                place, node, row = place[others], node[others], pairs.rows[others]
            else:
                row = pairs.rows
            if self._several or not alone:
                place, node, met = _counted(place, node, row)
                whole = met == counts[place]
                place, node = place[whole], node[whole]
            found.append((place, node))
        place, node = (np.concatenate([side, *others]) for side, *others in zip(_NO_PAIRS, *found, strict=True))
        order = np.argsort(place, kind="stable")
        place, node = place[order], node[order]
        if k is not None and len(place):
            rank = np.arange(len(place)) - np.searchsorted(place, place)
            place, node = place[rank < k], node[rank < k]
        return place, node

    def _covered(self, given: Given) -> tuple[Int64s, Int64s]:
        """Return pairs of place and node: all nodes found by the index that each subscription covers, itself too."""
        places = np.repeat(np.arange(len(given.starts) - 1), np.diff(given.starts))
        pairs = self._index.contained(given.boxes)
        place, node = places[pairs.rows], self._node_at[pairs.numbers]
        if not self._several:
            return place, node
        place, node, met = _counted(place, node, pairs.numbers)
        sizes = np.array([np.size(self._numbers[one]) for one in node.tolist()], np.int64)
        return place[met == sizes], node[met == sizes]

    def _hang(self, node: int, parents: Iterable[int]) -> None:
        """Let a node hang on more nodes."""
        held = self._parents.get(node, ())
        self._parents[node] = held + tuple(parent for parent in parents if parent not in held)
        for parent in self._parents[node]:
            self._children.setdefault(parent, set()).add(node)

    def _loosen(self, node: int) -> set[int]:
        """Cut all edges of a node; return the nodes that hung on it."""
        for parent in self._parents.pop(node, ()):
            if parent in self._children:
                self._children[parent].discard(node)
        children = self._children.pop(node, set())
        for child in children:
            self._parents[child] = tuple(parent for parent in self._parents[child] if parent != node)
        return children

    def _take_numbers(self, wanted: int) -> Int32s:
        reused = self._free[len(self._free) - min(wanted, len(self._free)) :]
        del self._free[len(self._free) - len(reused) :]
        fresh = np.arange(self._made, self._made + wanted - len(reused), dtype=np.int32)
        self._made += len(fresh)
        if self._made > len(self._node_at):
            grown = np.full(max(self._made, 2 * len(self._node_at)), -1, np.int64)
            grown[: len(self._node_at)] = self._node_at
            self._node_at = grown
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def _check(self, node: int) -> None:
        if node not in self._owners:
            raise CoveringError(f"there is no node {node!r}, or no longer")


class _Owners(dict[Hashable, None]):
    """The ids of a node that has had several."""


_NO_PAIRS = np.empty(0, np.int64), np.empty(0, np.int64)


def _counted(place: Any, node: Any, of: Any) -> tuple[Int64s, Int64s, Int64s]:
    """Return each pair of place and node once, with how many different values ``of`` it came with."""
    order = np.lexsort((of, node, place))
    place, node, of = place[order], node[order], of[order]
    first = np.ones(len(place), bool)
    first[1:] = (np.diff(place) != 0) | (np.diff(node) != 0)
    new = first.copy()
    new[1:] |= np.diff(of) != 0
    at = np.flatnonzero(first)
    met = np.add.reduceat(new, at) if len(at) else np.empty(0, np.int64)
    return place[at], node[at], met.astype(np.int64)


def _refuse_repeats(ids: list[Hashable]) -> None:
    if len(ids) > 1 and len(set(ids)) != len(ids):
        seen: set[Hashable] = set()
        twice = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise CoveringError(f"the id {twice!r} is given twice within one call")
