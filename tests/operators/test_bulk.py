"""Bulk operators: what one event, one call or one thread does harms no other."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tocsin.operators.operator import Asked
from tocsin.operators.prepared import Prepared

TEXT = tocsin.Space({"b": tocsin.Text()})
NUMBER = tocsin.Space({"x": tocsin.Number()})


def pairs_of(matcher: tocsin.Matcher, events: dict[str, Any]) -> set[tuple[int, Any]]:
    found = matcher.match_batch(pa.table(events))
    return set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def test_a_null_text_takes_nothing_from_the_other_events_of_its_batch() -> None:
    matcher = tocsin.Matcher(TEXT)
    matcher.subscribe("a", "mentions(b, 'a')")
    matcher.subscribe("not", "NOT mentions(b, 'a')")
    matcher.subscribe("m", "matches(b, '^a')")
    assert pairs_of(matcher, {"b": ["a", None, "z"]}) == {(0, "a"), (0, "m"), (2, "not")}


def test_a_bulk_operator_is_shown_only_the_events_it_is_asked_about() -> None:
    shown: list[list[Any]] = []

    @tocsin.operator(form="bulk", parameters=("b", "word"))
    def seen(asked: Asked) -> Any:
        shown.append(list(asked.columns[0]))
        return np.ones(len(asked.rows), bool)

    matcher = tocsin.Matcher(TEXT, operators=[seen])
    matcher.subscribe(1, "b <> 'c' AND seen(b, 'w')")
    assert pairs_of(matcher, {"b": ["a", None, "c", "d"]}) == {(0, 1), (3, 1)}
    assert shown == [["a", "d"]]


def test_a_bulk_operator_that_takes_null_is_shown_it() -> None:
    @tocsin.operator(form="bulk", parameters=("x",), takes_null=True)
    def absent(asked: Asked) -> Any:
        return np.array([value is None for value in asked.columns[0][asked.rows]], bool)

    matcher = tocsin.Matcher(NUMBER, operators=[absent])
    matcher.subscribe(1, "absent(x)")
    assert pairs_of(matcher, {"x": [1.0, None]}) == {(1, 1)}
    assert (matcher.match({"x": 1}), matcher.match({})) == ([], [1])


def test_nan_is_a_number_and_no_null_to_a_bulk_operator() -> None:
    @tocsin.operator(form="bulk", parameters=("x",))
    def not_a_number(asked: Asked) -> Any:
        return np.isnan(asked.columns[0][asked.rows])

    matcher = tocsin.Matcher(NUMBER, operators=[not_a_number])
    matcher.subscribe(1, "not_a_number(x)")
    assert pairs_of(matcher, {"x": [float("nan"), 1.0, None]}) == {(0, 1)}
    assert (matcher.match({"x": float("nan")}), matcher.match({"x": None})) == ([1], [])


def test_phrases_added_while_others_are_read_are_found_later() -> None:
    class Slow(list[Any]):
        """Values to which another thread adds one while they are read for the first time."""

        def __getitem__(self, place: Any) -> Any:
            if len(self) == 1:
                prepared.add(("late",), (("late",),))
            return super().__getitem__(place)

    prepared = Prepared()
    prepared.values = Slow()
    prepared.add(("early",), (("early",),))
    mentions = tocsin.Matcher(TEXT)._state.axes.operators["mentions"]
    texts, rows = np.array(["early and late"], object), np.zeros(1, np.int64)
    assert mentions(Asked((texts,), prepared, rows, np.array([0]))).tolist() == [1]
    assert mentions(Asked((texts,), prepared, rows, np.array([1]))).tolist() == [1]


def test_prepared_constants_are_whole_though_another_thread_falls_behind() -> None:
    class Held(list[Any]):
        """Values of which a thread, while it reads the first, waits until another has begun to read them too."""

        def __getitem__(self, place: Any) -> Any:
            if place == 0 and threading.current_thread() is slow:
                begun.set()
                more.wait(10)
            return super().__getitem__(place)

    prepared, begun, more = Prepared(), threading.Event(), threading.Event()
    prepared.values = Held()
    prepared.add((0,), (0.0, 0.0))
    slow = threading.Thread(target=lambda: prepared.array)
    slow.start()
    assert begun.wait(10)
    prepared.add((1,), (1.0, 0.0))
    found: list[int] = []
    fast = threading.Thread(target=lambda: found.append(len(prepared.array)))
    fast.start()
    more.set()
    slow.join()
    fast.join()
    assert found == [2]
    assert len(prepared.array) == len(prepared.matrix) == 2


@pytest.mark.parametrize("call", ["within(x, y, '{}')", "distance(x, y, '{}', :d) AND :d < 1"])
def test_no_match_is_lost_while_another_thread_subscribes(call: str) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number(), "y": tocsin.Number()}))
    matcher.subscribe("first", call.format("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"))

    def add() -> None:
        for number in range(40):
            matcher.subscribe(str(number), call.format(f"POLYGON ((0 0, 4 0, 4 {number + 4}, 0 0))"))

    thread = threading.Thread(target=add)
    thread.start()
    missed = sum("first" not in matcher.match({"x": 2.0, "y": 1.0}) for _ in range(60))
    thread.join()
    assert missed == 0
    assert len(matcher.match({"x": 2.0, "y": 1.0})) == 41


def test_a_bulk_operator_that_finds_nothing_binds_nothing_inside_not() -> None:
    @tocsin.operator(form="bulk", parameters=("x",), outputs=["n"])
    def root(asked: Asked) -> Any:
        values = asked.columns[0][asked.rows]
        return np.where(values >= 0, np.sqrt(np.abs(values)), np.nan)

    matcher = tocsin.Matcher(NUMBER, operators=[root])
    matcher.subscribe("closed", "x < 100 AND NOT (root(x, :n) AND :n > 2)")
    matcher.subscribe("not", "NOT root(x, :n)")
    matcher.subscribe("joined", "root(x, :a) AND root(x, :b) AND :a = :b")
    assert sorted(matcher.match({"x": -4})) == ["closed", "not"]
    assert sorted(matcher.match({"x": 4})) == ["closed", "joined"]
    assert sorted(matcher.match({"x": 9})) == ["joined"]
    assert pairs_of(matcher, {"x": [-4.0, 4.0, 9.0]}) == {
        (0, "closed"), (0, "not"), (1, "closed"), (1, "joined"), (2, "joined")
    }  # fmt: skip


def test_whole_numbers_of_a_bulk_operator_are_whole_numbers_in_constraints() -> None:
    @tocsin.operator(form="bulk", parameters=("x",), outputs=["n"])
    def seven(asked: Asked) -> Any:
        return np.full(len(asked.rows), 7)

    matcher = tocsin.Matcher(NUMBER, operators=[seven])
    matcher.subscribe("div", "seven(x, :n) AND :n div 2 = 3")
    assert matcher.match({"x": 0}) == ["div"]
    assert "returned 7" in str(matcher.explain({"x": 0}, "div")) or matcher.explain({"x": 0}, "div").matches


def test_a_bulk_call_in_a_join_is_made_once_and_counted_once() -> None:
    asked_about: list[int] = []

    @tocsin.operator(form="bulk", parameters=("x", "plus"), outputs=["n"])
    def plus(asked: Asked) -> Any:
        asked_about.extend(asked.rows.tolist())
        return asked.columns[0][asked.rows] + np.array(asked.prepared.values, float)[asked.which, 0]

    matcher = tocsin.Matcher(NUMBER, operators=[plus])
    matcher.subscribe(
        "joined", "plus(x, 1, :a) AND plus(x, 2, :b) AND :a + 1 = :b AND NOT (plus(x, 3, :c) AND :c < :a)"
    )
    assert matcher.match({"x": 1}) == ["joined"]
    assert len(asked_about) == 3
    assert matcher.stats()["operators"]["used"]["plus"]["evaluated"] == 3
    asked_about.clear()
    assert pairs_of(matcher, {"x": [1.0, 2.0]}) == {(0, "joined"), (1, "joined")}
    assert len(asked_about) == 6
    assert matcher.stats()["operators"]["used"]["plus"]["evaluated"] == 9


@pytest.mark.parametrize(
    ("call", "holds", "fails"),
    [("mentions(t, 'a')", ["z", "a b"], ["b"]), ("matches(t, '^a')", ["z", "ab"], ["ba"])],
)
def test_of_a_repeated_text_one_is_enough(call: str, holds: list[str], fails: list[str]) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"t": tocsin.Repeated(tocsin.Text())}))
    matcher.subscribe("is", call)
    matcher.subscribe("not", f"NOT {call}")
    events: list[Any] = [holds, fails, [*holds, None], [*fails, None], [], None]
    wanted = [["is"], ["not"], ["is"], [], ["not"], []]
    assert [matcher.match({"t": each}) for each in events] == wanted
    kind = pa.list_(pa.string())
    found = pairs_of(matcher, {"t": pa.array(events, kind)})
    assert found == {(row, id) for row, ids in enumerate(wanted) for id in ids}


@pytest.mark.filterwarnings("error")
def test_odd_numbers_of_one_event_harm_no_other_event() -> None:
    space = tocsin.Space({"v": tocsin.Repeated(tocsin.Number()), "x": tocsin.Number(), "y": tocsin.Number()})
    matcher = tocsin.Matcher(space)
    matcher.subscribe("like", "resembles(v, '[1, 0]', 0.7)")
    matcher.subscribe("unlike", "NOT resembles(v, '[1, 0]', 0.7)")
    matcher.subscribe("cosine", "similarity(v, '[1, 0]', :s) AND :s > 0.7")
    matcher.subscribe("far", "distance(x, y, 'POINT (0 0)', :d) AND :d > 1")
    matcher.subscribe("nowhere", "distance(x, y, 'POINT EMPTY', :d)")
    odd = [float("inf"), float("nan"), -float("inf")]
    vectors: list[Any] = [[3.0, 1.0], [1e308, 1e308], [5e-324, 0.0], [0.0, 0.0], [], [1.0, None], None]
    vectors += [[each, 1.0] for each in odd]
    events = [{"v": vector, "x": 3.0, "y": 4.0} for vector in vectors] + [{"v": None, "x": x, "y": 0.0} for x in odd]
    wanted = [["like", "cosine"], ["like", "cosine"], ["like", "cosine"], *[[]] * (len(events) - 3)]
    found = [set(matcher.match(event)) - {"far"} for event in events]
    assert found == [set(each) for each in wanted]
    assert all("far" in matcher.match(event) for event in events[: len(vectors)])
    kinds = {"v": pa.list_(pa.float64()), "x": pa.float64(), "y": pa.float64()}
    batch = matcher.match_batch(pa.Table.from_pylist(events, pa.schema(kinds)))
    pairs = set(zip(batch["event"].to_pylist(), batch["subscription"].to_pylist(), strict=True))
    assert pairs == {(row, id) for row, event in enumerate(events) for id in matcher.match(event)}
    assert not any(each["failures"] for each in matcher.stats()["operators"]["used"].values())
