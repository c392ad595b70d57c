"""Kernels that weigh tables that do not exist yet: what would each save, for how many boxes? (clusters paper, 3.2.2)"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.clusters.family import KEY, WIDTH, Clustering
from tocsin.kernels.clusters.interned import AXIS, NO_POINT, Predicates
from tocsin.kernels.compile import kernel
from tocsin.kernels.numbers import place_of

CONSIDERED = 8
"""Of a box with more points, only so many, the least likely ones, are combined into candidate tables."""

AXIS_BITS = 15
"""Axes beyond this many bits are not combined; a schema is packed into one integer, each axis plus one."""

BETTER = 0.999
"""An access predicate is better than another if its chance is below this part of the other's."""


class Candidates(NamedTuple):
    """Candidate tables in a hash table. ``schema``: int64[power of two], packed axes, 0 if free; ``saved``: float64,
    the boxes it would save an event from looking at; ``moved``: float64, the boxes it would take over; ``columns``:
    float64, by how many predicates together these would get shorter.
    """

    schema: npt.NDArray[np.int64]
    saved: npt.NDArray[np.float64]
    moved: npt.NDArray[np.float64]
    columns: npt.NDArray[np.float64]


@kernel
def _note(candidates: Any, packed: Any, length: Any, chance: Any, present: Any, width: Any) -> None:
    """Credit a schema with one box, if it is better than what the box has; a full table takes no new schemas."""
    if chance >= present * BETTER:
        return
    schema, saved, moved, columns = candidates
    mask = len(schema) - 1
    at = ((packed * -7046029254386353131) >> 20) & mask
    for _ in range(64):
        if schema[at] == 0:
            schema[at] = packed
        if schema[at] == packed:
            saved[at] += present - chance
            moved[at] += 1
            columns[at] += length - width
            return
        at = (at + 1) & mask


@kernel
def _points_of(content: Any, chance: Any, owned: Any, begin: Any, end: Any, axes: Any, chances: Any) -> Any:
    """Write the axes, ascending, and chances of a box's least likely points; return how many."""
    count = 0
    for index in range(begin, end):
        likely = np.float64(chance[owned[index]])
        if likely >= NO_POINT or content[owned[index], AXIS] >= (1 << AXIS_BITS) - 1:
            continue
        if count == CONSIDERED:
            worst = 0
            for other in range(1, count):
                if chances[other] > chances[worst]:
                    worst = other
            if chances[worst] <= likely:
                continue
            for other in range(worst, count - 1):
                axes[other], chances[other] = axes[other + 1], chances[other + 1]
            count -= 1
        at = count
        while at > 0 and axes[at - 1] > content[owned[index], AXIS]:
            axes[at], chances[at] = axes[at - 1], chances[at - 1]
            at -= 1
        axes[at], chances[at] = content[owned[index], AXIS], likely
        count += 1
    return count


@kernel
def weigh(
    predicates: Predicates, owned: Any, offsets: Any, present: Any, widths: Any, longest: Any, candidates: Any
) -> None:
    """Credit every schema of two to ``longest`` axes with the boxes that would be better off in its table.

    ``present`` and ``widths`` are the chance and the number of points of the access predicate each box is under.
    """
    content, chance = predicates.content, predicates.chance
    axes, chances = np.empty(CONSIDERED + 1, np.int64), np.empty(CONSIDERED + 1, np.float64)
    for box in range(len(offsets) - 1):
        count = _points_of(content, chance, owned, offsets[box], offsets[box + 1], axes, chances)
        now, width = present[box], widths[box]
        for one in range(count):
            for two in range(one + 1, count):
                pair = (axes[one] + 1) | (axes[two] + 1) << AXIS_BITS
                likely_pair = chances[one] * chances[two]
                _note(candidates, pair, 2, likely_pair, now, width)
                if longest < 3:
                    continue
                for three in range(two + 1, count):
                    triple = pair | (axes[three] + 1) << 2 * AXIS_BITS
                    likely_triple = likely_pair * chances[three]
                    _note(candidates, triple, 3, likely_triple, now, width)
                    if longest < 4:
                        continue
                    for four in range(three + 1, count):
                        packed = triple | (axes[four] + 1) << 3 * AXIS_BITS
                        _note(candidates, packed, 4, likely_triple * chances[four], now, width)


@kernel
def adopt(predicates: Predicates, owned: Any, offsets: Any, axes: Any, present: Any, widths: Any, better: Any) -> None:
    """Bring ``present`` and ``widths`` up to date with a table on these axes; set ``better`` for the boxes it takes."""
    content, chance = predicates.content, predicates.chance
    for box in range(len(offsets) - 1):
        likely, matched = 1.0, 0
        for index in range(offsets[box], offsets[box + 1]):
            for axis in axes:
                if content[owned[index], AXIS] == axis and chance[owned[index]] < NO_POINT:
                    likely *= chance[owned[index]]
                    matched += 1
        better[box] = matched == len(axes) and likely < present[box] * BETTER
        if better[box]:
            present[box] = likely
            widths[box] = matched


@kernel
def single_access(predicates: Predicates, owned: Any, offsets: Any) -> Any:
    """Return ``present`` and ``widths`` for boxes that have only single points to choose from."""
    chance = predicates.chance
    present, widths = np.full(len(offsets) - 1, NO_POINT), np.zeros(len(offsets) - 1, np.int64)
    for box in range(len(offsets) - 1):
        for index in range(offsets[box], offsets[box + 1]):
            if chance[owned[index]] < present[box]:
                present[box] = chance[owned[index]]
                widths[box] = 1
    return present, widths


@kernel
def present_access(clustering: Clustering, predicates: Predicates, numbers: Any) -> Any:
    """Return ``present`` and ``widths`` for boxes as they are placed now."""
    chance, records, owner = predicates.chance, clustering.records, clustering.owner
    directory, where, _ = clustering.places
    present, widths = np.full(len(numbers), NO_POINT), np.zeros(len(numbers), np.int64)
    for box in range(len(numbers)):
        holder = owner[where[place_of(directory, numbers[box])]]
        widths[box] = records[holder, WIDTH]
        if widths[box] > 0:
            present[box] = 1.0
        for place in range(widths[box]):
            present[box] *= chance[records[holder, KEY + place]]
    return present, widths
