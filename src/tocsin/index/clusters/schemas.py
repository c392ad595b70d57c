"""Candidate tables for boxes: the host side of `kernels.clusters.static`, shared by `static` and `dynamic`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.clusters.family import MAX_KEY, Clustering, owned_by
from tocsin.kernels.clusters.interned import Predicates
from tocsin.kernels.clusters.static import AXIS_BITS, Candidates, weigh

Float64s = npt.NDArray[np.float64]

SAMPLE = 65_536
"""At most so many boxes are weighed at once."""

_SLOTS = 65_536


class Weighed(NamedTuple):
    """Tables that might be made, by position. ``axes``: int64[tables, 4], -1 beyond the last; ``saved``: the boxes
    that an event would be spared; ``moved``: the boxes it would take over; ``columns``: by how many predicates
    together these would get shorter. All of them count the boxes that were weighed.
    """

    axes: Int64s
    saved: Float64s
    moved: Float64s
    columns: Float64s

    def schema(self, position: int) -> tuple[int, ...]:
        """Return the axes of one of them."""
        return tuple(axis for axis in self.axes[position].tolist() if axis >= 0)


def take_sample(clustering: Clustering, held: Int32s, owned: Int32s, offsets: Int64s) -> tuple[Int32s, Int64s]:
    """Return the predicates, and their offsets, of boxes drawn evenly from those held and those arriving."""
    step = max(1, -(-(len(held) + len(offsets) - 1) // SAMPLE))
    held_owned, held_offsets = owned_by(clustering, held[::step])
    begin, end = offsets[:-1][::step], offsets[1:][::step]
    lengths = end - begin
    ends = np.cumsum(lengths)
    source = np.arange(int(lengths.sum())) + np.repeat(begin - (ends - lengths), lengths)
    return np.concatenate([held_owned, owned[source]]), np.concatenate([held_offsets, held_offsets[-1] + ends])


def weighed(
    predicates: Predicates, owned: Int32s, offsets: Int64s, present: Float64s, widths: Int64s, longest: int
) -> Weighed:
    """Return every table that would be better for some of these boxes than what they are under."""
    table = Candidates(np.zeros(_SLOTS, np.int64), np.zeros(_SLOTS), np.zeros(_SLOTS), np.zeros(_SLOTS))
    weigh(predicates, owned, offsets, present, widths, longest, table)
    found = np.flatnonzero(table.schema)
    shifts = AXIS_BITS * np.arange(MAX_KEY)
    axes = (table.schema[found, None] >> shifts & ((1 << AXIS_BITS) - 1)) - 1
    return Weighed(axes, table.saved[found], table.moved[found], table.columns[found])
