"""Boxes held as rows, the ground on which every containment index stands, and single boxes compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tocsin.errors import BoxError, BoxNumberError, ContainmentError
from tocsin.index.blocks import longer
from tocsin.index.boxes import Boxes, Int32s, Int64s, Pairs
from tocsin.index.locks import ReadWriteLock
from tocsin.index.numbers import NumberPlaces
from tocsin.kernels.containment.boxes import Question, Rows, contains, copy_rows, gather_rows, needless, tidy_rows
from tocsin.kernels.numbers import ABSENT, PAGE, PAGE_BITS

EVERY = 1 << 40
"""As many answers as there are."""


def rows_of(boxes: Boxes) -> Rows:
    """Return boxes as rows; BoxError if one of them is empty or out of form."""
    rows, fault = tidy_rows(*boxes)
    if fault >= 0:
        span = slice(*boxes.offsets[fault : fault + 2])
        entries = list(zip(*(part[span].tolist() for part in boxes[1:]), strict=True))
        raise BoxError(
            f"box {fault} is empty or out of form: its entries (axis, low, high) are {entries[:6]}; they must ascend by"
            " axis, then by low, with low <= high, and those of one axis must be apart"
        )
    tidied: Rows = rows
    return tidied


def box_contains(outer: Boxes, inner: Boxes) -> bool:
    """Return whether one box contains another; each is the only one of its boxes.

    >>> box_contains(Boxes.of([{0: [(1, 5)]}]), Boxes.of([{0: [(2, 2), (4, 5)], 3: [(1, 1)]}]))
    True
    """
    return bool(contains(rows_of(outer), 0, rows_of(inner), 0))


def needless_boxes(boxes: Boxes, starts: Int64s) -> npt.NDArray[np.bool_]:
    """Return for each box whether another of its subscription contains it; of equal ones the first is needed.

    Subscription ``s`` has the boxes ``starts[s]:starts[s + 1]``.

    >>> needless_boxes(Boxes.of([{0: [(1, 2)]}, {0: [(1, 5)]}, {}]), np.array([0, 2, 3])).tolist()
    [True, False, False]
    """
    spare: npt.NDArray[np.bool_] = needless(rows_of(boxes), starts)
    return spare


def plain_boxes(boxes: Boxes) -> Boxes:
    """Return boxes without intervals of all codes; BoxError if one of them is empty or out of form.

    >>> plain_boxes(Boxes.of([{0: [(1, 2)], 1: [(-2**63, 2**63 - 1)]}])).axis.tolist()
    [0]
    """
    rows = rows_of(boxes)
    offsets = np.concatenate([rows.start, [len(rows.axis)]]).astype(np.int64)
    return Boxes(offsets, rows.axis, rows.low, rows.high)


class Held:
    """Boxes as rows, under numbers: a store for whoever asks nothing of them.

    A subclass may have ``_added`` and ``_removing``, which are told of slots, and ``_structure``, its own arrays.

    >>> held = Held()
    >>> held.insert(np.array([4], np.int32), Boxes.of([{2: [(1, 5)]}]))
    >>> held.boxes(np.array([4], np.int32)).axis.tolist()
    [2]
    """

    name: ClassVar[str] = "held"

    def __init__(self) -> None:
        self._places = NumberPlaces(positions=False)
        self._lock = ReadWriteLock()
        self._number_of: Int32s = np.full(64, -1, np.int32)
        start, count = np.zeros(64, np.int64), np.zeros(64, np.int32)
        self._rows = Rows(start, count, np.empty(256, np.int32), np.empty(256, np.int64), np.empty(256, np.int64))
        self._free: list[int] = []
        self._made = 0
        self._used = 0
        self._dead = 0
        self._live = 0
        self._axes = 0
        self.tally: Int64s = np.zeros(2, np.int64)

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Put boxes into free slots."""
        given = rows_of(boxes)
        numbers = np.ascontiguousarray(numbers, np.int32)
        if len(numbers) != len(boxes):
            raise BoxNumberError(f"{len(numbers)} numbers are given for {len(boxes)} boxes")
        if not len(numbers):
            return
        with self._lock.writing():
            self._places.claim(numbers)
            slots = self._take_slots(len(numbers))
            self._make_room(len(given.axis))
            self._used = copy_rows(given, self._rows, slots, self._used)
            self._number_of[slots] = numbers
            self._places.arrays.where[self._where(numbers)] = slots
            self._live += len(slots)
            self._axes = max(self._axes, int(given.axis.max(initial=-1)) + 1)
            self._added(slots)

    def remove(self, numbers: Int32s) -> None:
        """Take boxes out of their slots."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        if not len(numbers):
            return
        with self._lock.writing():
            self._places.check_held(numbers)
            where = self._where(numbers)
            slots = self._places.arrays.where[where].copy()
            self._removing(slots)
            self._places.arrays.where[where] = ABSENT
            self._number_of[slots] = -1
            self._free.extend(slots.tolist())
            self._live -= len(slots)
            self._dead += int(self._rows.length[slots].sum())

    def boxes(self, numbers: Int32s) -> Boxes:
        """Return the boxes of numbers, without intervals of all codes."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        with self._lock.reading():
            self._places.check_known(numbers)
            return Boxes(*gather_rows(self._rows, self._places.arrays.where[self._where(numbers)]))

    def holds(self, numbers: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these numbers are held."""
        with self._lock.reading():
            return self._places.known(np.ascontiguousarray(numbers, np.int32))

    def stats(self) -> Mapping[str, Any]:
        """Say what is held and what it costs."""
        parts = (*self._rows, self._number_of, *self._structure())
        return {
            "index": self.name,
            "boxes": self._live,
            "bytes": sum(part.nbytes for part in parts) + self._places.nbytes,
            "visited": int(self.tally[0]),
            "compared": int(self.tally[1]),
        }

    def __len__(self) -> int:
        return self._live

    def _added(self, slots: Int32s) -> None:
        """Take note of boxes in new slots."""

    def _removing(self, slots: Int32s) -> None:
        """Take note of boxes that are about to go."""

    def _structure(self) -> tuple[Any, ...]:
        """Return the arrays beside the rows."""
        return ()

    def _live_slots(self) -> Int32s:
        return np.flatnonzero(self._number_of[: self._made] >= 0).astype(np.int32)

    def _where(self, numbers: Int32s) -> Int64s:
        directory = self._places.arrays.directory
        places: Int64s = (directory[numbers >> PAGE_BITS].astype(np.int64) << PAGE_BITS) + (numbers & (PAGE - 1))
        return places

    def _take_slots(self, count: int) -> Int32s:
        reused = self._free[len(self._free) - min(count, len(self._free)) :]
        del self._free[len(self._free) - len(reused) :]
        fresh = np.arange(self._made, self._made + count - len(reused), dtype=np.int32)
        self._made += len(fresh)
        if self._made > len(self._number_of):
            room = max(self._made, 2 * len(self._number_of))
            self._number_of = longer(self._number_of, room, -1)
            self._rows = self._rows._replace(
                start=longer(self._rows.start, room, 0), length=longer(self._rows.length, room, 0)
            )
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def _make_room(self, entries: int) -> None:
        """See that so many entries fit; once half of what is there is dead, close the gaps."""
        if self._used + entries <= len(self._rows.axis):
            return
        rows = self._rows
        if 2 * self._dead > self._used:
            slots = self._live_slots()
            slots = slots[np.argsort(rows.start[slots])]
            given = Rows(rows.start[slots], rows.length[slots], rows.axis.copy(), rows.low.copy(), rows.high.copy())
            self._used, self._dead = copy_rows(given, rows, slots, 0), 0
        room = max(self._used + entries, 2 * self._used)
        if room > len(rows.axis):
            self._rows = rows._replace(
                axis=longer(rows.axis, room, 0), low=longer(rows.low, room, 0), high=longer(rows.high, room, 0)
            )


class Asked(Held, ABC):
    """Boxes of which one may ask which contain which: what every containment index has."""

    def contain(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Ask for boxes around each of these."""
        return self._ask(boxes, k, inside=False)

    def contained(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Ask for boxes inside each of these."""
        return self._ask(boxes, k, inside=True)

    @abstractmethod
    def _asked(self, question: Question) -> Any:
        """Return the pairs of row and slot that answer, rows ascending, and how many there are."""

    def _ask(self, boxes: Boxes, k: int | None, *, inside: bool) -> Pairs:
        if k is not None and (not isinstance(k, int | np.integer) or k < 1):
            raise ContainmentError(f"k is how many boxes are wanted, a number from 1 on (or None for all), not {k!r}")
        rows = rows_of(boxes)
        with self._lock.reading():
            found, count = self._asked(Question(rows, EVERY if k is None else int(k), inside))
            return Pairs(found[0, :count], self._number_of[found[1, :count]])
