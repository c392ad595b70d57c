"""`static`: propagation with tables on several axes, chosen together by their benefit per unit of space.

Map to the clusters paper:

| paper | here |
|---|---|
| section 3.1, access predicates, hashing configurations, clustering instances | `kernels.clusters.family` |
| section 3.1.1, matching cost K_r, C_h, K_h, checking | `Costs` |
| section 3.1.2, space cost | `Static._space_of` |
| section 3.2.1, best clustering instance for a configuration | `kernels.access.best_access` |
| section 3.2.2, benefit of an additional table | `kernels.static.weigh`, `Static._benefits` |
| section 3.2.3, the greedy algorithm under a space bound | `Static._choose` |

Departures: benefits are summed over a sample of at most 65,536 boxes and scaled up, because the sum over all boxes for
every candidate at every step would make loading many times slower for the same choice; schemas have at most ``longest``
axes; a table that later choices leave without boxes is dropped; the probability of a conjunction is the product of its
parts'; the configuration is chosen anew, from scratch, whenever the number of boxes has doubled, and when
`Static.reorganize` is called.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.index.clusters.family import Clustered
from tocsin.index.clusters.sample import EventSample
from tocsin.index.clusters.schemas import Float64s, Weighed, take_sample, weighed
from tocsin.kernels.clusters.static import adopt, single_access

LIST_BYTES = 100
"""What a list and its first cluster take beside the boxes: a record, two hash slots, a block, its links."""

TABLE_BYTES = 32
"""What an empty table takes."""


@dataclass(frozen=True)
class Costs:
    """The constants of the cost formula 3.1.1, in nanoseconds, as measured on W0 (see ``docs/engines/static.md``)."""

    retrieving: float = 4.0
    hashing: float = 150.0
    hashing_axis: float = 5.0
    checking: float = 0.4

    def of_tables(self, tables: Weighed, presence: Float64s) -> Float64s:
        """Return what each of these tables costs an event; ``presence`` is the share of events that carry each axis."""
        carried = np.where(tables.axes >= 0, presence[tables.axes], 1.0).prod(axis=1)
        axes = (tables.axes >= 0).sum(axis=1)
        cost: Float64s = self.retrieving + carried * (self.hashing + self.hashing_axis * axes)
        return cost


class Static(Clustered):
    """Clusters under tables chosen for the boxes at hand.

    ``max_bytes`` bounds the space of clusters and tables; None means no bound. ``longest``: the most axes a table may
    have; ``most_tables``: how many there may be. ``replan_from``: with fewer boxes there are no tables.
    ``checking_ns`` overrides the cost of looking at one box.

    >>> from tocsin.index import Boxes
    >>> index = Static(replan_from=1, checking_ns=1e6)
    >>> boxes = Boxes.of([{0: [(v, v)], 1: [(w, w)]} for v in range(9) for w in range(9)])
    >>> index.insert(np.arange(81, dtype=np.int32), boxes)
    >>> index.stats()["tables"]
    {(0, 1): 81}
    """

    name: ClassVar[str] = "static"

    def __init__(
        self,
        *,
        max_bytes: int | None = None,
        longest: int = 3,
        most_tables: int = 256,
        replan_from: int = 10_000,
        checking_ns: float = Costs.checking,
    ) -> None:
        super().__init__(prefetch_above=None)
        self._costs = Costs(checking=checking_ns)
        self._max_bytes = math.inf if max_bytes is None else max_bytes
        self._longest = longest
        self._most_tables = most_tables
        self._replan_at = replan_from
        self._sample = EventSample()

    def reorganize(self) -> None:
        """Choose the tables anew, for the boxes held and the events seen, and move the boxes to them."""
        with self._lock.writing():
            self._predicates.estimate(self._sample.codes)
            self._plan(np.empty(0, np.int32), np.zeros(1, np.int64))

    def _asked(self, queries: Queries) -> None:
        self._sample.note(queries)

    def _sampled(self) -> Int64s:
        return self._sample.codes

    def _statistics_bytes(self) -> int:
        return self._sample.nbytes

    def _arriving(self, owned: Int32s, offsets: Int64s) -> None:
        """Plan before boxes are placed, if there are to be twice as many as the last plan was made for."""
        boxes = self._held + len(offsets) - 1
        if boxes >= self._replan_at:
            self._predicates.estimate(self._sample.codes)
            self._plan(owned, offsets)
            self._replan_at = 2 * boxes

    def _plan(self, owned: Int32s, offsets: Int64s) -> None:
        """Choose tables for the boxes held and those arriving, and move the held ones."""
        chosen = self._choose(owned, offsets)
        for table, axes in self._tables().items():
            if axes not in chosen:
                self._drop_table(table)
        known = set(self._tables().values())
        for axes in chosen:
            if axes not in known:
                self._add_table(axes)
        self._improve(self._places.held(self._held))
        self._clusters.tidy()

    def _choose(self, owned: Int32s, offsets: Int64s) -> list[tuple[int, ...]]:
        """Return the schemas that the greedy algorithm picks."""
        arrays = self._predicates.arrays
        boxes = self._held + len(offsets) - 1
        owned, offsets = take_sample(self._clustering(), self._places.held(self._held), owned, offsets)
        if len(offsets) < 2:
            return []
        scale = boxes / (len(offsets) - 1)
        present, widths = single_access(arrays, owned, offsets)
        space = 4.0 * scale * (len(owned) - widths.sum())
        presence = self._sample.presence(self._predicates.axes)
        chosen: list[tuple[int, ...]] = []
        chosen_by = np.full(len(present), -1)
        better = np.empty(len(present), np.bool_)
        while space < self._max_bytes and len(chosen) < self._most_tables:
            tables = weighed(arrays, owned, offsets, present, widths, self._longest)
            benefit = tables.saved * scale * self._costs.checking - self._costs.of_tables(tables, presence)
            added = self._space_of(tables, scale)
            # a table that takes no space has an infinite benefit per unit of it, and the greater benefit decides
            rank = np.where(added > 0, benefit / np.maximum(added, 1.0), benefit * 1e12)
            best = int(rank.argmax()) if len(rank) else -1
            if best < 0 or benefit[best] <= 0 or space + added[best] > self._max_bytes:
                break
            space += added[best]
            chosen.append(tables.schema(best))
            adopt(arrays, owned, offsets, np.array(chosen[-1]), present, widths, better)
            chosen_by[better] = len(chosen) - 1
        return [axes for place, axes in enumerate(chosen) if (chosen_by == place).any()]

    def _space_of(self, tables: Weighed, scale: float) -> Float64s:
        """Return the bytes each table adds: its lists, less the predicates that its boxes no longer store."""
        points = np.where(tables.axes >= 0, self._predicates.arrays.axis_points[tables.axes], 1)
        keys = points.astype(np.float64).prod(axis=1)
        lists = keys * -np.expm1(-tables.moved * scale / keys)
        space: Float64s = TABLE_BYTES + LIST_BYTES * lists - 4 * tables.columns * scale
        return space


ENGINE = Static
