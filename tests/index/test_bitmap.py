"""What is particular to `bitmap`: which structure an axis gets, rows and lists, buckets, and the printed algorithm's
wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.errors import EngineError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries
from tocsin.index.bitmap import FRESH, Bitmap
from tocsin.index.scan import Scan
from tocsin.kernels.bitmap.grids import span_buckets
from tocsin.kernels.bitmap.trees import nest, node_heights, tree_cells

Entry = list[tuple[int, int]]


def loaded(boxes: list[dict[int, Entry]], **options: Any) -> Bitmap:
    index = Bitmap(fresh=0, **options)
    index.insert(np.arange(len(boxes), dtype=np.int32), Boxes.of(boxes))
    return index


def kinds(index: Bitmap) -> dict[int, str]:
    [part] = index.stats()["parts"]
    found: dict[int, str] = part["kinds"]
    return found


def matched(index: Bitmap, *codes: int) -> list[int]:
    return sorted(index.overlap(Queries.points(np.array(codes, np.int64)[:, None])).numbers.tolist())


def test_the_structure_of_an_axis_follows_from_its_intervals() -> None:
    points: Entry = [(3, 3), (9, 9)]
    boxes: list[dict[int, Entry]] = [
        {0: points, 1: [(0, 9)], 2: [(0, 5)]},
        {0: [(4, 4)], 1: [(2, 3)], 2: [(3, 8)]},
    ]
    assert kinds(loaded(boxes)) == {0: "table", 1: "tree", 2: "grid"}
    assert kinds(loaded(boxes, kinds={0: "grid", 1: "grid"})) == {0: "grid", 1: "grid", 2: "grid"}
    with pytest.raises(EngineError, match="axis 2 cannot be a tree: two of its intervals cross"):
        loaded(boxes, kinds={2: "tree"})


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(EngineError, match="at least one bucket"):
        Bitmap(buckets=0)
    with pytest.raises(EngineError, match="'tree', 'table' or 'grid'"):
        Bitmap(kinds={1: "forest"})  # type: ignore[dict-item]


def test_a_refused_box_changes_nothing() -> None:
    index = Bitmap(fresh=0, kinds={0: "tree"})
    index.insert(np.array([1], np.int32), Boxes.of([{0: [(0, 5)]}]))
    with pytest.raises(EngineError):
        index.insert(np.array([2], np.int32), Boxes.of([{0: [(3, 8)]}]))
    assert len(index) == 1 and matched(index, 4) == [1]


def test_an_event_with_two_sibling_attributes_eliminates_neither() -> None:
    """First correction: attributes below one root are axes of their own."""
    email, phone = 0, 1
    index = loaded([{email: [(5, 5)]}, {phone: [(7, 7)]}])
    assert matched(index, 5, 7) == [0, 1]
    assert matched(index, 5, 8) == [0]


def test_two_constraints_under_one_root_do_not_mix_their_values() -> None:
    """Second correction."""
    index = loaded([{0: [(5, 5)], 1: [(7, 7)]}])
    assert matched(index, 5, 7) == [0]
    assert matched(index, 7, 5) == matched(index, 5, 5) == []


@pytest.mark.parametrize("kind", ["table", "tree", "grid"])
def test_a_missing_attribute_does_not_satisfy(kind: str) -> None:
    """Third correction: as printed, a subscription whose attribute the event lacks survives."""
    shapes: dict[str, list[Entry]] = {
        "table": [[(5, 5)], [(NULL, NULL)]],
        "tree": [[(5, 9)], [(5, 6)], [(NULL, NULL)]],
        "grid": [[(5, 9)], [(7, 12)], [(NULL, NULL)]],
    }
    index = loaded([{0: entry} for entry in shapes[kind]])
    assert kinds(index) == {0: kind}
    assert matched(index, NULL) == [len(shapes[kind]) - 1]
    assert index.overlap(Queries.points(np.empty((0, 1), np.int64))).numbers.tolist() == [len(shapes[kind]) - 1]


@pytest.mark.parametrize("buckets", [None, 1, 2, 3, 5, 40])
def test_every_part_of_the_grid_is_decided_by_both_ends(buckets: int | None) -> None:
    """Fourth correction: cells above and beside that of the value (parts C, D, E), for every pair of ends."""
    ends = [(low, high) for low in range(0, 40, 3) for high in range(low, 40, 3)]
    index = loaded([{0: [end]} for end in ends], buckets=buckets)
    for value in range(-1, 42):
        assert matched(index, value) == [i for i, (low, high) in enumerate(ends) if low <= value <= high]


def test_any_range_fits_the_grid() -> None:
    """Fifth and sixth correction: values below, above and far outside, ends that are not zero."""
    boxes: list[dict[int, Entry]] = [
        {0: [(-100, -50)]},
        {0: [(-70, 10**15)]},
        {0: [(LOWEST, -60)]},
        {0: [(10**14, HIGHEST)]},
        {0: [(NULL, -80)]},
    ]
    index = loaded(boxes)
    assert kinds(index) == {0: "grid"}
    assert matched(index, NULL) == [4]
    assert matched(index, LOWEST) == [2, 4]
    assert matched(index, -75) == [0, 2]
    assert matched(index, -60) == [0, 1, 2]
    assert matched(index, 10**15) == [1, 3]
    assert matched(index, HIGHEST) == [3]


def test_a_question_that_spans_an_axis_takes_the_any_row() -> None:
    index = loaded([{0: [(code, code)], 1: [(code, code + 5)]} for code in range(10)])
    everything = np.array([[LOWEST], [LOWEST]]), np.array([[HIGHEST], [HIGHEST]])
    assert sorted(index.overlap(Queries(*everything)).numbers.tolist()) == list(range(10))


def test_long_and_short_lists_give_the_same_as_rows() -> None:
    """A thousand concepts, most of them rare: some nodes have rows, the others lists on the way up."""
    random = np.random.default_rng(5)
    low = np.arange(1_000)
    high = np.minimum(999, low + random.integers(0, 40, 1_000))
    for node in range(998, -1, -1):
        inside = np.arange(node + 1, high[node] + 1)
        high[node] = max([high[node], *high[inside].tolist()])
    chosen = np.minimum(random.zipf(1.3, 20_000) - 1, 999)
    boxes = Boxes(np.arange(20_001), np.zeros(20_000, np.int32), low[chosen], high[chosen])
    index, oracle = Bitmap(), Scan()
    for one in (index, oracle):
        one.insert(np.arange(20_000, dtype=np.int32), boxes)
    [part] = index.stats()["parts"]
    assert part["kinds"] == {0: "tree"} and 2 < part["rows"] < len(np.unique(chosen))
    codes = random.integers(0, 1_000, (1, 60))
    for asked in (Queries.points(codes), Queries(codes, codes + random.integers(0, 30, codes.shape))):
        mine, true = (one.overlap(asked) for one in (index, oracle))
        np.testing.assert_array_equal(mine.rows, true.rows)
        assert [*zip(*map(np.ndarray.tolist, mine), strict=True)] == sorted(
            zip(*map(np.ndarray.tolist, true), strict=True)
        )


def test_memory_does_not_grow_with_concepts_times_boxes() -> None:
    """Fifty thousand distinct values: lists, not fifty thousand bit arrays."""
    codes = np.arange(50_000, dtype=np.int64)
    index = Bitmap()
    index.insert(np.arange(50_000, dtype=np.int32), Boxes(np.arange(50_001), np.zeros(50_000, np.int32), codes, codes))
    assert index.stats()["bytes"] < 100 * 50_000
    assert matched(index, 31_234) == [31_234]


def test_parts_are_merged_and_renewed() -> None:
    index = Bitmap()
    for first in range(0, 8 * FRESH, FRESH // 4):
        numbers = np.arange(first, first + FRESH // 4, dtype=np.int32)
        index.insert(numbers, Boxes.of([{0: [(int(number) % 9, 9)]} for number in numbers]))
    sizes = [part["boxes"] for part in index.stats()["parts"]]
    assert len(sizes) <= 4 and sizes == sorted(sizes, reverse=True)
    index.remove(np.arange(0, 6 * FRESH, dtype=np.int32))
    assert all(part["removed"] <= part["boxes"] // 4 for part in index.stats()["parts"])
    assert len(index) == 2 * FRESH


INTERVALS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: (min(ends), max(ends)))


@settings(max_examples=200, deadline=None)
@given(st.sets(INTERVALS, min_size=1, max_size=12))
def test_intervals_nest_if_and_only_if_no_two_cross(given: set[tuple[int, int]]) -> None:
    ordered = sorted(given, key=lambda one: (one[0], -one[1]))
    low, high = (np.array(side, np.int64) for side in zip(*ordered, strict=True))
    crossing = any(a < c <= b < d for a, b in ordered for c, d in ordered)
    parent = nest(low, high)
    assert crossing == (not len(parent))
    if not crossing:
        for node, (a, b) in enumerate(ordered):
            around = [other for other, (c, d) in enumerate(ordered) if other != node and c <= a and b <= d]
            assert parent[node] == (max(around) if around else -1)
        starts, nodes = tree_cells(low, high, parent)
        for code in range(-1, 33):
            holding = [node for node, (a, b) in enumerate(ordered) if a <= code <= b]
            assert nodes[np.searchsorted(starts, code, "right") - 1] == (max(holding) if holding else -1)
        heights = node_heights(parent)
        assert all(heights[parent[node]] > heights[node] for node in range(len(parent)) if parent[node] >= 0)


@settings(max_examples=200, deadline=None)
@given(INTERVALS, st.sets(st.integers(0, 31), max_size=6))
def test_a_bucket_is_covered_in_doubt_or_outside(interval: tuple[int, int], cuts: set[int]) -> None:
    starts = np.array([NULL, *sorted(cuts)])
    ends = np.array([*(starts[1:] - 1), HIGHEST])
    spans, in_doubt = span_buckets(np.array(interval[:1]), np.array(interval[1:]), starts)
    begin, end, first, last = spans[:, 0]
    for bucket, (low, high) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        touches = low <= interval[1] and interval[0] <= high
        covers = interval[0] <= low and high <= interval[1]
        assert (begin <= bucket <= end) == touches
        assert (first <= bucket <= last) == covers
        assert in_doubt[bucket] == (touches and not covers)
