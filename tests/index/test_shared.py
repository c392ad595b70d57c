"""Equal boxes held once: whatever comes and goes, answers are those of an engine that holds each box by itself."""

from __future__ import annotations

import random as stdlib_random

import numpy as np
import pytest
from tests.covering.sets import as_boxes, box, point
from tests.index.test_contract import assert_same, assert_same_contents

from tocsin.errors import BoxNumberError
from tocsin.index import Boxes, Queries, create
from tocsin.index import shared as module
from tocsin.index.shared import Shared


def check(seed: int) -> None:
    random = stdlib_random.Random(seed)
    index, oracle = Shared(create("scan")), create("scan")
    pool = [box(random) for _ in range(6)]
    held: set[int] = set()
    free = list(range(60))
    for _ in range(30):
        if held and random.random() < 0.45:
            gone = np.array(random.sample(sorted(held), min(len(held), random.choice([1, 1, 3, 9]))), np.int32)
            free += index.remove(gone).tolist()
            oracle.remove(gone)
            held -= set(gone.tolist())
        else:
            numbers = [free.pop(random.randrange(len(free))) for _ in range(min(len(free), random.choice([1, 2, 6])))]
            boxes = as_boxes([random.choice(pool) for _ in numbers])
            for one in (index, oracle):
                one.insert(np.array(numbers, np.int32), boxes)
            held |= set(numbers)
        if random.random() < 0.2:
            index = Shared.from_sharing(index.engine, index.to_sharing())
        asked = Queries.points(np.array([point(random) for _ in range(3)]).T.copy())
        assert_same(index, oracle, asked)  # type: ignore[arg-type]
        assert_same_contents(index, oracle)  # type: ignore[arg-type]
        assert len(index) == len(held) == index.stats()["boxes"]
        assert len(index.engine) <= len(held) + len(index.kept())
        assert sorted([*free, *held, *index.kept().tolist()]) == list(range(60))


def test_answers_are_those_of_boxes_held_one_by_one() -> None:
    for seed in range(150):
        check(seed)


def test_a_box_stays_as_long_as_one_shares_it() -> None:
    index = Shared(create("adaptive"))
    one = Boxes.of([{0: [(1, 5)]}])
    for number in (3, 4, 5):
        index.insert(np.array([number], np.int32), one)
    assert len(index.engine) == 1
    assert index.remove(np.array([3], np.int32)).tolist() == []
    asked = Queries.points(np.array([[2]]))
    assert sorted(index.overlap(asked).numbers.tolist()) == [4, 5]
    with pytest.raises(BoxNumberError):
        index.insert(np.array([3], np.int32), one)
    with pytest.raises(BoxNumberError):
        index.remove(np.array([3], np.int32))
    assert index.remove(np.array([5], np.int32)).tolist() == [5]
    assert sorted(index.remove(np.array([4], np.int32)).tolist()) == [3, 4]
    assert len(index) == len(index.engine) == 0


def test_of_many_boxes_only_a_sample_is_remembered_unless_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 100)
    different = Boxes.of([{0: [(i, i)]} for i in range(6_400)])
    index = Shared(create("counting"))
    index.insert(np.arange(6_400, dtype=np.int32), different)
    assert 0 < index.stats()["shared"]["remembered"] < 100
    equal = Boxes.of([{0: [(i % 40, i % 40)]} for i in range(6_400)])
    index.insert(np.arange(10_000, 16_400, dtype=np.int32), equal)
    index.insert(np.arange(20_000, 26_400, dtype=np.int32), equal)
    index.insert(np.arange(30_000, 36_400, dtype=np.int32), equal)
    assert len(index) == 4 * 6_400 and len(index.engine) < 6_500
    found = index.overlap(Queries.points(np.array([[7, 41]])))
    assert np.bincount(found.rows).tolist() == [1 + 3 * 160, 1]
