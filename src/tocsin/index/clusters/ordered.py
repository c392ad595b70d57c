"""Intervals in order, with cheap additions: the host side of `kernels.clusters.ordered`.

New entries gather unsorted (at most `FRESH`), then in a small sorted run, then in the large one; each merge is
linear, so an addition costs little on average and a question looks in three places. Entries of predicates that are no
longer used stay until `OrderedIntervals.purge`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.clusters.ordered import Fresh, Ordered, Run, block_maxima, merge_order

FRESH = 512
"""How many entries may wait unsorted."""


class OrderedIntervals:
    """Entries (axis, low, high, predicate), kept so that the ones overlapping an interval are found quickly."""

    def __init__(self) -> None:
        fresh = Fresh(
            np.empty(FRESH, np.int32),
            np.empty(FRESH, np.int64),
            np.empty(FRESH, np.int64),
            np.empty(FRESH, np.int32),
            np.zeros(1, np.int64),
        )
        self.arrays = Ordered(_empty(0), _empty(0), fresh)

    def __len__(self) -> int:
        return len(self.arrays.main.low) + len(self.arrays.middle.low) + int(self.arrays.fresh.filled[0])

    @property
    def nbytes(self) -> int:
        """The bytes of all entries and of what is kept about them."""
        main, middle, fresh = self.arrays
        runs = [array for run in (main, middle) for array in (*run[:-1], *run.highest)]
        return sum(array.nbytes for array in (*runs, *fresh))

    def add(self, axis: Int32s, low: Int64s, high: Int64s, predicate: Int32s, axes: int) -> None:
        """Add entries; ``axes`` is the number of axes known by now."""
        main, middle, fresh = self.arrays
        main, middle = _widened(main, axes), _widened(middle, axes)
        held = int(fresh.filled[0])
        if held + len(axis) <= FRESH:
            there = slice(held, held + len(axis))
            fresh.axis[there], fresh.low[there], fresh.high[there] = axis, low, high
            fresh.predicate[there] = predicate
            fresh.filled[0] += len(axis)
        else:
            waiting = _waiting(fresh)
            all_axis = np.concatenate([waiting[0], axis])
            all_low = np.concatenate([waiting[1], low])
            all_high = np.concatenate([waiting[2], high])
            all_predicate = np.concatenate([waiting[3], predicate])
            middle = _merged(middle, _sorted(all_axis, all_low, all_high, all_predicate, axes))
            fresh.filled[0] = 0
            if len(middle.low) > max(8 * FRESH, len(main.low) // 64):
                main, middle = _merged(main, middle), _empty(axes)
        self.arrays = Ordered(main, middle, fresh)

    def purge(self, uses: Int32s) -> Int32s:
        """Drop the entries of predicates without uses; return those predicates."""
        main, middle, fresh = self.arrays
        axes = len(main.first) - 1
        newest = _sorted(*_waiting(fresh), axes)
        dropped = [run.predicate[uses[run.predicate] == 0] for run in (main, middle, newest)]
        kept = [_kept(run, uses) for run in (main, middle, newest)]
        fresh.filled[0] = 0
        self.arrays = Ordered(_merged(_merged(kept[0], kept[1]), kept[2]), _empty(axes), fresh)
        return np.unique(np.concatenate(dropped))


def _waiting(fresh: Fresh) -> tuple[Int32s, Int64s, Int64s, Int32s]:
    """Return the unsorted entries: axis, low, high, predicate."""
    held = int(fresh.filled[0])
    return fresh.axis[:held], fresh.low[:held], fresh.high[:held], fresh.predicate[:held]


def _empty(axes: int) -> Run:
    none = np.empty(0, np.int64)
    return Run(np.zeros(axes + 1, np.int64), none, none, np.empty(0, np.int32), (none, none, none))


def _run(first: Int64s, low: Int64s, high: Int64s, predicate: Int32s) -> Run:
    sixteen = block_maxima(high)
    more = block_maxima(sixteen)
    return Run(first, low, high, predicate, (sixteen, more, block_maxima(more)))


def _widened(run: Run, axes: int) -> Run:
    """Return the run with room for more axes, which have no entries yet."""
    missing = axes + 1 - len(run.first)
    return run._replace(first=np.concatenate([run.first, np.full(missing, run.first[-1])])) if missing > 0 else run


def _sorted(axis: Int32s, low: Int64s, high: Int64s, predicate: Int32s, axes: int) -> Run:
    """Return entries as a run. Sorting one axis after another is several times faster than all by three keys."""
    grouped = np.argsort(axis.astype(np.int16) if axes < 2**15 else axis, kind="stable")
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(axis, minlength=axes))])
    order = np.empty(len(axis), np.int64)
    for begin, end in pairwise(first):
        if begin < end:
            some = grouped[begin:end]
            order[begin:end] = some[np.lexsort((high[some], low[some]))]
    return _run(first, low[order], high[order], predicate[order])


def _merged(ones: Run, others: Run) -> Run:
    if not len(ones.low) or not len(others.low):
        return ones if len(ones.low) else others
    order = merge_order(ones, others)
    source = np.where(order >= 0, order, len(ones.low) + ~order)
    low = np.concatenate([ones.low, others.low])[source]
    high = np.concatenate([ones.high, others.high])[source]
    predicate = np.concatenate([ones.predicate, others.predicate])[source]
    return _run(ones.first + others.first, low, high, predicate)


def _kept(run: Run, uses: Int32s) -> Run:
    """Return the run without the entries of unused predicates."""
    keep = uses[run.predicate] > 0
    if keep.all():
        return run
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    return _run(before[run.first], run.low[keep], run.high[keep], run.predicate[keep])
