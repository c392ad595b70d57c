"""What `propagation`, `static` and `dynamic` share: boxes in clusters under access predicates (sections 2 and 3.1).

The structures and their invariants are described in `kernels.clusters`. A subclass decides which tables there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tocsin.index.boxes import Boxes, Int32s, Pairs, Queries
from tocsin.index.interned import PredicateStore
from tocsin.index.locks import ReadWriteLock
from tocsin.index.numbers import NumberPlaces
from tocsin.index.pool import BlockPool
from tocsin.kernels.clusters import (
    CLUSTERS_USED,
    HASHED,
    LISTS_USED,
    MAX_KEY,
    TABLES,
    Clustering,
    Lists,
    Tables,
    append_all,
    assign,
    count_entries,
    rehash_lists,
    remove_all,
    write_boxes,
)
from tocsin.kernels.propagation import propagate
from tocsin.kernels.satisfied import Scratch

_FIRST_ROOM = 64


class Clustered:
    """Boxes in clusters; an engine by inheritance."""

    name: ClassVar[str]

    def __init__(self, *, prefetch: bool) -> None:
        self._prefetch = prefetch
        self._lock = ReadWriteLock()
        self._predicates = PredicateStore()
        self._places = NumberPlaces()
        self._clusters = BlockPool()
        self._clusters.extend(_FIRST_ROOM)
        self._lists = Lists(
            table=np.full(_FIRST_ROOM, -1, np.int32),
            head=np.full(_FIRST_ROOM, -1, np.int32),
            population=np.zeros(_FIRST_ROOM, np.int32),
            key=np.full((_FIRST_ROOM, MAX_KEY), -1, np.int32),
            slots=np.full(2 * _FIRST_ROOM, -1, np.int32),
            free=np.zeros(_FIRST_ROOM, np.int32),
            settled=np.zeros(_FIRST_ROOM, np.float32),
        )
        self._lists.table[0] = 0
        self._tables = Tables(np.zeros((1, MAX_KEY), np.int32), np.zeros(1, np.int32), np.zeros(1, np.int64))
        self._chains = [np.full(_FIRST_ROOM, -1, np.int32) for _ in range(3)]
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
            targets = np.empty(len(numbers), np.int32)
            done = 0
            while done < len(numbers):
                done = assign(self._clustering(), self._predicates.arrays, owned, offsets, done, targets)
                if done < len(numbers):
                    self._make_room()
            self._clusters.announce(targets)
            append_all(self._clustering(), self._predicates.arrays, numbers, owned, offsets, targets)
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
            pairs = Pairs(*propagate(self._clustering(), phase, queries, scratch, self._prefetch, 1024))
            self._spare.append(scratch)
            return pairs

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return every box, put together from its predicates."""
        with self._lock.reading():
            numbers = self._places.held(self._held)
            offsets = count_entries(self._clustering(), self._predicates.arrays, numbers)
            boxes = Boxes(offsets, *(np.empty(offsets[-1], kind) for kind in (np.int32, np.int64, np.int64)))
            write_boxes(self._clustering(), self._predicates.arrays, numbers, boxes)
            return numbers, boxes

    def stats(self) -> Mapping[str, Any]:
        """Return what is held; ``bytes`` includes the working arrays of the threads that have matched."""
        with self._lock.reading():
            arrays = (*self._lists, *self._tables, *self._chains, self._of_predicate, self._on_axis, self._tally)
            scratch = [array for one in self._spare for array in one]
            parts = self._predicates.nbytes + self._places.nbytes + self._clusters.nbytes
            in_use = np.flatnonzero(self._tables.length)
            return {
                "engine": self.name,
                "boxes": self._held,
                "bytes": parts + sum(array.nbytes for array in (*arrays, *scratch)),
                "predicates": len(self._predicates),
                "clusters": int((self._clusters.blocks.lines > 0).sum()),
                "without_access": int(self._lists.population[0]),
                "tables": {
                    tuple(self._tables.schema[table, : self._tables.length[table]].tolist()): int(
                        self._tables.population[table]
                    )
                    for table in in_use
                },
            }

    def __len__(self) -> int:
        return self._held

    def _inserted(self, targets: Int32s) -> None:
        """Act on boxes having come to these clusters; the lock is held for writing."""

    def _removed(self) -> None:
        """Act on boxes having gone; the lock is held for writing."""

    def _asked(self, queries: Queries) -> None:
        """Take note of a question; the lock is not held."""

    def _clustering(self) -> Clustering:
        """Return everything as the kernels take it."""
        return Clustering(
            self._lists,
            self._tables,
            self._clusters.blocks,
            self._clusters.pool,
            self._chains[0],
            self._chains[1],
            self._chains[2],
            self._of_predicate,
            self._on_axis,
            self._places.arrays,
            self._tally,
        )

    def _scratch(self) -> Scratch:
        """Return working arrays that fit the present structures, used ones where there are some."""
        shape = self._predicates.room, self._predicates.axes, len(self._chains[0])
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
        if tally[LISTS_USED] >= len(self._lists.table):
            more = len(self._lists.table) // 2
            self._lists = Lists(
                *(
                    part
                    if name == "slots"
                    else np.concatenate([part, np.full((more, *part.shape[1:]), -1, part.dtype)])
                    for name, part in self._lists._asdict().items()
                )
            )
        if tally[CLUSTERS_USED] >= len(self._chains[0]):
            more = len(self._chains[0]) // 2
            self._chains = [np.concatenate([part, np.full(more, -1, np.int32)]) for part in self._chains]
            self._clusters.extend(len(self._chains[0]))
        if (tally[HASHED] + 1) * 2 > len(self._lists.slots):
            self._lists = self._lists._replace(slots=np.full(2 * len(self._lists.slots), -1, np.int32))
            rehash_lists(self._lists, tally[LISTS_USED])
