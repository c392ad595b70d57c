"""Saved, loaded, changed, saved again: a matcher answers as a fresh one does, for every type of dimension."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from tests.saved.every_dimension import OPERATORS, event, expression, space
from tocsin import Matcher

SEED = os.environ.get("TOCSIN_SEED", "1" if os.environ.get("CI") else str(random.SystemRandom().randrange(10**6)))
GROWTH = ["laptop", "van", "sea", "thing", "computer"]


class History:
    """A matcher that is changed, saved and loaded, beside the expressions that it ought to hold."""

    def __init__(self, seed: str, engine: str, unspecified: str, path: Path) -> None:
        self.seed, self.random, self.path = seed, random.Random(seed), path
        self.matcher = Matcher(space(unspecified), engine, operators=OPERATORS)
        self.held: dict[int, str] = {}
        self.given = 0

    def change(self) -> None:
        way = self.random.random()
        if way < 0.3:
            self._subscribe_many(self.random.randint(2, 12))
        elif way < 0.6:
            self._subscribe(self.given)
            self.given += 1
        elif way < 0.75 and self.held:
            self._subscribe(self.random.choice(list(self.held)))
        elif way < 0.9 and self.held:
            gone = self.random.sample(list(self.held), self.random.randint(1, min(4, len(self.held))))
            self.matcher.unsubscribe_many(gone)
            for id in gone:
                del self.held[id]
        else:
            words = [f"w{self.random.randrange(10**9)}" for _ in range(2)]
            below = {self.random.choice(GROWTH): self.random.choice([words, {words[0]: [words[1]]}, ["stone"]])}
            if not (below and "stone" in self.matcher.space["kind"].tree and ["stone"] in below.values()):
                self.matcher.grow("kind", below, synonyms={words[0][::-1]: words[0]} if "w" in str(below) else None)

    def again(self) -> None:
        """Save and load."""
        self.matcher.save(self.path, note=self.given)
        self.matcher = Matcher.load(self.path, operators=OPERATORS)
        assert self.matcher.note == self.given

    def check(self, events: int) -> int:
        """Compare with a fresh matcher; return how many pairs were compared."""
        fresh = Matcher(self.matcher.space, "scan", operators=OPERATORS)
        for id, text in self.held.items():
            fresh.subscribe(id, text)
        assert {id: self.matcher[id] for id in self.matcher} == self.held
        assert sorted(self.matcher.never()) == sorted(fresh.never())
        for _ in range(events):
            asked = event(self.random)
            assert sorted(self.matcher.match(asked)) == sorted(fresh.match(asked)), (self.seed, asked)
        return events * len(self.held)

    def _subscribe(self, id: int) -> None:
        text = self._text()
        self.matcher.subscribe(id, text, duplicates="replace")
        self.held[id] = text

    def _subscribe_many(self, count: int) -> None:
        ids = list(range(self.given, self.given + count))
        texts = [self._text() for _ in ids]
        self.matcher.subscribe_many(pa.table({"id": pa.array(ids, pa.int64()), "expression": texts}))
        self.held |= dict(zip(ids, texts, strict=True))
        self.given += count

    def _text(self) -> str:
        """Return an expression, now and then one that is there already."""
        if self.held and self.random.random() < 0.15:
            return self.random.choice(list(self.held.values()))
        return expression(self.random, operators=self.random.random() < 0.3)


def run(seed: str, engine: str, unspecified: str, path: Path, rounds: int) -> int:
    history = History(seed, engine, unspecified, path)
    compared = 0
    for _ in range(rounds):
        for _ in range(6):
            history.change()
        history.again()
        if history.random.random() < 0.3:
            history.again()
        compared += history.check(4)
    return compared


@pytest.mark.parametrize(
    ("engine", "unspecified"), [("adaptive", "null"), ("adaptive", "any"), ("bounds", "any"), ("counting", "null")]
)
def test_a_matcher_saved_again_and_again_answers_as_a_fresh_one(engine: str, unspecified: str, tmp_path: Path) -> None:
    run(f"{SEED}/{engine}/{unspecified}", engine, unspecified, tmp_path, rounds=3)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["adaptive", "bitmap", "bounds", "counting", "dynamic", "propagation", "static"])
def test_many_matchers_saved_again_and_again(engine: str, tmp_path: Path) -> None:
    compared = 0
    for turn in range(30):
        for unspecified in ("null", "any"):
            compared += run(f"{SEED}/{engine}/{unspecified}/{turn}", engine, unspecified, tmp_path, rounds=5)
    print(f"saved again, {engine}: {compared:,} pairs, seed {SEED}")
