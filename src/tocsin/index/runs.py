"""Runs: boxes with their bounds in order, built from plain boxes. See `kernels/bounds/moves.py` for their structure."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import HIGHEST, NULL, Boxes, Int32s, Int64s
from tocsin.kernels.bounds.moves import Listed, Run, cover_axes, list_bounds, put_beside
from tocsin.kernels.bounds.stateless import mask_axes

FEW_AXES = 4
"""Where boxes have more intervals on average, what one other axis says is not kept beside their bounds: it would decide
few of them, and take more memory than they do."""


def run_of(numbers: Int32s, boxes: Boxes, *, masked: bool = False) -> Run:
    """Return the run of these boxes, at positions in the order given; ``masked`` if it will be asked what overlaps.

    >>> run = run_of(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> run.lower.code.tolist(), run.upper.code.tolist()
    ([1], [5])
    """
    axes = int(boxes.axis.max(initial=-1)) + 1
    offsets, axis = np.ascontiguousarray(boxes.offsets, np.int64), np.ascontiguousarray(boxes.axis, np.int32)
    low, high = np.ascontiguousarray(boxes.low), np.ascontiguousarray(boxes.high)
    few = len(axis) <= FEW_AXES * (len(offsets) - 1)
    lower = _in_order(few, *list_bounds(offsets, axis, low, high, axes, NULL))
    upper = _in_order(few, *list_bounds(offsets, axis, high, low, axes, HIGHEST))
    if few:
        for listed in (lower, upper):
            put_beside(offsets, axis, low, high, listed)
    covering, sets = cover_axes(offsets, axis, low, high, axes)
    masks = mask_axes(offsets, axis, low, high, covering) if masked else np.empty((0, 0), np.uint64)
    return Run(np.ascontiguousarray(numbers, np.int32), offsets, axis, low, high, lower, upper, covering, sets, masks)


def nbytes_of(run: Run) -> int:
    """Return the bytes of a run."""
    parts = (run.numbers, run.offsets, run.axis, run.low, run.high, *run.lower, *run.upper)
    return sum(part.nbytes for part in (*parts, run.covering, run.sets, run.masks))


def _in_order(beside: bool, first: Int64s, code: Int64s, other: Int64s, position: Int32s) -> Listed:
    """Return a list with the bounds of each axis ascending, and room for what lies beside them."""
    order = np.empty(len(code), np.int64)
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        order[begin:end] = begin + np.argsort(code[begin:end])
    room = np.empty((len(code) if beside else 0, 4), np.int64)
    code = code[order]
    return Listed(first, code, other[order], position[order], room, code[::64].copy())
