"""The benchmark of engines: everything it measures gives the same answers, and a run leaves what it promises."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tocsin.bench.boolean import ADS, shapes
from tocsin.bench.churn import Call, Times, churn, compare
from tocsin.bench.engines import MEASURED, Measurement, measure
from tocsin.bench.hand import by_hand, hand_names
from tocsin.bench.lasting import memory_by_leaves, saved_and_spread
from tocsin.bench.loaded import VARIANTS, engine_names, load
from tocsin.bench.peers import NoPeerError, duckdb_join, join_of, python_loop
from tocsin.bench.plan import BY_HAND, SPARK, Cost, Plan, Step, steps
from tocsin.bench.starting import first_match
from tocsin.bench.targets import targets
from tocsin.bench.timing import Effort, rate
from tocsin.bench.workloads import WORKLOADS
from tocsin.cli.application import app
from tocsin.index import engines
from tocsin.matcher import Matcher
from tocsin.space.space import Space

TINY = Effort(repetitions=2, seconds=0.001, budget=60.0, singles=20)
ROWS = 200


def pairs_of(table: object) -> set[tuple[int, int]]:
    columns = table.to_pydict()  # type: ignore[attr-defined]
    return set(zip(columns["event"], columns["subscription"], strict=True))


@pytest.mark.parametrize("name", ["W0", "R", "zipf", "schemas", "text"])
def test_a_loaded_matcher_answers_as_one_that_was_subscribed_to(name: str) -> None:
    workload = MEASURED[name]
    events = workload.events(ROWS)
    subscribed = Matcher(Space.from_arrow(events.schema))
    subscribed.subscribe_many(workload.expressions(300))
    loaded = load(workload, 300, "adaptive").matcher
    assert pairs_of(loaded.match_batch(events)) == pairs_of(subscribed.match_batch(events))
    assert [loaded[id] for id in (0, 299)] == [subscribed[id] for id in (0, 299)]


@pytest.mark.parametrize("engine", engine_names())
def test_every_engine_answers_alike_on_wide_expressions(engine: str) -> None:
    events = ADS.events(ROWS)
    scan = pairs_of(load(ADS, 200, "scan").matcher.match_batch(events))
    assert pairs_of(load(ADS, 200, engine).matcher.match_batch(events)) == scan
    assert scan


def test_every_engine_there_is_is_measured() -> None:
    assert {*engine_names()} == {*engines(), *VARIANTS}


@pytest.mark.parametrize("name", hand_names())
def test_the_kernels_by_hand_find_what_the_scan_finds(name: str) -> None:
    workload = WORKLOADS[name]
    queries = workload.queries(1_000 if name != "R" else ROWS)
    _, boxes = workload.boxes(5_000)
    owner = np.repeat(np.arange(5_000), np.diff(boxes.offsets))
    planted = (boxes.low == boxes.high) & (owner < queries.rows)  # so that there is something to find
    queries.low[boxes.axis[planted], owner[planted]] = boxes.low[planted]
    found = by_hand(workload, 5_000)(queries)
    scan = load(workload, 5_000, "scan").matcher._state.index.overlap(queries)
    assert set(zip(*map(np.ndarray.tolist, found), strict=True)) == set(zip(*map(np.ndarray.tolist, scan), strict=True))
    assert len(found.rows) and (np.diff(found.rows) >= 0).all()


@pytest.mark.parametrize("name", MEASURED)
def test_what_people_write_instead_finds_the_same(name: str) -> None:
    workload = MEASURED[name]
    expected = load(workload, 300, "adaptive").matcher.match_batch(workload.events(ROWS)).num_rows
    assert python_loop(workload, 300, ROWS).answer(ROWS) == expected
    if name == "boolean":
        with pytest.raises(NoPeerError, match="more than their constants"):
            join_of(workload, 300)
    else:
        assert duckdb_join(workload, 300, ROWS).answer(ROWS) == expected


def test_wide_expressions_have_as_many_conditions_as_asked_for() -> None:
    for count in (10, 40):
        for text in ADS.of(count).expressions(300)["expression"].to_pylist():
            assert len(re.findall(r"\ba\d+ ", text)) == count
    assert len(shapes(10, 40)) == len(set(shapes(10, 40)))


def test_a_measurement_is_of_every_engine_the_hand_and_the_peers() -> None:
    found = list(measure([("W1", 500)], peers=["DuckDB join", "Python loop"], effort=TINY))
    first, *others = engine_names()
    assert [one.engine for one in found] == [first, BY_HAND, *others, "DuckDB join", "Python loop"]
    assert all(one.was_run and one.events > 0 and one.repetitions for one in found)
    ours = found[0]
    assert ours.p50 <= ours.p99 and ours.load > 0 and ours.bytes_each > ours.index_bytes_each > 0 and ours.two_threads
    assert json.loads(json.dumps(ours.to_json()))["workload"] == "W1"


def test_what_would_take_too_long_is_reported_and_not_run() -> None:
    (slow,) = measure([("none", 500)], ["scan"], [], TINY._replace(seconds=0.0, budget=1e-9))
    assert not slow.was_run and "foretold" in slow.note
    small, large = measure([("none", 500), ("none", 1_000)], ["scan"], [], TINY, seconds=0.0)
    assert not small.was_run or "foretold" in large.note


def test_what_targets_need_is_run_however_short_the_time_is() -> None:
    found = list(measure([("none", 500), ("none", 1_000)], ["adaptive", "scan"], [], TINY, seconds=0.0))
    assert all(one.was_run == (one.engine == "adaptive") for one in found if one.size == 1_000)
    assert all(one.was_run or "events/s at least" in one.note for one in found)


def test_a_plan_begins_small_and_leaves_the_unspent_to_the_rest() -> None:
    cells = [("W0", 1_000_000), ("W0", 10_000), ("none", 10_000)]
    todo = steps(cells, ["adaptive", "scan"], ["W0"], ["DuckDB join", SPARK])
    assert [step.size for step in todo if step.engine == "scan"] == [10_000, 10_000, 1_000_000]
    assert [step.engine for step in todo[-3:]] == [SPARK] * 3
    plan = Plan(todo, 100.0)
    first = plan.share(todo[0], 1e9)
    assert 0 < first <= 100 * todo[0].weight / sum(step.weight for step in todo)
    for step in todo[1:-1]:
        plan.share(step, 1e9)
    assert 90 < plan.share(todo[-1], 1e9) <= 100  # nothing was spent
    assert Plan(todo, None).share(todo[0], 7.0) == 7.0


def test_what_was_not_run_foretells_the_next_size_as_well() -> None:
    plan = Plan([], None)
    small, large = (Step("W0", size, "scan", "engine") for size in (10, 1_000))
    assert plan.foretold(small) is None
    plan.learn(small, Cost(10, 1.0, 0.5))
    assert plan.foretold(large) == Cost(1_000, 100.0, 50.0)
    plan.learn(large, Cost(1_000, 100.0, 50.0))
    assert plan.foretold(small) is None


def test_a_rate_counts_what_was_answered() -> None:
    found = rate(lambda rows: 3 * rows, 1_000, TINY)
    assert found.pairs == pytest.approx(3 * found.events)
    assert found.repetitions == 2
    assert rate(lambda rows: rows, 10, TINY._replace(repetitions=9), beside=math.inf).repetitions == 2


def test_churn_keeps_the_number_of_subscriptions_and_counts_changes() -> None:
    for by_expressions in (False, True):
        found = churn(WORKLOADS["W1"], 1_000, rate=500, seconds=0.3, by_expressions=by_expressions)
        assert found.inserted > 0 and found.beside > 0
        assert found.longest_change >= found.longest_change_beside and found.longest_change > 0
        assert found.kept > 0 and found.kept_by_processor > 0 and found.before > 0
    slow = Times([Call(2.0, False), Call(4.0, True)], [1.0, 1.0])
    fast = Times([Call(1.0, False), Call(1.0, False)], [1.0, 0.5])
    alone = compare([(fast, slow)])
    assert alone.kept == pytest.approx(alone.beside / alone.before) == pytest.approx(1 / 3)
    assert alone.kept_by_processor == pytest.approx(0.75)
    disturbed = compare([(fast, slow), (slow, fast), (fast, fast)])
    assert disturbed.kept == pytest.approx(1.0)


def test_saved_matchers_and_memory_by_width_are_measured() -> None:
    found = saved_and_spread(WORKLOADS["W1"], 500, TINY)
    assert found["first_match_s"] > 0 and found["speedup"] > 0
    first = first_match(1)
    assert first["all_s"] >= first["match_s"] > 0 and first["cpu_s"] > 0
    assert [row["leaves"] for row in memory_by_leaves(50, (10, 20))] == [10, 20]


def figure(workload: str, size: int, engine: str, events: float, **more: float) -> Measurement:
    return Measurement(workload, size, engine, "hand" if engine == BY_HAND else "engine", events=events, **more)


def test_targets_are_judged_by_the_figures() -> None:
    index = {"index_bytes_each": 40.0}
    run = [
        figure("W0", 10_000, "adaptive", 200.0, pairs_an_event=0.1, bytes_each=70.0, **index),
        figure(
            "W0",
            1_000_000,
            "adaptive",
            60.0,
            p50=30,
            p99=500,
            bytes_each=60.0,
            index_bytes_each=40.0,
            two_threads=114.0,
        ),
        figure("W0", 1_000_000, BY_HAND, 100.0),
        figure("W0", 1_000_000, "dynamic", 90.0),
    ]
    found = {target.target: target for target in targets(run, {})}
    assert found["W0 at 1,000,000: 0.5 of the kernel by hand"].met
    assert found["W0 at 6,000,000: 0.5 of the kernel by hand"].met is None
    assert found["any workload: within 10 % of the best of our engines"].met is False
    assert found["cost grows sublinearly with subscriptions wherever matches do"].met
    assert found["two cores: 1.7x one core on W0"].met
    assert found["single match on W0 at 1,000,000: p50 at most 40 µs, p99 at most 200 µs"].met is False
    assert found["memory on W0: at most 64 bytes a subscription"].met


def test_a_run_leaves_a_page_json_and_pictures(tmp_path: Path) -> None:
    arguments = ["bench", "engines", "--quick", "--workloads", "W0,text", "--engines", "adaptive,scan", "--no-extras"]
    done = CliRunner().invoke(app, [*arguments, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    whole = json.loads((tmp_path / "benchmarks.json").read_text())
    assert {*whole} == {"about", "measurements", "extras", "targets"}
    assert {*whole["about"]} >= {"command", "date", "seed", "processor", "cores", "revision"}
    assert {one["workload"] for one in whole["measurements"]} == {"W0", "text"}
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| target | measured | met? |" in page and "## W0, 2,000 subscriptions" in page
    for name in ("events", "memory", "w0"):
        assert f"pictures/{name}.png" in page
        assert (tmp_path / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_one_object_a_line() -> None:
    arguments = ["bench", "engines", "--quick", "--workloads", "W0", "--engines", "scan", "--no-peers", "--no-extras"]
    lines = CliRunner().invoke(app, [*arguments, "--json"]).stdout.splitlines()
    assert [json.loads(line).get("engine") for line in lines] == ["scan", BY_HAND, None]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--workloads", "W9", "no workload 'W9'"),
        ("--engines", "magic", "no engine 'magic'"),
        ("--churn", "-4", "no number of subscriptions"),
        ("--sizes", "many", "no number of subscriptions"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(option: str, value: str, said: str) -> None:
    done = CliRunner().invoke(app, ["bench", "engines", "--json", option, value])
    assert done.exit_code == 2 and not done.stdout
    assert said in " ".join(done.output.split())
