"""Kernels that answer many questions at once: boxes outside, 512 questions inside.

The boxes of a group stand in a sheet, each as one word an axis: the bucket of its low end and how many buckets higher
its high end is (as in `segments/layout.py`). For a chunk of questions there are two tables of bitmaps, by the buckets
of their high ends and of their low ends; the questions that a box may contain are then an intersection of rows. What is
left is tested interval by interval, so that buckets decide nothing but the cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.containment.boxes import COMPARED, Question, Rows, answers, note
from tocsin.kernels.containment.grouped import MANY, Groups, local_corner
from tocsin.kernels.vectors import LANES, meet, trailing_zeros

CHUNK = 64 * LANES
"""How many questions share one table."""

CUTS = 254
"""The cuts of an axis; a bucket is how many of them are at or below a code."""


class Sheet(NamedTuple):
    """The boxes of a group. ``cuts`` int64[axes, CUTS]; ``words`` int32[room, axes]; ``slots`` int32[room];
    ``place_of``: where each slot stands; ``filled`` int64[1], how many there are."""

    cuts: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    place_of: npt.NDArray[np.int32]
    filled: npt.NDArray[np.int64]


@kernel
def group_ends(groups: Groups, group: Any, rows: Rows, slots: Any) -> Any:
    """Return the low and high ends of boxes on the axes of a group, int64[axes, 2, boxes], and which of them constrain
    all of these."""
    many = groups.groups[group, MANY]
    ends, whole = np.empty((many, 2, len(slots)), np.int64), np.empty(len(slots), np.bool_)
    corner = np.empty(2 * many, np.int64)
    for place in range(len(slots)):
        shared, _ = local_corner(groups, group, rows, slots[place], corner)
        whole[place] = shared == many
        for axis in range(many):
            ends[axis, 0, place], ends[axis, 1, place] = ~corner[2 * axis], corner[2 * axis + 1]
    return ends, whole


@kernel
def append_to_sheet(sheet: Sheet, slots: Any, ends: Any) -> None:
    """Add boxes with these ends. There must be room."""
    for place in range(len(slots)):
        into = sheet.filled[0]
        for axis in range(len(sheet.cuts)):
            low = np.searchsorted(sheet.cuts[axis], ends[axis, 0, place], "right")
            high = np.searchsorted(sheet.cuts[axis], ends[axis, 1, place], "right")
            sheet.words[into, axis] = axis << 16 | low << 8 | (high - low)
        sheet.slots[into], sheet.place_of[slots[place]] = slots[place], into
        sheet.filled[0] += 1


@kernel
def remove_from_sheet(sheet: Sheet, slots: Any) -> None:
    """Take boxes out; the last one takes the place of each."""
    for slot in slots:
        sheet.filled[0] -= 1
        last, place = sheet.filled[0], sheet.place_of[slot]
        sheet.words[place] = sheet.words[last]
        sheet.slots[place] = sheet.slots[last]
        sheet.place_of[sheet.slots[last]] = place


@kernel
def _fill(table: Any, axis: Any, cuts: Any, values: Any, asked: Any) -> None:
    """Fill the rows of an axis: row ``256 * axis + bucket`` has the questions whose bucket is below that one."""
    table[256 * axis : 256 * axis + 256] = 0
    for query in range(len(asked)):
        bucket = np.searchsorted(cuts, values[asked[query]], "right")
        table[256 * axis + 1 + bucket, query >> 6] |= np.uint64(1) << np.uint64(query & 63)
    for row in range(256 * axis + 1, 256 * axis + 255):
        for lane in range(LANES):
            table[row + 1, lane] |= table[row, lane]


@kernel
def ask_sheet(sheet: Sheet, rows: Rows, question: Question, ends: Any, asked: Any, tally: Any) -> Any:
    """Ask which boxes of a sheet contain each of the boxes at rows ``asked``, up to the limit each; return the pairs
    and how many there are. ``ends`` are those of all rows of the question, as `group_ends` returns them."""
    many = len(sheet.cuts)
    below_high, below_low = np.empty((256 * many, LANES), np.uint64), np.empty((256 * many, LANES), np.uint64)
    each, met, left = np.arange(many).astype(np.int32), np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    answered = np.zeros(CHUNK, np.int64)
    found, count = np.empty((2, 256), np.int32), 0
    for begin in range(0, len(asked), CHUNK):
        some = asked[begin : begin + CHUNK]
        for axis in range(many):
            _fill(below_high, axis, sheet.cuts[axis], ends[axis, 1], some)
            _fill(below_low, axis, sheet.cuts[axis], ends[axis, 0], some)
        for lane in range(LANES):
            valid = min(max(len(some) - 64 * lane, 0), 64)
            left[lane] = ~np.uint64(0) if valid == 64 else (np.uint64(1) << np.uint64(valid)) - np.uint64(1)
        answered[:] = 0
        open_questions = len(some)
        for place in range(sheet.filled[0]):
            if open_questions == 0:
                break
            lanes = meet(sheet.words[place], each, 0, many, below_high, below_low, met)
            while lanes:
                lane = trailing_zeros(np.uint64(lanes))
                lanes &= lanes - 1
                word = met[lane] & left[lane]
                while word:
                    bit = trailing_zeros(word)
                    word &= word - np.uint64(1)
                    query = 64 * lane + bit
                    tally[COMPARED] += 1
                    if answers(question, some[query], rows, sheet.slots[place]):
                        found = note(found, count, some[query], sheet.slots[place])
                        count += 1
                        answered[query] += 1
                        if answered[query] == question.limit:
                            left[lane] &= ~(np.uint64(1) << np.uint64(bit))
                            open_questions -= 1
    return found, count
