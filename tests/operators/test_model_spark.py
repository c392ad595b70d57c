"""Spark answers what the model of operators says, over cases drawn as the histories of `test_model` are."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tocsin
from tests.operators.expressions import OPERATORS, Drawing, text_of
from tests.operators.histories import Outcomes, space_of, table_of
from tests.operators.model import FAILED, World, matches
from tests.operators.test_model import SEED
from tests.spark.model_leg import Case, match_on_spark
from tocsin.errors import ExpressionError

SUBSCRIPTIONS, EVENTS = 14, 25


def _operator(name: str, outcomes: list[Outcomes]) -> Any:
    """Return an operator that travels by value, with what it says of every event."""
    outputs, form = OPERATORS[name]
    known = {(at, k): found for at, event in enumerate(outcomes) for (each, k), found in event.items() if each == name}
    run: Callable[..., Any]

    def one(event: Any, k: Any) -> Any:
        found = known[int(event), k]
        if found == "failed":
            return (1, 2, 3)  # not what was declared
        return [each[0] for each in found] if isinstance(found, list) and outputs == 1 else found

    if form == "vector":

        def run(event: Any, k: Any) -> Any:
            return [one(each, k) for each in event]

    elif form == "async":

        async def run(event: Any, k: Any) -> Any:
            return one(event, k)

    elif form == "bulk":

        def run(asked: Any) -> Any:
            import numpy as np

            pairs = zip(asked.rows.tolist(), asked.which.tolist(), strict=True)
            found = [one(asked.columns[0][row], asked.prepared.constants[which][0]) for row, which in pairs]
            if outputs:
                return np.array([each[0] if each else np.nan for each in found])
            return np.array([-1 if each is None else int(each) for each in found], np.int8)

    else:

        def run(event: Any, k: Any) -> Any:
            return one(event, k)

    settings = {"form": form} if form in ("vector", "bulk") else {}
    names = [f"o{at}" for at in range(outputs)]
    return tocsin.operator(run, name=name, reads=["event"], parameters=["k"], outputs=names, **settings)


@pytest.mark.parametrize("cases", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_spark_gives_what_the_model_says(cases: int, spark: SparkSession, tmp_path: Path) -> None:
    outcomes: list[Outcomes] = []
    drawn: list[tuple[bool, list[Any], list[dict[str, Any]]]] = []
    for number in range(cases):
        rng = random.Random(f"{SEED}/spark/{number}")
        drawing = Drawing(rng, rng.choice((0.0, 0.3)), asynchronous=True)
        drawing.failing = set()  # of a bulk operator, one failure would be the failure of all cases
        first = len(outcomes)
        outcomes += [drawing.outcomes() for _ in range(EVENTS)]
        prices = [rng.choice((0, 1, 2, 3, 4, None)) for _ in range(EVENTS)]
        asked = [None if rng.random() < 0.1 else first + at for at in range(EVENTS)]
        events = [{"price": price, "event": event, "kind": "one"} for price, event in zip(prices, asked, strict=True)]
        drawn.append((number % 2 == 1, [drawing.expression() for _ in range(SUBSCRIPTIONS)], events))
    operators = tuple(_operator(name, outcomes) for name in OPERATORS)
    sent, expected, pairs = [], [], 0
    for spans, nodes, events in drawn:
        space = space_of(spans)
        accepted = {at: node for at, node in enumerate(nodes) if _fits(space, operators, text_of(node))}
        texts = {at: text_of(node) for at, node in accepted.items()}
        sent.append(Case(space, texts, table_of(events), operators))
        worlds = [_world(event, outcomes, spans) for event in events]
        asked_of = [(row, at) for row in range(len(worlds)) for at in accepted]
        expected.append({(row, at) for row, at in asked_of if matches(accepted[at], worlds[row])})
        pairs += len(asked_of)
    print(f"seed {SEED}: {pairs:,} pairs through Spark")
    assert match_on_spark(spark, tmp_path, sent) == expected


def _world(event: dict[str, Any], outcomes: list[Outcomes], spans: bool) -> World:
    number = event["event"]
    found = {(name, None): FAILED for name in OPERATORS} | (outcomes[number] if number is not None else {})
    return World(event, found, spans, number is not None)


def _fits(space: tocsin.Space, operators: tuple[Any, ...], text: str) -> bool:
    try:
        tocsin.Matcher(space, operators=operators).subscribe(0, text)
    except ExpressionError:
        return False
    return True
