"""Random histories of a matcher with operators, each answer compared with the model."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tocsin
from tests.operators.expressions import OPERATORS, Drawing, text_of
from tests.operators.model import FAILED, World, matches
from tocsin.errors import ExpressionError

REGRESSIONS = Path(__file__).parents[1] / "regressions"
ENGINES = ("scan", "counting", "propagation", "static", "dynamic", "bounds", "bitmap", "adaptive", "adaptive")
ORDERS = ("naive", "sequential", "sub-order", "adaptive")
TREE = {"thing": ["one", "two"]}

REFUSED = ("inside a NOT around variables of its own", "the expression needs ")
"""What the language refuses, as its page says: field comparisons inside such a NOT, and very wide expressions."""

Outcomes = dict[tuple[str, Any], Any]


class Stage:
    """Operators whose outcomes are given for each event, by the number in its field ``event``."""

    def __init__(self) -> None:
        self.outcomes: list[Outcomes] = []
        self.made: list[tuple[int, str, Any]] = []
        self.operators = [self._operator(name, *each) for name, each in OPERATORS.items()]

    def _result(self, event: Any, name: str, argument: Any) -> Any:
        self.made.append((int(event), name, argument))
        found = self.outcomes[int(event)][name, argument]
        if found == FAILED:
            if OPERATORS[name][1] == "vector":  # of one event: a result that is not what was declared
                return (1, 2, 3)
            raise RuntimeError("injected")
        if not isinstance(found, list) or OPERATORS[name][0] > 1:
            return found
        return [each[0] for each in found]

    def _operator(self, name: str, outputs: int, form: str) -> Any:
        run: Callable[..., Any]
        if form == "scalar":

            def run(event: Any, k: Any) -> Any:
                return self._result(event, name, k)

        elif form == "vector":

            def run(event: Any, k: Any) -> Any:
                return [self._result(each, name, k) for each in event]

        elif form == "async":

            async def run(event: Any, k: Any) -> Any:
                return self._result(event, name, k)

        else:

            def run(asked: Any) -> Any:
                pairs = zip(asked.rows.tolist(), asked.which.tolist(), strict=True)
                given = [(asked.columns[0][row], asked.prepared.constants[which][0]) for row, which in pairs]
                found = [self._result(event, name, constant) for event, constant in given]
                if outputs:
                    return np.array([each[0] if each else np.nan for each in found])
                return np.array([-1 if each is None else int(each) for each in found], np.int8)

        names = [f"o{at}" for at in range(outputs)]
        settings = {"form": form} if form in ("vector", "bulk") else {}
        return tocsin.operator(run, name=name, reads=["event"], parameters=["k"], outputs=names, **settings)


STAGE = Stage()


class DifferenceError(AssertionError):
    """An answer that is not the model's."""


class History:
    """One history: events with their outcomes, and a matcher whose subscriptions come and go."""

    def __init__(self, seed: str, asynchronous: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.drawing = Drawing(self.rng, self.rng.choice((0.0, 0.1, 0.5)), asynchronous)
        self.spans = self.rng.random() < 0.25
        self.order: Any = self.rng.choice(ORDERS)
        self.engine = self.rng.choice(ENGINES)
        self.threads = 2 if self.rng.random() < 0.1 else 1
        self.events = [self._event(number) for number in range(self.rng.randrange(2, 7))]
        self.outcomes = [_alike(self.drawing.outcomes()) for _ in self.events]
        self.held: dict[int, Any] = {}
        self.pairs = self.refused = self.checks = 0
        self.matcher = tocsin.Matcher(
            space_of(self.spans), self.engine, operators=STAGE.operators, order=self.order, threads=self.threads
        )

    def run(self) -> History:
        """Run to the end; `DifferenceError` at the first answer that differs."""
        STAGE.outcomes = self.outcomes
        self._add()
        for _ in range(self.rng.randrange(1, 4)):
            self._check()
            self.rng.choice((self._add, self._add, self._remove, self._save, self._grow))()
        self._check()
        return self

    def world(self, number: int) -> World:
        """Return what the model knows of an event."""
        event = self.events[number]
        return World(event, self.outcomes[number], self.spans, event.get("event") is not None)

    def _event(self, number: int) -> dict[str, Any]:
        event: dict[str, Any] = {"event": number, "price": self.rng.randrange(5), "kind": "one"}
        for name, chance in (("event", 0.1), ("price", 0.2)):
            if self.rng.random() < chance:
                event[name] = None
        return event

    def _add(self) -> None:
        drawn = [self.drawing.expression() for _ in range(self.rng.randrange(2, 9))]
        first = max(self.held, default=-1) + 1
        new = dict(enumerate(drawn, first))
        if self.rng.random() < 0.5:
            problems: list[Any] = []
            table = pa.table({"id": list(new), "expression": [text_of(each) for each in new.values()]})
            self.matcher.subscribe_many(table, problems=problems)
            for problem in problems:
                self._accept_refusal(problem.error)
                new.pop(problem.id)
        else:
            for id, node in list(new.items()):
                try:
                    self.matcher.subscribe(id, text_of(node))
                except ExpressionError as error:
                    self._accept_refusal(error)
                    new.pop(id)
        self.held |= new

    def _accept_refusal(self, error: Exception) -> None:
        """Count what the language refuses with a reason that its page names; anything else is an error."""
        if not any(reason in str(error) for reason in REFUSED):
            raise DifferenceError(f"{self.seed}: refused: {error}")
        self.refused += 1

    def _remove(self) -> None:
        for id in self.rng.sample(sorted(self.held), len(self.held) // 2):
            self.matcher.unsubscribe(id)
            del self.held[id]

    def _save(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.matcher.save(Path(folder) / "saved")
            self.matcher = tocsin.Matcher.load(
                Path(folder) / "saved", operators=STAGE.operators, order=self.order, threads=self.threads
            )
            self._check()

    def _grow(self) -> None:
        self.matcher.grow("kind", {"one": [f"new {self.rng.randrange(10**9)}"]})

    def _check(self) -> None:
        worlds = [self.world(number) for number in range(len(self.events))]
        expected = {
            (row, id) for row, world in enumerate(worlds) for id, node in self.held.items() if matches(node, world)
        }
        self.pairs += len(worlds) * len(self.held)
        self.checks += 1
        STAGE.made.clear()
        found = self.matcher.match_batch(table_of(self.events))
        pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
        self._compare(set(pairs), expected, "match_batch")
        if len(pairs) != len(set(pairs)):
            raise DifferenceError(f"{self.seed}: a pair was given twice")
        if len(STAGE.made) != len(set(STAGE.made)):
            twice = sorted({str(each) for each in STAGE.made if STAGE.made.count(each) > 1})
            raise DifferenceError(f"{self.seed}: called more than once an event: {twice[:3]}")
        row = self.rng.randrange(len(self.events))
        given = {name: value for name, value in self.events[row].items() if value is not None}
        wanted = {pair for pair in expected if pair[0] == row}
        self._compare({(row, id) for id in self.matcher.match(given)}, wanted, "match", row)
        if self.held:
            id = self.rng.choice(sorted(self.held))
            told = {(row, id)} if self.matcher.explain(given, id) else set()
            self._compare(told, wanted & {(row, id)}, "explain", row, id)

    def _compare(
        self, found: set[Any], expected: set[Any], how: str, row: int | None = None, id: int | None = None
    ) -> None:
        if found == expected:
            return
        event, subscription = min(found ^ expected)
        raise PairError(self, how, event, subscription, (event, subscription) in expected)


class PairError(DifferenceError):
    """A pair that was answered wrongly, with all that it takes to ask again."""

    def __init__(self, history: History, how: str, row: int, id: int, expected: bool) -> None:
        node, event = history.held[id], history.events[row]
        self.case = {
            "seed": history.seed,
            "how": how,
            "expression": text_of(node),
            "event": {name: value for name, value in event.items() if value is not None and name != "event"},
            "asked": event.get("event") is not None,
            "unspecified": "any" if history.spans else "null",
            "engine": history.engine,
            "order": history.order,
            "outcomes": [
                [name, argument, _written(outcome)]
                for (name, argument), outcome in history.outcomes[row].items()
                if f"{name}({argument}" in text_of(node)
            ],
            "matches": expected,
        }
        super().__init__(f"{history.seed}: {how}: expected {expected}: {json.dumps(self.case)}")


def space_of(spans: bool) -> tocsin.Space:
    """Return the space of every history."""
    dimensions: dict[str, Any] = {
        "price": tocsin.Number("int64"),
        "event": tocsin.Number("int64"),
        "kind": tocsin.Concept(TREE),
    }
    return tocsin.Space(dimensions, unspecified="any" if spans else "null")


def table_of(events: list[dict[str, Any]]) -> pa.Table:
    """Return events as a table."""
    columns = {name: pa.array([each.get(name) for each in events], pa.int64()) for name in ("price", "event")}
    return pa.table({**columns, "kind": pa.array([each.get("kind") for each in events])})


def replay(case: dict[str, Any]) -> bool:
    """Return whether the subscription of a case, alone, matches its event: in a batch, by itself, explained, and after
    it was saved and loaded."""
    STAGE.outcomes = [{(name, argument): _read(outcome) for name, argument, outcome in case["outcomes"]}]
    event = {**case["event"], **({"event": 0} if case["asked"] else {})}
    matcher = tocsin.Matcher(
        space_of(case["unspecified"] == "any"), case["engine"], operators=STAGE.operators, order=case["order"]
    )
    matcher.subscribe(0, case["expression"])
    answers = {
        "match": matcher.match(event) == [0],
        "match_batch": len(matcher.match_batch(table_of([event]))) == 1,
        "explain": bool(matcher.explain(event, 0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(Path(folder) / "saved")
        loaded = tocsin.Matcher.load(Path(folder) / "saved", operators=STAGE.operators, order=case["order"])
        answers["loaded"] = loaded.match(event) == [0]
    assert len(set(answers.values())) == 1, answers
    return answers["match"]


def write(difference: PairError) -> Path:
    """Write a case to the folder of regressions."""
    REGRESSIONS.mkdir(exist_ok=True)
    path = REGRESSIONS / f"operators-{difference.case['seed'].replace('/', '-')}.json"
    path.write_text(json.dumps(difference.case, indent=1) + "\n")
    return path


def _alike(outcomes: Outcomes) -> Outcomes:
    """Return the outcomes with a constant NULL, for which no operator is called."""
    return {**outcomes, **{(name, None): FAILED for name in OPERATORS}}


def _written(value: Any) -> Any:
    if isinstance(value, list):
        return {"rows": [[_written(each) for each in row] for row in value]}
    if isinstance(value, (bool, str)) or value is None:
        return value
    return {type(value).__name__: value.decode() if isinstance(value, bytes) else str(value)}


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    if kind == "rows":
        return [tuple(_read(each) for each in row) for row in text]
    return text.encode() if kind == "bytes" else {"int": int, "float": float, "Decimal": Decimal}[kind](text)
