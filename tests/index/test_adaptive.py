"""What `adaptive` adds to the contract of engines: its paths, its merges, its states, its limits."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import MemoryLimitError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Pairs, Queries, adaptive
from tocsin.index.adaptive import Adaptive
from tocsin.index.scan import Scan
from tocsin.index.segments import reviewing
from tocsin.index.segments.states import due

Box = dict[int, list[tuple[int, int]]]


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    found = list(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))
    assert len(set(found)) == len(found), "a pair was found twice"
    assert (np.diff(pairs.rows) >= 0).all(), "pairs are not sorted by row"
    return set(found)


def accesses(index: Adaptive) -> dict[str, int]:
    """Return how many boxes each kind of access holds."""
    total: dict[str, int] = {}
    for segment in index.stats()["segments"]:
        for path in segment["paths"]:
            total[path["access"]] = total.get(path["access"], 0) + path["boxes"]
    return total


def both(boxes: Boxes, **options: Any) -> tuple[Adaptive, Scan]:
    index, scan = Adaptive(background=False, **options), Scan()
    for each in (index, scan):
        each.insert(np.arange(len(boxes), dtype=np.int32), boxes)
    return index, scan


def assert_same(index: Adaptive, scan: Scan, queries: Queries) -> None:
    assert as_set(index.overlap(queries)) == as_set(scan.overlap(queries))


class Draw:
    """Boxes and queries on axes of four kinds: few values, extremes, any code, and thousands of values."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.axes = int(self.random.integers(1, 7))
        self.kinds = self.random.integers(0, 4, self.axes + 2).tolist()

    def code(self, axis: int) -> int:
        match self.kinds[axis]:
            case 0:
                return int(self.random.integers(6))
            case 1:
                return int(self.random.choice([NULL, LOWEST, LOWEST + 1, -1, 0, 1, HIGHEST - 1, HIGHEST]))
            case 2:
                return int(self.random.integers(-(2**62), 2**62))
        return int(self.random.integers(3000))

    def interval(self, axis: int) -> tuple[int, int]:
        one = self.code(axis)
        other = one if self.random.random() < 0.6 else self.code(axis)
        low, high = min(one, other), max(one, other)
        return (LOWEST if self.random.random() < 0.05 else low), (HIGHEST if self.random.random() < 0.05 else high)

    def box(self) -> Box:
        box: Box = {}
        for axis in range(self.axes):
            if self.random.random() < 0.5:
                continue
            merged: list[tuple[int, int]] = []
            for low, high in sorted(self.interval(axis) for _ in range(1 + int(self.random.random() < 0.2) * 3)):
                if low > high:
                    continue
                if merged and low <= merged[-1][1] + 1:
                    merged[-1] = merged[-1][0], max(merged[-1][1], high)
                else:
                    merged.append((low, high))
            if merged:
                box[axis] = merged
        return box

    def queries(self, rows: int, ranged: bool) -> Queries:
        axes = int(self.random.integers(1, self.axes + 2))
        low = np.array([[self.code(axis) for _ in range(rows)] for axis in range(axes)], np.int64).reshape(axes, rows)
        low[self.random.random(low.shape) < 0.1] = NULL
        if not ranged:
            return Queries.points(low)
        other = np.where(self.random.random(low.shape) < 0.3, self.random.permutation(low.T).T, low)
        high, low = np.maximum(low, other), np.minimum(low, other)
        everything = self.random.random(low.shape) < 0.1
        return Queries(np.where(everything, LOWEST, low), np.where(everything, HIGHEST, high))


@pytest.mark.parametrize("seed", range(24))
def test_any_history_of_changes_and_merges_answers_as_scan_does(seed: int) -> None:
    draw = Draw(seed)
    options = {"fresh": [8, 64, 100_000][seed % 3], "background": seed % 2 == 0, "threads": 1 + seed % 2}
    index, scan = Adaptive(**options), Scan()
    free, used = draw.random.permutation(900).tolist(), list[int]()
    for _ in range(10):
        turn = draw.random.random()
        if turn < 0.6 or not used:
            numbers = [free.pop() for _ in range(int(draw.random.choice([0, 1, 3, 50, 120])))]
            boxes = Boxes.of([draw.box() for _ in numbers])
            for each in (index, scan):
                each.insert(np.array(numbers, np.int32), boxes)
            used += numbers
        elif turn < 0.9:
            draw.random.shuffle(used)
            count = int(draw.random.integers(1, len(used) + 1))
            gone, used = used[:count], used[count:]
            for each in (index, scan):
                each.remove(np.array(gone, np.int32))
            free += gone
        else:
            index.settle()
        assert len(index) == len(scan)
        for ranged in (False, True):
            assert_same(index, scan, draw.queries(int(draw.random.choice([0, 1, 3, 9, 100, 600])), ranged))
        for mine, theirs in zip(index.contents()[1], scan.contents()[1], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    index.close()


def test_equalities_are_reached_through_nodes_on_the_fixed_axes() -> None:
    index, scan = both(WORKLOADS["W0"].boxes(30_000)[1])
    assert accesses(index) == {"node": 30_000}
    assert {0, 1} <= set(index.stats()["segments"][0]["paths"][0]["axes"])
    assert_same(index, scan, WORKLOADS["W0"].queries(100))


def test_intervals_are_left_to_the_bitmaps() -> None:
    index, scan = both(WORKLOADS["R"].boxes(5_000)[1])
    assert accesses(index) == {"bitmaps": 5_000}
    for rows in (1, 5, 511, 512, 513, 1030):
        assert_same(index, scan, WORKLOADS["R"].queries(rows))


@pytest.mark.parametrize("workload", ["W1", "W2", "zipf", "schemas", "none", "tenth", "wide"])
def test_every_workload_is_answered_as_scan_does(workload: str) -> None:
    index, scan = both(WORKLOADS[workload].boxes(8_000)[1])
    assert_same(index, scan, WORKLOADS[workload].queries(70))


def test_equalities_on_many_values_are_hashed_and_exact() -> None:
    random = np.random.default_rng(3)
    values = random.integers(0, 2**60, (2, 4_000))
    n = 20_000
    chosen = random.integers(4_000, size=(n, 2))
    low = np.stack([values[0, chosen[:, 0]], values[1, chosen[:, 1]]], axis=1).ravel()
    index, scan = both(Boxes(np.arange(n + 1) * 2, np.tile(np.array([0, 1], np.int32), n), low, low))
    assert accesses(index) == {"node": n}
    asked = low.reshape(n, 2)[random.integers(n, size=200)].T.copy()
    asked[:, ::7] += 1
    assert_same(index, scan, Queries.points(asked))
    assert len(index.overlap(Queries.points(asked)).rows) >= 150


def test_a_box_filed_under_several_values_is_found_once_and_removed_everywhere() -> None:
    random = np.random.default_rng(4)
    n = 12_000
    boxes = Boxes.of(
        [{0: [(int(v), int(v)) for v in sorted(random.choice(range(0, 4_000, 2), 3, replace=False))]} for _ in range(n)]
    )
    index, scan = both(boxes)
    assert accesses(index)["node"] == 3 * n
    points = Queries.points(random.integers(0, 4_000, (1, 600)))
    ranges = Queries(np.full((1, 1), 10), np.full((1, 1), 3_000))
    for queries in (points, ranges):
        assert_same(index, scan, queries)
    for each in (index, scan):
        each.remove(np.arange(0, n, 2, dtype=np.int32))
    for queries in (points, ranges):
        assert_same(index, scan, queries)
    index.settle()
    assert_same(index, scan, points)


def test_narrow_ranges_become_keys() -> None:
    random = np.random.default_rng(5)
    n = 80_000
    low = random.integers(0, 10**9, n)
    boxes = Boxes(np.arange(n + 1), np.zeros(n, np.int32), low, low + 5_000)
    index, scan = both(boxes)
    assert accesses(index)["node"] >= n
    assert_same(index, scan, Queries.points(random.integers(0, 10**9, (1, 150))))


def test_readers_see_each_change_as_a_whole() -> None:
    """Two boxes that hold everything come and go together, beside merges: whoever sees one must see the other."""
    index = Adaptive(fresh=64)
    index.insert(*WORKLOADS["W0"].boxes(3_000))
    twins = Boxes.of([{}, {}])
    queries = WORKLOADS["W0"].queries(40)
    stop, torn = threading.Event(), list[Any]()

    def read() -> None:
        while not stop.is_set():
            pairs = index.overlap(queries)
            seen = [set(pairs.rows[pairs.numbers == number].tolist()) for number in (5_000, 5_001)]
            if seen[0] != seen[1] or len(seen[0]) not in (0, 40):
                torn.append(seen)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    random = np.random.default_rng(6)
    here = set(range(3_000))
    for turn in range(400):
        index.insert(np.array([5_000, 5_001], np.int32), twins)
        fresh = np.array([10_000 + turn], np.int32)
        index.insert(fresh, Boxes.of([{0: [(1, 1)]}]))
        gone = np.array(random.choice(sorted(here), 3, replace=False), np.int32)
        here -= set(gone.tolist())
        index.remove(gone)
        index.remove(np.array([5_000, 5_001], np.int32))
    while index.stats()["merging"]:  # the first one compiles, which takes longer than all the turns
        time.sleep(0.01)
    stop.set()
    for reader in readers:
        reader.join()
    index.close()
    assert not torn
    assert index.stats()["merges"] > 0
    scan = Scan()
    scan.insert(*index.contents())
    assert_same(index, scan, queries)
    assert len(index) == len(here) + 400


@pytest.mark.parametrize("mergers", [1, 3])
def test_boxes_removed_during_merges_stay_removed(mergers: int) -> None:
    index = Adaptive(background=False, fresh=100)
    index.insert(*WORKLOADS["W1"].boxes(5_000))
    done = threading.Event()

    def merge() -> None:
        while not done.is_set():
            index.settle()

    threads = [threading.Thread(target=merge) for _ in range(mergers)]
    for thread in threads:
        thread.start()
    try:
        for gone in range(2_000):
            index.remove(np.array([gone], np.int32))
    finally:
        done.set()
    for thread in threads:
        thread.join()
    assert index.contents()[0].tolist() == list(range(2_000, 5_000))
    assert len(index) == 3_000


def test_merges_begun_by_readers_and_by_changes_lose_no_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader asks whether plans suit and who changes whether to merge: both at the same moment, again and again."""
    monkeypatch.setattr(adaptive, "REVIEW", 1)
    monkeypatch.setattr(adaptive, "LONGEST_PAUSE", 0.0)
    monkeypatch.setattr(reviewing, "is_outdated", lambda part, statistics: True)
    index = Adaptive(fresh=16)
    index._review_from, index._review_pause = 0, 0.0
    numbers, boxes = WORKLOADS["W1"].boxes(2_000)
    index.insert(numbers, boxes)
    queries = Queries.points(np.zeros((1, 40), np.int64))
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            index.overlap(queries)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(1_000):
            some = np.arange(turn, turn + 20, dtype=np.int32)
            index.remove(some)
            index.insert(some, boxes.take(some))
    finally:
        stop.set()
    for reader in readers:
        reader.join()
    index.close()
    assert index.contents()[0].tolist() == list(range(2_000))
    assert len(index) == 2_000


def test_merging_ends_when_every_box_of_a_segment_is_gone() -> None:
    index = Adaptive(background=False)
    numbers, boxes = WORKLOADS["W0"].boxes(300)
    index.insert(numbers, boxes)
    index.settle()
    for turn in (numbers[:200], numbers[200:]):
        index.remove(turn)
        merged = 0
        while (work := due(index._state)) and merged < 5:
            index._merge(work)
            merged += 1
        assert merged < 5
    assert index.stats()["segments"] == [] and len(index) == 0


def test_the_memory_limit_refuses_and_changes_nothing() -> None:
    index = Adaptive(memory_limit=2_000_000)
    numbers, boxes = WORKLOADS["W0"].boxes(200_000)
    index.insert(numbers[:1_000], boxes.take(np.arange(1_000)))
    with pytest.raises(MemoryLimitError, match="2,000,000"):
        index.insert(numbers[1_000:], boxes.take(np.arange(1_000, 200_000)))
    assert len(index) == 1_000
    assert index.contents()[0].tolist() == list(range(1_000))


def test_bytes_are_those_of_all_arrays() -> None:
    index = Adaptive(background=False)
    index.insert(*WORKLOADS["W0"].boxes(10_000))
    index.remove(np.array([3], np.int32))
    (part,) = index._state.parts
    segment = sum(array.nbytes for array in part.segment) + part.died.nbytes
    assert index.stats()["segments"][0]["bytes"] == segment
    assert index.stats()["bytes"] > segment


@pytest.mark.parametrize(("value", "first"), [(9, 0), (7, 1)])
def test_a_merge_plans_for_the_queries_that_were_seen(value: int, first: int) -> None:
    """A third of the boxes want 7 on axis 0: the better key if no event has it, the worse one if all of them do."""
    random = np.random.default_rng(7)
    n = 40_000
    low = random.integers(10, 200, (n, 2))
    low[::3, 0] = 7
    index = Adaptive(background=False)
    index.insert(
        np.arange(n, dtype=np.int32),
        Boxes(np.arange(n + 1) * 2, np.tile(np.array([0, 1], np.int32), n), low.ravel(), low.ravel()),
    )
    index.observe(Queries.points(np.stack([np.full(2_000, value), random.integers(10, 200, 2_000)])))
    index.settle()
    assert index.stats()["segments"][0]["paths"][0]["axes"][0] == first


def test_threads_give_the_same_pairs_in_the_same_order_of_rows() -> None:
    one, two = Adaptive(), Adaptive(threads=2)
    for index in (one, two):
        index.insert(*WORKLOADS["W1"].boxes(20_000))
    queries = WORKLOADS["W1"].queries(501)
    assert as_set(one.overlap(queries)) == as_set(two.overlap(queries))
    two.close()


def test_fresh_boxes_that_demand_no_single_value_are_merged_before_they_are_many() -> None:
    """Every query would be compared with each of them; those on hashed values may be many more."""
    ranged, valued = (Adaptive(background=False) for _ in range(2))
    for index, workload in ((ranged, "R"), (valued, "W0")):
        numbers, boxes = WORKLOADS[workload].boxes(45_000)
        index.insert(numbers[:40_000], boxes.take(np.arange(40_000)))
        for begin in range(40_000, 42_400, 200):
            index.insert(numbers[begin : begin + 200], boxes.take(np.arange(begin, begin + 200)))
    assert [count for _, count in ranged._state.fresh] == [1_200, 1_200, 0]
    assert [count for _, count in valued._state.fresh] == [2_400]


@pytest.mark.parametrize("workload", ["R", "W1", "wide", "zipf"])
def test_fresh_boxes_answer_as_scan_does_where_segments_lend_their_cuts(workload: str) -> None:
    numbers, boxes = WORKLOADS[workload].boxes(5_000)
    index, scan = Adaptive(background=False), Scan()
    for part in (np.arange(4_000), np.arange(4_000, 4_001), np.arange(4_001, 4_800), np.arange(4_800, 5_000)):
        for each in (index, scan):
            each.insert(numbers[part], boxes.take(part))
    gone = np.arange(3_900, 4_900, 7)
    for each in (index, scan):
        each.remove(numbers[gone])
    young, count = index._state.fresh[-1]
    assert count == 1_000 and len(young.arrays.cuts)
    assert_same(index, scan, WORKLOADS[workload].queries(700))
