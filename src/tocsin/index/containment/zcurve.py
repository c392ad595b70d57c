"""`zcurve`: containment by the order of the Z-curve over the corners of boxes.

| covering paper, section IV-D | here |
|---|---|
| cells at several resolutions, their keys | `kernels/containment/zcurve.py`: groups of bits, one a resolution |
| the ordered map (there an AVL tree) | blocks of keys, and the order of the blocks |
| larger cells first, the right end first | `search_curve`: from the end backwards, leaping over cells |

Departures: a dimension is cut at quantiles of what is held rather than into halves of its range, which need not be
known and may be that of texts; the cuts are chosen anew whenever four times as many boxes are held. At most 62
dimensions have bits in the key, those on which most boxes differ. A leading bit to tell resolutions apart is not
needed, because cells are never stored.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tocsin.index.blocks import longer
from tocsin.index.boxes import Int32s
from tocsin.index.containment.held import Asked
from tocsin.kernels.containment.boxes import TOP, Question, put_corner
from tocsin.kernels.containment.zcurve import (
    BLOCK,
    BLOCKS,
    Curve,
    fill,
    insert_slots,
    keys_of,
    remove_slots,
    search_curve,
)

BITS = 62
"""Bits of a key at most."""

LEVELS = 6
"""Resolutions at most."""

SAMPLE = 4_096
"""How many boxes the cuts are chosen by."""


class ZCurve(Asked):
    """Boxes as keys in order.

    >>> from tocsin.index.boxes import Boxes
    >>> index = ZCurve()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.contain(Boxes.of([{0: [(2, 2)]}, {1: [(2, 2)]}]), k=1)
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "zcurve"

    def __init__(self) -> None:
        super().__init__()
        self._levels = 1
        self._planned = 16
        self._curve = _empty(np.empty(0, np.int32), np.empty((0, 1), np.int64), 64)

    def _added(self, slots: Int32s) -> None:
        if self._live >= 4 * self._planned:
            self._planned = self._live
            self._replan()
            return
        curve = self._curve
        needed = int(curve.state[BLOCKS]) + len(slots) + 2
        if needed > len(curve.keys):
            room = max(needed, 2 * len(curve.keys))
            self._curve = curve._replace(
                keys=longer(curve.keys, room, 0),
                slots=longer(curve.slots, room, 0),
                filled=longer(curve.filled, room, 0),
                order=longer(curve.order, room, 0),
                lows=longer(curve.lows, room, 0),
            )
        insert_slots(self._curve, self._levels, self._rows, slots)

    def _removing(self, slots: Int32s) -> None:
        remove_slots(self._curve, self._levels, self._rows, slots)

    def _asked(self, question: Question) -> Any:
        return search_curve(self._curve, self._levels, self._rows, question, self.tally)

    def _structure(self) -> tuple[Any, ...]:
        return self._curve

    def _replan(self) -> None:
        """Choose dimensions and cuts by a sample, and put all boxes in order anew."""
        slots = self._live_slots()
        some = slots[:: -(-len(slots) // SAMPLE)]
        corners = np.full((len(some), 2 * self._axes), TOP)
        for corner, slot in zip(corners, some, strict=True):
            put_corner(self._rows, slot, corner)
        ordered = np.sort(corners.T, axis=1)
        differ = (np.diff(ordered, axis=1) != 0).sum(axis=1) if self._axes else np.empty(0, np.int64)
        dimensions = np.argsort(-differ, kind="stable")[: min(BITS, int((differ > 0).sum()))].astype(np.int32)
        self._levels = min(LEVELS, BITS // max(1, len(dimensions)))
        parts = 1 << self._levels
        cuts = ordered[dimensions][:, np.arange(1, parts) * ordered.shape[1] // parts]
        room = 2 * (len(slots) // (BLOCK // 2)) + 64
        self._curve = _empty(dimensions, np.ascontiguousarray(cuts), room)
        keys = keys_of(self._curve, self._levels, self._rows, slots)
        order = np.argsort(keys, kind="stable")
        fill(self._curve, keys[order], slots[order])


def _empty(dimensions: Int32s, cuts: Any, room: int) -> Curve:
    return Curve(
        dimensions,
        cuts,
        np.empty((room, BLOCK), np.int64),
        np.empty((room, BLOCK), np.int32),
        np.zeros(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.array([0, 0, 0, -1], np.int64),
    )


CONTAINMENT = ZCurve
