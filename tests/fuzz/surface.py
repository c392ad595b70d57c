"""What is called with odd inputs: the public surface, a call at a time."""

from __future__ import annotations

import faulthandler
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import tocsin
from tests.fuzz import inputs
from tocsin import TocsinError
from tocsin.language import parse, to_text

SANE = {"price": 5.0, "whole": 5, "city": "NYC", "tags": ["a"], "sold": True, "seller": {"city": "NYC", "rank": 1}}
HANGS = 120.0
"""Seconds after which a batch of inputs counts as hanging: all stacks are printed and the process ends."""

BATCH = 500
"""So many inputs are tried with the same matcher and publications."""


class Surface:
    """One matcher and one set of publications, called with whatever a generator draws."""

    def __init__(self, pick: random.Random, engine: str = "scan") -> None:
        self.pick = pick
        self.matcher = tocsin.Matcher(inputs.space(pick), engine)
        self.subjects = tocsin.Subjects(inputs.space(pick, repeated=False), engine="scan")
        self.number = 0
        self.calls: list[tuple[int, Callable[[], Any]]] = [
            (20, self.subscribe),
            (30, self.match),
            (6, self.match_table),
            (8, self.explain),
            (2, self.subscribe_many),
            (6, self.parse),
            (4, self.read_json),
            (6, self.make_space),
            (6, self.infer),
            (16, self.publish),
            (3, self.watch),
            (2, self.declare_operator),
            (1, self.grow),
        ]

    def step(self) -> str:
        """Call something; return its name. Only TocsinError may come out of it."""
        weights = [weight for weight, _ in self.calls]
        (call,) = self.pick.choices([call for _, call in self.calls], weights)
        try:
            call()
        except TocsinError as error:
            assert str(error), "an error says something"
        return call.__name__

    def id(self, *, cycles: bool = True) -> Any:
        self.number += 1
        return f"s{self.number}" if self.pick.random() < 0.95 else inputs.value(self.pick, cycles=cycles)

    def subscribe(self) -> None:
        """Subscribe, and match an ordinary event: what was accepted must not make that fail."""
        id, text = self.id(), inputs.expression(self.pick)
        self.matcher.subscribe(id, text, duplicates="replace")
        try:
            self.matcher.match(SANE)
            self.matcher.match_batch(pa.Table.from_pylist([SANE]), missing="unspecified")
            self.matcher.explain(SANE, id)
        except Exception as error:
            raise AssertionError(f"{text!r} was accepted and fails a match") from error
        if len(self.matcher) > 40:
            self.matcher.unsubscribe_many(list(self.matcher))

    def match(self) -> None:
        if self.pick.random() < 0.01:
            self.matcher.match({self.pick.choice(["tags", "city", "seller"]): inputs.nested(5_000)})
        self.matcher.match(inputs.event(self.pick), unknown=self.pick.choice(["ignore", "error"]))

    def match_table(self) -> None:
        problems: list[Any] | None = self.pick.choice([None, []])
        self.matcher.match_batch(inputs.table(self.pick), missing="unspecified", problems=problems)

    def explain(self) -> None:
        self.matcher.explain(
            inputs.event(self.pick), self.pick.choice([*list(self.matcher)[:5], inputs.value(self.pick)])
        )

    def subscribe_many(self) -> None:
        texts = [inputs.expression(self.pick) for _ in range(self.pick.randint(0, 4))]
        try:
            given: Any = pa.table({"id": [self.id(cycles=False) for _ in texts], "expression": texts})
        except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
            given = inputs.table(self.pick)
        self.matcher.subscribe_many(given, problems=self.pick.choice([None, []]))

    def parse(self) -> None:
        text = to_text(parse(inputs.expression(self.pick)))
        assert to_text(parse(text)) == text

    def read_json(self) -> None:
        text = inputs.json_text(self.pick)
        self.pick.choice([self.matcher.match_json, self.matcher.subscribe_json])(text)

    def make_space(self) -> None:
        kinds = [tocsin.Number(), tocsin.Text(), {"x": tocsin.Text()}, None, 5, {}, tocsin.Repeated(tocsin.Boolean())]
        names = ["a", "a.b", "", "a..b", 5, None, "ß", "\ud800", "a" * 300]
        declared = {self.pick.choice(names): self.pick.choice(kinds) for _ in range(self.pick.randint(0, 3))}
        made = tocsin.Space(declared, timezone=self.pick.choice(["UTC", "Mars/Base", "", "../etc", "Europe"]))  # type: ignore[arg-type]
        tocsin.Space.from_json(made.to_json())
        tocsin.Space.from_json(inputs.value(self.pick))

    def infer(self) -> None:
        tocsin.Space.infer([inputs.event(self.pick) for _ in range(self.pick.randint(0, 3))])

    def publish(self) -> None:
        key = self.pick.choice(["a", "b", "c", inputs.value(self.pick)])
        given = inputs.event(self.pick)
        self.pick.choice([self.subjects.put, self.subjects.update])(key, given)
        if self.pick.random() < 0.3:
            self.subjects.delete(key)

    def watch(self) -> None:
        self.subjects.subscribe(self.id(), inputs.expression(self.pick))

    def declare_operator(self) -> None:
        settings = {self.pick.choice(["outputs", "retries", "remember", "limit", "cost"]): inputs.value(self.pick)}
        tocsin.operator(**settings)(lambda x: True)

    def grow(self) -> None:
        self.matcher.grow(self.pick.choice(["kind", "city", "x"]), inputs.value(self.pick))


def run(seed: int | str, count: int, engine: str = "scan") -> dict[str, int]:
    """Call so many things with inputs of a seed; return how often each was called."""
    counts: dict[str, int] = {}
    for batch in range(0, count, BATCH):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        pick = random.Random(f"{seed}/{batch}")
        surface = Surface(pick, engine)
        for number in range(min(BATCH, count - batch)):
            try:
                name = surface.step()
            except Exception as error:
                raise AssertionError(f"seed {seed}/{batch}, input {number}: {error!r}") from error
            counts[name] = counts.get(name, 0) + 1
    faulthandler.cancel_dump_traceback_later()
    return counts
