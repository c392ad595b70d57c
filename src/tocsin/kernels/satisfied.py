"""The first phase that counting and the clustered engines share: which predicates does an event satisfy?

The bit vector of the clusters paper is ``Scratch.marks``: an entry is set when it equals the current generation, so
that nothing has to be reset between events.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.interned import Predicates, find
from tocsin.kernels.ordered import Ordered, mark_fresh, mark_overlapping

NULL = -9223372036854775808
"""The code of a missing value, as in `tocsin.index.boxes`."""

RANGED = -2
"""In ``Scratch.equal_on``: the event spans more than one code on this axis."""


class Scratch(NamedTuple):
    """What one thread writes while it matches. ``marks``: uint8[predicates]; ``generation``: int64[2], of the
    marks and of the hits;    ``satisfied``: int32[predicates], the marked ones; ``equal_on``: int32[axes], the point
    satisfied on each axis, -1 or ``RANGED``; ``candidates``: int32, as long as the engine needs; ``hits``: int32, the
    counters of `counting`.
    """

    marks: npt.NDArray[np.uint8]
    generation: npt.NDArray[np.int64]
    satisfied: npt.NDArray[np.int32]
    equal_on: npt.NDArray[np.int32]
    candidates: npt.NDArray[np.int32]
    hits: npt.NDArray[np.int32]


@kernel
def next_generation(scratch: Scratch) -> None:
    """Unset every mark."""
    scratch.generation[0] += 1
    if scratch.generation[0] > 255:
        scratch.marks[:] = 0
        scratch.generation[0] = 1


@kernel
def satisfy(predicates: Predicates, ranges: Ordered, points: Ordered, queries: Any, row: Any, scratch: Scratch) -> Any:
    """Mark what one query satisfies and list it in ``scratch.satisfied``.

    Return how many points it satisfies, which come first in the list, and how many predicates in all. Where the query
    spans several codes on an axis the points on it are found in order, so ``points`` must then be complete.
    """
    next_generation(scratch)
    generation = scratch.generation[0]
    count = 0
    spans = False
    for axis in range(len(predicates.axis_points)):
        low = high = np.int64(NULL)
        if axis < queries.low.shape[0]:
            low, high = queries.low[axis, row], queries.high[axis, row]
        scratch.equal_on[axis] = -1
        if low != high:
            spans = True
            scratch.equal_on[axis] = RANGED
            count = mark_overlapping(points, axis, low, high, scratch, count)
        elif predicates.axis_points[axis] > 0:
            number = find(predicates, axis, low, low)
            if number >= 0:
                scratch.marks[number] = generation
                scratch.satisfied[count] = number
                scratch.equal_on[axis] = number
                count += 1
    if spans:
        count = mark_fresh(points.fresh, queries, row, True, scratch, count)
    equal = count
    for axis in range(len(ranges.main.first) - 1):
        low = high = np.int64(NULL)
        if axis < queries.low.shape[0]:
            low, high = queries.low[axis, row], queries.high[axis, row]
        count = mark_overlapping(ranges, axis, low, high, scratch, count)
    return equal, mark_fresh(ranges.fresh, queries, row, False, scratch, count)
