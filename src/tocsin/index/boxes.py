"""The three shapes that pass through an index: boxes in, queries in, pairs out. All of them are plain arrays.

A *code* is a 64-bit integer that stands for a value on an ordered *axis*; a greater value has a greater code. NULL is a
code of its own, below every value, so that ``x IS NULL`` and ``x IS NOT NULL`` are intervals like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NULL = np.iinfo(np.int64).min
"""The code of a missing value: below every value's code."""

LOWEST = NULL + 1
"""The lowest code a value may have."""

HIGHEST = np.iinfo(np.int64).max
"""The highest code a value may have."""


class Boxes(NamedTuple):
    """Boxes on axes, as arrays.

    Box ``b`` owns the entries ``offsets[b]:offsets[b + 1]``. An entry is one closed interval ``low <= code <= high``
    on one axis. The entries of a box are sorted by axis, then by ``low``. Entries of one box on one axis are
    alternatives: disjoint, not adjacent, and one of them must hold; different axes must all hold. No interval is
    empty. A box with no entry contains every point.

    ``offsets``: int64[boxes + 1], ``axis``: int32[entries], ``low`` and ``high``: int64[entries].

    >>> boxes = Boxes.of([{0: [(1, 5)], 2: [(7, 7), (9, 9)]}, {}])
    >>> len(boxes), boxes.axis.tolist(), boxes.low.tolist()
    (2, [0, 2, 2], [1, 7, 9])
    """

    offsets: Int64s
    axis: Int32s
    low: Int64s
    high: Int64s

    def __len__(self) -> int:
        """Return the number of boxes, not of arrays."""
        return len(self.offsets) - 1

    @classmethod
    def of(cls, boxes: Sequence[dict[int, list[tuple[int, int]]]]) -> Boxes:
        """Build boxes from mappings of axis to its intervals, for tests and small jobs."""
        entries = [[(axis, low, high) for axis in sorted(box) for low, high in sorted(box[axis])] for box in boxes]
        flat = [entry for box in entries for entry in box]
        return cls(
            np.cumsum([0, *map(len, entries)], dtype=np.int64),
            np.array([axis for axis, _, _ in flat], dtype=np.int32),
            np.array([low for _, low, _ in flat], dtype=np.int64),
            np.array([high for _, _, high in flat], dtype=np.int64),
        )

    def take(self, rows: npt.NDArray[np.integer]) -> Boxes:
        """Return the boxes at these positions, in this order."""
        counts = np.diff(self.offsets)[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        source = np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Boxes(offsets, self.axis[source], self.low[source], self.high[source])

    @classmethod
    def concatenate(cls, parts: Sequence[Boxes]) -> Boxes:
        """Return the boxes of all parts, one after another."""
        starts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
        return cls(
            np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
            np.concatenate([part.axis for part in parts] or [np.empty(0, np.int32)]),
            np.concatenate([part.low for part in parts] or [np.empty(0, np.int64)]),
            np.concatenate([part.high for part in parts] or [np.empty(0, np.int64)]),
        )


class Queries(NamedTuple):
    """A batch of points or boxes to ask about: one column a row, one line an axis.

    ``low`` and ``high``: int64[axes, rows], C-contiguous, closed intervals. For points ``high is low``: engines may
    test that to take their faster path. A missing value is ``NULL`` in both; a dimension that spans its domain
    (unspecified, in a space that reads it as *any*) is ``LOWEST`` to ``HIGHEST``. Axes beyond the lines given are
    missing everywhere.

    >>> queries = Queries.points(np.array([[3, 4], [NULL, 7]], dtype=np.int64))
    >>> queries.rows, queries.are_points
    (2, True)
    """

    low: Int64s
    high: Int64s

    @classmethod
    def points(cls, codes: Int64s) -> Queries:
        """Return the batch whose rows are points."""
        return cls(codes, codes)

    @property
    def rows(self) -> int:
        """The number of questions asked."""
        return int(self.low.shape[1])

    @property
    def axes(self) -> int:
        """The number of axes given."""
        return int(self.low.shape[0])

    @property
    def are_points(self) -> bool:
        """Whether every row is a point."""
        return self.high is self.low


class Pairs(NamedTuple):
    """Which query row met which box: parallel arrays, each pair once, sorted by row (the order within a row is
    free)."""

    rows: Int32s
    numbers: Int32s


class Moved(NamedTuple):
    """What changed when queries moved: the pairs that have begun to overlap, and those that have ceased to."""

    entered: Pairs
    left: Pairs
