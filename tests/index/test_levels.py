"""Axes divided into levels: `adaptive` on boxes whose intervals nest, as those of concepts do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries, create
from tocsin.index.segments.levels import levels_of


def preorder(parents: list[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the intervals of a tree whose nodes are numbered in pre-order, given each one's parent."""
    low = np.arange(len(parents), dtype=np.int64)
    high = low.copy()
    for node in range(len(parents) - 1, 0, -1):
        high[parents[node]] = max(high[parents[node]], high[node])
    return low, high


@st.composite
def trees(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Any tree of up to 60 nodes: each new node goes below the last one or below one of its ancestors."""
    parents = [0]
    for node in range(1, draw(st.integers(5, 60))):
        path = [node - 1]
        while path[-1] > 0:
            path.append(parents[path[-1]])
        parents.append(draw(st.sampled_from(path)))
    return preorder(parents)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), tree=trees())
def test_intervals_of_one_level_are_disjoint(data: st.DataObject, tree: Any) -> None:
    low, high = tree
    low, high = np.concatenate([low, low[:3] + 1_000]), np.concatenate([high, high[:3] + 1_000])
    order = np.array(data.draw(st.permutations(range(len(low)))))
    low, high = low[order], high[order]
    _, firsts = np.unique(np.stack([low, high]), axis=1, return_index=True)
    low, high = low[firsts], high[firsts]
    levels = levels_of(np.zeros(len(low), np.int32), low, high, np.ones(len(low), np.bool_))
    for level in range(1, levels.max() + 1):
        here = np.flatnonzero(levels == level)
        here = here[np.argsort(low[here])]
        assert len(here) >= 4
        assert (high[here[:-1]] < low[here[1:]]).all()


def test_crossing_intervals_and_sets_stay_together() -> None:
    low, high = np.array([0, 0, 2, 4, 6, 3]), np.array([7, 1, 3, 5, 7, 4])
    zero, single = np.zeros(6, np.int32), np.ones(6, np.bool_)
    assert levels_of(zero, low, high, single).tolist() == [0] * 6
    low, high = np.array([*range(8), 0, 2, 4, 6]), np.array([*range(8), 1, 3, 5, 7])
    single = np.array([True] * 11 + [False])
    assert levels_of(np.zeros(12, np.int32), low, high, single).tolist() == [0] * 12, "three pairs are no level"
    assert levels_of(np.zeros(12, np.int32), low, high, np.ones(12, np.bool_)).tolist() == [1] * 8 + [2] * 4


def complete(height: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the intervals of a tree in which every node above the last level has two children."""
    low, high = np.array([0], np.int64), np.array([0], np.int64)
    for _ in range(height):
        size = len(low)
        low = np.concatenate([[0], low + 1, low + 1 + size])
        high = np.concatenate([[2 * size], high + 1, high + 1 + size])
    return low, high


@pytest.mark.parametrize("engine", ["adaptive", "bitmap"])
@pytest.mark.parametrize("extreme", [False, True])
def test_many_boxes_on_trees_give_what_scan_gives(engine: str, extreme: bool) -> None:
    random = np.random.default_rng(11)
    low, high = complete(6)
    boxes = []
    for _ in range(4_000):
        box = {}
        for axis in np.flatnonzero(random.random(5) < 0.8).tolist():
            chosen = random.integers(len(low), size=1 + 2 * (random.random() < 0.1))
            if axis == 4:
                box[axis] = [tuple(sorted(random.integers(0, 1_000, 2).tolist()))]
            elif len(chosen) == 1:
                box[axis] = [(int(low[chosen[0]]), int(high[chosen[0]]))]
            else:
                codes = sorted({int(code) * 2 for code in chosen})
                box[axis] = [(code, code) for code in codes]
        if extreme and random.random() < 0.2:
            box[int(random.integers(4))] = [[(NULL, NULL)], [(LOWEST, HIGHEST)], [(NULL, HIGHEST)]][random.integers(3)]
        boxes.append(box)
    index, oracle = create(engine), create("scan")
    codes = random.integers(-1, len(low) + 1, (5, 300))
    codes[4] = random.integers(-10, 1_010, 300)
    codes[random.random(codes.shape) < 0.05] = NULL
    spread = np.where(random.random(codes.shape) < 0.5, 0, random.integers(0, 20, codes.shape))
    ranged = Queries(codes, np.where(codes == NULL, NULL, codes + spread))
    numbers = np.arange(4_000, dtype=np.int32)
    for one in (index, oracle):
        one.insert(numbers[:3_500], Boxes.of(boxes[:3_500]))
        one.remove(numbers[100:400])
        one.insert(numbers[3_500:], Boxes.of(boxes[3_500:]))
    for asked in (Queries.points(codes), ranged, Queries.points(codes[:3].copy())):
        mine, true = (one.overlap(asked) for one in (index, oracle))
        assert sorted(zip(*map(np.ndarray.tolist, mine), strict=True)) == sorted(
            zip(*map(np.ndarray.tolist, true), strict=True)
        )
    for array, expected in zip(index.contents()[1], oracle.contents()[1], strict=True):
        np.testing.assert_array_equal(array, expected)
