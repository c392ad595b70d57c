"""The benchmark of transitions on a small fleet: what it measures is what the library finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tocsin.bench.machine import describe
from tocsin.bench.transitions import draw_transitions, measure_transitions, page


@pytest.mark.slow
def test_every_transition_of_a_small_fleet_is_the_library_s(spark: SparkSession, tmp_path: Path) -> None:
    figures = measure_transitions(spark, 6_000, 4_000, 1_000, 3, 2)
    assert figures.fleet.exact
    assert figures.smaller.exact
    assert figures.fleet.transitions > figures.smaller.transitions > 0
    assert [len(one.rates) for one in (figures.fleet, figures.smaller)] == [3, 3]
    draw_transitions(figures, tmp_path / "pictures" / "transitions.png")
    assert (tmp_path / "pictures" / "transitions.png").stat().st_size > 1_000
    assert "6,000 trucks" in "\n".join(page(describe("tocsin bench transitions", 1), figures, "x.png"))
