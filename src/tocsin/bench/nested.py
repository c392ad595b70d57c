"""Broad wishes and narrower ones below them, from a seed: where asking roots first can spare a matcher work."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Boxes, Queries

AXES = 20
WIDE = 2**40
"""Codes are below it."""


def nested(count: int, roots: int, each: int, seed: int = 8, width: float = 0.3) -> Boxes:
    """Return so many boxes on 20 axes: roots with intervals of a share of ``each`` of them, and others, each inside one
    of the roots, in random order.

    >>> boxes = nested(100, 5, 6)
    >>> len(boxes), len(set(boxes.axis.tolist())) <= 20
    (100, True)
    """
    random = np.random.default_rng([seed, count, roots, each])
    axis = np.sort(np.argsort(random.random((roots, AXES)), axis=1)[:, :each], axis=1)
    low = random.random((roots, each)) * (1 - width)
    of = np.concatenate([np.arange(roots), random.integers(0, roots, count - roots)])
    trimmed = random.random((count, each, 2)) ** 2 * 0.5 * width
    trimmed[:roots] = 0
    order = random.permutation(count)
    ends = np.stack([low[of] + trimmed[:, :, 0], low[of] + width - trimmed[:, :, 1]])[:, order] * WIDE
    lows, highs = ends.astype(np.int64).reshape(2, -1)
    return Boxes(np.arange(count + 1) * each, axis[of[order]].astype(np.int32).reshape(-1), lows, highs)


def points(count: int, seed: int = 9) -> Queries:
    """Return so many points, anywhere on the axes.

    >>> points(3).low.shape
    (20, 3)
    """
    return Queries.points(np.random.default_rng(seed).integers(0, WIDE, (AXES, count)))
