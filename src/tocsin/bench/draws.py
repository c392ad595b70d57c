"""How the subscriptions and events of each workload are drawn: functions of a random generator and a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index import HIGHEST, LOWEST, NULL
from tocsin.index.boxes import Int32s, Int64s

TICKS = 1_000_000
"""Bounds on fractional axes are multiples of one part in this many, so that their text is short and exact."""

Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""Events as values: [axes, rows], a missing integer is ``NULL``."""


class Predicate(NamedTuple):
    """One predicate of each subscription of a chunk: an axis and a closed interval, in values or ticks.

    An end at ``LOWEST`` or ``HIGHEST`` is open.
    """

    axis: npt.NDArray[np.integer]
    low: Int64s
    high: Int64s


def distinct(random: np.random.Generator, n: int, pool: range, k: int, skew: float = 0.0) -> list[Int32s]:
    """Return ``k`` columns of ``n`` axes of the pool, distinct in a row; skew favours the early ones."""
    keys = random.exponential(size=(n, len(pool))).astype(np.float32)
    keys *= np.arange(1, len(pool) + 1, dtype=np.float32) ** skew
    chosen = np.argpartition(keys, k, axis=1)[:, :k] if k < len(pool) else np.argsort(keys, axis=1)
    return [(chosen[:, i] + pool.start).astype(np.int32) for i in range(k)]


def uniform(random: np.random.Generator, n: int, low: int, high: int) -> Int64s:
    """Return ``n`` integers between ``low`` and ``high``, both included."""
    return random.integers(low, high, n, endpoint=True)


def equal(axis: npt.NDArray[np.integer], value: Int64s) -> Predicate:
    """Return an equality predicate."""
    return Predicate(axis, value, value)


def clusters(
    fixed_equal: int,
    free: int,
    *,
    below: int = 0,
    above: int = 0,
    pool: range = range(32),
    top: int = 35,
    first_top: int = 35,
) -> Callable[[np.random.Generator, int], list[Predicate]]:
    """Draw subscriptions as the clusters paper does: fixed predicates on the first axes, free equalities.

    Constants are uniform in 1..``top``, those of the first fixed axis in 1..``first_top``.
    """

    def draw(random: np.random.Generator, n: int) -> list[Predicate]:
        fixed = iter(pool)
        drawn = []
        for place in range(fixed_equal):
            value = uniform(random, n, 1, first_top if place == 0 else top)
            drawn.append(equal(np.full(n, next(fixed), np.int32), value))
        open_low, open_high = np.full(n, LOWEST), np.full(n, HIGHEST)
        drawn += [Predicate(np.full(n, next(fixed)), open_low, uniform(random, n, 1, top) - 1) for _ in range(below)]
        drawn += [Predicate(np.full(n, next(fixed)), uniform(random, n, 1, top) + 1, open_high) for _ in range(above)]
        rest = range(pool.start + fixed_equal + below + above, pool.stop)
        return drawn + [equal(axis, uniform(random, n, 1, top)) for axis in distinct(random, n, rest, free)]

    return draw


def uniform_events(axes: int, top: int, first_top: int = 0) -> Callable[[np.random.Generator, int], Values]:
    """Draw events that carry every axis, uniform in 1..``top``; the first in 1..``first_top`` where given."""

    def draw(random: np.random.Generator, rows: int) -> Values:
        values = random.integers(1, top, (axes, rows), endpoint=True)
        if first_top:
            values[0] = random.integers(1, first_top, rows, endpoint=True)
        return values

    return draw


def intervals(axes: int, each: int, width: int) -> Callable[[np.random.Generator, int], list[Predicate]]:
    """Draw subscriptions of ``each`` intervals, ``width`` ticks wide, on distinct axes."""

    def draw(random: np.random.Generator, n: int) -> list[Predicate]:
        chosen = distinct(random, n, range(axes), each)
        starts = [uniform(random, n, 0, TICKS - width - 1) for _ in chosen]
        return [Predicate(axis, start, start + width) for axis, start in zip(chosen, starts, strict=True)]

    return draw


def fraction_events(axes: int) -> Callable[[np.random.Generator, int], Values]:
    """Draw events that carry every axis, uniform in [0, 1)."""
    return lambda random, rows: random.random((axes, rows))


def zipf_ranks(random: np.random.Generator, shape: int | tuple[int, int], top: int) -> Int64s:
    """Return ranks in 1..``top``, each as likely as one over itself."""
    weights = np.cumsum(1.0 / np.arange(1, top + 1))
    ranks: Int64s = np.searchsorted(weights, random.random(shape) * weights[-1]).astype(np.int64) + 1
    return ranks


def zipf_predicates(random: np.random.Generator, n: int) -> list[Predicate]:
    """Draw three equalities and one ``>``; low axes and low values are the popular ones."""
    *chosen, ranged = distinct(random, n, range(64), 4, skew=1.0)
    drawn = [equal(axis, zipf_ranks(random, n, 1000)) for axis in chosen]
    return [*drawn, Predicate(ranged, zipf_ranks(random, n, 1000) + 1, np.full(n, HIGHEST))]


SCHEMAS = np.argsort(np.random.default_rng(20).random((40, 400)), axis=1)[:, :20].astype(np.int32)
"""The forty kinds of event of the workload `schemas`: which 20 of its 400 axes each carries."""


def schema_predicates(random: np.random.Generator, n: int) -> list[Predicate]:
    """Draw three equalities and one interval on axes of one kind of event."""
    kind = random.integers(len(SCHEMAS), size=n)
    *chosen, ranged = (SCHEMAS[kind, place] for place in distinct(random, n, range(20), 4))
    start = uniform(random, n, 1, 15)
    return [
        *(equal(axis, uniform(random, n, 1, 20)) for axis in chosen),
        Predicate(ranged, start, start + 5),
    ]


def schema_events(random: np.random.Generator, rows: int) -> Values:
    """Draw events of one kind each; the axes of other kinds are missing."""
    values = np.full((400, rows), NULL)
    kind = random.integers(len(SCHEMAS), size=rows)
    values[SCHEMAS[kind].T, np.arange(rows)] = random.integers(1, 20, (20, rows), endpoint=True)
    return values


def odd_predicates(random: np.random.Generator, n: int) -> list[Predicate]:
    """Draw equalities on the first five axes whose values have an odd sum."""
    values = random.integers(1, 34, (5, n), endpoint=True)
    values[4] += values.sum(axis=0) % 2 == 0
    return [equal(np.full(n, axis, np.int32), values[axis]) for axis in range(5)]


def even_events(random: np.random.Generator, rows: int) -> Values:
    """Draw events whose first five values have an even sum: each predicate can hold, but never all five."""
    values = random.integers(1, 34, (16, rows), endpoint=True)
    values[4] += values[:5].sum(axis=0) % 2 == 1
    return values
