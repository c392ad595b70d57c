"""What is particular to `counting`: its counters and the boxes that die in its lists."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import EngineError
from tocsin.index import Boxes, Queries
from tocsin.index.counting import Counting
from tocsin.index.scan import Scan
from tocsin.kernels.clusters.counting import HIT_BITS, LAST_GENERATION


def test_counters_survive_more_events_than_they_have_generations() -> None:
    index, oracle = Counting(), Scan()
    boxes = Boxes.of([{0: [(1, 1)], 1: [(1, 1)]}, {0: [(1, 1)]}, {}])
    for one in (index, oracle):
        one.insert(np.arange(3, dtype=np.int32), boxes)
    codes = np.random.default_rng(0).integers(0, 2, (2, 2 * LAST_GENERATION + 300))
    mine, true = (one.overlap(Queries.points(codes)) for one in (index, oracle))
    assert mine.rows.tolist() == true.rows.tolist()
    assert set(zip(*map(np.ndarray.tolist, mine), strict=True)) == set(zip(*map(np.ndarray.tolist, true), strict=True))


def test_dead_boxes_are_swept_out_of_the_lists() -> None:
    index = Counting()
    numbers, boxes = WORKLOADS["W0"].boxes(4_000)
    index.insert(numbers, boxes)
    size = index.stats()["bytes"]
    for _ in range(12):
        index.remove(numbers[:900])
        index.insert(numbers[:900], boxes.take(numbers[:900]))
        assert index.stats()["dead"] <= 64 + 4_000 // 4
    assert index.stats()["bytes"] < 1.6 * size


def test_removal_takes_effect_before_the_lists_are_swept() -> None:
    index = Counting()
    index.insert(np.arange(500, dtype=np.int32), Boxes.of([{0: [(1, 1)]}] * 500))
    index.remove(np.array([7], np.int32))
    assert index.stats()["dead"] == 1
    assert 7 not in index.overlap(Queries.points(np.array([[1]]))).numbers


def test_a_box_beyond_its_counters_is_refused() -> None:
    entries = 1 << HIT_BITS
    codes = np.arange(entries, dtype=np.int64)
    box = Boxes(np.array([0, entries]), codes.astype(np.int32), codes, codes)
    index = Counting()
    with pytest.raises(EngineError, match="fewer than 1,048,576"):
        index.insert(np.zeros(1, np.int32), box)
    assert len(index) == 0
