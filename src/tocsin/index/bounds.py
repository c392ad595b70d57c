"""`bounds`: two sorted lists of bounds an axis, for boxes that are asked about and for queries that move.

Map to the subject-space paper:

| paper | here |
|---|---|
| section 5.5, two sorted lists a dimension, infinite bounds not listed | `kernels.bounds.moves.Run`, `index.runs` |
| section 5.6.1 and figure 7, stateless filtering | `kernels.bounds.stateless.overlap_run` |
| section 5.6.2 and figure 9, state-persistent filtering | `kernels.bounds.moves.begun_in_run` |
| figure 10, do two intervals overlap | `kernels.bounds.moves.meets` |

Departures. The lists are arrays, not skip lists: what is inserted waits unsorted, and is sorted in when the questions
asked since have paid for it (each looks through what waits). An index that changes much and is asked little, such as
one of publications on the move, so never sorts for nothing. Beside each bound lies the other end of its interval and
what its box says of one other axis, so that what lies between an old and a new value is mostly decided in memory order.
Beside the lists of an axis that many boxes
constrain lie the bits of these: a value excludes most of them, and so excludes them all but the few it meets. Where
one axis alone leaves few boxes, those are verified instead of excluding all others. Ends that touch do overlap, a
dimension that only one side of a move constrains is a move from or to NULL or everything, and both are as `scan` has
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tocsin.index.blocks import ANSWERS, picked
from tocsin.index.boxes import Boxes, Int32s, Int64s, Moved, Pairs, Queries
from tocsin.index.locks import ReadWriteLock
from tocsin.index.marks import Marks
from tocsin.index.moves import checked
from tocsin.index.numbers import NumberPlaces
from tocsin.index.protocol import Index, under_names
from tocsin.index.runs import nbytes_of, run_of
from tocsin.index.segments.states import readable
from tocsin.index.waiting import FOREVER, Waiting
from tocsin.kernels.bounds.moves import moved_in_run
from tocsin.kernels.bounds.stateless import mark_run, moved_in_fresh, overlap_fresh, overlap_run
from tocsin.kernels.bounds.waiting import overwrite, put_places, take_places
from tocsin.kernels.segments.checking import Asked, Found, sort_by_row
from tocsin.kernels.segments.overlap import no_pairs

SORTING = 16
"""What sorting in one entry costs, in boxes looked through."""

SPARSE = 1024
"""How many of those that wait may be dead before they are packed, at least."""

DENSE = 64
"""Rows that meet at least one box in so many take less memory as bits."""

MOST_BITS = 1 << 26
"""An answer of bits takes at most so many bytes: that rows meet very many boxes is only a guess."""

SAMPLE = 8
"""So many rows tell how much room the others need."""

NONE_DIED: Int64s = np.empty(0, np.int64)


class Bounds(Index):
    """Sorted bounds.

    >>> index = Bounds()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9]])))
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    >>> index.moved(Queries.points(np.array([[3]])), Queries.points(np.array([[6]]))).left.numbers.tolist()
    [7]
    """

    name: ClassVar[str] = "bounds"

    def __init__(self) -> None:
        self._lock = ReadWriteLock()
        self._places = NumberPlaces(positions=False)
        self._run = run_of(np.empty(0, np.int32), Boxes.of([]), masked=True)
        self._died = NONE_DIED
        self._waiting = Waiting()
        self._held = 0
        self._looked = 0
        self._sorted = 0
        self._pairs_a_row = 0.0

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes to those that wait."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.claim(numbers)
            put_places(self._places.arrays, numbers, len(self._run.numbers) + self._waiting.count)
            self._waiting.append(numbers, boxes)
            self._held += len(numbers)

    def remove(self, numbers: Int32s) -> None:
        """Let boxes die where they are; the dead go when the bounds are next sorted."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.check_held(numbers)
            places = take_places(self._places.arrays, numbers)
            here = places[places < len(self._run.numbers)]
            if len(here):
                if not len(self._died):
                    self._died = np.full(len(self._run.numbers), FOREVER)
                self._died[here] = 0
            self._waiting.strike(places[places >= len(self._run.numbers)] - len(self._run.numbers))
            self._held -= len(numbers)
            self._pack_if_sparse()

    def replace(self, numbers: Int32s, boxes: Boxes) -> None:
        """Let boxes be others: those that wait change where they are, which makes much changing cheap."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.writing():
            self._places.check_held(numbers)
            sorted_in, waiting = len(self._run.numbers), self._waiting
            left, old = overwrite(self._places.arrays, numbers, sorted_in, waiting.arrays, tuple(boxes))
            if len(left):
                here = old[old < sorted_in]
                if len(here):
                    if not len(self._died):
                        self._died = np.full(sorted_in, FOREVER)
                    self._died[here] = 0
                waiting.strike(old[old >= sorted_in] - sorted_in)
                put_places(self._places.arrays, numbers[left], sorted_in + waiting.count)
                waiting.append(numbers[left], boxes.take(left))
                self._pack_if_sparse()

    def overlap(self, queries: Queries) -> Pairs:
        """Exclude what bounds exclude, and look through what waits."""
        return self._overlap(queries, None)

    def named_overlap(self, queries: Queries, names: Int32s) -> Pairs:
        """Do the same; where many rows are asked about, boxes are named once and not each pair."""
        if queries.rows <= SAMPLE:
            return under_names(self._overlap(queries, None), names)
        return self._overlap(queries, names)

    def marked_overlap(self, queries: Queries, names: Int32s) -> Marks | None:
        """Return the same as bits, where many rows probably meet very many boxes; else None."""
        low, high = _sides(queries)
        self._sort_if_due(queries.rows)
        with self._lock.reading():
            rows, held = queries.rows, len(self._run.numbers)
            words = (held + 63) >> 6
            few = rows <= SAMPLE or self._pairs_a_row * DENSE <= held
            if few or self._waiting.count or rows * words * 8 > MOST_BITS:
                return None
            met = ANSWERS.taken(rows * words, np.uint64).reshape(rows, words)
            counts = np.empty(rows, np.int64)
            mark_run(self._run, Asked(low, high, self._died, 0), met, counts)
            found = Marks(met, counts, picked(names, self._run.numbers))
            self._pairs_a_row = len(found) / rows
            return found

    def _overlap(self, queries: Queries, names: Int32s | None) -> Pairs:
        low, high = _sides(queries)
        self._sort_if_due(queries.rows)
        with self._lock.reading():
            rows, waiting, run = queries.rows, self._waiting, self._run
            fresh = waiting.arrays
            if names is not None:
                run = run._replace(numbers=picked(names, run.numbers))
                fresh = fresh._replace(numbers=picked(names, fresh.numbers[: waiting.count]))
            asked = Asked(low, high, self._died, 0)
            first = min(rows, SAMPLE)
            found, count = overlap_run(run, asked, 0, first, no_pairs(256), 0)
            if first < rows:
                found = _roomy(found, count, len(run.numbers) + count * rows * 5 // (first * 4))
                found, count = overlap_run(run, asked, first, rows, found, count)
            if waiting.count:
                asked = Asked(low, high, waiting.died, 0)
                found, count = overlap_fresh(fresh, waiting.count, asked, 0, rows, found, count)
            self._looked += rows * self._weight
            self._pairs_a_row = count / max(rows, 1)
            return _pairs(found, count, rows, bool(waiting.count))

    def moved(self, old: Queries, new: Queries) -> Moved:
        """Look at the bounds between old and new, and through what waits."""
        checked(old, new)
        before, after = _sides(old), _sides(new)
        self._sort_if_due(2 * old.rows)
        with self._lock.reading():
            self._looked += 2 * old.rows * self._weight
            moved, waiting = moved_in_run(self._run, before, after, self._died, 0), self._waiting
            if waiting.count:
                moved = moved_in_fresh(waiting.arrays, waiting.count, before, after, waiting.died, 0, moved)
            come, came, gone, went = moved
            return Moved(Pairs(come, came), Pairs(gone, went))

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return the boxes alive, sorted by number."""
        with self._lock.reading():
            numbers, boxes = self._alive()
            order = np.argsort(numbers)
            return numbers[order], boxes.take(order)

    def stats(self) -> Mapping[str, Any]:
        """Return what is held, how much of it waits unsorted and how often all was sorted."""
        with self._lock.reading():
            held = nbytes_of(self._run) + self._died.nbytes + self._waiting.nbytes + self._places.nbytes
            return {
                "engine": self.name,
                "boxes": self._held,
                "bytes": held,
                "bounds": len(self._run.lower.code) + len(self._run.upper.code),
                "waiting": self._waiting.count,
                "sorted": self._sorted,
            }

    def __len__(self) -> int:
        return self._held

    def _alive(self) -> tuple[Int32s, Boxes]:
        run = self._run
        numbers, boxes = run.numbers, Boxes(run.offsets, run.axis, run.low, run.high)
        if len(self._died):
            kept = np.flatnonzero(self._died > 0)
            numbers, boxes = numbers[kept], boxes.take(kept)
        waiting_numbers, waiting_boxes = self._waiting.alive()
        return np.concatenate([numbers, waiting_numbers]), Boxes.concatenate([boxes, waiting_boxes])

    def _sort_if_due(self, rows: int) -> None:
        """Sort in what waits, once looking through it has cost as much as sorting does."""
        waiting = self._waiting
        if waiting.count and self._looked + rows * self._weight > SORTING * self._entries():
            self.settle()

    def settle(self) -> None:
        """Sort in what waits, now: for boxes that come in bulk and will be asked about much."""
        with self._lock.writing():
            if self._waiting.count:
                numbers, boxes = self._alive()
                self._run, self._died, self._waiting = run_of(numbers, boxes, masked=True), NONE_DIED, Waiting()
                put_places(self._places.arrays, self._run.numbers, 0)
                self._looked = 0
                self._sorted += 1

    def _pack_if_sparse(self) -> None:
        """Forget the dead among those that wait, once they are most."""
        if self._waiting.dead == self._waiting.count:
            self._waiting.clear()
        elif self._waiting.dead > max(SPARSE, self._waiting.count // 2):
            self._waiting = self._waiting.packed()
            packed = self._waiting.arrays.numbers[: self._waiting.count]
            put_places(self._places.arrays, packed, len(self._run.numbers))

    @property
    def _weight(self) -> int:
        """What looking through those that wait costs: a box with many intervals takes longer."""
        return self._waiting.count + self._waiting.entries // 4

    def _entries(self) -> int:
        return len(self._run.axis) + self._waiting.entries + len(self._run.numbers)


def _sides(queries: Queries) -> tuple[Int64s, Int64s]:
    low = readable(queries.low)
    return low, low if queries.are_points else readable(queries.high)


def _roomy(found: Found, count: int, room: int) -> Found:
    """Return pairs in memory that is used again: touching it for the first time costs more than finding what is written
    there."""
    longer = Found(ANSWERS.taken(room, np.int32), ANSWERS.taken(room, np.int32))
    longer.rows[:count], longer.numbers[:count] = found.rows[:count], found.numbers[:count]
    return longer


def _pairs(found: Found, count: int, rows: int, mixed: bool) -> Pairs:
    """Return what was found; two parts were asked where it is mixed, and it is sorted by row."""
    if mixed and rows > 1:
        found = sort_by_row(found, count, 0, rows)
    return Pairs(found.rows[:count], found.numbers[:count])


ENGINE = Bounds
