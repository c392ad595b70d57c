"""The three older strategies of the concept-tree paper, in our model and with kernels as ours have them.

| strategy | system | subscriptions | an event |
|---|---|---|---|
| `walk` | G-ToPSS | as they are | walks up the tree for each constraint of each candidate, until one fails |
| `expand events` | S-ToPSS | hashed by concepts | a look-up for each combination of concepts at or above its own |
| `expand subscriptions` | MIC | a copy for each combination below its concepts, hashed | one look-up |

Each finds what is on concepts first, and then holds the numbers of the few that are left against their intervals. In
the paper all six attributes are given in every subscription and event, so that all are candidates of `walk`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tocsin.bench.concept_trees import ConceptWorkload, Drawn, Tree
from tocsin.errors import MemoryLimitError
from tocsin.index import Pairs, Queries
from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.bench.concept_strategies import copies_of, expand_events, hashed_keys, look_up_events, walk_up

MOST_COPIES = 30_000_000
"""Beyond so many copies of subscriptions (some 600 MB) expanding them is given up."""


class Strategy(Protocol):
    """What is asked of a strategy: pairs of event rows and subscriptions, and the bytes it takes."""

    nbytes: int

    def overlap(self, queries: Queries) -> Pairs:
        """Return which event matches which subscription."""


class Walk:
    """G-ToPSS: look at every candidate, and walk the tree."""

    def __init__(self, tree: Tree, drawn: Drawn) -> None:
        self._tree, self._drawn = tree, drawn
        self.nbytes = sum(array.nbytes for array in (*tree, *drawn))

    def overlap(self, queries: Queries) -> Pairs:
        """Walk for each constraint of each subscription."""
        return Pairs(*walk_up(*self._drawn, self._tree.parent, queries.low))


class _Hashed:
    """Subscriptions under keys, found by a hash table."""

    _match: Callable[..., tuple[Int32s, Int32s]]

    def __init__(self, tree: Tree, drawn: Drawn, keys: Int64s, owners: Int32s) -> None:
        order = np.argsort(keys, kind="stable")
        distinct, firsts = np.unique(keys[order], return_index=True)
        starts = np.append(firsts, len(keys)).astype(np.int32)
        self._table = (*hashed_keys(distinct), starts, owners[order])
        self._ranges = drawn.low, drawn.high
        self._tree = tree
        self.nbytes = sum(array.nbytes for array in (*self._table, *self._ranges, *tree))

    def overlap(self, queries: Queries) -> Pairs:
        """Look keys up."""
        return Pairs(*type(self)._match(self._table, self._ranges, self._tree.parent, queries.low))


class ExpandedEvents(_Hashed):
    """S-ToPSS: subscriptions as they are, events as all they imply."""

    _match = expand_events

    def __init__(self, tree: Tree, drawn: Drawn) -> None:
        powers = tree.size ** np.arange(drawn.concepts.shape[1] - 1, -1, -1, dtype=np.int64)
        super().__init__(tree, drawn, drawn.concepts @ powers, np.arange(len(drawn.concepts), dtype=np.int32))


class ExpandedSubscriptions(_Hashed):
    """MIC: subscriptions as all that they imply, events as they are."""

    _match = look_up_events

    def __init__(self, tree: Tree, drawn: Drawn) -> None:
        copies = int(tree.below[drawn.concepts].prod(axis=1).sum())
        if copies > MOST_COPIES:
            raise MemoryLimitError(f"{copies:,} copies, {copies / len(drawn.concepts):,.0f} of each subscription")
        super().__init__(tree, drawn, *copies_of(drawn.concepts, tree.high, tree.size))


STRATEGIES: dict[str, type[Walk] | type[ExpandedEvents] | type[ExpandedSubscriptions]] = {
    "walk": Walk,
    "expand events": ExpandedEvents,
    "expand subscriptions": ExpandedSubscriptions,
}
"""The older strategies by name."""


def strategy(name: str, workload: ConceptWorkload, n: int) -> Strategy:
    """Return a strategy that holds the first ``n`` subscriptions.

    >>> found = [strategy(name, ConceptWorkload(2), 500).overlap(ConceptWorkload(2).queries(90)) for name in STRATEGIES]
    >>> len({len(pairs.rows) for pairs in found})
    1
    """
    return STRATEGIES[name](workload.tree, workload.draw(n))
