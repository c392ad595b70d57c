"""All of a segment's paths for one batch of queries, and what is fresh beside it."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.bitmaps import match_bitmaps, match_rows
from tocsin.kernels.segments.checking import Asked, Found
from tocsin.kernels.segments.coding import code_rows
from tocsin.kernels.segments.dense import CHUNK
from tocsin.kernels.segments.fresh import match_fresh
from tocsin.kernels.segments.layout import Coded
from tocsin.kernels.segments.nodes import list_slots, list_stretches, match_points
from tocsin.kernels.vectors import TABLE

BATCH = 65_536
"""How many rows are coded, sorted and matched together, at most."""

CODED = 1 << 22
"""How many codes are held at once: fewer rows where there are many axes."""

FEW = 4
"""Up to so many rows, boxes are tested row by row rather than by bitmaps."""


@kernel
def code(segment, codes, rows):  # type: ignore[no-untyped-def]
    """Return the buckets and cells of some rows; memory goes on after the buckets, as `list_passing` demands."""
    axes = segment.header[at.AXES]
    buckets = np.empty((len(rows) + 4 + TABLE // axes, axes), np.uint8)[: len(rows)]
    cells = np.empty((len(rows), segment.header[at.KEYS]), np.int32)
    code_rows(segment, codes, rows, buckets, cells)
    return buckets, cells


@kernel
def match_from(segment, asked, rows, coded, position, found, count):  # type: ignore[no-untyped-def]
    """Match coded rows with the boxes at positions from this one on, by whatever suits their number."""
    if position == segment.header[at.POSITIONS]:
        return found, count
    if len(rows) <= FEW:
        return match_rows(segment, asked, rows, coded, position, found, count)
    for begin in range(0, len(rows), CHUNK):
        some = slice(begin, min(begin + CHUNK, len(rows)))
        part = Coded(coded.low[some], coded.high[some], coded.cells[some])
        found, count = match_bitmaps(segment, asked, rows[some], part, position, found, count)
    return found, count


@kernel
def match_segment(segment, asked, points, ranges, found, count):  # type: ignore[no-untyped-def]
    """Match the rows listed in ``points`` and in ``ranges`` with all the boxes of a segment; append the pairs."""
    tree = segment.header[at.TREE]
    batch = max(CHUNK, min(BATCH, CODED // segment.header[at.AXES]))
    for begin in range(0, len(points), batch):
        rows = points[begin : begin + batch]
        buckets, cells = code(segment, asked.low, rows)
        coded = Coded(buckets, buckets, cells)
        if tree > 0:
            found, count = match_points(segment, asked, rows, coded, found, count)
        found, count = match_from(segment, asked, rows, coded, tree, found, count)
    for begin in range(0, len(ranges), batch):
        rows = ranges[begin : begin + batch]
        low, cells = code(segment, asked.low, rows)
        high, _ = code(segment, asked.high, rows)
        coded = Coded(low, high, cells)
        found, count = match_from(segment, asked, rows, coded, 0, found, count)
    return found, count


@kernel
def match_both(segment, fresh, boxes, died, asked, points, ranges, found, count):  # type: ignore[no-untyped-def]
    """Match rows with the boxes of a segment, and with the first ``boxes`` of a fresh part, whose own stamps ``died``
    are; append the pairs. In one call: between two, a reader would have to wait for Python's lock."""
    found, count = match_segment(segment, asked, points, ranges, found, count)
    if boxes:
        young = Asked(asked.low, asked.high, died, asked.version)
        found, count = match_fresh(fresh, boxes, young, points, ranges, found, count)
    return found, count


def no_pairs(room: int) -> Found:
    """Return an empty collection of pairs with some room; nothing that were worth compiling."""
    return Found(np.empty(room, np.int32), np.empty(room, np.int32))


@kernel
def split_rows(low, high, begin, end):  # type: ignore[no-untyped-def]
    """Return which rows from ``begin`` to ``end`` are points and which are ranges on some axis."""
    points, ranges = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    n, m = 0, 0
    for row in range(begin, end):
        point = True
        for axis in range(low.shape[0]):
            if low[axis, row] != high[axis, row]:
                point = False
                break
        if point:
            points[n] = row
            n += 1
        else:
            ranges[m] = row
            m += 1
    return points[:n], ranges[:m]


@kernel
def count_candidates(segment, codes):  # type: ignore[no-untyped-def]
    """Return how many boxes in nodes the queries ``codes`` int64[axes, rows], all points, would be checked against."""
    rows = np.arange(codes.shape[1])
    buckets, cells = code(segment, codes, rows)
    coded = Coded(buckets, buckets, cells)
    room = segment.header[at.NODES] + segment.header[at.EMBEDDED] + 1
    slots, ends = (np.empty(room, np.int32), np.empty(room, np.int32)), np.empty(room, np.int32)
    total = np.int64(0)
    for row in rows.astype(np.int32):
        reached = list_slots(segment, coded, np.full(1, row, np.int32), slots)
        total += list_stretches(segment, slots, reached, ends)[1]
    return total
