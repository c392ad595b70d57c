"""Answers as bits say what pairs say."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.index import HIGHEST, LOWEST, Boxes, Queries, bounds
from tocsin.index.bounds import Bounds


def drawn(random: np.random.Generator, boxes: int) -> Boxes:
    """Return boxes of two axes in six, now and then a set."""
    found = []
    for _ in range(boxes):
        one, other = (int(axis) for axis in random.choice(6, 2, replace=False))
        first, second, third = (int(each) for each in random.integers(0, 12, 3))
        sets = [(first, first), (first + 2, first + 3)] if random.random() < 0.05 else [(first, first + third % 2)]
        found.append({one: sets, other: [(second, second)]})
    return Boxes.of(found)


@pytest.mark.parametrize("boxes", [64, 130, 1_000])
@pytest.mark.parametrize("removed", [False, True])
def test_marks_are_the_pairs_under_other_names(boxes: int, removed: bool) -> None:
    random = np.random.default_rng(boxes)
    index, names = Bounds(), random.permutation(boxes + 40).astype(np.int32)
    numbers = np.sort(random.choice(boxes + 40, boxes, replace=False)).astype(np.int32)
    index.insert(numbers, drawn(random, boxes))
    index.settle()
    if removed:
        index.remove(numbers[::3])
    low = random.integers(0, 14, (6, 30))
    high = low + random.integers(0, 3, low.shape)
    open_ones = random.random(low.shape) < 0.6
    low[open_ones], high[open_ones] = LOWEST, HIGHEST
    asked = Queries(low, high)
    assert index.marked_overlap(asked, names) is None  # nobody knows yet that there are many
    pairs = index.overlap(asked)
    marks = index.marked_overlap(asked, names)
    assert marks is not None
    assert len(marks) == len(pairs.rows) > 0
    expected = sorted(zip(pairs.rows.tolist(), names[pairs.numbers].tolist(), strict=True))
    rows, found = marks.pairs()
    assert np.all(np.diff(rows) >= 0)
    assert sorted(zip(rows.tolist(), found.tolist(), strict=True)) == expected
    assert marks.written(np.arange(boxes + 40) * 10).tolist() == (found.astype(np.int64) * 10).tolist()
    named = index.named_overlap(asked, names)
    assert sorted(zip(named.rows.tolist(), named.numbers.tolist(), strict=True)) == expected


def test_few_rows_few_pairs_more_bits_than_allowed_and_boxes_that_wait_are_not_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index, names = Bounds(), np.arange(300, dtype=np.int32)
    index.insert(names, Boxes.of([{0: [(place, place)]} for place in range(300)]))
    index.settle()
    one_each = Queries.points(np.arange(20).reshape(1, 20))
    everything = Queries(np.full((1, 20), LOWEST), np.full((1, 20), HIGHEST))
    index.overlap(one_each)
    assert index.marked_overlap(one_each, names) is None
    index.overlap(everything)
    few = Queries(np.full((1, 2), LOWEST), np.full((1, 2), HIGHEST))
    assert index.marked_overlap(few, names) is None
    marks = index.marked_overlap(everything, names)
    assert marks is not None and len(marks) == 20 * 300
    with monkeypatch.context() as smaller:
        smaller.setattr(bounds, "MOST_BITS", 20 * 5 * 8 - 1)
        assert index.marked_overlap(everything, names) is None
    index.insert(np.array([400], np.int32), Boxes.of([{0: [(1, 1)]}]))
    assert index.marked_overlap(everything, names) is None
    assert Bounds().marked_overlap(everything, names) is None
