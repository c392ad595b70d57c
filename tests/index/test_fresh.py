"""What is fresh matches as boxes plainly do, whatever its tables, cuts and columns leave out at first sight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tocsin.index.boxes import HIGHEST, NULL, Boxes
from tocsin.index.segments.fresh import FreshPart
from tocsin.index.segments.states import readable
from tocsin.kernels.segments.checking import Asked, Found
from tocsin.kernels.segments.fresh import match_fresh
from tocsin.kernels.segments.lines import LINE
from tocsin.kernels.segments.overlap import split_rows

Box = dict[int, list[tuple[int, int]]]

ODD = [NULL, NULL + 1, -(2**32), -1, 0, 1, 2**32, 2**53 + 1, HIGHEST - 1, HIGHEST]
FIRST = 7
"""The number of the first box."""

NOW = 5
"""The version asked about."""


def codes(random: np.random.Generator, count: Any, values: int) -> Any:
    """Draw codes among a few small ones and odd ones."""
    return random.choice(np.array([*ODD, *range(2, values)]), count)


def box(random: np.random.Generator, axes: int, values: int) -> Box:
    """Draw a box: on up to four axes a single value, an interval, a set of values, or all up to some value."""
    drawn: Box = {}
    for axis in random.choice(axes, min(int(random.integers(0, 5)), axes), replace=False).tolist():
        low, high = sorted(codes(random, 2, values).tolist())
        several = sorted(set(codes(random, 4, values).tolist()))
        kinds = [[(low, low)], [(low, high)], [(each, each) for each in several], [(NULL, high)]]
        drawn[axis] = kinds[int(random.integers(0, 4))]
    return drawn


def plainly(boxes: list[Box], low: Any, high: Any, axes: int) -> list[tuple[int, int]]:
    """Return the pairs of row and number, by looking at each box by itself."""
    rows = low.shape[1]
    unspecified = np.full((axes - len(low), rows), NULL)
    low, high = np.concatenate([low, unspecified]), np.concatenate([high, unspecified])
    pairs = []
    for place, drawn in enumerate(boxes):
        met = np.ones(rows, bool)
        for axis, intervals in drawn.items():
            met &= np.any([(first <= high[axis]) & (low[axis] <= last) for first, last in intervals], axis=0)
        pairs += [(int(row), place + FIRST) for row in np.flatnonzero(met)]
    return sorted(pairs)


@pytest.mark.parametrize("seed", range(120))
def test_fresh_boxes_match_as_plainly_said(seed: int) -> None:
    random = np.random.default_rng(seed)
    axes, values = int(random.choice([1, 3, 8, 40, 120])), int(random.choice([4, 20, 300]))
    tables = [
        sorted(random.choice(axes, int(random.integers(1, min(3, axes) + 1)), replace=False).tolist())
        for _ in range(int(random.integers(0, 4)))
    ]
    cut = random.choice(axes, int(random.integers(0, axes + 1)), replace=False).tolist()
    cuts = {axis: np.unique(codes(random, int(random.choice([1, 2, 3, 300])), 400)) for axis in cut}
    part = FreshPart(sorted(tables, key=len, reverse=True), {axis: each[each > NULL] for axis, each in cuts.items()})
    held: list[Box] = []
    for more in random.choice([0, 1, 17, 300, 700], int(random.integers(1, 4))).tolist():
        some = [box(random, axes, values) for _ in range(more)]
        part.append(np.arange(len(held), len(held) + more, dtype=np.int32) + FIRST, Boxes.of(some))
        held += some
    dead = {place for place in range(len(held)) if random.random() < 0.1}
    part.strike([place + FIRST for place in dead], NOW)
    shown = int(random.integers(0, len(held) + 1))
    given, rows = int(random.integers(0, axes + 1)), int(random.choice([0, 1, 7, 127, 128, 129, 300]))
    low = codes(random, (given, rows), values)
    high = np.where(random.random((given, rows)) < random.choice([0, 0.01, 1]), HIGHEST, low)
    high[low == NULL] = NULL
    asked = Asked(readable(low), readable(high), part.died, NOW)
    points, ranges = split_rows(asked.low, asked.high, 0, rows)
    room = Found(np.empty(1, np.int32), np.empty(1, np.int32))
    found, count = match_fresh(part.arrays, shown, asked, points, ranges, room, 0)
    wanted = [pair for pair in plainly(held[:shown], low, high, axes) if pair[1] - FIRST not in dead]
    assert sorted(zip(found.rows[:count].tolist(), found.numbers[:count].tolist(), strict=True)) == wanted


def test_axes_beyond_the_columns_are_looked_at_all_the_same() -> None:
    axes = 2 * LINE
    part = FreshPart()
    part.append(np.arange(axes, dtype=np.int32), Boxes.of([{axis: [(axis, axis)]} for axis in range(axes)]))
    assert (part.arrays.columns >= 0).all()
    low = readable(np.stack([np.arange(axes), np.arange(axes) + 1], axis=1))
    asked, room = Asked(low, low, part.died, NOW), Found(np.empty(1, np.int32), np.empty(1, np.int32))
    found, count = match_fresh(part.arrays, axes, asked, np.arange(2), np.empty(0, np.int64), room, 0)
    assert found.rows[:count].tolist() == [0] * axes
    assert sorted(found.numbers[:count].tolist()) == list(range(axes))


def test_what_is_appended_later_does_not_show() -> None:
    part = FreshPart([[0]])
    some = Boxes.of([{0: [(3, 3)], 1: [(4, 4)]}] * 100)
    part.append(np.arange(100, dtype=np.int32), some)
    before = part.arrays
    part.append(np.arange(100, 10_100, dtype=np.int32), Boxes.of([{0: [(3, 3)], 1: [(4, 4)]}] * 10_000))
    low = readable(np.array([[3], [4]]))
    for arrays, shown in ((before, 100), (part.arrays, 100), (part.arrays, 137), (part.arrays, 10_100)):
        asked, room = Asked(low, low, part.died, NOW), Found(np.empty(1, np.int32), np.empty(1, np.int32))
        found, count = match_fresh(arrays, shown, asked, np.arange(1), np.empty(0, np.int64), room, 0)
        assert sorted(found.numbers[:count].tolist()) == list(range(shown))
