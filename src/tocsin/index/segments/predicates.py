"""The distinct predicates of a set of boxes, the axes that they are on, and how likely a query satisfies each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes, Int32s, Int64s
from tocsin.index.numbers import ascending_once
from tocsin.index.segments.levels import levels_of
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments.building import number_predicates
from tocsin.kernels.segments.layout import BUCKETS
from tocsin.kernels.segments.planning import count_cells

Float64s = npt.NDArray[np.float64]

FEW_INTERVALS = 65_536
"""Up to so many distinct intervals, all the cuts of an axis are looked at; beyond, a sample of them."""

CELL_COUNTS = (4_095, 1_023)
"""How finely an axis of many ranges may be divided, if they are narrow enough to fall into few cells."""

PRIOR = 32
"""The weight, in queries, of what is assumed about queries before any is seen."""


@dataclass(frozen=True)
class Axis:
    """An axis as boxes see it: the sorted codes at which predicates begin or cease to hold.

    ``complete``: all of them are there, so that two codes between the same cuts satisfy the same predicates.
    """

    number: int
    cuts: Int64s
    complete: bool

    @property
    def cells(self) -> int:
        """The number of stretches between cuts."""
        return len(self.cuts) + 1

    def rank(self, codes: Int64s) -> Int64s:
        """Return the cell of each code."""
        return np.searchsorted(self.cuts, codes, side="right").astype(np.int64)

    def buckets(self, ranks: Int64s) -> Int64s:
        """Return the bucket of each cell."""
        return ranks if self.cells <= BUCKETS else ranks * BUCKETS // self.cells

    @property
    def exact(self) -> bool:
        """Whether buckets decide about single intervals."""
        return self.complete and self.cells <= BUCKETS


@dataclass(frozen=True)
class Predicates:
    """The distinct predicates of boxes.

    Box ``b`` has predicates ``held[row_start[b]:row_start[b + 1]]``. Predicate ``p`` is on ``axes[axis_of[p]]``, has
    the intervals ``interval_start[p]:interval_start[p + 1]`` of ``low`` and ``high``, whose cells are ``first_cell``
    to ``last_cell``, covers ``cells[p]`` cells and is satisfied by a query with the chance ``chance[p]``. An axis that
    is divided into levels is there several times, each with the predicates and cuts of one level.
    """

    row_start: Int64s
    held: Int32s
    axes: list[Axis]
    axis_of: Int32s
    interval_start: Int64s
    low: Int64s
    high: Int64s
    first_cell: Int64s
    last_cell: Int64s
    cells: Int64s
    chance: Float64s

    @classmethod
    def of(cls, boxes: Boxes, statistics: QueryStatistics) -> Predicates:
        """Find the distinct predicates of boxes."""
        row_start, held, first, length = number_predicates(*boxes)
        interval_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(length, dtype=np.int64)])
        source = np.repeat(first - interval_start[:-1], length) + np.arange(interval_start[-1])
        low, high = boxes.low[source], boxes.high[source]
        begins = interval_start[:-1]
        levels = levels_of(boxes.axis[first], low[begins], high[begins], length == 1)
        lines, places = np.unique(boxes.axis[first].astype(np.int64) << 8 | levels, return_inverse=True)
        numbers = lines >> 8
        axis_of: Int32s = places.astype(np.int32)
        uses = np.bincount(held, minlength=len(first))
        first_cell, last_cell = np.empty(len(low), np.int64), np.empty(len(low), np.int64)
        chance = np.empty(len(first))
        axis_of_interval = np.repeat(axis_of, length)
        in_axis_order = np.argsort(axis_of_interval.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
        ends = np.searchsorted(axis_of_interval[in_axis_order], np.arange(len(numbers) + 1))
        axes = []
        for place, number in enumerate(numbers.tolist()):
            these = in_axis_order[ends[place] : ends[place + 1]]
            predicate = these if len(low) == len(first) else np.searchsorted(interval_start, these, side="right") - 1
            axis = choose_cuts(number, low[these], high[these], uses[predicate])
            begin, end = axis.rank(low[these]), axis.rank(high[these])
            first_cell[these], last_cell[these] = begin, end
            likely = cell_chances(axis, statistics.codes(number), begin, end, uses[predicate])
            below = np.concatenate([np.zeros(1), np.cumsum(likely)])
            fresh = np.diff(predicate, prepend=-1) != 0
            where = np.flatnonzero(fresh)
            if len(where):
                chance[predicate[where]] = np.add.reduceat(below[end + 1] - below[begin], where)
            axes.append(axis)
        cells = count_cells(first_cell, last_cell, interval_start)
        chance = np.minimum(chance, 1.0)
        return cls(row_start, held, axes, axis_of, interval_start, low, high, first_cell, last_cell, cells, chance)


def choose_cuts(number: int, low: Int64s, high: Int64s, uses: Int64s) -> Axis:
    """Divide an axis: at every bound where points prevail or bounds are few, else at quantiles of the bounds."""
    pointed = uses[low == high].sum() * 2 >= uses.sum()
    step = 1 if pointed or len(low) <= FEW_INTERVALS else len(low) // FEW_INTERVALS + 1
    bounds = np.concatenate([low[::step][low[::step] != NULL], high[::step][high[::step] != HIGHEST] + 1])
    cuts = ascending_once(bounds)
    if step == 1 and (pointed or len(cuts) < BUCKETS):
        return Axis(number, cuts, complete=True)
    in_order = np.sort(bounds)
    low, high, uses = low[::step], high[::step], uses[::step]
    for count in CELL_COUNTS:
        finer = np.unique(in_order[np.linspace(0, len(in_order) - 1, count).astype(np.int64)])
        few = np.searchsorted(finer, high, "right") - np.searchsorted(finer, low, "right") < 2
        if uses[few].sum() * 5 >= uses.sum() * 4:
            return Axis(number, finer, complete=False)
    coarse = np.unique(in_order[np.linspace(0, len(in_order) - 1, BUCKETS - 1).astype(np.int64)])
    return Axis(number, coarse, complete=False)


def cell_chances(axis: Axis, codes: Int64s, begin: Int64s, end: Int64s, uses: Int64s) -> Float64s:
    """Return how likely a query is in each cell: as those sampled, and before that as if it asked what boxes ask."""
    prior = np.full(axis.cells, 0.5 / axis.cells)
    narrow = begin == end
    if narrow.any():
        asked = np.bincount(begin[narrow], weights=uses[narrow], minlength=axis.cells)
        prior += 0.5 * asked / asked.sum()
    else:
        prior *= 2
    seen = np.bincount(axis.rank(codes), minlength=axis.cells) if len(codes) else np.zeros(axis.cells)
    chances: Float64s = (seen + PRIOR * prior) / (len(codes) + PRIOR)
    return chances


__all__ = ["LOWEST", "Axis", "Predicates", "choose_cuts"]
