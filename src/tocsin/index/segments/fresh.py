"""The mutable part of `adaptive`: where boxes go first. See `kernels/segments/fresh.py` for its structure."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.kernels.segments.fresh import COLUMNS, CUTS, HEADS, TABLE_AXES, UNKNOWN, Fresh, append_boxes
from tocsin.kernels.segments.lines import BLOCK, PAIRS

ROOM = 256
"""How many boxes there is room for at first; it doubles as needed."""


class FreshPart:
    """Boxes in the order of their arrival, some of them removed since.

    One thread writes. Readers hold ``arrays``, a count and a version: what is appended or removed later does not show.
    ``died`` has, for each box, the version at which it was removed. ``longest`` is how many boxes a query may have to
    be compared with in one chain.

    ``tables``: the sets of axes by which boxes are chained. ``cuts``: bounds of intervals on some axes, which rise; the
    more of them, the more intervals are told apart at first sight.
    """

    def __init__(self, tables: Sequence[Sequence[int]] = (), cuts: Mapping[int, Int64s] | None = None) -> None:
        axes = np.full((len(tables) + 1, TABLE_AXES), -1, np.int64)
        for place, table in enumerate(tables):
            axes[place, : len(table)] = table
        chains = HEADS if tables else 1
        self.count = 0
        self.live = 0
        self.slot_of: dict[int, int] = {}
        self.struck: list[int] | None = None
        self.died: Int64s = np.full(ROOM, np.iinfo(np.int64).max)
        self.blocks = 0
        self.longest = 0
        cut_start, joined = _joined(cuts or {})
        self.arrays = Fresh(
            np.empty(ROOM, np.int32),
            np.zeros(ROOM + 1, np.int64),
            np.empty(8 * ROOM, np.int32),
            np.empty(8 * ROOM, np.int64),
            np.empty(8 * ROOM, np.int64),
            np.zeros(BLOCK * ROOM, np.uint8),
            np.full(PAIRS * ROOM, UNKNOWN, np.int32),
            np.full(ROOM, -1, np.int32),
            np.full((len(axes), chains), -1, np.int32),
            np.zeros((len(axes), chains), np.int32),
            np.zeros(len(axes), np.int64),
            axes,
            np.full(COLUMNS, -1, np.int64),
            cut_start,
            joined,
        )

    def append(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes; they show to readers who are told the new count."""
        self._make_room(len(numbers), int(boxes.offsets[-1]))
        self.blocks, longest = append_boxes(self.arrays, self.count, self.blocks, numbers, tuple(boxes))
        self.longest = max(self.longest, int(longest))
        self.slot_of.update(zip(numbers.tolist(), range(self.count, self.count + len(numbers)), strict=True))
        self.count += len(numbers)
        self.live += len(numbers)

    def strike(self, numbers: list[int], version: int) -> None:
        """Note that boxes are gone from this version on."""
        self.died[[self.slot_of.pop(number) for number in numbers]] = version
        self.live -= len(numbers)
        if self.struck is not None:
            self.struck.extend(numbers)

    def contents(self, count: int, version: int) -> tuple[Int32s, Boxes]:
        """Return the boxes among the first ``count`` that are there at a version."""
        alive = np.flatnonzero(self.died[:count] > version)
        arrays = self.arrays
        boxes = Boxes(arrays.offsets[: count + 1], arrays.axis, arrays.low, arrays.high)
        return arrays.numbers[alive], boxes.take(alive)

    @property
    def nbytes(self) -> int:
        """The bytes held."""
        arrays: int = sum(array.nbytes for array in self.arrays)
        return arrays + self.died.nbytes + sys.getsizeof(self.slot_of)

    def _make_room(self, boxes: int, entries: int) -> None:
        """Replace arrays that are too short by longer ones; readers keep those that they hold.

        Where there are more blocks, the heads are replaced too: through those, a reader of the shorter arrays would be
        led beyond their end.
        """
        old = self.arrays
        grown: dict[str, Any] = {}
        if self.count + boxes > len(old.numbers):
            room = max(2 * len(old.numbers), self.count + boxes)
            self.died = _longer(self.died, room, np.iinfo(np.int64).max)
            grown.update(numbers=_longer(old.numbers, room, 0), offsets=_longer(old.offsets, room + 1, 0))
        if int(old.offsets[self.count]) + entries > len(old.axis):
            room = max(2 * len(old.axis), int(old.offsets[self.count]) + entries)
            grown.update({name: _longer(getattr(old, name), room, 0) for name in ("axis", "low", "high")})
        if self.blocks + boxes > len(old.following):
            room = max(2 * len(old.following), self.blocks + boxes)
            grown.update(
                words=_longer(old.words, BLOCK * room, 0),
                slots=_longer(old.slots, PAIRS * room, UNKNOWN),
                following=_longer(old.following, room, -1),
                heads=old.heads.copy(),
            )
        if grown:
            self.arrays = old._replace(**grown)


def _joined(cuts: Mapping[int, Int64s]) -> tuple[Int64s, Int64s]:
    """Return where the cuts of each axis begin, and those cuts, of which some are left out where there are too many."""
    kept = {axis: each[:: -(-len(each) // CUTS)] for axis, each in cuts.items() if len(each)}
    starts = np.zeros(max(kept, default=-1) + 2, np.int64)
    for axis, each in kept.items():
        starts[axis + 1] = len(each)
    return np.cumsum(starts), np.concatenate([np.empty(0, np.int64), *(kept[axis] for axis in sorted(kept))])


def _longer(values: npt.NDArray[Any], length: int, filling: int) -> npt.NDArray[Any]:
    longer = np.full(length, filling, values.dtype)
    longer[: len(values)] = values
    return longer
