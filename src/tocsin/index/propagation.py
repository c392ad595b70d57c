"""`propagation`: each box waits in a cluster under one of its equalities, and is looked at only if that one holds.

Map to the clusters paper:

| paper | here |
|---|---|
| section 2.2.1, predicate indexes and bit vector | `index.clusters.interned`, `kernels.clusters.satisfied` |
| section 2.2.1, cluster vector, cluster lists, clusters by columns | `kernels.clusters.family` |
| section 2.2.2, Figure 2, the event matching algorithm | `kernels.propagation.propagate` |
| section 2.2.3, cluster matching | `kernels.propagation.match_cluster` |
| section 2.2.3, with prefetch (UNFOLD, LOOKAHEAD) | `kernels.propagation.match_cluster_ahead` |
| section 2.3, insertion and deletion | `kernels.clusters.family.append_all`, `remove_all` |

Departures: one matching function for all sizes instead of ten, because the loop over further columns is entered only
for boxes whose first remaining predicate holds; the access predicate is the equality on the axis with the most
distinct equalities, since no event statistics are kept here; boxes without any equality are looked at for every
event; a removed box gives its place to the last one of its cluster; lines are asked for ahead only once the clusters
exceed the processor's cache, and only those of the second column, because processors now foresee sequential reads by
themselves and asking for what is in the cache costs a tenth of the speed.
"""

from __future__ import annotations

from typing import ClassVar

from tocsin.index.clusters.family import Clustered

__all__ = ["ENGINE", "Propagation"]


class Propagation(Clustered):
    """The propagation algorithm; ``prefetch`` asks for cache lines ahead of their use where there are more than
    ``cache_bytes`` of clusters.

    >>> import numpy as np
    >>> from tocsin.index import Boxes, Queries
    >>> index = Propagation(prefetch=True)
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)], 1: [(2, 2)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9], [2, 2]])))
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "propagation"

    def __init__(self, *, prefetch: bool = False, cache_bytes: int = 32 << 20) -> None:
        super().__init__(prefetch_above=cache_bytes if prefetch else None)


ENGINE = Propagation
