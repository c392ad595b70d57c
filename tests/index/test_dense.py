"""Where pairs are many, `adaptive` keeps them as bits: the answers are those of `scan`, by row."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Index, Pairs, Queries, create
from tocsin.index.boxes import Int64s

AXES = 4


def drawn(random: np.random.Generator, count: int, top: int) -> Boxes:
    """Draw boxes of which a query meets many: wide intervals, sets, open ends, NULL, and boxes without any."""

    def constraint() -> list[tuple[int, int]]:
        kind = random.integers(5)
        low = int(random.integers(0, top))
        if kind == 0:
            return [(LOWEST, HIGHEST)]
        if kind == 1:
            return [(NULL, low), (low + top // 4, HIGHEST)]
        if kind == 2:
            return [(NULL, low + top // 2)]
        return [(low - top // 2, low + top // 2)]

    axes = [random.permutation(AXES)[: random.integers(0, 4)] for _ in range(count)]
    return Boxes.of([{int(axis): constraint() for axis in some} for some in axes])


def codes(random: np.random.Generator, rows: int, top: int) -> Int64s:
    """Draw queries, NULL now and then."""
    values = random.integers(0, top, (AXES, rows))
    return np.where(random.random((AXES, rows)) < 0.05, NULL, values)


def sorted_pairs(pairs: Pairs) -> list[tuple[int, int]]:
    assert (np.diff(pairs.rows) >= 0).all()
    return sorted(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))


@pytest.mark.parametrize(("count", "top", "rows"), [(64, 50, 5), (700, 40, 513), (1_500, 10**12, 700)])
def test_many_pairs_are_those_of_scan(count: int, top: int, rows: int) -> None:
    random = np.random.default_rng([count, rows])
    boxes, low = drawn(random, count, top), codes(random, rows, top)
    high = np.where(random.random(low.shape) < 0.1, np.maximum(low, 0) + top // 9, low)
    numbers = random.permutation(3 * count)[:count].astype(np.int32)
    engines: list[Index] = [create("adaptive", background=False), create("scan")]
    for index in engines:
        index.insert(numbers, boxes)
    engines[0].settle()  # type: ignore[attr-defined]
    for removed in (numbers[:0], numbers[::5]):
        for index in engines:
            index.remove(removed)
        for queries in (Queries.points(low), Queries(low, high)):
            mine, right = (sorted_pairs(index.overlap(queries)) for index in engines)
            assert mine == right
            assert len(mine) > rows * count // 20


def test_pairs_stay_in_order_where_density_changes() -> None:
    random = np.random.default_rng(7)
    boxes = Boxes.of([{0: [(0, 10**6 + step)]} for step in range(400)])
    low = np.where(np.arange(2_000) % 1_200 < 600, random.integers(0, 10**6, 2_000), 2 * 10**6)[None, :]
    low[0, ::97] = 10**6 + random.integers(0, 400, len(low[0, ::97]))
    adaptive, scan = create("adaptive", background=False), create("scan")
    for index in (adaptive, scan):
        index.insert(np.arange(400, dtype=np.int32), boxes)
    queries = Queries.points(low)
    assert sorted_pairs(adaptive.overlap(queries)) == sorted_pairs(scan.overlap(queries))
    adaptive.insert(np.array([400], np.int32), Boxes.of([{0: [(5, HIGHEST)]}]))
    scan.insert(np.array([400], np.int32), Boxes.of([{0: [(5, HIGHEST)]}]))
    assert sorted_pairs(adaptive.overlap(queries)) == sorted_pairs(scan.overlap(queries))
