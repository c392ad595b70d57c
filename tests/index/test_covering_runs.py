"""Covering in the segments of `adaptive`: where roots are asked first, the answers are those of the scan."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.bench.nested import nested, points
from tocsin.index import Boxes, Pairs, Queries, create
from tocsin.index.adaptive import Adaptive
from tocsin.index.segments.covering import without_runs
from tocsin.kernels.segments import layout as at


def told(pairs: Pairs) -> list[tuple[int, int]]:
    return sorted(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))


def runs_of(index: Adaptive) -> int:
    return sum(int(part.segment.header[at.RUN_END] - part.segment.header[at.RUN_START]) for part in index._state.parts)


def questions(random: np.random.Generator, boxes: Boxes) -> list[Queries]:
    """Return points anywhere and within boxes, many and few, and ranges."""
    every = points(200, int(random.integers(1 << 30)))
    inner = every.low.copy()
    for row, box in enumerate(random.integers(0, len(boxes), 100).tolist()):
        span = slice(*boxes.offsets[box : box + 2])
        inner[boxes.axis[span], row] = random.integers(boxes.low[span], boxes.high[span] + 1)
    wide = Queries(inner[:, :60].copy(), inner[:, :60] + 2**34)
    return [Queries.points(inner), Queries.points(inner[:, :1].copy()), Queries.points(inner[:, 5:8].copy()), wide]


def check(index: Adaptive, oracle: object, asked: list[Queries]) -> None:
    for queries in asked:
        found = told(index.overlap(queries))
        assert found == told(oracle.overlap(queries))  # type: ignore[attr-defined]
        kept = [(part, part.segment) for part in index._state.parts]
        for part, segment in kept:
            part.segment = without_runs(segment)
        assert found == told(index.overlap(queries))
        for part, segment in kept:
            part.segment = segment


def test_roots_first_changes_no_answer_through_insertions_removals_and_merges() -> None:
    random, each = np.random.default_rng(7), 8
    boxes = Boxes.concatenate([nested(4_000, 60, each), Boxes.of([{}, {3: [(0, 2**39)]}])])
    order = random.permutation(len(boxes)).astype(np.int32)
    index, oracle = create("adaptive", background=False), create("scan")
    assert isinstance(index, Adaptive)
    for held in (index, oracle):
        held.insert(order[:3_000], boxes.take(order[:3_000]))
    assert runs_of(index) > 20
    told_of = index.stats()["segments"][0]["covering"]
    assert told_of["pays"] and told_of["spared"] > 0.5 and told_of["runs"] == runs_of(index)
    asked = questions(random, boxes)
    check(index, oracle, asked)
    for held in (index, oracle):
        held.remove(order[:1_000])  # some roots among them
    check(index, oracle, asked)
    for held in (index, oracle):
        held.insert(order[3_000:], boxes.take(order[3_000:]))
    check(index, oracle, asked)
    for part in index._state.parts:  # new boxes are taken in, the plan stays
        taken = part.with_boxes(np.array([9_000], np.int32), boxes.take(order[:1]), index._state.version)
        if taken is not None:
            starts, ends = (
                taken[0].segment.words[slice(*taken[0].segment.header[place : place + 2])]
                for place in (at.RUN_START, at.RUN_END)
            )
            assert (starts[1:] >= ends[:-1]).all() and (ends - starts > 1).all()
    index.settle()
    check(index, oracle, asked)
    assert "pays" in index.stats()["segments"][0]["covering"]  # by the queries seen, which meet every root


def test_it_does_not_pay_where_nothing_is_covered_or_every_root_is_met() -> None:
    for boxes in (nested(3_000, 3_000, 8), nested(3_000, 30, 3)):
        index = create("adaptive", background=False)
        index.insert(np.arange(3_000, dtype=np.int32), boxes)
        assert not index.stats()["segments"][0]["covering"]["pays"]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 9), st.integers(1, 80), st.floats(0, 0.9))
def test_any_nesting_gives_what_the_scan_gives(seed: int, each: int, roots: int, gone: float) -> None:
    random = np.random.default_rng(seed)
    boxes = nested(1_500, roots, each, seed)
    numbers = np.arange(1_500, dtype=np.int32)
    index, oracle = create("adaptive", background=False), create("scan")
    assert isinstance(index, Adaptive)
    removed = numbers[random.random(1_500) < gone]
    for held in (index, oracle):
        held.insert(numbers, boxes)
        held.remove(removed)
    check(index, oracle, questions(random, boxes))
    index.settle()
    check(index, oracle, questions(random, boxes))
