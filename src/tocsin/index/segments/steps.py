"""Moves in `adaptive`: for each segment either the bounds on the way are looked at, or its answers are compared.

The bounds of a segment are sorted when that first pays, and belong to it from then on: a segment does not change.
"""

from __future__ import annotations

import time

import numpy as np

from tocsin.index.boxes import Boxes, Int64s, Moved, Pairs, Queries
from tocsin.index.moves import differences, widened
from tocsin.index.runs import run_of
from tocsin.index.segments.parts import NONE_DIED, Part
from tocsin.index.segments.states import State, answer, readable
from tocsin.kernels.bounds.moves import Run, Step, count_crossed, moved_in_run
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.checking import Found, sort_by_row
from tocsin.kernels.segments.contents import unpack_boxes

SAMPLE = 64
"""Of so many rows the bounds on the way are counted."""

SORTING = 500.0
"""What it costs to sort the bounds of one box: no less must have gone into comparing answers, or be about to."""


def bounds_of(part: Part) -> Run:
    """Return the run of a segment's boxes, at the positions they have there; it is built when first asked for."""
    if part.run is None:
        segment = part.segment
        positions = np.flatnonzero(segment.marks < at.REPLICA)
        boxes = Boxes(*unpack_boxes(segment, positions))
        counts = np.zeros(len(segment.marks), np.int64)
        counts[positions] = np.diff(boxes.offsets)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        first = int(segment.header[at.NUMBERS])
        numbers = segment.words[first : first + len(segment.marks)].copy()
        part.run = run_of(numbers, Boxes(offsets, boxes.axis, boxes.low, boxes.high))
    return part.run


def moved_in(state: State, old: Queries, new: Queries) -> Moved:
    """Return what begins and ceases to overlap in a state, segment by segment in the way that costs less."""
    axes, rows = max(old.axes, new.axes), old.rows
    before = [readable(widened(side, axes)) for side in old]
    after = [readable(widened(side, axes)) for side in new]
    points = old.are_points and new.are_points
    compared: list[Part] = []
    found: list[Moved] = []
    for part in state.parts:
        bounds = _worth_following(part, points, rows, before, after)
        if bounds < 0:
            compared.append(part)
            continue
        began = time.thread_time_ns()
        come, came, gone, went = moved_in_run(bounds_of(part), tuple(before), tuple(after), part.died, state.version)
        part.pace.note_followed(bounds, time.thread_time_ns() - began)
        found.append(Moved(Pairs(come, came), Pairs(gone, went)))
    if rows and (compared or any(count for _, count in state.fresh) or not found):
        found.append(_compared(State(tuple(compared), state.fresh, state.version), points, rows, before, after))
    if len(found) == 1:
        return found[0]
    return Moved(_joined([one.entered for one in found], rows), _joined([one.left for one in found], rows))


def _worth_following(part: Part, points: bool, rows: int, before: list[Int64s], after: list[Int64s]) -> float:
    """Return how many bounds are on the way, or -1 if two answers cost less."""
    asked = part.pace.compared[points] * rows
    if not asked or (part.run is None and part.pace.spent + asked < SORTING * len(part.segment.marks)):
        return -1.0
    sides = [*before, *after]
    if rows > SAMPLE:
        some = np.linspace(0, rows - 1, SAMPLE).astype(np.int64)
        sides = [readable(side[:, some]) for side in sides]
    step = Step(sides[0], sides[1], sides[2], sides[3], NONE_DIED, 0)
    counted = min(rows, SAMPLE)
    bounds = count_crossed(bounds_of(part), step, 0, counted) * (rows / counted)
    return float(bounds) if part.pace.crossing * bounds < asked else -1.0


def _compared(state: State, points: bool, rows: int, before: list[Int64s], after: list[Int64s]) -> Moved:
    """Return the differences of two answers, and note what they cost."""
    began = time.thread_time_ns()
    low = readable(np.concatenate([before[0], after[0]], axis=1))
    high = low if points else readable(np.concatenate([before[1], after[1]], axis=1))
    moved = differences(answer(state, low, high, 0, 2 * rows), rows)
    spent, boxes = time.thread_time_ns() - began, sum(part.boxes for part in state.parts)
    for part in state.parts:
        part.pace.note_compared(points, rows, spent * part.boxes / max(boxes, 1))
    return moved


def _joined(parts: list[Pairs], rows: int) -> Pairs:
    """Return the pairs of all parts, sorted by row."""
    none = np.empty(0, np.int32)
    found = Found(*(np.concatenate([none, *(part[side] for part in parts)]) for side in (0, 1)))
    return Pairs(*sort_by_row(found, len(found.rows), 0, rows)) if rows > 1 else Pairs(*found)
