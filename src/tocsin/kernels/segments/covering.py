"""Which boxes of the bitmaps lie inside others, bucket by bucket: kernels that find the roots of runs.

A *run* is a root and the boxes that it covers, side by side. Here one box covers another if on each axis that it
constrains its buckets hold those of the other: then whatever query may meet the other may meet it, and where no query
of a chunk meets the root, the run is passed over. That is what decides, not the codes themselves; so a run may hold a
box that its root covers only nearly, and what is found stays exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.layout import BUCKETS
from tocsin.kernels.vectors import LANES, meet, trailing_zeros

CHUNK = 64 * LANES
"""So many boxes are asked about together."""


class Worded(NamedTuple):
    """Boxes as the words of their predicates: box ``b`` has those at ``held[row_start[b]:row_start[b + 1]]``."""

    words: npt.NDArray[np.int32]
    held: npt.NDArray[np.int32]
    row_start: npt.NDArray[np.int64]


@kernel
def _fill(worded: Worded, some: Any, axes: Any, below_high: Any, below_low: Any) -> None:
    """Fill the tables of a chunk: row ``256 * axis + bucket`` has the boxes whose highest, or lowest, bucket is below
    that one; an axis that a box leaves open has all buckets."""
    below_high[:], below_low[:] = 0, 0
    lowest, highest = np.empty(axes, np.int64), np.empty(axes, np.int64)
    for place in range(len(some)):
        lane, bit = place >> 6, np.uint64(1) << np.uint64(place & 63)
        lowest[:], highest[:] = 0, BUCKETS - 1
        for at in range(worded.row_start[some[place]], worded.row_start[some[place] + 1]):
            word: Any = np.int64(worded.words[worded.held[at]])
            axis = (word >> 16) & 0x3FFF
            lowest[axis] = (word >> 8) & 255
            highest[axis] = lowest[axis] + (word & 255)
        for local in range(axes):
            below_high[256 * local + highest[local] + 1, lane] |= bit
            below_low[256 * local + lowest[local] + 1, lane] |= bit
    for local in range(axes):
        for row in range(256 * local + 1, 256 * local + 255):
            for lane in range(LANES):
                below_high[row + 1, lane] |= below_high[row, lane]
                below_low[row + 1, lane] |= below_low[row, lane]


@kernel
def _claim(some: Any, root: Any, lanes: Any, met: Any, left: Any, root_of: Any) -> Any:
    """Note the root of those boxes of a chunk that it covers and that have none yet; return how many there are."""
    claimed = 0
    while lanes:
        lane = trailing_zeros(np.uint64(lanes))
        lanes &= lanes - 1
        word = met[lane] & left[lane]
        left[lane] &= ~word
        while word:
            root_of[some[64 * lane + trailing_zeros(word)]] = root
            word &= word - np.uint64(1)
            claimed += 1
    return claimed


@kernel
def find_roots(worded: Worded, asked: Any, roots: Any, grow: Any, axes: Any, root_of: Any) -> Any:
    """Write the root of each box of ``asked`` into ``root_of`` int32[boxes], where it has one other than itself.

    ``roots`` int32 are boxes. With ``grow`` >= 0 only the first ``grow`` of them are there, and boxes that none covers
    are added while there is room: ``asked`` are the widest first then. Returns how many roots there are.
    """
    below_high, below_low = np.empty((256 * axes, LANES), np.uint64), np.empty((256 * axes, LANES), np.uint64)
    met, left = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    count = len(roots) if grow < 0 else grow
    words, held, row_start = worded
    for begin in range(0, len(asked), CHUNK):
        some = asked[begin : begin + CHUNK]
        _fill(worded, some, axes, below_high, below_low)
        for lane in range(LANES):
            valid = min(max(len(some) - 64 * lane, 0), 64)
            left[lane] = ~np.uint64(0) if valid == 64 else (np.uint64(1) << np.uint64(valid)) - np.uint64(1)
        open_boxes = len(some)
        for place in range(count):
            root = roots[place]
            lanes = meet(words, held, row_start[root], row_start[root + 1], below_high, below_low, met)
            if lanes:
                open_boxes -= _claim(some, root, lanes, met, left, root_of)
                if open_boxes == 0:
                    break
        for place in range(len(some) if grow >= 0 and open_boxes else 0):
            if count < len(roots) and left[place >> 6] >> np.uint64(place & 63) & np.uint64(1):
                root = roots[count] = some[place]
                count += 1
                lanes = meet(words, held, row_start[root], row_start[root + 1], below_high, below_low, met)
                _claim(some, root, lanes, met, left, root_of)
                root_of[root] = -1
    return count
