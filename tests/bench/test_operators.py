"""The workloads of the operators paper, their counts, and the bounds beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tocsin.bench import operators
from tocsin.bench.operators import Setting
from tocsin.bench.operators_pictures import draw_figures
from tocsin.bench.polygons import measure
from tocsin.cli.application import app


@pytest.mark.parametrize("setting", [Setting(4, 600, 300), Setting(7, 400, 100, 9, 1.0), Setting(8, 500, 90, 5, 1.2)])
@pytest.mark.parametrize("equal", [False, True])
def test_counts_fall_from_naive_to_adaptive_and_stay_above_the_bound(setting: Setting, equal: bool) -> None:
    found = operators.run(setting, 20, equal=equal)
    assert found["bound"] <= found["hindsight"] <= found["adaptive"] <= found["sub-order"] <= found["naive"]
    assert found["adaptive"] <= found["sequential"] <= found["naive"]
    assert found["learning"] <= found["naive"]


def test_a_workload_is_as_the_paper_describes_it() -> None:
    drawn = operators.draw(Setting(6, 3000, 500, 5, 1.0), 2)
    lengths = np.diff(drawn.offsets)
    assert set(lengths.tolist()) == {3, 4, 5}
    assert all(
        len(set(drawn.members[a:b].tolist())) == b - a
        for a, b in zip(drawn.offsets[:-1].tolist(), drawn.offsets[1:].tolist(), strict=True)
    )
    popularity = np.bincount(drawn.members, minlength=500)
    assert popularity[0] > 3 * popularity[20] > 3 * popularity[300]
    rng = np.random.default_rng(1)
    matched = []
    for _ in range(200):
        holds = rng.random(500) < drawn.selectivity
        matched.append(np.logical_and.reduceat(holds[drawn.members], drawn.offsets[:-1]).mean())
    assert 0.0005 < np.mean(matched) < 0.008


def test_the_bound_is_the_optimum_of_small_cases() -> None:
    offsets, members = np.array([0, 2, 4, 5], np.int64), np.array([0, 1, 1, 2, 3], np.int32)
    drawn = operators.Drawn(offsets, members, np.full(4, 0.5))
    assert operators.least(drawn, np.array([False, False, False, False])) == 2
    assert operators.least(drawn, np.array([True, True, True, True])) == 4
    assert operators.least(drawn, np.array([True, False, True, True])) == 2


def test_polygons_are_measured_against_testing_all_of_them() -> None:
    found = measure(300, 1000, check=100)
    assert found.events_per_second > 0
    assert found.checked == 100


def test_the_command_writes_its_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [Setting(4, 300, 200), Setting(6, 200, 300, 5, 1.0)]
    monkeypatch.setattr(operators, "FIGURES", small)
    done = CliRunner().invoke(app, ["bench", "operators", "--events", "2", "--figure", "4", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "sub-order" in done.output
    assert (tmp_path / "operators.json").stat().st_size > 0
    rows = [operators.run(setting, 2) for setting in small]
    draw_figures(rows, tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 0
