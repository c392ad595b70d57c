"""Workloads: both levels tell the same story, and each has the shape it promises."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from tocsin.bench.workloads import CHUNK, DRIFTS, WORKLOADS, Workload, double_codes
from tocsin.errors import TocsinError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries, create

ALL = [*WORKLOADS.values(), *(workload for pair in DRIFTS.values() for workload in pair)]
WITH_ARRAYS = [workload for workload in ALL if workload.name != "text"]


def named(workloads: list[Workload]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("workload", workloads, ids=lambda workload: workload.name)


def pairs_by_index(boxes: Boxes, numbers: np.ndarray, queries: Queries) -> set[tuple[int, int]]:
    scan = create("scan")
    scan.insert(numbers, boxes)
    found = scan.overlap(queries)
    return set(zip(found.rows.tolist(), found.numbers.tolist(), strict=True))


def pairs_by_duckdb(workload: Workload, n: int, rows: int) -> set[tuple[int, int]]:
    """Ask DuckDB which events satisfy which expressions."""
    events = workload.events(rows)
    connection = duckdb.connect()
    connection.register("events", events.append_column("row", [np.arange(rows)]))
    found = set()
    for number, text in zip(*workload.expressions(n).to_pydict().values(), strict=True):
        kept = connection.execute(f"SELECT row FROM events WHERE {text}").fetchall()
        found |= {(row, number) for (row,) in kept}
    return found


@named(WITH_ARRAYS)
def test_boxes_are_well_formed(workload: Workload) -> None:
    numbers, boxes = workload.boxes(3_000)
    assert numbers.dtype == np.int32 and numbers.tolist() == list(range(3_000))
    assert boxes.offsets.dtype == boxes.low.dtype == boxes.high.dtype == np.int64 and boxes.axis.dtype == np.int32
    assert (boxes.low <= boxes.high).all() and boxes.low.min() > NULL
    assert boxes.axis.min() >= 0 and boxes.axis.max() < workload.axes
    box = np.repeat(np.arange(3_000), np.diff(boxes.offsets))
    assert (np.diff(boxes.axis)[np.diff(box) == 0] > 0).all()


@named(WITH_ARRAYS)
def test_both_levels_give_the_same_pairs(workload: Workload) -> None:
    numbers, boxes = workload.boxes(300)
    assert pairs_by_index(boxes, numbers, workload.queries(400)) == pairs_by_duckdb(workload, 300, 400)


@named(ALL)
def test_a_small_workload_is_the_beginning_of_a_larger_one(workload: Workload) -> None:
    assert workload.expressions(5).equals(workload.expressions(CHUNK + 5).slice(0, 5))
    assert workload.events(5).equals(workload.events(5_000).slice(0, 5).combine_chunks())
    assert workload.events(0).num_rows == workload.expressions(0).num_rows == 0


def test_chunks_are_the_boxes_in_parts() -> None:
    workload = WORKLOADS["W2"]
    parts = list(workload.chunks(CHUNK + 100))
    whole = workload.boxes(CHUNK + 100)
    assert [len(boxes) for _, boxes in parts] == [CHUNK, 100]
    assert np.concatenate([numbers for numbers, _ in parts]).tolist() == whole[0].tolist()
    for part, array in zip(Boxes.concatenate([boxes for _, boxes in parts]), whole[1], strict=True):
        np.testing.assert_array_equal(part, array)


def test_codes_of_doubles_keep_their_order() -> None:
    values = np.array([-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.3, 1.0, 1e300, np.inf])
    codes = double_codes(values)
    np.testing.assert_array_equal(np.sign(np.diff(codes)), np.sign(np.diff(values)))
    assert codes[4] == codes[5] == 0


@pytest.mark.parametrize(("name", "share"), [("R", 0.3**5), ("wide", 0.5**10), ("tenth", 0.1), ("none", 0.0)])
def test_the_share_of_matches_is_the_one_promised(name: str, share: float) -> None:
    numbers, boxes = WORKLOADS[name].boxes(1_000)
    found = pairs_by_index(boxes, numbers, WORKLOADS[name].queries(4_000))
    assert len(found) == pytest.approx(share * 1_000 * 4_000, rel=0.1)


def test_each_predicate_of_wide_passes_half_the_events() -> None:
    _, boxes = WORKLOADS["wide"].boxes(200)
    codes = WORKLOADS["wide"].queries(2_000).low
    passed = (boxes.low[:, None] <= codes[boxes.axis]) & (codes[boxes.axis] <= boxes.high[:, None])
    assert passed.mean() == pytest.approx(0.5, abs=0.01)


def test_no_single_predicate_of_none_is_hopeless() -> None:
    _, boxes = WORKLOADS["none"].boxes(1_000)
    codes = WORKLOADS["none"].queries(4_000).low
    assert (boxes.low[:, None] == codes[boxes.axis]).any(axis=1).all()


def test_w1_and_w2_have_the_operators_of_the_paper() -> None:
    for name, equal, below, above in (("W1", 3, 0, 1), ("W2", 3, 5, 1)):
        _, boxes = WORKLOADS[name].boxes(100)
        assert (boxes.low == boxes.high).sum() == equal * 100
        assert (boxes.low == LOWEST).sum() == below * 100
        assert (boxes.high == HIGHEST).sum() == above * 100


def test_events_of_schemas_carry_twenty_axes() -> None:
    codes = WORKLOADS["schemas"].queries(50).low
    assert ((codes != NULL).sum(axis=0) == 20).all()
    assert WORKLOADS["schemas"].events(50)["a0"].null_count == int((codes[0] == NULL).sum())


def test_drifts_change_what_they_say() -> None:
    before, after = DRIFTS["schema"]
    assert before.boxes(1_000)[1].axis.max() == 15 and after.boxes(1_000)[1].axis.min() == 16
    before, after = DRIFTS["skew"]
    assert before.queries(1_000).low[0].max() == 35 and after.queries(1_000).low[0].max() == 2
    _, boxes = after.boxes(1_000)
    assert boxes.low[boxes.axis == 0].max() == 2 and boxes.low[boxes.axis == 1].max() == 35


def test_bounds_in_text_are_the_bounds_in_codes() -> None:
    text = WORKLOADS["R"].expressions(1)["expression"][0].as_py()
    bounds = sorted(float(word) for word in text.split() if word.startswith("0."))
    _, boxes = WORKLOADS["R"].boxes(1)
    assert sorted([*boxes.low, *boxes.high]) == double_codes(np.array(bounds)).tolist()


def test_text_matches_now_and_then_and_has_no_arrays() -> None:
    assert len(pairs_by_duckdb(WORKLOADS["text"], 2_000, 2_000)) > 0
    with pytest.raises(TocsinError, match="no array level"):
        WORKLOADS["text"].boxes(1)
    with pytest.raises(TocsinError, match="no array level"):
        WORKLOADS["text"].queries(1)
