"""The drift experiments run through, and say what became of each strategy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tocsin.bench.drift import LAST, STRATEGIES, Unmaintained, experiment, summary
from tocsin.bench.workloads import DRIFTS
from tocsin.cli.application import app
from tocsin.index import create


@pytest.mark.parametrize("name", DRIFTS)
def test_every_strategy_goes_through_all_steps(name: str) -> None:
    found = experiment(name, 1_000)
    assert found["replaced"][0] == 0 and found["replaced"][-1] == 100
    assert {*found["events"]} == {*STRATEGIES}
    assert all(len(rates) == len(found["replaced"]) and min(rates) > 0 for rates in found["events"].values())
    assert [row["strategy"] for row in summary(found)] == [*STRATEGIES]


def test_a_strategy_that_takes_too_long_is_asked_less_often() -> None:
    found = experiment("skew", 1_000, ("dynamic", "dynamic (no change)"), budget=1e-9)
    assert all(len(rates) == len(found["replaced"]) for rates in found["matching"].values())
    kept, unchanged = summary(found)
    assert len(found["anew"]["dynamic"]) == LAST and kept["recovered"] > 0
    assert unchanged["anew"] is None and unchanged["recovered"] is None


def test_without_maintenance_answers_stay_right_and_tables_stay_as_they_were() -> None:
    before, after = DRIFTS["schema"]
    index, scan = Unmaintained(margin_max=0.1, repair_min=100, benefit_min=50, spare_min=1), create("scan")
    numbers, old = before.boxes(3_000)
    _, new = after.boxes(3_000)
    for each in (index, scan):
        each.insert(numbers, old)
    tables = index.stats()["tables"].keys()
    assert tables
    index.frozen = True
    for each in (index, scan):
        each.remove(numbers[:2_900])
        each.insert(numbers[:2_900], new.take(np.arange(2_900)))
    assert index.stats()["tables"].keys() == tables
    queries = after.queries(500)
    found, expected = (set(zip(*map(np.ndarray.tolist, each.overlap(queries)), strict=True)) for each in (index, scan))
    assert found == expected


def test_the_command_draws_and_keeps_both_experiments(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "drift", "--subscriptions", "1000", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "drift.json").read_text())
    assert [one["experiment"] for one in kept["experiments"]] == ["schema", "skew"]
    assert (tmp_path / "pictures" / "drift.png").read_bytes().startswith(b"\x89PNG")
