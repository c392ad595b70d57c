"""`dynamic`: propagation with tables on several axes that come and go as boxes and events change.

Map to the clusters paper:

| paper | here |
|---|---|
| section 4, benefit margin BM(c), approximated by probability times boxes | `kernels.dynamic.excessive` |
| section 4, absolute benefit B(H), approximated by the boxes of a table | ``Clustering.in_table`` |
| section 4, reparation power RP(H, C'), approximated by the boxes that would move | `kernels.static.weigh`
(``moved``) |
| section 4.1, thresholds BMmax, Bmin, RPmin | ``margin_max``, ``benefit_min``, ``repair_min`` |
| section 4.1, phase 1, redistribution | `Dynamic._redistribute` |
| section 4.1, phase 1, deletion of a table | `Dynamic._drop_poor_tables` |
| section 4.1, phase 2, creation of tables | `Dynamic._repair` |
| section 4.1, event statistics | `index.sample` |

Departures: maintenance runs at the end of a call that changes boxes, not after each box; among tables of sufficient
reparation power the one that spares events the most boxes is made first, because the paper leaves that choice open; it
is must also spare them so many (``spare_min``) that its look-up pays, which a count of boxes alone does not say; it is
weighed on a sample of at most 65,536 boxes; margins are those of lists (all clusters of an access predicate), since
clusters of one list are visited together; a list for which nothing better was found is looked at again when its margin
has grown by a quarter.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.index.clusters.family import Clustered
from tocsin.index.clusters.sample import SIZE, EventSample
from tocsin.index.clusters.schemas import SAMPLE, weighed
from tocsin.kernels.clusters.dynamic import any_unsettled, boxes_in, excessive, lists_of, movable, settle
from tocsin.kernels.clusters.family import owned_by
from tocsin.kernels.clusters.static import present_access


class Dynamic(Clustered):
    """Clusters under tables that are made and dropped on line.

    ``margin_max`` (BMmax): how many boxes an event may look at, on average, in one list before something is done.
    ``benefit_min`` (Bmin): a table with fewer boxes is dropped. ``repair_min`` (RPmin): a table is made only for so
    many boxes, and if it spares an event looking at ``spare_min`` of them: about what a look-up costs. ``longest``:
    the most axes a table may have; ``most_tables``: how many there may be.

    >>> import numpy as np
    >>> from tocsin.index import Boxes
    >>> index = Dynamic(margin_max=0.5, repair_min=50, benefit_min=10, spare_min=1)
    >>> boxes = Boxes.of([{0: [(v, v)], 1: [(w, w)]} for v in range(9) for w in range(9)])
    >>> index.insert(np.arange(81, dtype=np.int32), boxes)
    >>> index.stats()["tables"]
    {(0, 1): 81}
    """

    name: ClassVar[str] = "dynamic"

    def __init__(
        self,
        *,
        margin_max: float = 1.0,
        benefit_min: int = 1_000,
        repair_min: int = 5_000,
        spare_min: float = 400.0,
        longest: int = 3,
        most_tables: int = 256,
    ) -> None:
        super().__init__(prefetch_above=None)
        self._margin_max = margin_max
        self._benefit_min = benefit_min
        self._repair_min = repair_min
        self._spare_min = spare_min
        self._longest = longest
        self._most_tables = most_tables
        self._sample = EventSample()
        self._estimated_at = 0

    def maintain(self) -> None:
        """Take the latest event statistics into account, and bring clusters and tables in order."""
        with self._lock.writing():
            self._estimate()
            self._drop_poor_tables()
            self._repair()

    def _asked(self, queries: Queries) -> None:
        self._sample.note(queries)

    def _sampled(self) -> Int64s:
        return self._sample.codes

    def _statistics_bytes(self) -> int:
        return self._sample.nbytes

    def _estimate(self) -> None:
        self._predicates.estimate(self._sample.codes)
        self._estimated_at = self._sample.noted

    def _events_changed(self) -> bool:
        """Whether half of the event sample is new since probabilities were estimated."""
        return self._sample.noted - self._estimated_at >= SIZE // 2

    def _inserted(self, targets: Int32s) -> None:
        changed = self._events_changed()
        if changed:
            self._estimate()
        if changed or any_unsettled(self._clustering(), self._predicates.arrays, targets, self._margin_max):
            self._repair()

    def _removed(self) -> None:
        self._drop_poor_tables()

    def _drop_poor_tables(self) -> None:
        """Drop the tables whose absolute benefit is too small; their boxes go to the best of the others."""
        for table in self._tables():
            if self._in_table[table] < self._benefit_min:
                self._drop_table(table)
                self._improve(boxes_in(self._clustering(), lists_of(self._clustering(), table)))

    def _redistribute(self) -> Int32s:
        """Move boxes of lists with an excessive margin to better tables there are; return the lists still excessive."""
        over = excessive(self._clustering(), self._predicates.arrays, self._margin_max)
        self._improve(boxes_in(self._clustering(), over))
        still: Int32s = excessive(self._clustering(), self._predicates.arrays, self._margin_max)
        return still

    def _repair(self) -> None:
        """Redistribute, then make tables for the lists still excessive while one has enough reparation power."""
        over = self._redistribute()
        while len(over):
            axes = self._best_repair(over)
            if not axes:
                break
            table = self._add_table(axes)
            self._relocate(movable(self._clustering(), self._predicates.arrays, over, table))
            over = excessive(self._clustering(), self._predicates.arrays, self._margin_max)
        settle(self._clustering(), self._predicates.arrays, over)
        self._clusters.tidy()

    def _best_repair(self, over: Int32s) -> tuple[int, ...]:
        """Return the schema of the table that spares events the most boxes of these lists, among those with enough
        reparation power, or nothing.
        """
        known = set(self._tables().values())
        if len(known) >= self._most_tables:
            return ()
        boxes = boxes_in(self._clustering(), over)
        numbers = boxes[:: max(1, -(-len(boxes) // SAMPLE))]
        owned, offsets = owned_by(self._clustering(), numbers)
        present, widths = present_access(self._clustering(), self._predicates.arrays, numbers)
        tables = weighed(self._predicates.arrays, owned, offsets, present, widths, self._longest)
        share = len(numbers) / max(len(boxes), 1)
        enough = (tables.moved >= self._repair_min * share) & (tables.saved >= self._spare_min * share)
        for position in np.argsort(-np.where(enough, tables.saved, 0)).tolist():
            if not enough[position]:
                return ()
            if tables.schema(position) not in known:
                return tables.schema(position)
        return ()


ENGINE = Dynamic
