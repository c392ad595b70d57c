"""The predicates of all boxes, each kept once: what `counting` and the clustered engines share.

Map to the clusters paper: section 2.2.1, the indexes and the predicate bit vector; section 2.2.2, step 1, is
`kernels.satisfied.satisfy`. Departures: a predicate here is all that a box says about one axis (a range is one
predicate, not two; a set of intervals is one), because boxes arrive in that form; the bit vector holds generations
instead of bits, because clearing it took longer than matching; ordered predicates live in sorted runs with block
maxima rather than in a B-tree, because a two-sided interval needs both of its ends and runs are read in sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.clusters.ordered import OrderedIntervals
from tocsin.kernels.clusters.interned import (
    AXIS,
    FREE,
    HIGH,
    KEEP_POINTS,
    LIVE,
    LOW,
    NO_POINT,
    RETIRED,
    SETS_DEAD,
    SETS_USED,
    USED,
    Predicates,
    count_entries,
    estimate,
    intern,
    rehash,
    write_boxes,
)
from tocsin.kernels.clusters.satisfied import Scratch

_FIRST_ROOM = 256
_CREATED_AT_ONCE = 65_536


class PredicateStore:
    """Predicates by number, with the structures that find the ones an event satisfies.

    >>> store = PredicateStore()
    >>> owned, offsets = store.intern(Boxes.of([{0: [(3, 3)], 1: [(1, 9)]}, {1: [(1, 9)]}]))
    >>> owned.tolist(), offsets.tolist(), len(store)
    ([0, 1, 1], [0, 2, 3], 2)
    """

    def __init__(self) -> None:
        self.arrays = Predicates(
            content=np.zeros((_FIRST_ROOM, 3), np.int64),
            uses=np.zeros(_FIRST_ROOM, np.int32),
            chance=np.zeros(_FIRST_ROOM, np.float32),
            slots=np.full(2 * _FIRST_ROOM, -1, np.int32),
            sets=np.zeros((_FIRST_ROOM, 2), np.int64),
            free=np.zeros(_FIRST_ROOM, np.int32),
            axis_points=np.zeros(0, np.int64),
            tally=np.zeros(8, np.int64),
        )
        self.ranges = OrderedIntervals()
        self.points = OrderedIntervals()
        self._estimated = 0

    def __len__(self) -> int:
        return int(self.arrays.tally[LIVE])

    @property
    def room(self) -> int:
        """One more than the highest number there can be before the arrays grow."""
        return len(self.arrays.content)

    @property
    def axes(self) -> int:
        """The number of axes that predicates have been on."""
        return len(self.arrays.axis_points)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays) + self.ranges.nbytes + self.points.nbytes

    def intern(self, boxes: Boxes) -> tuple[Int32s, Int64s]:
        """Number the predicates of boxes and count their uses.

        Return the numbers (one an axis of each box) and the offsets at which each box's begin.
        """
        self._widen(int(boxes.axis.max(initial=-1)) + 1)
        counts = np.diff(boxes.offsets)
        owned = np.empty(len(boxes.axis), np.int32)
        offsets = np.zeros(len(boxes) + 1, np.int64)
        created = np.empty(max(min(len(owned), _CREATED_AT_ONCE), int(counts.max(initial=0))), np.int32)
        news, start = [np.empty(0, np.int32)], 0
        while start < len(boxes):
            reached, count = intern(self.arrays, boxes, start, owned, offsets, created)
            news.append(created[:count].copy())
            if reached < len(boxes):
                self._grow(int(counts[reached]))
            start = reached
        self._order(np.concatenate(news))
        return owned[: offsets[-1]], offsets

    def boxes(self, owned: Int32s, offsets: Int64s) -> Boxes:
        """Return the boxes that have these predicates: what `intern` was given."""
        entries = count_entries(self.arrays, owned, offsets)
        boxes = Boxes(entries, *(np.empty(entries[-1], kind) for kind in (np.int32, np.int64, np.int64)))
        write_boxes(self.arrays, owned, offsets, boxes)
        return boxes

    def order_points(self) -> None:
        """Keep equalities in order too, from now on: only questions that are ranges need it."""
        arrays = self.arrays
        if not arrays.tally[KEEP_POINTS]:
            live = np.flatnonzero(arrays.uses[: arrays.tally[USED]] > 0).astype(np.int32)
            self._add_points(live[arrays.chance[live] < NO_POINT])
            arrays.tally[KEEP_POINTS] = 1

    def estimate(self, codes: Int64s) -> None:
        """Estimate the chance of every equality from sampled events (int64[axes, events])."""
        estimate(self.arrays, codes)
        self._estimated = len(self)

    @property
    def outgrown(self) -> bool:
        """Whether so many predicates have come since the last estimate that it is worth another."""
        return len(self) > self._estimated + self._estimated // 8

    @property
    def points_in_order(self) -> bool:
        """Whether equalities are kept in order."""
        return bool(self.arrays.tally[KEEP_POINTS])

    def tidy(self) -> None:
        """Once enough numbers have retired, purge the ordered structures of them and set them free."""
        arrays = self.arrays
        if arrays.tally[RETIRED] <= 1024 + arrays.tally[LIVE] // 4:
            return
        retired = np.union1d(self.ranges.purge(arrays.uses), self.points.purge(arrays.uses)).astype(np.int32)
        height = int(arrays.tally[FREE])
        arrays.free[height : height + len(retired)] = retired
        arrays.tally[FREE] += len(retired)
        arrays.tally[RETIRED] = 0
        if arrays.tally[SETS_DEAD] > arrays.tally[SETS_USED] // 2:
            self._pack_sets()

    def scratch(self, candidates: int, hits: int) -> Scratch:
        """Return fresh working arrays for one thread."""
        return Scratch(
            np.zeros(self.room, np.uint8),
            np.zeros(2, np.int64),
            np.empty(self.room, np.int32),
            np.empty(self.axes, np.int32),
            np.empty(candidates, np.int32),
            np.zeros(hits, np.int32),
        )

    def _widen(self, axes: int) -> None:
        if axes > self.axes:
            grown = np.concatenate([self.arrays.axis_points, np.zeros(axes - self.axes, np.int64)])
            self.arrays = self.arrays._replace(axis_points=grown)

    def _grow(self, entries: int) -> None:
        """Make room for at least so many more predicates, in whichever arrays lack it."""
        arrays, tally = self.arrays, self.arrays.tally
        if tally[USED] + entries > self.room:
            room = max(int(tally[USED]) + entries, self.room + self.room // 2)
            arrays = arrays._replace(
                content=_extended(arrays.content, room),
                uses=_extended(arrays.uses, room),
                chance=_extended(arrays.chance, room),
                free=_extended(arrays.free, room),
            )
        if tally[SETS_USED] + entries > len(arrays.sets):
            arrays = arrays._replace(
                sets=_extended(arrays.sets, max(int(tally[SETS_USED]) + entries, 2 * len(arrays.sets)))
            )
        if (tally[LIVE] + entries) * 2 > len(arrays.slots):
            size = 1 << int((tally[LIVE] + entries) * 2).bit_length()
            arrays = arrays._replace(slots=np.full(size, -1, np.int32))
            rehash(arrays)
        self.arrays = arrays

    def _order(self, created: Int32s) -> None:
        """Enter new predicates into the ordered structures they belong to."""
        axis, low, high = self.arrays.content[created].T
        point = (axis >= 0) & (low == high)
        if self.arrays.tally[KEEP_POINTS] and point.any():
            self._add_points(created[point])
        plain = (axis >= 0) & ~point
        self.ranges.add(axis[plain].astype(np.int32), low[plain], high[plain], created[plain], self.axes)
        sets = axis < 0
        if sets.any():
            lengths = high[sets]
            ends = np.cumsum(lengths)
            entry = np.arange(ends[-1]) + np.repeat(low[sets] - (ends - lengths), lengths)
            set_low, set_high = self.arrays.sets[entry].T
            which = np.repeat(~axis[sets].astype(np.int32), lengths)
            self.ranges.add(which, set_low, set_high, np.repeat(created[sets], lengths), self.axes)

    def _add_points(self, numbers: Int32s) -> None:
        axis, low, high = self.arrays.content[numbers].T
        self.points.add(axis.astype(np.int32), low, high, numbers, self.axes)

    def _pack_sets(self) -> None:
        """Close the gaps that dead sets left in their pool."""
        arrays = self.arrays
        live = np.flatnonzero((arrays.uses > 0) & (arrays.content[:, AXIS] < 0))
        first, lengths = arrays.content[live, LOW], arrays.content[live, HIGH]
        packed_first = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
        arrays.sets[:total] = arrays.sets[np.arange(total) + np.repeat(first - packed_first, lengths)]
        arrays.content[live, LOW] = packed_first
        arrays.tally[SETS_USED], arrays.tally[SETS_DEAD] = total, 0


def _extended(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """Return the array with zeros up to ``room``."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), array.dtype)])
