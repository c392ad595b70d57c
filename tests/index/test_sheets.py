"""Many questions at once: sheets are chosen where they pay, and answer as the scan does through every change."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.bench.covering import commands
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes
from tocsin.index.containment.grouped import Grouped
from tocsin.index.containment.protocol import create_containment


def nasty(boxes: Boxes, random: np.random.Generator) -> Boxes:
    """Return boxes some of which are open to one side or another, single codes, or NULL."""
    low, high = boxes.low.copy(), boxes.high.copy()
    kind = random.integers(0, 9, len(low))
    low[kind == 0] = LOWEST
    high[kind == 1] = HIGHEST
    high[kind == 2] = low[kind == 2]
    low[kind == 3] = high[kind == 3] = NULL
    low[kind == 4] = NULL
    return Boxes(boxes.offsets, boxes.axis, low, high)


@pytest.mark.parametrize("attributes", [3, 8])
def test_sheets_answer_as_the_scan_does_through_every_change(attributes: int) -> None:
    random = np.random.default_rng(attributes)
    boxes = nasty(commands(3_000, attributes, 0.0).boxes, random)
    index, oracle = Grouped(), create_containment("scan")
    numbers = random.permutation(3_000).astype(np.int32)
    for number, few in zip(range(100_000, 100_002), ([{0: [(5, 9), (12, 12)]}], [{}]), strict=True):
        for held in (index, oracle):
            held.insert(np.array([number], np.int32), Boxes.of(few))
    begin = 0
    for end in (700, 1_300, 1_301, 3_000):
        some = numbers[begin:end]
        for held in (index, oracle):
            held.insert(some, boxes.take(some))
            held.remove(some[: len(some) // 3])
        begin = end
        asked = Boxes.concatenate([boxes.take(random.integers(0, 3_000, 590)), Boxes.of([{}, {0: [(6, 7)]}] * 5)])
        for k in (1, 3, None):
            found, truth = index.contain(asked, k), oracle.contain(asked, k)
            assert found.rows.tolist() == truth.rows.tolist()
            if k is None:
                order = np.lexsort((found.numbers, found.rows)), np.lexsort((truth.numbers, truth.rows))
                assert found.numbers[order[0]].tolist() == truth.numbers[order[1]].tolist()
            else:
                whole = oracle.contain(asked)
                every = set(zip(whole.rows.tolist(), whole.numbers.tolist(), strict=True))
                assert set(zip(found.rows.tolist(), found.numbers.tolist(), strict=True)) <= every
    assert index._sheets.arrays(), "no sheet paid"


def test_few_questions_are_asked_of_the_trees() -> None:
    index, boxes = Grouped(), commands(600, 3, 0.0).boxes
    index.insert(np.arange(600, dtype=np.int32), boxes)
    index.contain(boxes.take(np.arange(100)))
    index.contained(boxes)
    assert not index._sheets.arrays()
