"""Operators that fail, hang or lie harm only their own predicates, are counted, and no one waits beyond the limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tests.operators import hostile
from tocsin.errors import OperatorError, OperatorFailedError
from tocsin.operators.isolation import MOST_LEFT

SPACE = tocsin.Space({"x": tocsin.Number()})


@pytest.fixture(autouse=True)
def _release() -> Iterator[None]:
    hostile.released.clear()
    yield
    hostile.released.set()


def matcher_of(operator: Any, call: str) -> tocsin.Matcher:
    matcher = tocsin.Matcher(SPACE, operators=[operator])
    matcher.subscribe("holds", call)
    matcher.subscribe("fails", f"NOT {call}")
    matcher.subscribe("either", f"{call} OR x < 0")
    matcher.subscribe("other", "x < 5")
    return matcher


@pytest.mark.parametrize(
    ("operator", "call", "kind"),
    [
        (hostile.raises, "raises()", "raised"),
        (hostile.raises_mutely, "raises_mutely()", "raised"),
        (hostile.exits, "exits()", "raised"),
        (hostile.exits_its_thread, "exits_its_thread()", "raised"),
        (hostile.exits_its_loop, "exits_its_loop()", "raised"),
        (hostile.interrupts_its_loop, "interrupts_its_loop()", "raised"),
        (hostile.is_cancelled, "is_cancelled()", "raised"),
        (hostile.is_cancelled_here, "is_cancelled_here()", "raised"),
        (hostile.will_not_be_cancelled, "will_not_be_cancelled()", "too long"),
        (hostile.blocks_its_loop, "blocks_its_loop()", "too long"),
        (hostile.lies, "lies(:n)", "wrong type"),
        (hostile.pretends, "pretends()", "wrong type"),
        (hostile.sleeps, "sleeps()", "too long"),
        (hostile.sleeps_kindly, "sleeps_kindly()", "too long"),
        (hostile.loops_forever, "loops_forever()", "too long"),
        (hostile.dies, "dies()", "raised"),
        (hostile.sleeps_in_bulk, "sleeps_in_bulk(x, 1)", "too long"),
        (hostile.lies_in_bulk, "lies_in_bulk(x, 1)", "wrong type"),
        (hostile.pretends_in_bulk, "pretends_in_bulk(x, 1)", "wrong type"),
    ],
)
def test_a_failure_makes_neither_a_call_nor_its_negation_hold(operator: Any, call: str, kind: str) -> None:
    matcher = matcher_of(operator, call)
    expected = ["holds", "either", "other"]
    assert matcher.match({"x": 2}) == expected
    assert matcher.match({"x": -1}) == ["either", "other"]
    used = matcher.stats()["operators"]["used"][operator.name]
    assert used["failures"] == {kind: 1}
    assert used["last_failure"].startswith(kind)
    assert matcher.match({"x": 2}) == expected, "it works on after a failure"


def test_a_number_beyond_every_double_is_compared_as_it_is() -> None:
    matcher = tocsin.Matcher(SPACE, operators=[hostile.counts_too_far])
    matcher.subscribe("many", "counts_too_far(:n) AND :n > 2")
    matcher.subscribe("few", "counts_too_far(:n) AND :n <= 3")
    assert matcher.match({"x": -1}) == ["many"]
    assert matcher.match({"x": 1}) == ["many", "few"]
    assert "1000" in str(matcher.explain({"x": -1}, "many"))


def test_values_that_cannot_be_shown_or_compared_harm_nothing() -> None:
    matcher = tocsin.Matcher(SPACE, operators=[hostile.returns_oddities])
    matcher.subscribe("any", "returns_oddities(:n)")
    matcher.subscribe("seven", "returns_oddities(:n) AND :n = 7")
    matcher.subscribe("many", "returns_oddities(:n) AND :n > 3 AND :n * 2 > 7")
    matcher.subscribe("twice", "returns_oddities(:n) AND returns_oddities(:n) AND :n <> x")
    assert matcher.match({"x": 0}) == ["any"]
    assert matcher.match({"x": 1}) == ["any", "seven", "many", "twice"]
    assert matcher.match({"x": 2}) == ["any", "many", "twice"]
    assert "any" in matcher.match({"x": 3})
    for x in range(4):
        for id in ("any", "seven", "many", "twice"):
            assert str(matcher.explain({"x": x}, id))
    assert "an Unspeakable that cannot be shown" in str(matcher.explain({"x": 0}, "any"))
    assert "7" in str(matcher.explain({"x": 1}, "seven"))


@pytest.mark.parametrize("operator", [hostile.has_no_model, hostile.has_no_model_either])
def test_a_resource_that_cannot_be_loaded_is_a_failure_of_its_calls(operator: Any) -> None:
    matcher = matcher_of(operator, f"{operator.name}()")
    assert matcher.match({"x": 2}) == ["other"]
    assert matcher.match_batch(pa.table({"x": [1.0, 2.0]})).num_rows == 2
    used = matcher.stats()["operators"]["used"][operator.name]
    assert used["failures"] == {"raised": 3}
    assert used["last_failure"] == "raised: OSError: no such model"


def test_a_coroutine_that_blocks_its_loop_takes_nothing_from_other_operators() -> None:
    matcher = tocsin.Matcher(SPACE, operators=[hostile.blocks_its_loop, hostile.exits_its_loop])
    matcher.subscribe("blocks", "blocks_its_loop() OR x < -10")
    matcher.subscribe("other", "exits_its_loop() OR x < -20")
    for _ in range(MOST_LEFT):
        assert matcher.match({"x": -1}) == []
    assert matcher.match({"x": 5}) == ["other"], "four are left behind"
    used = matcher.stats()["operators"]["used"]["blocks_its_loop"]
    assert used["failures"] == {"too long": MOST_LEFT, "suspended": 1}
    hostile.released.set()
    until = time.monotonic() + 60
    while matcher.match({"x": 5}) != ["blocks", "other"]:
        assert time.monotonic() < until
        hostile.slow(0.05)


def test_a_bulk_operator_needs_no_parameters_of_its_own() -> None:
    @tocsin.operator(reads=["x"], form="bulk")
    def positive(asked: Any) -> Any:
        return asked.columns[0][asked.rows] > 0

    matcher = tocsin.Matcher(SPACE, operators=[positive])
    matcher.subscribe("above", "positive()")
    assert (matcher.match({"x": 1}), matcher.match({"x": -1})) == (["above"], [])


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (None, "wrong type: () results for 2 pairs"),
        ([1.0], "wrong type: (1,) results for 2 pairs"),
        ([[1.0, 2.0]], "wrong type: (1, 2) results for 2 pairs"),
        ([1.0, [2.0]], "wrong type: setting an array element with a sequence"),
        (["1", "2"], "wrong type: <U1 is no number"),
        ([1.5, 2.0], "wrong type: some results are no whole numbers"),
        ([1, 2**53 + 1], "wrong type: some results are beyond 2 ** 53"),
        ([1j, 2], "wrong type: complex128 is no number"),
        ([True, False], "wrong type: bool is no number"),
        ([np.datetime64("2020-01-01")] * 2, "wrong type: datetime64[D] is no number"),
        ([hostile.Unspeakable(), 1], "wrong type: some results are no numbers"),
        ([None, -(2**70)], "wrong type: some results are beyond 2 ** 53"),
    ],
)
def test_a_bulk_operator_that_lies_is_told_how(given: Any, failure: str) -> None:
    @tocsin.operator(form="bulk", parameters=("x",), outputs={"n": int})
    def bulky(asked: Any) -> Any:
        return given if (asked.columns[0] < 0).any() else [4, None][: len(asked.rows)]

    matcher = tocsin.Matcher(SPACE, operators=[bulky])
    matcher.subscribe("four", "bulky(x, :n) AND :n = 4")
    matcher.subscribe("none", "NOT bulky(x, :n)")
    good = matcher.match_batch(pa.table({"x": [1.0, 2.0]})).to_pylist()
    assert good == [{"event": 0, "subscription": "four"}, {"event": 1, "subscription": "none"}]
    assert matcher.match_batch(pa.table({"x": [-1.0, 2.0]})).num_rows == 0
    assert matcher.stats()["operators"]["used"]["bulky"]["last_failure"].startswith(failure)


def test_what_is_yielded_is_a_list_and_counts_against_the_limit() -> None:
    @tocsin.operator(reads=["x"], outputs=["n"], limit=1.0)
    def counts(x: float) -> Iterator[int]:
        yield from range(int(x))
        if x < 0:
            hostile.released.wait(30)

    @tocsin.operator(reads=["x"], form="vector", limit=1.0)
    def each_in_turn(x: list[float]) -> Iterator[bool]:
        yield from (each > 1 for each in x)
        if min(x) < 0:
            hostile.released.wait(30)

    matcher = tocsin.Matcher(SPACE, operators=[counts, each_in_turn])
    matcher.subscribe("three", "counts(:n) AND :n = 3")
    matcher.subscribe("more", "each_in_turn()")
    matcher.subscribe("neither", "NOT counts(:n) AND NOT each_in_turn()")
    assert matcher.match({"x": 5}) == ["three", "more"]
    assert matcher.match({"x": 0}) == ["neither"]
    assert matcher.match({"x": -1}) == []
    used = matcher.stats()["operators"]["used"]
    assert {"too long": 1} in (used["counts"]["failures"], used["each_in_turn"]["failures"])


def test_what_is_async_but_not_declared_so_is_a_wrong_type() -> None:
    async def later() -> int:
        return 3

    hasty = tocsin.operator(lambda x: later(), name="hasty", reads=["x"], outputs=["n"])
    matcher = tocsin.Matcher(SPACE, operators=[hasty])
    matcher.subscribe("a", "hasty(:n)")
    with pytest.warns(RuntimeWarning, match="never awaited"):
        assert matcher.match({"x": 1}) == []
    assert "is nothing yet" in matcher.stats()["operators"]["used"]["hasty"]["last_failure"]
    with pytest.raises(OperatorError, match="it does not yield"):

        @tocsin.operator(reads=["x"])
        async def yields(x: float) -> Any:
            yield x

    with pytest.raises(OperatorError, match="of type int or float"):
        tocsin.operator(lambda asked: None, name="bulky", form="bulk", parameters=("x",), outputs={"n": str})


def test_a_failure_that_is_an_error_of_the_event_is_told_with_its_row() -> None:
    matcher = matcher_of(hostile.insists, "insists()")
    with pytest.raises(OperatorFailedError, match="operator insists: raised: ValueError: negative"):
        matcher.match({"x": -1})
    events = pa.table({"x": [2.0, -1.0, 0.5, -2.0]})
    with pytest.raises(OperatorFailedError, match="row 1, operator insists"):
        matcher.match_batch(events)
    problems: list[tocsin.Problem] = []
    found = matcher.match_batch(events, problems=problems)
    assert [problem.row for problem in problems] == [1, 3]
    assert set(found["event"].to_pylist()) == {0, 2}, "an event that is an error matches nothing"


def test_what_hangs_in_threads_is_suspended_and_comes_back() -> None:
    matcher = matcher_of(hostile.sleeps, "sleeps()")
    for _ in range(MOST_LEFT):
        assert matcher.match({"x": -1}) == ["either", "other"]
    begun = time.monotonic()
    assert matcher.match({"x": -1}) == ["either", "other"]
    waited = time.monotonic() - begun
    used = matcher.stats()["operators"]["used"]["sleeps"]
    assert used["failures"] == {"too long": MOST_LEFT, "suspended": 1}, waited
    hostile.released.set()
    until = time.monotonic() + 60
    while matcher.match({"x": 2}) != ["holds", "either", "other"]:
        assert time.monotonic() < until
        hostile.slow(0.05)


def test_a_bulk_operator_that_hangs_holds_up_no_other_and_is_tried_again() -> None:
    attempts: list[int] = []

    def counted(asked: Any) -> Any:
        attempts.append(len(asked.rows))
        return hostile.sleeps_in_bulk.function(asked)

    patient = tocsin.operator(
        counted, name="counted", form="bulk", parameters=("x", "least"), limit=1.0, retries=1, on_failure="error"
    )
    matcher = matcher_of(patient, "counted(x, 1)")
    assert matcher.match({"x": 2}) == ["holds", "either", "other"]
    attempts.clear()
    with pytest.raises(OperatorFailedError, match="operator counted: too long"):
        matcher.match({"x": -1})
    assert len(attempts) == 2
    hostile.released.set()
    assert matcher.match({"x": -1}) == ["fails", "either", "other"]


def test_a_join_over_a_bulk_call_that_fails_is_counted() -> None:
    @tocsin.operator(form="bulk", parameters=("x", "plus"), outputs=["y"])
    def raised_by(asked: Any) -> Any:
        if (asked.columns[0] < 0).any():
            raise ValueError("negative")
        return asked.columns[0][asked.rows] + np.array(asked.prepared.values, float)[asked.which, 0]

    matcher = tocsin.Matcher(SPACE, operators=[raised_by])
    matcher.subscribe("same", "raised_by(x, 1, :a) AND raised_by(x, 2, :b) AND :a + 1 = :b")
    assert matcher.match({"x": 2}) == ["same"]
    assert matcher.match({"x": -1}) == []
    assert matcher.stats()["operators"]["used"]["raised_by"]["failures"]["raised"] >= 1


def test_a_hanging_call_of_a_batch_takes_nothing_from_the_other_events() -> None:
    matcher = matcher_of(hostile.loops_forever, "loops_forever()")
    found = matcher.match_batch(pa.table({"x": [2.0, -1.0, 3.0, 0.0]}))
    pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert {(0, "holds"), (2, "holds"), (3, "fails")} <= pairs
    assert not {(1, "holds"), (1, "fails")} & pairs


def test_a_call_is_tried_again_as_often_as_it_may_be() -> None:
    attempts: list[float] = []

    @tocsin.operator(reads=["x"], retries=2)
    def flaky(x: float) -> bool:
        attempts.append(x)
        if len(attempts) < 3:
            raise ConnectionError
        return True

    matcher = matcher_of(flaky, "flaky()")
    assert "holds" in matcher.match({"x": 1})
    assert len(attempts) == 3
    assert matcher.stats()["operators"]["used"]["flaky"]["failures"] == {}


def test_coroutines_of_a_batch_run_at_the_same_time() -> None:
    import asyncio

    running: list[int] = [0, 0]

    @tocsin.operator(reads=["x"])
    async def waits(x: float) -> bool:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.02)
        running[0] -= 1
        return x > 0

    matcher = tocsin.Matcher(SPACE, operators=[waits])
    matcher.subscribe("a", "waits()")
    assert matcher.match_batch(pa.table({"x": [1.0, -1.0] * 10}))["event"].to_pylist() == list(range(0, 20, 2))
    assert running[1] == 20


def test_a_vector_operator_sees_all_events_at_once_and_its_failure_is_theirs() -> None:
    seen: list[int] = []

    @tocsin.operator(reads=["x"], form="vector", outputs={"n": int})
    def doubled(x: list[float], plus: int) -> list[int]:
        seen.append(len(x))
        return [int(2 * each) + plus for each in x] if 13.0 not in x else [1]

    matcher = tocsin.Matcher(SPACE, operators=[doubled])
    matcher.subscribe("big", "doubled(1, :n) AND :n > 10")
    matcher.subscribe("same", "doubled(1, :n) AND :n = 3")
    found = matcher.match_batch(pa.table({"x": [1.0, 7.0, None]}))
    assert found.to_pylist() == [{"event": 0, "subscription": "same"}, {"event": 1, "subscription": "big"}]
    assert seen == [2]
    assert matcher.match_batch(pa.table({"x": [1.0, 13.0]})).num_rows == 0
    assert matcher.stats()["operators"]["used"]["doubled"]["failures"] == {"wrong type": 2}


def test_results_are_remembered_for_one_version_only() -> None:
    made: list[str] = []

    def versioned(version: str) -> Any:
        def answer(x: float) -> bool:
            made.append(version)
            return version == "2"

        return tocsin.operator(answer, reads=["x"], remember=10, version=version)

    first = tocsin.Matcher(SPACE, operators=[versioned("1")])
    first.subscribe("a", "answer()")
    assert (first.match({"x": 1}), first.match({"x": 1}), made) == ([], [], ["1"])
    second = tocsin.Matcher(SPACE, operators=[versioned("2")])
    second.subscribe("a", "answer()")
    assert (second.match({"x": 1}), made) == (["a"], ["1", "2"])


def test_a_saved_matcher_wants_its_operators_in_their_version(tmp_path: Any) -> None:
    matcher = matcher_of(hostile.raises, "raises()")
    matcher.save(tmp_path)
    assert tocsin.Matcher.load(tmp_path, operators=[hostile.raises]).match({"x": 2}) == ["holds", "either", "other"]
    with pytest.raises(OperatorError, match="raises, which is not there"):
        tocsin.Matcher.load(tmp_path)
    newer = tocsin.operator(lambda x: True, name="raises", reads=["x"], version="2")
    with pytest.raises(OperatorError, match="version 2, but subscriptions were saved with 1"):
        tocsin.Matcher.load(tmp_path, operators=[newer])
