"""Subscriptions as sets of boxes: one form for all that mean the same box by box, and where their boxes are.

A subscription covers another if each box of the other lies in one of its own. That is sound: whatever the other
matches, it matches. It is not complete: a box may lie in the union of two without lying in either, and then the one
that covers it is not found. Boxes that another box of the same subscription contains are dropped; after that, two
subscriptions that cover each other have the same boxes, so that covering is a partial order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tocsin.errors import CoveringError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.containment.held import needless_boxes, plain_boxes


class Given(NamedTuple):
    """Subscriptions in their one form. ``starts``: int64[subscriptions + 1], where the boxes of each begin; ``keys``:
    the contents of each as bytes, equal for equal subscriptions."""

    boxes: Boxes
    starts: Int64s
    keys: list[bytes]

    def some(self, places: list[int]) -> Given:
        """Return the subscriptions at these places."""
        if len(places) == len(self.starts) - 1:
            return self
        counts = np.diff(self.starts)[places]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        rows = np.repeat(self.starts[:-1][places] - starts[:-1], counts) + np.arange(starts[-1])
        return Given(self.boxes.take(rows), starts, [self.keys[place] for place in places])


def tidied(boxes: Boxes, of: Any, count: int) -> Given:
    """Return subscriptions in their one form; ``of`` names the subscription of each box, ascending, None if each has
    one. Raises BoxError for a box that is empty or out of form."""
    plain = plain_boxes(boxes)
    owners = np.arange(len(boxes)) if of is None else np.asarray(of, np.int64)
    if (
        len(owners) != len(boxes)
        or (np.diff(owners) < 0).any()
        or (len(owners) and not 0 <= owners[0] <= owners[-1] < count)
    ):
        raise CoveringError(
            f"of names for each of {len(boxes)} boxes its subscription, 0 to {count - 1} in ascending order"
        )
    starts = np.searchsorted(owners, np.arange(count + 1))
    if (np.diff(starts) > 1).any():
        kept = np.flatnonzero(~needless_boxes(plain, starts))
        starts = np.searchsorted(owners[kept], np.arange(count + 1))
        plain = plain.take(_in_order(plain, kept, starts))
    return Given(plain, starts, _keys(plain, starts))


def with_residuals(boxes: Boxes, residuals: Int32s) -> Boxes:
    """Return boxes on axes one higher, axis 0 saying what is left of each to verify: a number, -1 for nothing.

    So a box with something left to verify is only covered by a box with the same left, or with nothing.

    >>> with_residuals(Boxes.of([{0: [(1, 2)]}, {0: [(1, 2)]}]), np.array([-1, 7])).axis.tolist()
    [1, 0, 1]
    """
    counts = np.diff(boxes.offsets)
    some = np.asarray(residuals) >= 0
    into = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts + some)])
    axis = np.zeros(int(into[-1]), np.int32)
    low, high = np.empty(len(axis), np.int64), np.empty(len(axis), np.int64)
    rest = np.repeat(into[:-1] + some - boxes.offsets[:-1], counts) + np.arange(len(boxes.axis))
    axis[rest], low[rest], high[rest] = boxes.axis + 1, boxes.low, boxes.high
    first = into[:-1][some]
    low[first] = high[first] = np.asarray(residuals)[some]
    return Boxes(into, axis, low, high)


def entries_of(boxes: Boxes, box: int) -> bytes:
    """Return the contents of one box as bytes."""
    span = slice(boxes.offsets[box], boxes.offsets[box + 1])
    return boxes.axis[span].tobytes() + boxes.low[span].tobytes() + boxes.high[span].tobytes()


def _in_order(boxes: Boxes, kept: Int64s, starts: Int64s) -> Int64s:
    """Return the boxes kept, those of one subscription in the order of their contents."""
    order = kept.copy()
    for owner in np.flatnonzero(np.diff(starts) > 1):
        some = slice(starts[owner], starts[owner + 1])
        order[some] = sorted(kept[some].tolist(), key=lambda box: entries_of(boxes, box))
    return order


def _keys(boxes: Boxes, starts: Int64s) -> list[bytes]:
    contents = [entries_of(boxes, box) for box in range(len(boxes))]
    if len(starts) == len(boxes) + 1 and (np.diff(starts) == 1).all():
        return contents
    bounds = starts.tolist()
    return [_joined(contents[begin:end]) for begin, end in pairwise(bounds)]


def _joined(contents: Sequence[bytes]) -> bytes:
    if len(contents) == 1:
        return contents[0]
    return b"".join([b"several", *(len(one).to_bytes(4, "big") + one for one in contents)])
