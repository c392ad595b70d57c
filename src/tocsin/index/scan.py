"""`scan`: the oracle. It tests every box against every query with NumPy, obviously and slowly.

Every other engine must return what this one returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tocsin.errors import BoxNumberError
from tocsin.index.boxes import NULL, Boxes, Int32s, Pairs, Queries
from tocsin.index.protocol import Index


class Scan(Index):
    """All boxes in one list.

    >>> index = Scan()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9]])))
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "scan"

    def __init__(self) -> None:
        self._held: tuple[Int32s, Boxes] = np.empty(0, np.int32), Boxes.of([])

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes at the end of the list."""
        held, old = self._held
        clashes = np.intersect1d(held, numbers)
        if len(clashes) or len(np.unique(numbers)) != len(numbers):
            raise BoxNumberError(f"box numbers given twice: {clashes[:5].tolist() or 'within one call'}")
        self._held = np.concatenate([held, numbers.astype(np.int32)]), Boxes.concatenate([old, boxes])

    def remove(self, numbers: Int32s) -> None:
        """Take boxes out of the list."""
        held, boxes = self._held
        unknown = np.setdiff1d(numbers, held)
        if len(unknown) or len(np.unique(numbers)) != len(numbers):
            raise BoxNumberError(f"no such box numbers: {unknown[:5].tolist() or 'given twice within one call'}")
        rest = np.flatnonzero(~np.isin(held, numbers))
        self._held = held[rest], boxes.take(rest)

    def overlap(self, queries: Queries) -> Pairs:
        """Test every entry of every box against one query after another."""
        numbers, boxes = self._held
        found = [numbers[self._met_by(boxes, *query)] for query in self._each(queries, boxes)]
        rows = np.repeat(np.arange(len(found), dtype=np.int32), [len(some) for some in found])
        return Pairs(rows, np.concatenate(found) if found else np.empty(0, np.int32))

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return the list in the order of its numbers."""
        numbers, boxes = self._held
        order = np.argsort(numbers)
        return numbers[order], boxes.take(order)

    def stats(self) -> Mapping[str, Any]:
        """Return the number of boxes and the bytes of the list."""
        numbers, boxes = self._held
        return {"engine": self.name, "boxes": len(boxes), "bytes": numbers.nbytes + sum(part.nbytes for part in boxes)}

    def __len__(self) -> int:
        return len(self._held[0])

    @staticmethod
    def _each(queries: Queries, boxes: Boxes) -> Any:
        """Yield each query as (low, high), padded with NULL up to the axes that the boxes mention."""
        axes = max(queries.axes, int(boxes.axis.max(initial=-1)) + 1)
        padding = np.full((axes - queries.axes, queries.rows), NULL)
        low, high = (np.concatenate([side, padding]) for side in queries)
        return zip(low.T, high.T, strict=True)

    @staticmethod
    def _met_by(boxes: Boxes, low: Any, high: Any) -> Any:
        """Return for each box whether one interval on each of its axes overlaps the query."""
        entry_met = (boxes.low <= high[boxes.axis]) & (low[boxes.axis] <= boxes.high)
        box = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))
        first = np.flatnonzero(np.diff(box, prepend=-1) | np.diff(boxes.axis, prepend=-1))
        axis_met = np.logical_or.reduceat(entry_met, first) if len(first) else entry_met
        failed = np.bincount(box[first], weights=~axis_met, minlength=len(boxes))
        return failed == 0


ENGINE = Scan
