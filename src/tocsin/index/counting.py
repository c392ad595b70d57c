"""`counting`: every satisfied predicate gives a hit to each box that has it; a box with all its hits matches.

Map to the clusters paper:

| paper | here |
|---|---|
| section 2.2.1, one entry a distinct predicate | `index.interned` |
| section 2.2.2, step 1, predicate testing | `kernels.satisfied.satisfy` |
| section 5, the association table from predicates to subscriptions | `kernels.counting.Postings` |
| section 5, counting hits | `kernels.counting.count_hits` |

Departures: a counter carries the generation of its event, so that counters are not cleared for each event; a removed
box stays in the association table, unable to match, until a quarter of all boxes are such, because taking it out of
lists that are thousands long at every removal would cost more than all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tocsin.errors import EngineError
from tocsin.index.boxes import Boxes, Int32s, Pairs, Queries
from tocsin.index.clusters.interned import PredicateStore
from tocsin.index.clusters.pool import BlockPool
from tocsin.index.locks import ReadWriteLock
from tocsin.index.numbers import NumberPlaces
from tocsin.index.protocol import Index
from tocsin.kernels.clusters.counting import (
    DEAD,
    FREE,
    HIT_BITS,
    USED,
    Postings,
    Slots,
    announce_postings,
    append_postings,
    count_hits,
    owned_by,
    pack_owned,
    remove_slots,
    sweep,
    take_slots,
)
from tocsin.kernels.clusters.satisfied import Scratch


class Counting(Index):
    """The counting algorithm.

    >>> index = Counting()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)], 1: [(2, 2)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9], [2, 2]])))
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "counting"

    def __init__(self) -> None:
        self._lock = ReadWriteLock()
        self._predicates = PredicateStore()
        self._places = NumberPlaces(positions=False)
        self._postings = BlockPool()
        self._postings.extend(1)
        empty = np.empty(0, np.int32)
        self._slots = Slots(empty, empty, np.empty(0, np.int64), empty, empty, np.zeros(3, np.int64))
        self._owned_used = 0
        self._held = 0
        self._spare: list[Scratch] = []

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes to the lists of their predicates."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        if np.diff(boxes.offsets).max(initial=0) >= 1 << HIT_BITS:
            raise EngineError(f"counting takes boxes of fewer than {1 << HIT_BITS:,} entries")
        with self._lock.writing():
            self._places.claim(numbers)
            owned, offsets = self._predicates.intern(boxes)
            self._make_slots(len(numbers), len(owned))
            taken = take_slots(self._slots, self._places.arrays, numbers, owned, offsets, self._owned_used)
            self._owned_used += len(owned)
            self._postings.extend(self._predicates.room + 1)
            self._postings.announce(announce_postings(self._postings.blocks, owned, offsets))
            append_postings(Postings(self._postings.blocks, self._postings.pool), self._slots, taken)
            self._held += len(numbers)

    def remove(self, numbers: Int32s) -> None:
        """Let the slots of boxes die; sweep once a quarter of them have."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.check_held(numbers)
            postings = Postings(self._postings.blocks, self._postings.pool)
            remove_slots(self._slots, postings, self._predicates.arrays, self._places.arrays, numbers)
            self._held -= len(numbers)
            if self._slots.tally[DEAD] > 64 + self._held // 4:
                sweep(self._slots, postings)
            self._predicates.tidy()

    def overlap(self, queries: Queries) -> Pairs:
        """Count hits for one query after another."""
        with self._prepared(queries):
            scratch = self._scratch()
            phase = (self._predicates.arrays, self._predicates.ranges.arrays, self._predicates.points.arrays)
            postings = Postings(self._postings.blocks, self._postings.pool)
            pairs = Pairs(*count_hits(self._slots, postings, phase, queries, scratch, queries.are_points))
            self._spare.append(scratch)
            return pairs

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return every box, put together from its predicates."""
        with self._lock.reading():
            numbers = self._places.held(self._held)
            owned, offsets = owned_by(self._slots, self._places.arrays, numbers)
            return numbers, self._predicates.boxes(owned, offsets)

    def stats(self) -> Mapping[str, Any]:
        """Return what is held; ``bytes`` includes the working arrays of the threads that have matched."""
        with self._lock.reading():
            parts = (self._predicates.nbytes, self._places.nbytes, self._postings.nbytes)
            scratch = sum(array.nbytes for one in self._spare for array in one)
            return {
                "engine": self.name,
                "boxes": self._held,
                "bytes": sum(parts) + sum(part.nbytes for part in self._slots) + scratch,
                "predicates": len(self._predicates),
                "dead": int(self._slots.tally[DEAD]),
            }

    def __len__(self) -> int:
        return self._held

    def _prepared(self, queries: Queries) -> Any:
        """Return the lock for reading; questions that are ranges need equalities in order first."""
        if not queries.are_points and not self._predicates.points_in_order:
            with self._lock.writing():
                self._predicates.order_points()
        return self._lock.reading()

    def _scratch(self) -> Scratch:
        """Return working arrays that fit the present structures, used ones where there are some."""
        room, axes, slots = self._predicates.room, self._predicates.axes, len(self._slots.number)
        while self._spare:
            try:
                scratch = self._spare.pop()
            except IndexError:  # another reader took the last
                break
            if (len(scratch.marks), len(scratch.equal_on), len(scratch.hits)) == (room, axes, slots):
                return scratch
        return self._predicates.scratch(0, slots)

    def _make_slots(self, boxes: int, predicates: int) -> None:
        """Make room for so many more boxes with so many predicates together."""
        slots = self._slots
        room = int(slots.tally[USED] - slots.tally[FREE]) + boxes
        if room > len(slots.number):
            room = max(room, len(slots.number) + len(slots.number) // 4)
            missing = np.zeros(room - len(slots.number), np.int32)
            slots = slots._replace(
                number=np.concatenate([slots.number, missing]),
                needed=np.concatenate([slots.needed, missing]),
                first=np.concatenate([slots.first, missing.astype(np.int64)]),
                free=np.concatenate([slots.free, missing]),
            )
        if self._owned_used + predicates > len(slots.owned):
            live = int(slots.needed[: slots.tally[USED]].clip(0).sum())
            packed = np.empty(live + predicates + live // 4, np.int32)
            self._owned_used = pack_owned(slots, packed)
            slots = slots._replace(owned=packed)
        self._slots = slots


ENGINE = Counting
