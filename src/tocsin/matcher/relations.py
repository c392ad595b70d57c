"""Which subscriptions of a matcher cover which: their boxes in a relation graph.

What the index cannot decide of a subscription (the rest that programs verify, conditions of operators) counts as an
axis of its own: a box with such a rest is only covered by a box with the same rest, or with none. That is sound; of two
rests that say the same in other words it does not know.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from tocsin.covering import Graph, RelationGraph, with_residuals
from tocsin.index.boxes import Boxes, Int64s
from tocsin.matcher.matcher import Matcher
from tocsin.operators.residuals import residual_numbers

SomeGraph = TypeVar("SomeGraph", bound=Graph)

CHUNK = 65_536
"""Subscriptions taken into a graph at once."""


class Regions(NamedTuple):
    """Subscriptions as boxes: ``of`` names for each box the place of its subscription in ``ids``, ascending."""

    ids: list[object]
    boxes: Boxes
    of: Int64s


def regions_of(matcher: Matcher) -> Regions:
    """Return the subscriptions of a matcher as boxes that tell all of them, rests and conditions as axes 0 and 1.

    >>> from tocsin import Number, Space
    >>> matcher = Matcher(Space({"price": Number("int64")}))
    >>> matcher.subscribe("cheap", "price < 10")
    >>> regions_of(matcher).boxes.axis.tolist()
    [2]
    """
    with matcher._writing:
        matcher._bury(patience=1.0)
        held, state = matcher._subscriptions, matcher._state
        numbers, boxes = state.index.contents()
        gone = np.isin(numbers, held.view().dying)
        numbers, boxes = numbers[~gone], boxes.take(np.flatnonzero(~gone))
        ids = list(held.ids())
        slots = np.array([held.slot(id) for id in ids], np.int64)
        place = np.full(int(slots.max(initial=-1)) + 1, -1, np.int64)
        place[slots] = np.arange(len(slots))
        of = place[held.owner[numbers]] if len(numbers) else np.empty(0, np.int64)
        order = np.argsort(of, kind="stable")
        numbers, boxes = numbers[order], boxes.take(order)
        rests = residual_numbers(state.programs, held.program[numbers])
        return Regions(ids, with_residuals(with_residuals(boxes, held.condition[numbers]), rests), of[order])


def relation_graph(matcher: Matcher, graph: SomeGraph | None = None) -> SomeGraph | RelationGraph:
    """Return a relation graph of all subscriptions of a matcher: the one given, filled, or `G_1`.

    >>> from tocsin import Number, Space
    >>> matcher = Matcher(Space({"price": Number("int64")}))
    >>> matcher.subscribe("cheap", "price < 10")
    >>> matcher.subscribe("cheaper", "price < 5")
    >>> graph = relation_graph(matcher)
    >>> [graph.owners(root) for root in graph.roots()]
    [['cheap']]
    """
    filled: SomeGraph | RelationGraph = RelationGraph() if graph is None else graph
    ids, boxes, of = regions_of(matcher)
    for begin in range(0, len(ids), CHUNK):
        end = min(begin + CHUNK, len(ids))
        rows = np.arange(*np.searchsorted(of, [begin, end]))
        filled.subscribe_many(ids[begin:end], boxes.take(rows), of[rows] - begin)
    return filled


class Redundancy(NamedTuple):
    """How redundant subscriptions are: how many there are, how many different ones; of these how many no other covers
    (they do the work of all), how many are covered, and how many can never match."""

    subscriptions: int
    different: int
    roots: int
    covered: int
    never: int

    @property
    def share(self) -> float:
        """The share of the subscriptions that need not be forwarded."""
        return 1 - self.roots / self.subscriptions if self.subscriptions else 0.0


def redundancy_of(graph: Graph) -> Redundancy:
    """Say how redundant the subscriptions of a graph are.

    >>> graph = RelationGraph()
    >>> _ = graph.subscribe_many("abc", Boxes.of([{0: [(0, 9)]}, {0: [(1, 2)]}, {0: [(1, 2)]}]))
    >>> redundancy_of(graph)
    Redundancy(subscriptions=3, different=2, roots=1, covered=1, never=0)
    """
    roots, never = len(graph.roots()), len(graph.never())
    return Redundancy(len(graph), graph.nodes, roots, graph.nodes - roots - never, never)
