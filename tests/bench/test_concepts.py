"""The benchmark of concepts: what it compares agrees with a definition, and a run leaves what it promises."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tocsin.bench import concepts
from tocsin.bench.concept_strategies import MOST_COPIES, STRATEGIES, strategy
from tocsin.bench.concept_trees import RANGE, TREES, ConceptWorkload, complete_tree
from tocsin.bench.concepts import DisagreementError, Measured, cells, measure, targets
from tocsin.bench.timing import Effort
from tocsin.cli.application import app
from tocsin.errors import MemoryLimitError
from tocsin.index import create

TINY = Effort(repetitions=2, seconds=0.001, budget=60.0, singles=20)


def by_definition(workload: ConceptWorkload, size: int, rows: int) -> list[tuple[int, int]]:
    """Return the pairs: each concept of the event is that of the subscription or has it among its ancestors."""
    parent = workload.tree.parent.tolist()
    drawn, events = workload.draw(size), workload.queries(rows).low.T.tolist()
    ancestors = []
    for concept in range(len(parent)):
        path = {concept}
        while parent[concept] >= 0:
            concept = parent[concept]
            path.add(concept)
        ancestors.append(path)
    wanted = list(zip(drawn.concepts.tolist(), drawn.low.tolist(), drawn.high.tolist(), strict=True))
    return [
        (row, subscription)
        for row, event in enumerate(events)
        for subscription, (below, low, high) in enumerate(wanted)
        if all(concept in ancestors[value] for concept, value in zip(below, event[:TREES], strict=True))
        and all(a <= value <= b for a, b, value in zip(low, high, event[TREES:], strict=True))
    ]


@pytest.mark.parametrize(("height", "broad"), [(0, 0.05), (1, 0.02), (2, 0.05), (3, 0.1), (4, 0.01)])
def test_every_way_finds_what_the_definition_says(height: int, broad: float) -> None:
    workload = ConceptWorkload(height, broad)
    true = by_definition(workload, 400, 60)
    assert true
    queries = workload.queries(60)
    for name in STRATEGIES:
        pairs = strategy(name, workload, 400).overlap(queries)
        assert sorted(zip(*map(np.ndarray.tolist, pairs), strict=True)) == true, name
    for name in concepts.ENGINES:
        index = create(name)
        index.insert(*workload.boxes(400))
        assert sorted(zip(*map(np.ndarray.tolist, index.overlap(queries)), strict=True)) == true, name


def test_the_workload_has_as_many_matches_at_every_height_and_begins_alike() -> None:
    counts = []
    for height in (1, 3, 5):
        workload = ConceptWorkload(height)
        assert 0 < workload.width <= 1 / 3
        first, more = workload.draw(50), workload.draw(80)
        np.testing.assert_array_equal(first.concepts, more.concepts[:50])
        assert first.low.min() >= 0 and first.high.max() < RANGE
        index = create("bitmap")
        index.insert(*workload.boxes(20_000))
        counts.append(len(index.overlap(workload.queries(4_000)).rows))
    assert max(counts) < 1.5 * min(counts)


def test_a_complete_tree_is_numbered_in_pre_order() -> None:
    tree = complete_tree(2, width=3)
    assert tree.size == 13
    for concept in range(1, 13):
        assert tree.parent[concept] < concept <= tree.high[concept] <= tree.high[tree.parent[concept]]
    assert sorted(tree.below.tolist()) == [1] * 9 + [4] * 3 + [13]


def test_expanding_subscriptions_is_given_up_before_memory_is() -> None:
    with pytest.raises(MemoryLimitError, match="of each subscription"):
        strategy("expand subscriptions", ConceptWorkload(5), MOST_COPIES // 400)
    [one] = measure([(5, MOST_COPIES // 400, 0.0, ("expand subscriptions",))], TINY)
    assert one.micros is None and "given up" in one.note


def test_ways_that_disagree_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    right = concepts.measured

    def wrong(blank: Measured, *rest: object) -> tuple[Measured, int]:
        one, pairs = right(blank, *rest)  # type: ignore[arg-type]
        return one, pairs + (blank.way == "walk")

    monkeypatch.setattr(concepts, "measured", wrong)
    with pytest.raises(DisagreementError, match="'walk'"):
        list(measure([(1, 500, 0.0, ("bitmap", "walk"))], TINY))


def test_targets_are_judged_or_left_open() -> None:
    assert all(target.met is None for target in targets([]))
    run = [Measured("bitmap", height, 10_000, micros=1.0, bytes=2_000_000) for height in range(1, 6)]
    run += [Measured("walk", 5, 10_000, micros=69.0), Measured("adaptive", 5, 10_000, micros=0.5)]
    flat, walked, memory, at_height_5, at_height_1, *_ = targets(run)
    assert (flat.met, walked.met, memory.met, at_height_5.met, at_height_1.met) == (True, False, True, True, None)


def test_the_command_writes_its_page_pictures_and_figures(tmp_path: Path) -> None:
    arguments = ["bench", "concepts", "--quick", "--subscriptions", "500", "--output", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "concepts.json").read_text())
    assert {one["way"] for one in kept["measurements"]} == {*concepts.WAYS}
    assert len(kept["measurements"]) == sum(len(cell[3]) for cell in cells(500))
    text = (tmp_path / "concepts-benchmark.md").read_text()
    for name in ("concepts-figure-7.png", "concepts-figure-8.png", "concepts-large.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")
        assert f"(pictures/{name})" in text
