"""The measurements of living publications run at a small size and tell what they say they do."""

from __future__ import annotations

from pathlib import Path

from tocsin.bench.moving import moving
from tocsin.bench.subjects import OPERATIONS, WIDTHS, by_matches, figures
from tocsin.bench.subjects_pictures import draw_figures
from tocsin.bench.subjects_report import targets


def test_the_figures_are_measured_and_drawn(tmp_path: Path) -> None:
    measured = list(figures((10, 100), (10,)))
    assert len(measured) == 2 * OPERATIONS
    assert {one["operation"] for one in measured} >= {"insert", "random update", "incremental update", "subscribe"}
    inserted = [one["transitions"] for one in measured if one["operation"] == "insert"]
    assert inserted[0] < inserted[1] < 100  # about a third of the subscriptions
    matches = list(by_matches(200))
    assert len(matches) == len(WIDTHS)
    assert matches[0]["matches"] < matches[-1]["matches"]
    assert [one["matches"] for one in matches] == sorted(one["matches"] for one in matches)
    assert {one.measured for one in targets(measured, [])} == {"not in this run"}
    assert draw_figures(measured, matches, tmp_path / "pictures" / "subjects.png").stat().st_size > 10_000


def test_a_fleet_that_moves_is_told_exactly() -> None:
    found = moving(2_000, 4_000, 8_000, 500)
    assert found["exact"] and found["enters"] > 0 and found["leaves"] > 0 and found["new_fences_enters"] > 0
