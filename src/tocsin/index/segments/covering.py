"""Covering in a segment: whether it pays to ask roots first, and which boxes stand behind which root.

It can only pay in the bitmaps. A node's candidates cost less than a look at their root would. In the bitmaps each box
costs a chunk of 512 queries the same whether one of them meets it or not; so boxes behind a root are spared as often as
none of the 512 meets the root, which for a root of chance ``p`` is ``(1 - p) ** 512``. Some boxes are asked first which
root they have among all; where too little would be spared, that is the end of it. `stats()` tells the decision as
``covering``, and what it was made by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.index.boxes import Int32s, Int64s
from tocsin.index.segments.predicates import Predicates
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.covering import CHUNK, Worded, find_roots
from tocsin.kernels.segments.layout import Segment

LEAST = 1_024
"""Fewer boxes in the bitmaps are not worth a question."""

ASKED = 1_024
"""So many of them tell whether it pays."""

PAYS = 0.2
"""It pays if such a share of the boxes is expected to be spared."""

WIDEST = 1.0 / 256
"""The greatest chance of a root: one in seven chunks does not meet such a one."""

ROOTS = 65_536
"""How many roots are looked for, at most."""

SHORT = 4
"""A run has so many boxes at least behind its root."""

MOST_AXES = 128
"""With more axes the tables of a chunk no longer fit the cache."""


class Runs(NamedTuple):
    """``boxes`` in the order in which they stand; run ``r`` is ``starts[r]:ends[r]`` of them, its root first."""

    boxes: Int64s
    starts: Int64s
    ends: Int64s
    told: dict[str, Any]


def plan_runs(of: Predicates, words: Int64s, boxes: Int64s) -> Runs:
    """Return these boxes, which are left to the bitmaps, in runs if that pays."""
    none = np.empty(0, np.int64)
    if len(boxes) < LEAST or len(of.axes) > MOST_AXES:
        return Runs(boxes, none, none, {"pays": False, "boxes": len(boxes), "spared": 0.0, "runs": 0})
    worded = Worded(words.astype(np.int32), of.held.astype(np.int32), of.row_start.astype(np.int64))
    chance = np.ones(len(of.row_start) - 1)
    chance[boxes] = _chances(of, boxes)
    root_of = np.full(len(chance), -1, np.int32)
    tried = np.zeros(len(boxes), np.bool_)
    tried[np.random.default_rng(len(boxes)).permutation(len(boxes))[: min(ASKED, len(boxes) // 4)]] = True
    some, narrow = boxes[tried].astype(np.int32), chance[boxes] <= WIDEST
    find_roots(worded, some, boxes[narrow & ~tried].astype(np.int32), -1, len(of.axes), root_of)
    spared = float(_spared(chance, root_of[some]).mean())
    told: dict[str, Any] = {"pays": False, "boxes": len(boxes), "spared": round(spared, 4), "runs": 0}
    if spared < PAYS:
        return Runs(boxes, none, none, told)
    root_of[:] = -1
    widest = boxes[narrow][np.argsort(-chance[boxes[narrow]], kind="stable")].astype(np.int32)
    find_roots(worded, widest, np.empty(min(ROOTS, len(widest)), np.int32), 0, len(of.axes), root_of)
    covered = np.bincount(root_of[boxes][root_of[boxes] >= 0], minlength=len(chance))
    worth = covered >= SHORT
    behind = np.where(root_of[boxes] >= 0, root_of[boxes], boxes)
    last = len(chance)
    order = np.lexsort((boxes != behind, np.where(worth[behind], behind, last)))
    ordered = boxes[order]
    keys = np.where(worth[behind], behind, last)[order]
    starts = np.flatnonzero((np.diff(keys, prepend=-1) != 0) & (keys < last))
    ends = starts + covered[keys[starts]] + 1
    spared = float(_spared(chance, np.where(worth[behind], root_of[boxes], -1)).mean())
    return Runs(ordered, starts, ends, {**told, "pays": True, "spared": round(spared, 4), "runs": len(starts)})


def moved_runs(segment: Segment, moved: Int32s) -> tuple[Any, Any]:
    """Return the runs of a segment after its positions have moved, -1 for those that are gone. A run whose root is gone
    is none."""
    starts, ends = (segment.words[slice(*segment.header[part : part + 2])] for part in (at.RUN_START, at.RUN_END))
    if not len(starts):
        return starts, ends
    here = np.concatenate([np.zeros(1, np.int64), np.cumsum(moved >= 0)])
    new = moved[starts].astype(np.int64)
    last = new + here[ends] - here[starts]
    kept = (new >= 0) & (last > new + 1)
    return new[kept], last[kept]


def without_runs(segment: Segment) -> Segment:
    """Return a segment whose boxes are all looked at: what runs are measured and tested against."""
    header = segment.header.copy()
    header[at.RUN_START] = header[at.RUN_END]
    header.flags.writeable = False
    return segment._replace(header=header)


def _chances(of: Predicates, boxes: Int64s) -> Any:
    """Return how likely a query meets each box, as if axes had nothing to do with each other."""
    per = np.concatenate([np.zeros(1), np.cumsum(np.log(np.maximum(of.chance[of.held], 1e-300)))])
    return np.exp(per[of.row_start[boxes + 1]] - per[of.row_start[boxes]])


def _spared(chance: Any, roots: Any) -> Any:
    """Return how often a box with each of these roots is spared; one without, -1, never is."""
    return np.where(roots >= 0, (1 - chance[roots]) ** CHUNK, 0.0)
