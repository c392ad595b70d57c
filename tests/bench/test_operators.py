"""The workloads of the operators paper, their counts, and the bounds beside them."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tocsin.bench import operators, operators_search
from tocsin.bench.operators import Setting
from tocsin.bench.operators_pictures import draw_figures
from tocsin.bench.operators_readings import READINGS, Reading, events_of, every_reading, placed
from tocsin.bench.polygons import measure
from tocsin.cli.application import app
from tocsin.kernels.bench import packing
from tocsin.operators.orders import CODES, new_progress


@pytest.mark.parametrize("setting", [Setting(4, 600, 300), Setting(7, 400, 100, 9, 1.0), Setting(8, 500, 90, 5, 1.2)])
@pytest.mark.parametrize("reading", ["spread", "even"])
def test_counts_fall_from_naive_to_adaptive_and_stay_above_the_bound(setting: Setting, reading: str) -> None:
    found = operators.run(setting, 20, reading=READINGS[reading])
    assert found["bound"] <= found["hindsight"] <= found["adaptive"] <= found["sub-order"] <= found["naive"]
    assert found["adaptive"] <= found["sequential"] <= found["naive"]
    assert found["learning"] <= found["naive"]
    assert found["unforeseen"] <= found["estimate"]
    assert found["unforeseen"] <= found["adaptive"] * 1.05


def test_a_workload_is_as_the_paper_describes_it() -> None:
    drawn = operators.draw(Setting(6, 3000, 500, 5, 1.0), 2)
    lengths = np.diff(drawn.offsets)
    assert set(lengths.tolist()) == {3, 4, 5}
    assert all(
        len(set(drawn.members[a:b].tolist())) == b - a
        for a, b in zip(drawn.offsets[:-1].tolist(), drawn.offsets[1:].tolist(), strict=True)
    )
    popularity = drawn.popularity
    assert popularity[0] > 3 * popularity[20] > 3 * popularity[300]


@pytest.mark.parametrize(("truths", "background"), [each for each in every_reading() if each[0] != "anything"])
def test_of_every_reading_as_many_subscriptions_match_as_the_paper_says(truths: Any, background: float) -> None:
    drawn = operators.draw(Setting(4, 3000, 500), 2)
    events = events_of(drawn, Reading(truths, background), np.random.default_rng(1))
    happened = np.stack([events.draw() for _ in range(600)])
    assert 0.0005 < np.mean([drawn.matched(holds) for holds in happened]) < 0.008
    assert np.abs(happened.mean(axis=0) - events.selectivity).max() < 0.15


def test_predicates_stand_as_a_reading_says() -> None:
    drawn = operators.draw(Setting(6, 300, 50, 5, 1.0), 2)
    for entries, sign in (("popular", -1), ("rare", 1)):
        found = placed(drawn, entries)  # type: ignore[arg-type]
        for a, b in zip(drawn.offsets[:-1].tolist(), drawn.offsets[1:].tolist(), strict=True):
            assert sorted(found.members[a:b]) == sorted(drawn.members[a:b])
            assert (np.diff(sign * drawn.popularity[found.members[a:b]]) >= 0).all()


def test_a_price_is_what_an_order_without_foresight_pays() -> None:
    """Over many events an order evaluates as many predicates as the failing ones it met sum up to at their prices."""
    drawn = operators.draw(Setting(8, 300, 60, 5, 1.0), 3)
    events = events_of(drawn, READINGS["spread"], np.random.default_rng(3))
    kill, cost = 1 - events.selectivity, np.ones(60)
    graph = operators.graph_of(drawn, np.arange(300))
    progress = new_progress(graph)
    made, paid = [], []
    for _ in range(1500):
        holds = events.draw()
        made.append(operators.evaluated(graph, progress, CODES["adaptive"], holds, kill, cost))
        done = graph.task_call[progress.task_done]
        paid.append(float((1 / kill[done[~holds[done]]]).sum()))
    assert abs(np.mean(made) / np.mean(paid) - 1) < 0.02


def test_every_reading_is_compared_with_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Setting(6, 300, 200, 5, 1.0)
    monkeypatch.setitem(operators.PRINTED, (6, 300, 200, 5, 1.0), {"naive": 100, "sequential": 50})
    rows = operators_search.search(2, small=[small], large=[])
    assert len(rows) == len(
        {tuple(row[name] for name in ("truths", "background", "entries", "stops", "chains")) for row in rows}
    )
    assert [row["worst"] for row in rows] == sorted(row["worst"] for row in rows)
    row = rows[0]
    counts, away = row["counts"]["figure 6, longest 5"], row["deviations"]["figure 6, longest 5"]
    assert away["sequential"] == pytest.approx(counts["sequential"] / 50 - 1, abs=2e-3)


def test_what_cannot_be_hit_is_below_what_greedy_hits_and_right_for_counted_sets() -> None:
    """Of few predicates and subscriptions all sets are counted over many draws; their mean is below the bound."""
    setting = Setting(4, 8, 16)
    sets = np.zeros((560, 16), bool)
    sets[np.repeat(np.arange(560), 3), np.array(list(itertools.combinations(range(16), 3))).ravel()] = True
    counted = []
    for seed in range(40):
        drawn = operators.draw(setting, seed)
        hit = np.logical_or.reduceat(sets[:, drawn.members], drawn.offsets[:-1], axis=1).all(axis=1)
        counted.append(hit.sum() * np.exp(-operators_search.hitting_exponent(setting, 3, seed)))
    assert 0 < np.mean(counted) <= 1
    larger = Setting(4, 2000, 1000)
    drawn = operators.draw(larger, 1)
    graph = operators.graph_of(drawn, np.arange(2000))
    none, sure, cost = np.zeros(1000, bool), np.ones(1000), np.ones(1000)
    greedy = operators.evaluated(graph, new_progress(graph), CODES["adaptive"], none, sure, cost)
    assert 0.6 * greedy < operators_search.unreachable(larger) < greedy


def test_ordering_is_timed_beside_operators_that_take_their_time() -> None:
    found = operators.overhead(Setting(8, 100, 60, alpha=1.0), events=2, spin=5e-4)
    assert found["adaptive"] < found["naive"]
    assert (found["computed"]["events"], found["timed"]["events"]) == (2, 1)
    saved = (found["naive"] - found["adaptive"]) * 5e-4
    assert found["computed"]["saved_seconds"] == pytest.approx(saved, abs=1e-5)


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=4, unique=True), max_size=9),
    st.lists(st.floats(0.1, 9.0), min_size=7, max_size=7),
    st.lists(st.floats(0.0, 9.0), min_size=9, max_size=9),
    st.integers(1, 60),
)
@settings(max_examples=150, deadline=None)
def test_what_is_proven_is_never_above_the_cheapest_sets(
    groups: list[list[int]], prices: list[float], begun: list[float], rounds: int
) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    members = np.array([each for group in groups for each in group], np.int32)
    price = np.array(prices)
    covers = (
        sum(prices[each] for each in chosen)
        for size in range(8)
        for chosen in itertools.combinations(range(7), size)
        if all(set(group) & set(chosen) for group in groups if group)
    )
    cheapest = min(covers)
    for y in (packing.first_prices(offsets, members, price), np.array(begun)[: len(groups)]):
        assert packing.lower_bound(offsets, members, price, y, cheapest, rounds) <= cheapest + 1e-9


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), min_size=1, max_size=6),
    st.lists(st.floats(0.05, 0.95), min_size=5, max_size=5),
)
@settings(max_examples=25, deadline=None)
def test_no_order_without_foresight_beats_the_bound(groups: list[list[int]], fails: list[float]) -> None:
    """The best of all orders, found by going through every state of knowledge, against the bound's mean."""

    @functools.cache
    def best(known: tuple[bool | None, ...]) -> float:
        open_groups = [group for group in groups if not any(known[each] is False for each in group)]
        wanted = {each for group in open_groups for each in group if known[each] is None}
        return min((1.0 + expected(known, each) for each in wanted), default=0.0)

    def expected(known: tuple[bool | None, ...], each: int) -> float:
        after = {holds: best((*known[:each], holds, *known[each + 1 :])) for holds in (False, True)}
        return fails[each] * after[False] + (1.0 - fails[each]) * after[True]

    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    drawn = operators.Drawn(offsets, np.array([each for group in groups for each in group], np.int32), 5)
    graph = operators.graph_of(drawn, np.arange(len(groups)))
    kill, progress = np.array(fails), new_progress(graph)
    mean = 0.0
    for outcome in itertools.product((False, True), repeat=5):
        holds = np.array(outcome)
        mean += np.where(holds, 1.0 - kill, kill).prod() * operators.unforeseen(drawn, graph, progress, holds, kill)[0]
    assert mean <= best((None,) * 5) + 1e-9


def test_the_bound_is_the_optimum_of_small_cases() -> None:
    offsets, members = np.array([0, 2, 4, 5], np.int64), np.array([0, 1, 1, 2, 3], np.int32)
    drawn = operators.Drawn(offsets, members, 4)
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
    monkeypatch.setattr(operators, "TIMED", [Setting(6, 60, 40, 5, 1.0)])
    done = CliRunner().invoke(app, ["bench", "operators", "--timed", "--polygons", "50", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "polygons" in done.output
    assert (tmp_path / "operators-timed.json").stat().st_size > 0
    refused = CliRunner().invoke(app, ["bench", "operators", "--reading", "best"])
    assert refused.exit_code == 2
    rows = [operators.run(setting, 2) for setting in small]
    draw_figures(rows, tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 0
