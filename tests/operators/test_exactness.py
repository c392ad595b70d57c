"""Every order gives what independent evaluation of each subscription gives; calls are made at most once an event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tests.operators.independent import FAILED, OPERATORS, Node, World, expressions, matches, worlds

ORDERS = ("naive", "sequential", "sub-order", "adaptive")
SPACE = tocsin.Space({"price": tocsin.Number("int64"), "event": tocsin.Number("int64")})


class Stage:
    """Operators whose results for each event are given."""

    def __init__(self, given: list[World]) -> None:
        self.worlds = given
        self.made: list[tuple[int, str, int]] = []

    def operators(self) -> list[Any]:
        """Return the operators."""
        return [self._operator(name, outputs) for name, outputs in OPERATORS.items()]

    def _operator(self, name: str, outputs: int) -> Any:
        def run(event: int, constant: int) -> Any:
            self.made.append((event, name, constant))
            result = self.worlds[event][name, constant]
            if result == FAILED:
                raise RuntimeError("injected")
            return result

        names = [f"o{at}" for at in range(outputs)]
        return tocsin.operator(run, name=name, reads=["event"], outputs=names)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(expressions(), min_size=1, max_size=5),
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), worlds()), min_size=1, max_size=3),
    st.sampled_from(ORDERS),
)
def test_each_order_gives_what_independent_evaluation_gives(
    subscriptions: list[Node], events: list[tuple[int | None, World]], order: Any
) -> None:
    stage = Stage([world for _, world in events])
    matcher = tocsin.Matcher(SPACE, operators=stage.operators(), order=order)
    for number, node in enumerate(subscriptions):
        matcher.subscribe(number, node.text())
    wanted = {
        (row, number)
        for row, (price, world) in enumerate(events)
        for number, node in enumerate(subscriptions)
        if matches(node, price, world)
    }
    table = pa.table(
        {"price": pa.array([price for price, _ in events], pa.int64()), "event": pa.array(range(len(events)))}
    )
    found = matcher.match_batch(table)
    pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == wanted
    assert len(stage.made) == len(set(stage.made)), "a call is made once an event"
    one = {(0, number) for number in matcher.match({"price": events[0][0], "event": 0})}
    assert one == {pair for pair in wanted if pair[0] == 0}


@pytest.mark.parametrize("order", ORDERS)
def test_random_bipartite_graphs_are_decided_exactly(order: Any) -> None:
    rng = np.random.default_rng(5)
    for _ in range(6):
        predicates, subscriptions = int(rng.integers(3, 40)), int(rng.integers(1, 120))
        chosen = [
            rng.choice(predicates, size=min(predicates, int(rng.integers(1, 7))), replace=False)
            for _ in range(subscriptions)
        ]
        wanted = [rng.random(len(each)) < 0.8 for each in chosen]
        holds = rng.random((4, predicates)) < rng.random(predicates) * 0.9
        made: list[tuple[int, int]] = []

        def bit(event: int, number: int, holds: Any = holds, made: Any = made) -> bool:
            made.append((event, number))
            return bool(holds[event, number])

        operator = tocsin.operator(bit, name="bit", reads=["event"], parameters=["number"])
        matcher = tocsin.Matcher(SPACE, operators=[operator], order=order)
        for number, (each, signs) in enumerate(zip(chosen, wanted, strict=True)):
            text = " AND ".join(f"{'' if sign else 'NOT '}bit({at})" for at, sign in zip(each, signs, strict=True))
            matcher.subscribe(number, text)
        for event in range(len(holds)):
            expected = [
                number
                for number, (each, signs) in enumerate(zip(chosen, wanted, strict=True))
                if (holds[event, each] == signs).all()
            ]
            assert sorted(matcher.match({"event": event})) == expected
        assert len(made) == len(set(made))


def test_orders_evaluate_fewer_calls_from_naive_to_adaptive() -> None:
    rng = np.random.default_rng(3)
    chosen = [rng.choice(60, size=4, replace=False, p=_zipf(60)) for _ in range(300)]
    holds = rng.random((30, 60)) < 0.2
    counts = {}
    for order in ORDERS:
        operator = tocsin.operator(
            lambda event, number: bool(holds[event, number]), name="bit", reads=["event"], parameters=["number"]
        )
        matcher = tocsin.Matcher(SPACE, operators=[operator], order=order)
        for number, each in enumerate(chosen):
            matcher.subscribe(number, " AND ".join(f"bit({at})" for at in each))
        matcher.match_batch(pa.table({"event": range(30), "price": pa.nulls(30, pa.int64())}))
        counts[order] = matcher.stats()["operators"]["used"]["bit"]["evaluated"]
    assert counts["adaptive"] < counts["sub-order"] < counts["naive"]
    assert counts["sequential"] < counts["naive"]


def _zipf(count: int) -> Any:
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()
