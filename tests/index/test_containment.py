"""The contract of containment indexes, discovered: on any history of changes they answer as the definition does."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.index.test_contract import BOX

from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import BoxError, BoxNumberError, ContainmentError, UnknownEngineError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Pairs, create
from tocsin.index.containment.held import box_contains
from tocsin.index.containment.protocol import MODULES, create_containment
from tocsin.kernels.containment.zcurve import last_above, last_below, next_bound

Box = dict[int, list[tuple[int, int]]]

VARIANTS: dict[str, list[dict[str, Any]]] = {"kd": [{"overflow": 2, "underflow": 1}]}
INDEXES = [(name, options) for name in MODULES for options in ({}, *VARIANTS.get(name, []))]
every_index = pytest.mark.parametrize(
    ("name", "options"), INDEXES, ids=[f"{name}{'+' if options else ''}" for name, options in INDEXES]
)


def holds(outer: Box, inner: Box) -> bool:
    """Say whether every point of one box is in another, by the definition: code by code where that can differ."""
    for axis, allowed in outer.items():
        for low, high in inner.get(axis, [(NULL, HIGHEST)]):
            ends = sorted({low, high, *(end for pair in allowed for end in (pair[0] - 1, pair[1] + 1))})
            if not all(any(a <= code <= b for a, b in allowed) for code in ends if low <= code <= high):
                return False
    return True


def pairs_of(pairs: Pairs) -> list[tuple[int, int]]:
    assert pairs.rows.dtype == pairs.numbers.dtype == np.int32 and (np.diff(pairs.rows) >= 0).all()
    return sorted(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))


class History(RuleBasedStateMachine):
    def __init__(self, name: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.index = create_containment(name, **options)
        self.held: dict[int, Box] = {}
        self.fresh = count()

    @rule(boxes=st.lists(BOX, max_size=12), times=st.sampled_from([1, 1, 2, 9]))
    def insert(self, boxes: list[Box], times: int) -> None:
        boxes = boxes * times
        numbers = [next(self.fresh) * 1_001 for _ in boxes]
        self.index.insert(np.array(numbers, np.int32), Boxes.of(boxes))
        self.held |= dict(zip(numbers, boxes, strict=True))

    @rule(data=st.data(), share=st.sampled_from([0.1, 0.5, 1.0]))
    def remove(self, data: st.DataObject, share: float) -> None:
        numbers = data.draw(st.permutations(sorted(self.held)))[: int(share * len(self.held)) + 1]
        self.index.remove(np.array(numbers, np.int32))
        for number in numbers:
            del self.held[number]

    @rule(boxes=st.lists(BOX, min_size=1, max_size=5), k=st.sampled_from([1, 2, None]))
    def ask(self, boxes: list[Box], k: int | None) -> None:
        for inside in (False, True):
            truth = [
                (row, number)
                for row, box in enumerate(boxes)
                for number, held in self.held.items()
                if (holds(box, held) if inside else holds(held, box))
            ]
            asked = self.index.contained if inside else self.index.contain
            found = pairs_of(asked(Boxes.of(boxes), k))
            assert len(set(found)) == len(found) and set(found) <= set(truth)
            for row in range(len(boxes)):
                wanted = sum(pair[0] == row for pair in truth)
                assert sum(pair[0] == row for pair in found) == min(wanted, k or wanted)

    @rule()
    def refuse(self) -> None:
        absent = np.array([7], np.int32)
        with pytest.raises(BoxNumberError):
            self.index.remove(absent)
        for number in list(self.held)[:1]:
            with pytest.raises(BoxNumberError):
                self.index.insert(np.array([7, number], np.int32), Boxes.of([{}, {}]))
            with pytest.raises(BoxNumberError):
                self.index.remove(np.array([number, number], np.int32))

    @invariant()
    def counted(self) -> None:
        assert len(self.index) == len(self.held) == self.index.stats()["boxes"]


@every_index
def test_any_history_gives_what_the_definition_gives(name: str, options: dict[str, Any]) -> None:
    run_state_machine_as_test(
        lambda: History(name, options),
        settings=settings(
            max_examples=30, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@every_index
@pytest.mark.parametrize("workload", ["W1", "R", "schemas", "zipf"])
def test_workloads_against_the_scan(name: str, options: dict[str, Any], workload: str) -> None:
    index, oracle = create_containment(name, **options), create_containment("scan")
    _, boxes = WORKLOADS[workload].boxes(3_000)
    wide = Boxes(boxes.offsets, boxes.axis, np.where(boxes.axis % 3, boxes.low, LOWEST), boxes.high)
    every = np.arange(6_000, dtype=np.int32)
    boxes = Boxes.concatenate([boxes, wide])
    random = np.random.default_rng(3)
    order = random.permutation(every)
    asked = boxes.take(random.integers(0, 6_000, 300))
    for part in np.array_split(order, [1, 40, 900, 901, 4_000]):
        for one in (index, oracle):
            one.insert(part, boxes.take(part))
    for gone in np.array_split(random.permutation(every)[:5_000], 9):
        assert pairs_of(index.contain(asked)) == pairs_of(oracle.contain(asked))
        assert pairs_of(index.contained(asked)) == pairs_of(oracle.contained(asked))
        for one in (index, oracle):
            one.remove(gone)
    assert pairs_of(index.contain(asked)) == pairs_of(oracle.contain(asked))
    assert len(index) == 1_000


@every_index
@pytest.mark.parametrize("rising", [True, False])
def test_boxes_that_come_in_order(name: str, options: dict[str, Any], rising: bool) -> None:
    index = create_containment(name, **options)
    spans = [(i, i + 2) for i in range(6_000)][:: 1 if rising else -1]
    for i, part in enumerate(np.array_split(np.arange(6_000), 600)):
        index.insert(part.astype(np.int32), Boxes.of([{0: [spans[j]]} for j in part]))
        if i % 100 == 0:
            middle = spans[part[0]][0] + 1
            assert len(index.contain(Boxes.of([{0: [(middle, middle)]}])).numbers) >= 1
    found = index.contain(Boxes.of([{0: [(3_000, 3_001)]}]))
    assert sorted(spans[number] for number in found.numbers) == [(2_999, 3_001), (3_000, 3_002)]
    assert len(index.contained(Boxes.of([{0: [(100, 200)]}])).numbers) == 99
    index.remove(np.arange(5_990, dtype=np.int32))
    assert len(index.contained(Boxes.of([{}])).numbers) == 10


@every_index
def test_what_has_no_answer_is_refused(name: str, options: dict[str, Any]) -> None:
    index = create_containment(name, **options)
    index.insert(np.array([1], np.int32), Boxes.of([{0: [(1, 2)]}]))
    for k in (0, -1, 1.5, "all"):
        with pytest.raises(ContainmentError, match="from 1 on"):
            index.contain(Boxes.of([{}]), k)  # type: ignore[arg-type]
    bad = [{0: [(2, 1)]}, {0: [(1, 2), (2, 3)]}, {0: [(1, 2), (3, 3)]}, {-1: [(1, 2)]}]
    for box in bad:
        with pytest.raises(BoxError, match="box 1 is empty or out of form"):
            index.insert(np.array([2, 3], np.int32), Boxes.of([{}, box]))
        with pytest.raises(BoxError):
            index.contained(Boxes.of([{}, box]))
    assert pairs_of(index.contain(Boxes.of([{0: [(1, 1)]}]))) == [(0, 1)]
    assert index.boxes(np.array([1, 1], np.int32)).high.tolist() == [2, 2]
    for unknown in (2, -1, 2**31 - 1):
        with pytest.raises(BoxNumberError):
            index.boxes(np.array([1, unknown], np.int32))


@every_index
def test_infinite_boxes_contain_everything(name: str, options: dict[str, Any]) -> None:
    index = create_containment(name, **options)
    boxes: list[Box] = [{}, {0: [(NULL, HIGHEST)]}, {0: [(LOWEST, HIGHEST)]}, {0: [(NULL, NULL)]}]
    index.insert(np.arange(4, dtype=np.int32), Boxes.of(boxes))
    assert pairs_of(index.contain(Boxes.of([{}, {0: [(5, HIGHEST)]}, {0: [(NULL, 3)]}]))) == [
        *[(0, 0), (0, 1)],
        *[(1, 0), (1, 1), (1, 2)],
        *[(2, 0), (2, 1)],
    ]
    assert pairs_of(index.contained(Boxes.of([{}]))) == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_names_and_limits_are_checked() -> None:
    with pytest.raises(UnknownEngineError, match="choose one of scan, kd, zcurve, adaptive"):
        create_containment("tree")
    with pytest.raises(ContainmentError, match="at least one"):
        create_containment("kd", overflow=3, underflow=3)


@settings(deadline=None)
@given(BOX, BOX)
def test_containment_of_two_boxes_is_the_definition(one: Box, other: Box) -> None:
    assert box_contains(Boxes.of([one]), Boxes.of([other])) == holds(one, other)


@settings(deadline=None)
@given(st.integers(-1, 63), st.integers(0, 63))
def test_numbers_with_and_without_bits(word: int, bits: int) -> None:
    assert last_above(word, bits) == max([n for n in range(word + 1) if n & bits == bits], default=-1)
    assert last_below(word, bits) == max([n for n in range(word + 1) if n & ~bits == 0], default=-1)


@settings(deadline=None)
@given(st.integers(0, 255), st.integers(0, 255), st.booleans())
@example(0, 255, False)
def test_leaps_on_the_curve_miss_nothing(key: int, wanted: int, inside: bool) -> None:
    """Two dimensions, four levels: a leap goes to the next cell that holds an answer, by listing them all."""

    def coordinates(key: int) -> tuple[int, int]:
        return tuple(sum(((key >> (2 * level + place)) & 1) << level for level in range(4)) for place in (0, 1))  # type: ignore[return-value]

    def may(other: int) -> bool:
        pairs = zip(coordinates(other), coordinates(wanted), strict=True)
        return all(a <= b for a, b in pairs) if inside else all(a >= b for a, b in pairs)

    bound = next_bound(key, wanted, 4, 2, inside, np.empty(4, np.int64))
    if bound < 0:
        return
    assert not may(key) and not any(may(other) for other in range(bound, key + 1))
    assert bound == 0 or any(may(other) for other in range(bound))


def test_adaptive_answers_beside_its_other_questions() -> None:
    index, oracle = create("adaptive", fresh=64), create_containment("scan")
    _, boxes = WORKLOADS["R"].boxes(3_000)
    asked = boxes.take(np.arange(0, 3_000, 40))
    for turn, part in enumerate(np.array_split(np.arange(3_000, dtype=np.int32), 5)):
        for one in (index, oracle):
            one.insert(part, boxes.take(part))
        if turn:
            assert pairs_of(index.contain(asked)) == pairs_of(oracle.contain(asked))  # type: ignore[attr-defined]
            assert pairs_of(index.contained(asked)) == pairs_of(oracle.contained(asked))  # type: ignore[attr-defined]
        for one in (index, oracle):
            one.remove(part[::3])
    assert pairs_of(index.contain(asked, 1)) == pairs_of(oracle.contain(asked, 1))  # type: ignore[attr-defined]
