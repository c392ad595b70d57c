"""The contract of every engine, discovered: on any history of changes it answers as `scan` does.

An engine is tested by being there. `VARIANTS` names options worth testing beside the defaults, such as thresholds so
low that small indexes reach the paths of large ones.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import BoxNumberError, EngineError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Index, Pairs, Queries, create, engines

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "bitmap": [{"fresh": 0}, {"fresh": 1, "buckets": 3, "kinds": dict.fromkeys((0, 2, 4, 7), "grid")}],
    "propagation": [{"prefetch": True, "cache_bytes": 0}],
    "static": [{"replan_from": 2, "checking_ns": 1000.0, "most_tables": 12}],
    "dynamic": [{"margin_max": 0.0, "benefit_min": 2, "repair_min": 2, "spare_min": 0, "most_tables": 12}],
}
ENGINES = [(name, options) for name in sorted(engines()) for options in ({}, *VARIANTS.get(name, []))]
every_engine = pytest.mark.parametrize(
    ("name", "options"), ENGINES, ids=[f"{name}{'+' if options else ''}" for name, options in ENGINES]
)

AXES = 5
NEAR = st.integers(-3, 6)
CODES = st.one_of(NEAR, NEAR, NEAR, st.sampled_from([NULL, LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]))


@st.composite
def intervals(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Disjoint, not adjacent, ascending: one or more; half the time a single code."""
    if draw(st.booleans()):
        code = draw(CODES)
        return [(code, code)]
    ends = draw(st.lists(st.tuples(CODES, CODES).map(sorted), min_size=1, max_size=4))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ends):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


BOX = st.dictionaries(st.integers(0, AXES - 1), intervals(), max_size=4)


@st.composite
def queries(draw: st.DrawFn) -> Queries:
    """Points or ranges, no rows or several, all axes or fewer or more than the boxes mention."""
    axes, rows = draw(st.integers(0, AXES + 1)), draw(st.sampled_from([0, 1, 1, 7]))
    cells = st.tuples(CODES, CODES).map(sorted)
    drawn = draw(st.lists(st.lists(cells, min_size=rows, max_size=rows), min_size=axes, max_size=axes))
    ends = np.array(drawn, np.int64).reshape(axes, rows, 2)
    low = np.ascontiguousarray(ends[:, :, 0])
    return Queries.points(low) if draw(st.booleans()) else Queries(low, np.ascontiguousarray(ends[:, :, 1]))


@st.composite
def moves(draw: st.DrawFn) -> tuple[Queries, Queries]:
    """Rows before and after, which may differ on every axis or on few, or know different axes."""
    old = draw(queries())
    again = draw(st.lists(st.tuples(st.booleans(), CODES, CODES), min_size=old.low.size, max_size=old.low.size))
    low, high = old.low.copy(), old.high.copy()
    for cell, (changes, one, other) in enumerate(again):
        if changes:
            low.flat[cell], high.flat[cell] = sorted((one, other))
    axes = draw(st.integers(max(0, old.axes - 1), old.axes))
    new = Queries.points(low[:axes]) if draw(st.booleans()) else Queries(low[:axes], high[:axes])
    return (old, new) if draw(st.booleans()) else (new, old)


def ordered(pairs: Pairs) -> tuple[list[int], list[int]]:
    """Check the form of an answer and return it in one order."""
    assert pairs.rows.dtype == pairs.numbers.dtype == np.int32
    assert (np.diff(pairs.rows) >= 0).all()
    order = np.lexsort((pairs.numbers, pairs.rows))
    return pairs.rows[order].tolist(), pairs.numbers[order].tolist()


def assert_same(index: Index, oracle: Index, asked: Queries) -> None:
    assert ordered(index.overlap(asked)) == ordered(oracle.overlap(asked))


def assert_same_moves(index: Index, oracle: Index, old: Queries, new: Queries) -> None:
    """Hold the moves of an engine against the plain definition: the oracle's answers after and not before."""
    moved = index.moved(old, new)
    before, after = (set(zip(*ordered(oracle.overlap(asked)), strict=True)) for asked in (old, new))
    for found, true in zip(moved, (after - before, before - after), strict=True):
        assert list(zip(*ordered(found), strict=True)) == sorted(true)


def assert_same_contents(index: Index, oracle: Index) -> None:
    (numbers, boxes), (true_numbers, true_boxes) = index.contents(), oracle.contents()
    assert numbers.dtype == np.int32 and numbers.tolist() == true_numbers.tolist()
    for array, true in zip(boxes, true_boxes, strict=True):
        assert array.dtype == true.dtype
        np.testing.assert_array_equal(array, true)


class History(RuleBasedStateMachine):
    """Any sequence of calls, made on an engine and on the oracle alike."""

    held = Bundle("held")
    removed = Bundle("removed")

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.index, self.oracle = create(name, **options), create("scan")
        self.numbers: set[int] = set()

    def both(self, call: str, *arguments: Any) -> None:
        getattr(self.index, call)(*arguments)
        getattr(self.oracle, call)(*arguments)

    def insert_boxes(self, numbers: list[int], boxes: list[dict[int, list[tuple[int, int]]]]) -> None:
        self.both("insert", np.array(numbers, np.int32), Boxes.of(boxes))
        self.numbers |= set(numbers)

    @initialize(target=held, boxes=st.lists(BOX, max_size=30))
    def load(self, boxes: list[dict[int, list[tuple[int, int]]]]) -> Any:
        self.insert_boxes(list(range(len(boxes))), boxes)
        return multiple(*range(len(boxes)))

    @rule(target=held, data=st.data(), boxes=st.lists(BOX, max_size=6), twice=st.booleans())
    def insert(self, data: st.DataObject, boxes: list[dict[int, list[tuple[int, int]]]], twice: bool) -> Any:
        boxes = boxes * 2 if twice else boxes
        free = st.sampled_from([2**31 - 1, 4095, 4096, 1_000_000, *range(30, 90)]).filter(
            lambda number: number not in self.numbers
        )
        numbers = data.draw(st.lists(free, min_size=len(boxes), max_size=len(boxes), unique=True))
        self.insert_boxes(numbers, boxes)
        return multiple(*numbers)

    @rule(target=removed, number=consumes(held))
    def remove(self, number: int) -> int:
        self.both("remove", np.array([number], np.int32))
        self.numbers.remove(number)
        return number

    @rule(target=held, number=consumes(removed), box=BOX)
    def insert_again_under_an_old_number(self, number: int, box: dict[int, list[tuple[int, int]]]) -> Any:
        if number in self.numbers:
            return multiple()
        self.insert_boxes([number], [box])
        return number

    @rule(number=held, box=BOX)
    def refuse_a_number_twice(self, number: int, box: dict[int, list[tuple[int, int]]]) -> None:
        fresh = next(number for number in range(1000) if number not in self.numbers)
        if number in self.numbers:
            for numbers in ([fresh, number], [fresh, fresh]):
                with pytest.raises(BoxNumberError):
                    self.index.insert(np.array(numbers, np.int32), Boxes.of([box, box]))

    @rule(number=held)
    def refuse_to_remove_what_is_not_there(self, number: int) -> None:
        absent = next(number for number in range(1000) if number not in self.numbers)
        if number in self.numbers:
            for numbers in ([number, absent], [number, number], [2**31 - 2]):
                with pytest.raises(BoxNumberError):
                    self.index.remove(np.array(numbers, np.int32))

    @rule(asked=queries())
    def ask(self, asked: Queries) -> None:
        assert_same(self.index, self.oracle, asked)

    @rule(moves=moves())
    def move(self, moves: tuple[Queries, Queries]) -> None:
        assert_same_moves(self.index, self.oracle, *moves)

    @rule()
    def hand_over_everything(self) -> None:
        assert_same_contents(self.index, self.oracle)

    @invariant()
    def count(self) -> None:
        assert len(self.index) == len(self.numbers) == self.index.stats()["boxes"]
        assert self.index.stats()["bytes"] >= 0


@every_engine
def test_any_history_gives_what_scan_gives(name: str, options: dict[str, Any]) -> None:
    run_state_machine_as_test(
        lambda: History(name, options),
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@every_engine
@pytest.mark.parametrize("workload", [name for name in WORKLOADS if name != "text"])
def test_every_workload_through_inserts_and_removals(name: str, options: dict[str, Any], workload: str) -> None:
    index, oracle = create(name, **options), create("scan")
    numbers, boxes = WORKLOADS[workload].boxes(2_500)
    asked = WORKLOADS[workload].queries(300)
    random = np.random.default_rng(1)
    some = random.permutation(2_500)
    for part in np.array_split(some, [1, 3, 700, 701, 1_900]):
        for one in (index, oracle):
            one.insert(numbers[part], boxes.take(part))
        assert_same(index, oracle, Queries.points(np.ascontiguousarray(asked.low[:, :40])))
    assert_same(index, oracle, asked)
    earlier, later = (Queries.points(np.ascontiguousarray(asked.low[:, at : at + 40])) for at in (0, 40))
    assert_same_moves(index, oracle, earlier, later)
    for part in np.array_split(random.permutation(2_500)[:1_800], 7):
        for one in (index, oracle):
            one.remove(numbers[part])
        assert_same(index, oracle, Queries.points(np.ascontiguousarray(asked.low[:, 40:60])))
    gone = np.setdiff1d(numbers, oracle.contents()[0]).astype(np.int32)[:900]
    for one in (index, oracle):
        one.insert(gone, boxes.take(gone[::-1]))
    assert_same(index, oracle, asked)
    assert_same_contents(index, oracle)


@every_engine
@pytest.mark.parametrize("workload", ["W1", "R", "zipf", "schemas"])
def test_ranged_questions_on_workloads(name: str, options: dict[str, Any], workload: str) -> None:
    index, oracle = create(name, **options), create("scan")
    numbers, boxes = WORKLOADS[workload].boxes(2_000)
    for one in (index, oracle):
        one.insert(numbers[:1_500], boxes.take(numbers[:1_500]))
    points = WORKLOADS[workload].queries(40).low
    random = np.random.default_rng(2)
    spread = np.where(
        random.random(points.shape) < 0.5, 0, random.integers(0, 2**51 if workload == "R" else 9, points.shape)
    )
    high = np.where(points == NULL, NULL, points + spread)
    unknown = random.random(points.shape) < 0.1
    asked = Queries(np.where(unknown, LOWEST, points), np.where(unknown, HIGHEST, high))
    assert_same(index, oracle, asked)
    for one in (index, oracle):
        one.remove(numbers[200:900])
        one.insert(numbers[1_500:], boxes.take(numbers[1_500:]))
    assert_same(index, oracle, asked)
    assert_same(index, oracle, Queries(points, points.copy()))
    nearby = np.where(points == NULL, NULL, points + random.integers(-3, 4, points.shape))
    assert_same_moves(index, oracle, Queries.points(points), Queries.points(nearby))
    assert_same_moves(index, oracle, asked, Queries.points(points))
    assert_same_moves(index, oracle, Queries.points(points), asked)


@every_engine
def test_a_move_to_another_number_of_rows_is_refused(name: str, options: dict[str, Any]) -> None:
    one, two = (Queries.points(np.zeros((2, rows), np.int64)) for rows in (1, 2))
    with pytest.raises(EngineError, match="as many rows"):
        create(name, **options).moved(one, two)


@every_engine
def test_contents_rebuild_the_index(name: str, options: dict[str, Any]) -> None:
    index, again = create(name, **options), create(name, **options)
    numbers, boxes = WORKLOADS["zipf"].boxes(1_000)
    index.insert(numbers, boxes)
    index.remove(numbers[::3])
    again.insert(*index.contents())
    assert_same_contents(again, index)
    assert_same(again, index, WORKLOADS["zipf"].queries(200))


@every_engine
def test_an_index_emptied_is_as_good_as_new(name: str, options: dict[str, Any]) -> None:
    index, oracle = create(name, **options), create("scan")
    asked = WORKLOADS["W2"].queries(50)
    for seed in range(4):
        numbers, boxes = WORKLOADS["W2" if seed % 2 else "R"].boxes(800)
        for one in (index, oracle):
            one.insert(numbers, boxes)
        assert_same(index, oracle, asked)
        for one in (index, oracle):
            one.remove(numbers[::-1].copy())
        assert len(index) == 0 and ordered(index.overlap(asked)) == ([], [])
        assert_same_contents(index, oracle)


@every_engine
def test_readers_beside_a_writer_see_all_of_a_change_or_nothing(name: str, options: dict[str, Any]) -> None:
    index = create(name, **options)
    numbers, boxes = WORKLOADS["W1"].boxes(3_000)
    asked = WORKLOADS["W1"].queries(64)
    codes = asked.low.copy()
    codes[:, :32] = boxes.low.reshape(-1, 4)[:32, 0]
    everywhere = Boxes.of([{0: [(1, 35)]}, {}, {1: [(1, 35)], 2: [(LOWEST, HIGHEST)]}])
    index.insert(numbers[:2_000], boxes.take(numbers[:2_000]))
    moving = Boxes.concatenate([boxes.take(numbers[2_000:]), everywhere])
    moving_numbers = np.arange(2_000, 3_003, dtype=np.int32)
    asked = Queries.points(codes)
    before = ordered(index.overlap(asked))
    index.insert(moving_numbers, moving)
    after = ordered(index.overlap(asked))
    assert len(after[0]) >= len(before[0]) + 3 * 32
    done = threading.Event()

    def read() -> int:
        answers = 0
        while not (answers and done.is_set()):  # one at least, even if this thread is the last to run
            assert ordered(index.overlap(asked)) in (before, after)
            answers += 1
        return answers

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for _ in range(15):
            index.remove(moving_numbers)
            index.insert(moving_numbers, moving)
        done.set()
        assert all(reader.result() > 0 for reader in readers)
    assert ordered(index.overlap(asked)) == after
