"""Whether a segment still suits its queries: what they meet in it, held against what a new plan would have them meet.

This is how `adaptive` notices drift, of its boxes (which were taken in without planning) or of its queries alone.
"""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Boxes
from tocsin.index.segments.parts import Part
from tocsin.index.segments.planner import BITMAP, CANDIDATE, plan
from tocsin.index.segments.predicates import Predicates
from tocsin.index.segments.states import readable
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.contents import unpack_boxes
from tocsin.kernels.segments.overlap import count_candidates

BOXES = 8_192
"""How many boxes are looked at."""

QUERIES = 256
"""How many queries are tried, and how many there must be."""

GAIN = 1.5
"""A segment is planned anew if its queries cost so many times what they would."""

GAIN_TURNED = 1.15
"""The same if half as many boxes as it was planned for have been taken in since: which it cannot be soon again."""


def expected(part: Part, statistics: QueryStatistics) -> tuple[float, float] | None:
    """Return what a query costs in this part, in nanoseconds, and what it would cost if it were planned anew.

    None if too few queries were seen to tell. Both are of the candidates alone, without the way to them.
    """
    queries = statistics.queries(QUERIES)
    if queries.shape[1] < QUERIES // 2 or not part.live:
        return None
    now = CANDIDATE * count_candidates(part.segment, readable(queries)) / queries.shape[1] + BITMAP * part.in_bitmaps
    positions = np.flatnonzero(part.segment.marks < at.REPLICA)
    positions = positions[:: max(1, len(positions) // BOXES)]
    sample = Boxes(*unpack_boxes(part.segment, positions))
    chosen = plan(Predicates.of(sample, statistics), len(sample), part.boxes / len(sample))
    return float(now), CANDIDATE * chosen.candidates + BITMAP * chosen.in_bitmaps


def is_outdated(part: Part, statistics: QueryStatistics) -> bool:
    """Return whether planning a part anew would spare its queries much: more than when that was last tried."""
    costs = expected(part, statistics)
    turned = 2 * part.info.get("absorbed", 0) >= part.info.get("planned", 0)
    gain, accepted = (GAIN_TURNED, 0.0) if turned else (GAIN, part.accepted)
    return costs is not None and costs[0] > gain * max(costs[1], accepted) + CANDIDATE


def accept(part: Part, statistics: QueryStatistics) -> None:
    """Note what a query costs in a part that has just been planned: what was not foreseen is no drift."""
    costs = expected(part, statistics)
    part.accepted = costs[0] if costs is not None else 0.0
