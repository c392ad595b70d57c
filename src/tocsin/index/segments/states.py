"""The states of `adaptive`: what a reader sees, what it answers, and what is worth merging."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from tocsin.index.blocks import ANSWERS, FEW
from tocsin.index.boxes import Boxes, Int32s, Int64s, Pairs
from tocsin.index.segments.fresh import FreshPart
from tocsin.index.segments.parts import Part
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.checking import (
    Asked,
    Found,
    append_by_row,
    append_few_by_row,
    are_few_by_row,
    is_by_row,
)
from tocsin.kernels.segments.fresh import match_fresh
from tocsin.kernels.segments.layout import Segment
from tocsin.kernels.segments.overlap import match_both, split_rows

TIER = 1
"""A merge takes in every segment that is at most so many times as large as all that is smaller."""

FRESH_TIER = 4
"""The same for a merge of what is fresh."""

LEAST_BASE, MOST_BASE = 4, 64
"""What is new is taken into a segment that is so many times as large, at least and at most: a larger one would be
copied too often, and a smaller one is better planned anew."""

AT_A_TIME = 512
"""How many rows are matched at a time where bitmaps prevail: as many as they take together."""

MANY = 16_384
"""Where so many boxes of a segment are in bitmaps, these prevail."""

MOST_ROOM = 1 << 21
"""For so many pairs room is made before they are found, at most."""

MANY_PAIRS = 64
"""So many pairs a row are many."""

ONE_ROW = np.zeros(1, np.int64)
NO_ROWS = np.empty(0, np.int64)
NOTHING_FRESH = FreshPart(), 0


class State(NamedTuple):
    """What a reader sees: the segments, the fresh parts with their counts, the version."""

    parts: tuple[Part, ...]
    fresh: tuple[tuple[FreshPart, int], ...]
    version: int


class Work(NamedTuple):
    """A merge: what is to become one segment. With a ``base``, the others are taken into it as it is planned."""

    base: Part | None
    parts: list[Part]
    fresh: list[FreshPart]


def due(state: State) -> Work | None:
    """Return what is worth merging now: full fresh parts, segments not much larger, segments with many removals.

    A segment that has no box left is no base for others: merged with nothing, it is gone.
    """
    full = [young for young, _ in state.fresh[:-1]]
    rising = sorted(state.parts, key=lambda part: part.live)
    gathered, base, below = sum(young.live for young in full), None, 0
    for place, part in enumerate(rising):
        if part.live and LEAST_BASE * gathered <= part.live <= MOST_BASE * gathered and part.takes(gathered):
            base, below = part, place
        gathered += part.live
    if base is not None:
        return Work(base, rising[:below], full)
    chosen = [part for part in state.parts if part.live * 4 < part.boxes * 3]
    if not full and len(chosen) == 1 and chosen[0].live and chosen[0].takes(0):
        return Work(chosen[0], [], [])
    gathered = sum(young.live for young in full) + sum(part.live for part in chosen)
    others = [part for part in rising if part not in chosen]
    taken, tier = 0, FRESH_TIER if full else TIER
    for place, part in enumerate(others):
        if part.live <= tier * gathered:
            taken = place + 1
        gathered += part.live
    chosen += others[:taken]
    return Work(None, chosen, full) if full or chosen else None


def contents_of(state: State) -> tuple[Int32s, Boxes]:
    """Return the boxes of a state, in no particular order."""
    held = [part.contents(state.version) for part in state.parts]
    held += [young.contents(count, state.version) for young, count in state.fresh]
    numbers = np.concatenate([some for some, _ in held]) if held else np.empty(0, np.int32)
    return numbers, Boxes.concatenate([boxes for _, boxes in held])


def answer(state: State, low: Int64s, high: Int64s, begin: int, end: int, pairs_a_row: float = 2.0) -> Pairs:
    """Return the pairs of the rows from ``begin`` to ``end``, of which there may be any number; room for
    ``pairs_a_row`` is made at once.

    Where bitmaps do most of the work or there are many pairs, rows are matched some at a time: those of a few rows are
    sorted while they are in the cache, and where they come in order anyway, they are written where they stay.
    """
    in_bitmaps = max((part.in_bitmaps for part in state.parts), default=0)
    each = AT_A_TIME if in_bitmaps and end - begin > AT_A_TIME else end - begin
    pairs, total, first = _room(max(256, int(min(pairs_a_row * each, MOST_ROOM)))), 0, begin
    while first < end:
        last = min(first + each, end)
        pairs, count = _matched(state, low, high, first, last, pairs, total)
        pairs, total = _by_row(pairs, total, count, first, last), count
        if first == begin and in_bitmaps < MANY and total < MANY_PAIRS * AT_A_TIME:
            each = end - last
        first, a_row = last, total / (last - begin)
        if total + a_row * min(each, end - last) > len(pairs.rows):  # as if the rows to come had as many
            pairs = _roomy(pairs, total, round(a_row * (end - begin) * 1.05))
    return Pairs(pairs.rows[:total], pairs.numbers[:total])


def _by_row(pairs: Found, total: int, count: int, first: int, last: int) -> Found:
    """Return ``count`` pairs sorted by row, given that the first ``total`` are, and that the others are of the rows
    ``first`` to ``last``."""
    few = count - total <= FEW >= last - first
    if (are_few_by_row if few else is_by_row)(pairs, total, count):
        return pairs
    found = pairs
    if total:
        found = _room(count - total)
        found.rows[:], found.numbers[:] = pairs.rows[total:count], pairs.numbers[total:count]
    else:
        pairs = _room(count)
    (append_few_by_row if few else append_by_row)(found, count - total, first, last, pairs, total)
    return pairs


def _room(pairs: int) -> Found:
    """Return room for so many pairs."""
    return Found(ANSWERS.taken(pairs, np.int32), ANSWERS.taken(pairs, np.int32))


def _roomy(pairs: Found, count: int, room: int) -> Found:
    """Return pairs with so much room."""
    longer = _room(room)
    longer.rows[:count], longer.numbers[:count] = pairs.rows[:count], pairs.numbers[:count]
    return longer


def _matched(
    state: State, low: Int64s, high: Int64s, begin: int, end: int, found: Found, count: int
) -> tuple[Found, int]:
    """Append the pairs of rows to the first ``count`` of those found, as the parts find them; return how many there
    are then."""
    points, ranges = _rows(low, high, begin, end)
    version, rows = state.version, (points, ranges)
    for part, fresh in zip_longest(state.parts, [pair for pair in state.fresh if pair[1]]):
        young, boxes = fresh or NOTHING_FRESH
        if part is None:
            asked = Asked(low, high, young.died, version)
            found, count = match_fresh(young.arrays, boxes, asked, *rows, found, count)
        else:
            asked = Asked(low, high, part.died, version)
            found, count = match_both(part.segment, young.arrays, boxes, young.died, asked, *rows, found, count)
    return found, count


def _rows(low: Int64s, high: Int64s, begin: int, end: int) -> tuple[Int64s, Int64s]:
    """Return which rows are points and which are ranges."""
    if high is not low:
        points, ranges = split_rows(low, high, begin, end)
        return points, ranges
    if begin == 0 and end == 1:
        return ONE_ROW, NO_ROWS
    return np.arange(begin, end), NO_ROWS


def readable(codes: Int64s) -> Int64s:
    """Return codes as a read-only view, so that kernels are compiled once."""
    view = np.ascontiguousarray(codes, np.int64).view()
    view.flags.writeable = False
    return view


def tables_for(parts: tuple[Part, ...]) -> list[list[int]]:
    """Return the sets of axes by which new boxes are chained: the keys of the largest segment and of the latest, the
    longest first."""
    if not parts:
        return []
    largest = _prefixes(max(parts, key=lambda part: part.live).info["paths"])
    latest = _prefixes(parts[-1].info["paths"])
    mixed = [axes for pair in zip_longest(largest, latest) for axes in pair if axes is not None]
    return sorted((list(axes) for axes in list(dict.fromkeys(mixed))[:8]), key=len, reverse=True)


def fresh_part(parts: tuple[Part, ...]) -> FreshPart:
    """Return a part for what comes next, as the segments that there are suggest."""
    largest = max(parts, key=lambda part: part.live, default=None)
    return FreshPart(tables_for(parts), cuts_of(largest.segment) if largest else {})


def cuts_of(segment: Segment) -> dict[int, Int64s]:
    """Return the bounds by which a segment divides its axes; where an axis has several levels, those of one."""
    table = segment.longs[segment.header[at.AXIS_TABLE] : segment.header[at.AXIS_TABLE + 1]]
    cuts = segment.longs[segment.header[at.CUTS] : segment.header[at.CUTS + 1]]
    records = table.reshape(-1, at.AXIS_FIELDS)
    return {
        int(record[at.A_AXIS]): cuts[record[at.A_CUTS] : record[at.A_CUTS] + record[at.A_COUNT]] for record in records
    }


def _prefixes(paths: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """Return up to eight sets of one or two axes that most boxes have as keys."""
    weights: dict[tuple[int, ...], int] = {}
    for path in paths:
        for length in (1, 2):
            axes = tuple(path["axes"][:length])
            if len(axes) == length:
                weights[axes] = weights.get(axes, 0) + path["boxes"]
    return sorted(weights, key=lambda axes: (-weights[axes], -len(axes)))[:8]
