"""Kernels of ordered intervals: which of them overlap a given one, without looking at most of the others.

A run is sorted by axis, then low end, then high end. The entries that begin in time are a prefix of their axis, found
by bisection; within it, blocks of 16, 256 and 4,096 entries whose greatest high end is too low are passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

NULL = -9223372036854775808
"""The code of a missing value, as in `tocsin.index.boxes`."""

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
def _mark(predicate: Any, marks: Any, generation: Any, satisfied: Any, count: Any) -> Any:
    if marks[predicate] != generation:
        marks[predicate] = generation
        satisfied[count] = predicate
        count += 1
    return count


@kernel
def mark_run(run: Run, queries: Any, row: Any, only_spanned: Any, scratch: Any, count: Any) -> Any:
    """Mark the predicates of a run that overlap a query, and append the newly marked to ``scratch.satisfied``.

    Where ``only_spanned``, look only at axes on which the query spans several codes. Return the new ``count``.
    """
    lows, highs, predicates = run.low, run.high, run.predicate
    sixteen, more, most = run.highest
    marks, satisfied, generation = scratch.marks, scratch.satisfied, scratch.generation[0]
    asked_low, asked_high = queries.low, queries.high
    for axis in range(len(run.first) - 1):
        at, stop = run.first[axis], run.first[axis + 1]
        low = high = np.int64(NULL)
        if axis < asked_low.shape[0]:
            low, high = asked_low[axis, row], asked_high[axis, row]
        if at == stop or lows[at] > high or (only_spanned and low == high):
            continue
        stop = _begin_until(lows, at, stop, high)
        while at < stop:
            if at & 15 == 0 and sixteen[at >> 4] < low:
                if at & 255 != 0 or more[at >> 8] >= low:
                    at += 16
                elif at & 4095 != 0 or most[at >> 12] >= low:
                    at += 256
                else:
                    at += 4096
                continue
            if highs[at] >= low:
                count = _mark(predicates[at], marks, generation, satisfied, count)
            at += 1
    return count


@kernel
def mark_fresh(fresh: Fresh, queries: Any, row: Any, only_spanned: Any, scratch: Any, count: Any) -> Any:
    """Do what `mark_run` does for the entries that are not sorted yet."""
    if fresh.filled[0] == 0:
        return count
    axes, lows, highs, predicates = fresh.axis, fresh.low, fresh.high, fresh.predicate
    marks, satisfied, generation = scratch.marks, scratch.satisfied, scratch.generation[0]
    asked_low, asked_high = queries.low, queries.high
    for entry in range(fresh.filled[0]):
        axis = axes[entry]
        low = high = np.int64(NULL)
        if axis < asked_low.shape[0]:
            low, high = asked_low[axis, row], asked_high[axis, row]
        if lows[entry] <= high and highs[entry] >= low and not (only_spanned and low == high):
            count = _mark(predicates[entry], marks, generation, satisfied, count)
    return count
