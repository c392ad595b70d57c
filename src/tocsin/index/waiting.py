"""Boxes in the order of their arrival, waiting to be sorted in: plain arrays that grow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Boxes, Int32s, Int64s

FOREVER = np.iinfo(np.int64).max
"""The version at which a box dies that was not removed."""

ROOM = 64


class Arrays(NamedTuple):
    """``numbers`` int32[room], ``offsets`` int64[room + 1], ``axis`` int32, ``low`` and ``high`` int64."""

    numbers: Any
    offsets: Any
    axis: Any
    low: Any
    high: Any


class Waiting:
    """Some boxes, ``count`` of them with ``entries`` intervals; ``died`` is 0 for the ``dead`` that were removed.

    >>> waiting = Waiting()
    >>> waiting.append(np.array([3], np.int32), Boxes.of([{0: [(1, 2)]}]))
    >>> waiting.count, waiting.entries
    (1, 1)
    """

    def __init__(self) -> None:
        self.count = 0
        self.entries = 0
        self.dead = 0
        self.died: Int64s = np.full(ROOM, FOREVER)
        self.arrays = Arrays(
            np.empty(ROOM, np.int32),
            np.zeros(ROOM + 1, np.int64),
            np.empty(4 * ROOM, np.int32),
            np.empty(4 * ROOM, np.int64),
            np.empty(4 * ROOM, np.int64),
        )

    def append(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes."""
        count, entries = self.count + len(numbers), self.entries + int(boxes.offsets[-1] - boxes.offsets[0])
        held = self.arrays
        if count > len(held.numbers):
            room = max(2 * len(held.numbers), count)
            self.died = _longer(self.died, room, FOREVER)
            held = held._replace(numbers=_longer(held.numbers, room, 0), offsets=_longer(held.offsets, room + 1, 0))
        if entries > len(held.axis):
            room = max(2 * len(held.axis), entries)
            longer = {name: _longer(getattr(held, name), room, 0) for name in ("axis", "low", "high")}
            held = held._replace(**longer)
        taken = slice(int(boxes.offsets[0]), int(boxes.offsets[-1]))
        held.numbers[self.count : count] = numbers
        held.offsets[self.count + 1 : count + 1] = boxes.offsets[1:] + (self.entries - int(boxes.offsets[0]))
        held.axis[self.entries : entries] = boxes.axis[taken]
        held.low[self.entries : entries] = boxes.low[taken]
        held.high[self.entries : entries] = boxes.high[taken]
        self.arrays, self.count, self.entries = held, count, entries

    def strike(self, places: Int64s) -> None:
        """Let the boxes at these places die."""
        self.died[places] = 0
        self.dead += len(places)

    def clear(self) -> None:
        """Forget all boxes."""
        self.died[: self.count] = FOREVER
        self.count = self.entries = self.dead = 0

    def packed(self) -> Waiting:
        """Return the same without the dead, in the same order."""
        packed = Waiting()
        packed.append(*self.alive())
        return packed

    def alive(self) -> tuple[Int32s, Boxes]:
        """Return the boxes that were not removed."""
        kept = np.flatnonzero(self.died[: self.count] > 0)
        held = self.arrays
        boxes = Boxes(held.offsets[: self.count + 1], held.axis, held.low, held.high)
        return held.numbers[kept], boxes.take(kept)

    @property
    def nbytes(self) -> int:
        """The bytes held."""
        arrays: int = sum(array.nbytes for array in self.arrays)
        return arrays + self.died.nbytes


def _longer(values: npt.NDArray[Any], length: int, filling: int) -> npt.NDArray[Any]:
    longer = np.full(length, filling, values.dtype)
    longer[: len(values)] = values
    return longer
