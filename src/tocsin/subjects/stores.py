"""What a plane holds: the rows of publications and the boxes of subscriptions, by number, as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.kernels.subjects import Pool
from tocsin.operators.growing import Growing


class Numbers:
    """Numbers to hand out: freed ones first.

    >>> numbers = Numbers()
    >>> numbers.take(2).tolist(), numbers.give(np.array([0])), numbers.take(2).tolist()
    ([0, 1], None, [0, 2])
    """

    def __init__(self) -> None:
        self._free: list[int] = []
        self.next = 0

    def take(self, wanted: int) -> Int32s:
        """Return so many numbers."""
        reused = self._free[len(self._free) - min(wanted, len(self._free)) :]
        del self._free[len(self._free) - len(reused) :]
        fresh = np.arange(self.next, self.next + wanted - len(reused), dtype=np.int32)
        self.next += len(fresh)
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def give(self, numbers: npt.NDArray[Any]) -> None:
        """Take numbers back."""
        self._free += numbers.tolist()


class Rows:
    """Rows of codes: ``low`` and ``high`` int64[room, axes], ``owner`` int32[room] and ``bit`` int64[room].

    Several rows of one owner with the same bit are alternatives of one region.
    """

    def __init__(self, axes: int) -> None:
        self.low: Int64s = np.zeros((16, axes), np.int64)
        self.high: Int64s = np.zeros((16, axes), np.int64)
        self.owner: Int32s = np.full(16, -1, np.int32)
        self.bit: Int64s = np.zeros(16, np.int64)
        self._numbers = Numbers()

    def __len__(self) -> int:
        return self._numbers.next

    def add(self, low: Int64s, high: Int64s, owner: npt.NDArray[Any], bit: npt.NDArray[Any]) -> Int32s:
        """Store rows and return their numbers."""
        numbers = self._numbers.take(len(low))
        if self._numbers.next > len(self.owner):
            room = max(self._numbers.next, 2 * len(self.owner))
            self.low, self.high = _taller(self.low, room), _taller(self.high, room)
            held = len(self.owner)
            self.owner, self.bit = _taller(self.owner, room), _taller(self.bit, room)
            self.owner[held:] = -1
        self.low[numbers], self.high[numbers] = low, high
        self.owner[numbers], self.bit[numbers] = owner, bit
        return numbers

    def drop(self, numbers: Int32s) -> None:
        """Forget rows."""
        self.owner[numbers] = -1
        self._numbers.give(numbers)

    def widen(self, low: Int64s, high: Int64s) -> None:
        """Add an axis with these codes, one for each row there is room for."""
        self.low = np.concatenate([self.low, low[:, None]], axis=1)
        self.high = np.concatenate([self.high, high[:, None]], axis=1)

    @property
    def nbytes(self) -> int:
        """The memory held."""
        return self.low.nbytes + self.high.nbytes + self.owner.nbytes + self.bit.nbytes


class Interests:
    """Boxes by number: whose they are (``owner``), of which region (``bit``), which program verifies the rest."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._start, self._length = Growing(np.int64), Growing(np.int32)
        self._axis, self._low, self._high = Growing(np.int32), Growing(np.int64), Growing(np.int64)
        self._owner, self._bit, self._program = Growing(np.int32), Growing(np.int64), Growing(np.int32)
        self._live = 0

    def __len__(self) -> int:
        return self._numbers.next

    def add(self, boxes: Boxes, owner: npt.NDArray[Any], bit: npt.NDArray[Any], program: Int32s) -> Int32s:
        """Store boxes and return their numbers."""
        numbers = self._numbers.take(len(boxes))
        if not len(numbers):
            return numbers
        self._pack_if_sparse()
        first, begin, end = len(self._axis), int(boxes.offsets[0]), int(boxes.offsets[-1])
        lengths = np.diff(boxes.offsets)
        self._start.put(numbers, first + boxes.offsets[:-1] - begin)
        self._length.put(numbers, lengths)
        self._axis.extend(boxes.axis[begin:end])
        self._low.extend(boxes.low[begin:end])
        self._high.extend(boxes.high[begin:end])
        for held, values in ((self._owner, owner), (self._bit, bit), (self._program, program)):
            held.put(numbers, values)
        self._live += end - begin
        return numbers

    def drop(self, numbers: Int32s) -> None:
        """Forget boxes."""
        self._live -= int(self._length.array[numbers].sum())
        self._length.put(numbers, np.zeros(len(numbers), np.int32))
        self._owner.put(numbers, np.full(len(numbers), -1, np.int32))
        self._numbers.give(numbers)

    @property
    def pool(self) -> Pool:
        """The boxes for kernels."""
        entries = self._axis.array, self._low.array, self._high.array
        return Pool(self._start.array, self._length.array, *entries)

    @property
    def owner(self) -> Int32s:
        """The owner of each number, -1 of one that is free."""
        return self._owner.array

    @property
    def bit(self) -> Int64s:
        """The region of each number, as a bit."""
        return self._bit.array

    @property
    def program(self) -> Int32s:
        """The program of each number, -1 where its box says all."""
        return self._program.array

    def reprogram(self, numbers: Int32s, programs: Int32s) -> None:
        """Let boxes have these programs."""
        self._program.put(numbers, programs)

    def boxes(self, numbers: Int32s) -> Boxes:
        """Return some boxes."""
        lengths = self._length.array[numbers].astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        source = np.repeat(self._start.array[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Boxes(offsets, self._axis.array[source], self._low.array[source], self._high.array[source])

    def recode(self, low: Int64s, high: Int64s) -> None:
        """Replace the bounds of all entries."""
        self._low, self._high = Growing.of(low), Growing.of(high)

    @property
    def nbytes(self) -> int:
        """The memory held."""
        held = self._start, self._length, self._axis, self._low, self._high, self._owner, self._bit, self._program
        return sum(each.nbytes for each in held)

    def _pack_if_sparse(self) -> None:
        """Forget the entries of boxes that are gone, once they are most."""
        if len(self._axis) > 1024 and len(self._axis) > 2 * self._live:
            used = np.flatnonzero(self._length.array > 0).astype(np.int32)
            boxes = self.boxes(used)
            self._start.put(used, boxes.offsets[:-1])
            self._axis, self._low, self._high = (Growing.of(part) for part in (boxes.axis, boxes.low, boxes.high))


def _taller(values: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    taller = np.zeros((room, *values.shape[1:]), values.dtype)
    taller[: len(values)] = values
    return taller
