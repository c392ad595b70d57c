"""The first phase that counting and the clustered engines share: which predicates does an event satisfy?

The bit vector of the clusters paper is ``Scratch.marks``: an entry is set when it equals the current generation, so
that nothing has to be reset between events.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.clusters.interned import find
from tocsin.kernels.clusters.ordered import NULL, Ordered, Run, mark_fresh, mark_run
from tocsin.kernels.compile import kernel

RANGED = -2
"""In ``Scratch.equal_on``: the event spans more than one code on this axis."""


class Scratch(NamedTuple):
    """What one thread writes while it matches. ``marks``: uint8[predicates]; ``generation``: int64[2], of the marks and
    of the hits; ``satisfied``: int32[predicates], the marked ones; ``equal_on``: int32[axes], the point satisfied on
    each axis, -1 or ``RANGED``; ``candidates``: int32, as long as the engine needs; ``hits``: int32, the counters of
    `counting`.
    """

    marks: npt.NDArray[np.uint8]
    generation: npt.NDArray[np.int64]
    satisfied: npt.NDArray[np.int32]
    equal_on: npt.NDArray[np.int32]
    candidates: npt.NDArray[np.int32]
    hits: npt.NDArray[np.int32]


@kernel
def next_generation(marks: Any, generation: Any) -> Any:
    """Unset every mark; return the value of a set one."""
    generation[0] += 1
    if generation[0] > 255:
        marks[:] = 0
        generation[0] = 1
    return np.uint8(generation[0])


@kernel
def mark_points(
    slots: Any,
    content: Any,
    axis_points: Any,
    codes: Any,
    row: Any,
    generation: Any,
    marks: Any,
    satisfied: Any,
    equal_on: Any,
) -> Any:
    """Mark and list the points that an event satisfies, and note each on its axis; return how many."""
    count = 0
    given = codes.shape[0]
    for axis in range(len(axis_points)):
        equal_on[axis] = -1
        if axis_points[axis] > 0:
            code = codes[axis, row] if axis < given else np.int64(NULL)
            number = find(slots, content, axis, code, code)
            if number >= 0:
                marks[number] = generation
                satisfied[count] = number
                equal_on[axis] = number
                count += 1
    return count


@kernel
def mark_spanned(predicates: Any, points: Ordered, queries: Any, row: Any, scratch: Scratch) -> Any:
    """Do what `mark_points` does for a query that may span several codes on an axis, where points are found in
    order.
    """
    slots, content, axis_points = predicates.slots, predicates.content, predicates.axis_points
    generation = scratch.generation[0]
    count = 0
    for axis in range(len(axis_points)):
        low = high = np.int64(NULL)
        if axis < queries.low.shape[0]:
            low, high = queries.low[axis, row], queries.high[axis, row]
        if low != high:
            scratch.equal_on[axis] = RANGED
            continue
        number = find(slots, content, axis, low, low)
        scratch.equal_on[axis] = number
        if number >= 0:
            scratch.marks[number] = generation
            scratch.satisfied[count] = number
            count += 1
    count = mark_run(points.main, queries, row, True, scratch, count)
    count = mark_run(points.middle, queries, row, True, scratch, count)
    return mark_fresh(points.fresh, queries, row, True, scratch, count)


@kernel
def mark_ranges(ranges: Ordered, queries: Any, row: Any, scratch: Scratch, count: Any) -> Any:
    """Mark and list, after the ``count`` points, all other predicates that a query satisfies; return the new count."""
    count = _mark_if_any(ranges.main, queries, row, scratch, count)
    count = _mark_if_any(ranges.middle, queries, row, scratch, count)
    return mark_fresh(ranges.fresh, queries, row, False, scratch, count)


@kernel
def _mark_if_any(run: Run, queries: Any, row: Any, scratch: Scratch, count: Any) -> Any:
    return mark_run(run, queries, row, False, scratch, count) if len(run.low) > 0 else count
