"""What `propagation`, `static` and `dynamic` share: boxes in clusters under access predicates (sections 2 and 3.1).

The structures and their invariants are described in `kernels.clusters.family`. A subclass decides which tables there
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tocsin.index.boxes import Boxes, Int32s, Int64s, Pairs, Queries
from tocsin.index.clusters.interned import PredicateStore
from tocsin.index.clusters.pool import BlockPool
from tocsin.index.locks import ReadWriteLock
from tocsin.index.numbers import NumberPlaces
from tocsin.index.protocol import Index
from tocsin.kernels.clusters.access import assign, improvable, move_all
from tocsin.kernels.clusters.family import (
    CLUSTERS_USED,
    HASHED,
    LISTS_USED,
    MAX_KEY,
    POPULATION,
    TABLES,
    Clustering,
    append_all,
    owned_by,
    rehash_lists,
    remove_all,
)
from tocsin.kernels.clusters.propagation import propagate
from tocsin.kernels.clusters.satisfied import Scratch
from tocsin.kernels.pool import LINES

_FIRST_ROOM = 64

_AT_ONCE = 262_144
"""How many boxes are moved at once: it bounds the memory that moving takes."""


class Clustered(Index):
    """Boxes in clusters; an engine by inheritance."""

    name: ClassVar[str]

    def __init__(self, *, prefetch_above: int | None) -> None:
        self._prefetch_above = prefetch_above
        self._lock = ReadWriteLock()
        self._predicates = PredicateStore()
        self._places = NumberPlaces()
        self._clusters = BlockPool()
        self._clusters.extend(_FIRST_ROOM)
        self._records = np.full((_FIRST_ROOM, 8), -1, np.int32)
        self._records[0] = (0, -1, 0, 0, -1, -1, -1, -1)
        self._slots = np.full(2 * _FIRST_ROOM, -1, np.int32)
        self._free_lists = np.zeros(_FIRST_ROOM, np.int32)
        self._settled = np.zeros(_FIRST_ROOM, np.float32)
        self._schema = np.zeros((1, MAX_KEY + 1), np.int32)
        self._in_table = np.zeros(1, np.int64)
        self._owner, self._following, self._free_clusters = np.full((3, _FIRST_ROOM), -1, np.int32)
        self._of_predicate = np.empty(0, np.int32)
        self._on_axis = np.empty(0, np.int32)
        self._tally = np.zeros(7, np.int64)
        self._tally[LISTS_USED] = self._tally[TABLES] = 1
        self._held = 0
        self._spare: list[Scratch] = []

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Put each box under the least likely of the access predicates there are."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.claim(numbers)
            owned, offsets = self._predicates.intern(boxes)
            self._follow_predicates()
            if self._predicates.outgrown:
                self._predicates.estimate(self._sampled())
            self._arriving(owned, offsets)
            targets = self._targets(owned, offsets)
            append_all(self._clustering(), numbers, owned, offsets, targets)
            self._held += len(numbers)
            self._inserted(targets)

    def remove(self, numbers: Int32s) -> None:
        """Take boxes out of their clusters."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.check_held(numbers)
            remove_all(self._clustering(), self._predicates.arrays, numbers)
            self._held -= len(numbers)
            self._predicates.tidy()
            self._removed()

    def overlap(self, queries: Queries) -> Pairs:
        """Find the satisfied predicates and go through the clusters they give access to, one query after another."""
        if not queries.are_points and not self._predicates.points_in_order:
            with self._lock.writing():
                self._predicates.order_points()
        self._asked(queries)
        with self._lock.reading():
            scratch = self._scratch()
            phase = (self._predicates.arrays, self._predicates.ranges.arrays, self._predicates.points.arrays)
            ahead = self._prefetch_above is not None and self._clusters.pool.nbytes > self._prefetch_above
            found = propagate(self._clustering(), phase, queries, scratch, queries.are_points, ahead)
            self._spare.append(scratch)
            return Pairs(*found)

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return every box, put together from its predicates."""
        with self._lock.reading():
            numbers = self._places.held(self._held)
            return numbers, self._predicates.boxes(*owned_by(self._clustering(), numbers))

    def stats(self) -> Mapping[str, Any]:
        """Return what is held; ``bytes`` includes the working arrays of the threads that have matched."""
        with self._lock.reading():
            clustering = self._clustering()
            arrays = [array for array in clustering if isinstance(array, np.ndarray) and array is not clustering.pool]
            scratch = [array for one in self._spare for array in one]
            parts = self._predicates.nbytes + self._places.nbytes + self._clusters.nbytes + self._statistics_bytes()
            return {
                "engine": self.name,
                "boxes": self._held,
                "bytes": parts + sum(array.nbytes for array in (*arrays, *scratch)),
                "predicates": len(self._predicates),
                "clusters": int((clustering.blocks.shape[:, LINES] > 0).sum()),
                "without_access": int(self._records[0, POPULATION]),
                "tables": {axes: int(self._in_table[table]) for table, axes in self._tables().items()},
            }

    def __len__(self) -> int:
        return self._held

    def _arriving(self, owned: Int32s, offsets: Int64s) -> None:
        """Prepare for boxes with these predicates, not placed yet; the lock is held for writing."""

    def _inserted(self, targets: Int32s) -> None:
        """Act on boxes having come to these clusters; the lock is held for writing."""

    def _removed(self) -> None:
        """Act on boxes having gone; the lock is held for writing."""

    def _asked(self, queries: Queries) -> None:
        """Take note of a question; the lock is not held."""

    def _statistics_bytes(self) -> int:
        """Return the bytes of what is kept about events."""
        return 0

    def _sampled(self) -> Int64s:
        """Return codes of sampled events, int64[axes, events]."""
        return np.empty((0, 0), np.int64)

    def _tables(self) -> dict[int, tuple[int, ...]]:
        """Return the axes of each table in use."""
        lengths = self._schema[:, 0]
        return {
            table: tuple(self._schema[table, 1 : 1 + lengths[table]].tolist())
            for table in np.flatnonzero(lengths).tolist()
        }

    def _add_table(self, axes: tuple[int, ...]) -> int:
        """Make an empty table on these axes, ascending; return its number."""
        unused = np.flatnonzero((self._schema[1:, 0] == 0) & (self._in_table[1:] == 0)) + 1
        if not len(unused):
            room = len(self._schema)
            self._schema = np.concatenate([self._schema, np.zeros((room, MAX_KEY + 1), np.int32)])
            self._in_table = np.concatenate([self._in_table, np.zeros(room, np.int64)])
            unused = np.array([room])
        table = int(unused[0])
        self._schema[table, : len(axes) + 1] = len(axes), *axes
        self._tally[TABLES] = np.flatnonzero(self._schema[:, 0]).max() + 1
        return table

    def _drop_table(self, table: int) -> None:
        """Take a table out of use; its boxes must then be moved by `_improve`."""
        self._schema[table, 0] = 0

    def _improve(self, numbers: Int32s) -> None:
        """Move those of these boxes that have a better place, or whose table is out of use."""
        for begin in range(0, len(numbers), _AT_ONCE):
            some = numbers[begin : begin + _AT_ONCE]
            self._relocate(improvable(self._clustering(), self._predicates.arrays, some))

    def _relocate(self, numbers: Int32s) -> None:
        """Move boxes to the best place there is for each."""
        for begin in range(0, len(numbers), _AT_ONCE):
            some = numbers[begin : begin + _AT_ONCE]
            owned, offsets = owned_by(self._clustering(), some)
            targets = self._targets(owned, offsets)
            move_all(self._clustering(), some, owned, offsets, targets)

    def _targets(self, owned: Int32s, offsets: Int64s) -> Int32s:
        """Choose a cluster for each box and make room there; its predicates are rearranged to suit."""
        targets = np.empty(len(offsets) - 1, np.int32)
        done = 0
        while done < len(targets):
            done = assign(self._clustering(), self._predicates.arrays, owned, offsets, done, targets)
            if done < len(targets):
                self._make_room()
        self._clusters.announce(targets)
        return targets

    def _clustering(self) -> Clustering:
        """Return everything as the kernels take it."""
        return Clustering(
            self._records,
            self._slots,
            self._free_lists,
            self._settled,
            self._schema,
            self._in_table,
            self._clusters.blocks,
            self._clusters.pool,
            self._owner,
            self._following,
            self._free_clusters,
            self._of_predicate,
            self._on_axis,
            self._places.arrays,
            self._tally,
        )

    def _scratch(self) -> Scratch:
        """Return working arrays that fit the present structures, used ones where there are some."""
        shape = self._predicates.room, self._predicates.axes, len(self._owner)
        while self._spare:
            try:
                scratch = self._spare.pop()
            except IndexError:  # another reader took the last
                break
            if (len(scratch.marks), len(scratch.equal_on), len(scratch.candidates)) == shape:
                return scratch
        return self._predicates.scratch(shape[2], 0)

    def _follow_predicates(self) -> None:
        """Keep what is indexed by predicate or axis as long as the store's arrays."""
        missing = self._predicates.room - len(self._of_predicate)
        if missing:
            self._of_predicate = np.concatenate([self._of_predicate, np.full(missing, -1, np.int32)])
        if len(self._on_axis) < self._predicates.axes:
            self._on_axis = np.full(self._predicates.axes, -1, np.int32)

    def _make_room(self) -> None:
        """Grow whatever stands in the way of one more list or cluster."""
        tally = self._tally
        if tally[LISTS_USED] >= len(self._records):
            more = len(self._records) // 2
            self._records = np.concatenate([self._records, np.full((more, 8), -1, np.int32)])
            self._free_lists = np.concatenate([self._free_lists, np.zeros(more, np.int32)])
            self._settled = np.concatenate([self._settled, np.zeros(more, np.float32)])
        if tally[CLUSTERS_USED] >= len(self._owner):
            unused = np.full(len(self._owner) // 2, -1, np.int32)
            self._owner = np.concatenate([self._owner, unused])
            self._following = np.concatenate([self._following, unused])
            self._free_clusters = np.concatenate([self._free_clusters, unused])
            self._clusters.extend(len(self._owner))
        if (tally[HASHED] + 1) * 2 > len(self._slots):
            self._slots = np.full(2 * len(self._slots), -1, np.int32)
            rehash_lists(self._slots, self._records, tally[LISTS_USED])
