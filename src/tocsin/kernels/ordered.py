"""Kernels of ordered intervals: which of them overlap a given one, without looking at most of the others.

A run is sorted by axis, then low end, then high end. The entries that begin in time are a prefix of their axis, found
by bisection; within it, blocks of 16, 256 and 4,096 entries whose greatest high end is too low are passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS


class Run(NamedTuple):
    """Sorted entries. ``first``: int64[axes + 1], where each axis begins; ``low`` and ``high``: int64[entries];
    ``predicate``: int32[entries]; ``highest``: the greatest ``high`` of each block of 16, then of 256, then of 4,096.
    """

    first: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    predicate: npt.NDArray[np.int32]
    highest: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


class Fresh(NamedTuple):
    """Unsorted entries, few: ``axis`` and ``predicate`` int32, ``low`` and ``high`` int64, ``filled`` int64[1]."""

    axis: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    predicate: npt.NDArray[np.int32]
    filled: npt.NDArray[np.int64]


class Ordered(NamedTuple):
    """All entries: most in ``main``, newer ones in ``middle``, the newest in ``fresh``."""

    main: Run
    middle: Run
    fresh: Fresh


@kernel
def block_maxima(values: Any) -> Any:
    """Return the greatest of each block of 16 values, the last one perhaps shorter."""
    maxima = np.empty((len(values) + BLOCK - 1) >> BLOCK_BITS, np.int64)
    for block in range(len(maxima)):
        maxima[block] = values[block << BLOCK_BITS : (block + 1) << BLOCK_BITS].max()
    return maxima


@kernel
def merge_order(ones: Run, others: Run) -> Any:
    """Return where the entries of two runs over the same axes go when merged: a position in ``ones`` or ``~`` one in
    ``others`` for each place of the result.
    """
    order = np.empty(len(ones.low) + len(others.low), np.int64)
    at = 0
    for axis in range(len(ones.first) - 1):
        one, other = ones.first[axis], others.first[axis]
        while one < ones.first[axis + 1] or other < others.first[axis + 1]:
            if other >= others.first[axis + 1] or (
                one < ones.first[axis + 1]
                and (
                    ones.low[one] < others.low[other]
                    or (ones.low[one] == others.low[other] and ones.high[one] <= others.high[other])
                )
            ):
                order[at] = one
                one += 1
            else:
                order[at] = ~other
                other += 1
            at += 1
    return order


@kernel
def _begin_until(low: Any, first: Any, stop: Any, code: Any) -> Any:
    """Return the first position in ``low[first:stop]`` whose value is above ``code``, or ``stop``."""
    while first < stop:
        middle = (first + stop) >> 1
        if low[middle] <= code:
            first = middle + 1
        else:
            stop = middle
    return first


@kernel
def _mark(predicate: Any, scratch: Any, count: Any) -> Any:
    if scratch.marks[predicate] != scratch.generation[0]:
        scratch.marks[predicate] = scratch.generation[0]
        scratch.satisfied[count] = predicate
        count += 1
    return count


@kernel
def _walk(run: Run, axis: Any, low: Any, high: Any, scratch: Any, count: Any) -> Any:
    """Mark the predicates of one run that overlap an interval; append the newly marked to ``scratch.satisfied``."""
    if axis >= len(run.first) - 1:
        return count
    at = run.first[axis]
    stop = run.first[axis + 1]
    if at == stop or run.low[at] > high:
        return count
    stop = _begin_until(run.low, at, stop, high)
    sixteen, more, most = run.highest
    while at < stop:
        if at & 15 == 0 and sixteen[at >> 4] < low:
            if at & 255 != 0 or more[at >> 8] >= low:
                at += 16
            elif at & 4095 != 0 or most[at >> 12] >= low:
                at += 256
            else:
                at += 4096
            continue
        if run.high[at] >= low:
            count = _mark(run.predicate[at], scratch, count)
        at += 1
    return count


@kernel
def mark_overlapping(ordered: Ordered, axis: Any, low: Any, high: Any, scratch: Any, count: Any) -> Any:
    """Mark the predicates in the sorted runs that overlap an interval on an axis; return the new ``count``."""
    count = _walk(ordered.main, axis, low, high, scratch, count)
    return _walk(ordered.middle, axis, low, high, scratch, count)


@kernel
def mark_fresh(fresh: Fresh, queries: Any, row: Any, only_ranged: Any, scratch: Any, count: Any) -> Any:
    """Mark the fresh predicates that overlap a query; where ``only_ranged``, those on axes where it is no point."""
    for entry in range(fresh.filled[0]):
        axis = fresh.axis[entry]
        low = high = np.int64(-9223372036854775808)
        if axis < queries.low.shape[0]:
            low, high = queries.low[axis, row], queries.high[axis, row]
        if fresh.low[entry] <= high and fresh.high[entry] >= low and not (only_ranged and low == high):
            count = _mark(fresh.predicate[entry], scratch, count)
    return count
