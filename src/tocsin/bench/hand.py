"""The kernels written by hand for one workload (`kernels/bench/hand.py`), filled and asked.

They are asked with codes, not with Arrow: what they show is what the matching itself can cost, and every engine is held
against that with its encoding and decoding included.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from tocsin.bench.loaded import boxes_of
from tocsin.bench.timing import Answer
from tocsin.bench.workloads import Workload, double_codes
from tocsin.index.boxes import Boxes, Int32s, Int64s, Pairs, Queries
from tocsin.kernels.bench import hand
from tocsin.kernels.segments.overlap import no_pairs

Matched = Callable[[Queries], Pairs]

FIRST_FREE = {"W0": 2, "W1": 3, "W2": 8}
"""The entry of a box from which on its equalities are free."""


def hand_names() -> list[str]:
    """Return the workloads for which there is a kernel by hand."""
    return [*FIRST_FREE, "R"]


def by_hand(workload: Workload, size: int) -> Matched:
    """Return what matches queries with the first ``size`` subscriptions of W0, W1, W2 or R.

    >>> from tocsin.bench.workloads import WORKLOADS
    >>> matched = by_hand(WORKLOADS["W1"], 1000)
    >>> matched(WORKLOADS["W1"].queries(10)).rows.dtype
    dtype('int32')
    """
    boxes = boxes_of(workload, size)
    return _blocks(boxes) if workload.name == "R" else _filed(workload.name, boxes)


def answer_by_hand(workload: Workload, size: int, rows: int) -> Answer:
    """Return a function that matches the first so many of ``rows`` events."""
    matched, codes = by_hand(workload, size), workload.queries(rows).low
    slices: dict[int, Queries] = {}

    def answer(some: int) -> int:
        if some not in slices:
            slices[some] = Queries.points(np.ascontiguousarray(codes[:, :some]))
        return len(matched(slices[some]).rows)

    return answer


def _filed(name: str, boxes: Boxes) -> Matched:
    size, each = len(boxes), len(boxes.axis) // max(1, len(boxes))
    low, high = boxes.low.reshape(size, each), boxes.high.reshape(size, each)
    if name == "W0":
        rest = np.empty((size, 4), np.uint8)
    elif name == "W1":
        rest = low[:, 2:3].astype(np.uint8)
    else:
        rest = np.concatenate([high[:, 2:7], low[:, 7:8]], axis=1).astype(np.uint8)
    filed = hand.file_subscriptions(boxes.offsets, boxes.axis, boxes.low, FIRST_FREE[name], rest)
    free = FIRST_FREE[name]
    return lambda queries: Pairs(*hand.match_filed(filed, queries.low, free, no_pairs(2 * queries.rows)))


def _blocks(boxes: Boxes) -> Matched:
    axes = boxes.axis.reshape(-1, hand.BLOCK_AXES)
    order, starts = _in_blocks(axes)
    cuts = double_codes(np.arange(1, hand.BLOCK_BUCKETS) / hand.BLOCK_BUCKETS)
    blocks = hand.fill_blocks(order, starts, (boxes.axis, boxes.low, boxes.high), cuts)

    return lambda queries: Pairs(*hand.match_r(blocks, queries.low, cuts, no_pairs(64 * min(hand.CHUNK, queries.rows))))


def _in_blocks(axes: Int32s) -> tuple[Int64s, Int64s]:
    """Return subscriptions in the order of their axes, and where each block of up to 64 begins in it."""
    order = np.lexsort(axes.T[::-1])
    is_new = np.concatenate([[True], (np.diff(axes[order], axis=0) != 0).any(axis=1)]) if len(order) else order > 0
    group_starts = np.append(np.flatnonzero(is_new), len(order))
    starts = [np.arange(begin, end, 64) for begin, end in pairwise(group_starts)]
    return order, np.concatenate([*starts, group_starts[-1:]]).astype(np.int64)
