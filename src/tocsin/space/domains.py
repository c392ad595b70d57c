"""Which boxes can match at all: an interval of codes in which no value of its domain lies makes its box empty.

An event that is one point never lies in such an interval. A range does, and so does a field that spans its domain,
which is why every box passes here before it is stored: what is left of it holds of some value on each axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import LOWEST, NULL, Boxes, Int64s
from tocsin.space.codes import Codec
from tocsin.space.concepts import ConceptCodes


def possible(
    boxes: Boxes, codecs: Sequence[Codec], *, nulls: bool = True, spans: bool = True, grows: bool = False
) -> tuple[Int64s, Boxes]:
    """Return which boxes hold a value on each of their axes, and those boxes without the intervals that hold none.

    ``nulls``: NULL is something that may be there. Where a field that is not there spans its domain, it is not.
    ``spans``: a field may span its domain; where none does, a point beyond the domain is compared as it is.
    ``grows``: hierarchies of concepts may grow, so that what holds no concept yet is kept.

    >>> from tocsin.space.codes import Booleans
    >>> kept, boxes = possible(Boxes.of([{0: [(LOWEST, -1), (2, 9)]}, {0: [(1, 9), (12, 15)]}]), [Booleans()])
    >>> kept.tolist(), boxes.low.tolist()
    ([1], [1])
    """
    everything = np.arange(len(boxes))
    low, high = boxes.low, boxes.high
    if len(low) <= _FEW:
        entries = zip(boxes.axis.tolist(), low.tolist(), high.tolist(), strict=True)
        if all(least != NULL and _has_value(codecs[axis], least, most, spans, grows) for axis, least, most in entries):
            return everything, boxes
    with_null = low == NULL
    empty = _without_value(boxes, codecs, with_null, spans, grows)
    if not nulls:
        low = np.where(with_null, LOWEST, low)
    elif (with_null & empty).any():
        high = np.where(with_null & empty, NULL, high)
        empty &= ~with_null
    if not empty.any():
        return everything, Boxes(boxes.offsets, boxes.axis, low, high)
    owner = np.repeat(everything, np.diff(boxes.offsets))
    first = np.flatnonzero(np.diff(owner, prepend=-1) | np.diff(boxes.axis, prepend=-1))
    impossible = np.logical_and.reduceat(empty, first)
    holds = np.ones(len(boxes), bool)
    holds[owner[first[impossible]]] = False
    counts = np.bincount(owner[~empty], minlength=len(boxes))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    kept = np.flatnonzero(holds)
    return kept, Boxes(offsets, boxes.axis[~empty], low[~empty], high[~empty]).take(kept)


_FEW = 16
"""So many intervals, as those of a single subscription, are looked at one by one: arrays would take longer."""


def _has_value(codec: Codec, low: int, high: int, spans: bool, grows: bool) -> bool:
    """Return whether one interval holds a value, as `_without_value` finds for many."""
    if low > high or (codec.wider and not spans):
        return low <= high
    if grows and isinstance(codec, ConceptCodes):
        return bool(codec.has_room(np.array([low]), np.array([high]))[0])
    return codec.holds(low, high)


def _without_value(
    boxes: Boxes, codecs: Sequence[Codec], with_null: npt.NDArray[np.bool_], spans: bool, grows: bool
) -> npt.NDArray[np.bool_]:
    """Return which intervals hold no value, NULL aside."""
    low = np.where(with_null, LOWEST, boxes.low) if with_null.any() else boxes.low
    empty = low > boxes.high
    for axis in np.unique(boxes.axis).tolist():
        codec = codecs[axis]
        if codec.wider and not spans:
            continue
        mine = np.flatnonzero((boxes.axis == axis) & ~empty)
        if grows and isinstance(codec, ConceptCodes):
            empty[mine] = ~codec.has_room(low[mine], boxes.high[mine])
            continue
        for entry in mine[codec.doubtful(low[mine], boxes.high[mine])].tolist():
            empty[entry] = not codec.holds(int(low[entry]), int(boxes.high[entry]))
    return empty
