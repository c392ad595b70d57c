"""Every order decides exactly, and makes a call at most once an event. What expressions mean: see `test_model`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin

ORDERS = ("naive", "sequential", "sub-order", "adaptive")
SPACE = tocsin.Space({"price": tocsin.Number("int64"), "event": tocsin.Number("int64")})


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
