"""Readers beside a writer: every answer is the state before or after each change, never one in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tocsin
from tocsin import Matcher, Number, Space, Text
from tocsin.space import books

READERS = 3


def beside(matcher: Matcher, write: Callable[[], None], read: Callable[[], None]) -> None:
    """Run one writer to its end and readers all the while; raise what any of them raised."""
    problems: list[BaseException] = []
    done = threading.Event()

    def guarded(work: Callable[[], None], again: bool) -> None:
        try:
            work()
            while again and not done.is_set():
                work()
        except BaseException as problem:
            problems.append(problem)
            done.set()

    readers = [threading.Thread(target=guarded, args=(read, True)) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    guarded(write, False)
    done.set()
    for reader in readers:
        reader.join()
    for problem in problems:
        raise problem


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_reader_sees_whole_changes_of_one_subscription_at_a_time(engine: str) -> None:
    """The writer's changes are numbered; an answer must be the state of one moment between its start and its end."""
    matcher = Matcher(Space({"x": Number("int64")}), engine=engine)
    history: list[frozenset[str]] = [frozenset()]
    started = [0]

    def write() -> None:
        for round in range(150):
            name = f"s{round % 7}"
            state = set(history[-1])
            if name in state:
                state.discard(name)
                history.append(frozenset(state))
                started[0] += 1
                matcher.unsubscribe(name)
            else:
                state.add(name)
                history.append(frozenset(state))
                started[0] += 1
                matcher.subscribe(name, "x >= 0 AND x <= 9 OR x = 77")

    def read() -> None:
        before = max(0, started[0] - 1)
        found = frozenset(matcher.match({"x": 5}))
        assert found in history[before : started[0] + 2]

    beside(matcher, write, read)
    assert frozenset(matcher.match({"x": 5})) == history[-1]


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_replacement_is_one_step_for_the_rows_of_a_batch(engine: str) -> None:
    matcher = Matcher(Space({"x": Number("int64")}), engine=engine)
    matcher.subscribe("s", "x = 0")
    events = pa.table({"x": [0, 1]})

    def write() -> None:
        for round in range(150):
            matcher.subscribe("s", f"x = {(round + 1) % 2}", duplicates="replace")

    def read() -> None:
        found = matcher.match_batch(events)["event"].to_pylist()
        assert found in ([0], [1]), f"rows {found} matched, of which each state has one"

    beside(matcher, write, read)


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_bulk_load_is_one_step(engine: str) -> None:
    matcher = Matcher(Space({"x": Number("int64")}), engine=engine)

    def write() -> None:
        for round in range(30):
            ids = [round * 100 + number for number in range(100)]
            matcher.subscribe_many(pa.table({"id": ids, "expression": ["x >= 0"] * 100}))
            if round % 3 == 2:
                matcher.unsubscribe_many(ids)

    def read() -> None:
        assert len(matcher.match({"x": 1})) % 100 == 0

    beside(matcher, write, read)


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_new_text_constant_never_matches_what_it_excludes(engine: str) -> None:
    """A reader that coded its event before a constant was known must not meet the boxes that use it."""
    matcher = Matcher(Space({"s": Text()}), engine=engine)
    matcher.subscribe(1_000, "s = 'a'")

    def write() -> None:
        for round in range(400):
            matcher.subscribe(round, f"s < 'm{round:04d}'")
            matcher.subscribe(-1 - round, f"s <> 'mm{round:04d}x' AND s > 'mm{round:04d}w' AND s < 'mm{round:04d}y'")

    events = [{"s": "n"}, {"s": "mm0399x"}]

    def read() -> None:
        for event in events:
            assert matcher.match(event) == []

    beside(matcher, write, read)


def test_answers_hold_while_labels_are_spread_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_FIRST_SPAN", 2**12)
    monkeypatch.setattr(books, "_END_STEP", 2**4)
    matcher = Matcher(Space({"s": Text()}))
    for word in ("aa", "mm", "zz"):
        matcher.subscribe(word, f"s = '{word}' OR s LIKE '{word}%x'")
    first = matcher._state

    def write() -> None:
        for round in range(300):
            matcher.subscribe(str(round), f"s = 'm{round * 7919 % 1000:04d}q'")
            if round % 2:
                matcher.unsubscribe(str(round - 1))

    def read() -> None:
        assert [matcher.match({"s": word}) for word in ("aa", "mm", "zzyx", "q")] == [["aa"], ["mm"], ["zz"], []]

    beside(matcher, write, read)
    assert matcher._state is not first, "the labels were spread anew"


def test_several_writers_take_turns() -> None:
    matcher = Matcher(Space({"x": Number("int64")}))
    problems: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for round in range(60):
                matcher.subscribe(100 * writer + round, f"x = {writer}")
                if round % 3 == 0:
                    matcher.unsubscribe(100 * writer + round)
        except BaseException as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert problems == []
    expected: dict[int, list[Any]] = {
        writer: [100 * writer + round for round in range(60) if round % 3] for writer in range(4)
    }
    assert {writer: sorted(matcher.match({"x": writer})) for writer in range(4)} == expected
    assert len(matcher) == 160 and tocsin.__version__
