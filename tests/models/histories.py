"""Histories: where their seeds come from, how one that fails is made small, and where it is kept for good."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.models.tagged import from_json, to_json

REGRESSIONS = Path(__file__).parent.parent / "regressions"
FIXED = 20261116

History = dict[str, Any]


def seed(fixed: bool = False) -> int:
    """Return TOCSIN_SEED; without it a fixed seed under CI=true, else a fresh one. Whoever draws from it prints it."""
    given = os.environ.get("TOCSIN_SEED")
    if given:
        return int(given)
    return FIXED if fixed or os.environ.get("CI") else random.SystemRandom().randrange(10**9)


def minimised(history: History, fails: Callable[[History], bool], tries: int = 1_500) -> History:
    """Return a history that still fails, with as few steps and parts of steps as dropping them one by one leaves."""
    left = tries
    shrunk = True
    while shrunk and left > 0:
        shrunk = False
        for smaller in smaller_ones(history):
            left -= 1
            if left < 0:
                break
            if fails(smaller):
                history, shrunk = smaller, True
                break
    return history


def smaller_ones(history: History) -> Iterator[History]:
    """Yield the history without each of its steps, last first, and then without each part of a step."""
    steps = history["steps"]
    for size in (len(steps) // 2, len(steps) // 4, 1):
        for place in range(len(steps) - size, -1, -max(size, 1)) if size else ():
            yield {**history, "steps": steps[:place] + steps[place + size :]}
    for place, step in enumerate(steps):
        for simpler in simpler_ones(step):
            yield {**history, "steps": [*steps[:place], simpler, *steps[place + 1 :]]}


def simpler_ones(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a step with one row, one dimension of a region, or one term of an expression less."""
    for place in range(len(step.get("rows") or ())):
        if len(step["rows"]) > 1:
            yield {**step, "rows": step["rows"][:place] + step["rows"][place + 1 :]}
    for name, region in (step.get("regions") or {}).items():
        if region is not None:
            for of in simpler_regions(region["of"]):
                yield {**step, "regions": {**step["regions"], name: {**region, "of": of}}}
    for place, row in enumerate(step.get("rows") or ()):
        for of in simpler_regions(row["of"]):
            yield {**step, "rows": [*step["rows"][:place], {**row, "of": of}, *step["rows"][place + 1 :]]}
    if isinstance(step.get("event"), dict):
        for name in step["event"]:
            yield {**step, "event": {other: value for other, value in step["event"].items() if other != name}}
    if isinstance(step.get("expression"), list):
        for of in simpler_regions(step["expression"]):
            yield {**step, "expression": of}


def simpler_regions(of: Any) -> Iterator[Any]:
    if isinstance(of, dict):
        for field in of:
            if len(of) > 1:
                yield {other: value for other, value in of.items() if other != field}
        return
    match of:
        case ["and" | "or", terms]:
            yield from terms
            for place, term in enumerate(terms):
                for simpler in simpler_regions(term):
                    yield [of[0], [*terms[:place], simpler, *terms[place + 1 :]]]
        case ["not", term]:
            yield term
            for simpler in simpler_regions(term):
                yield ["not", simpler]


def keep(history: History, name: str) -> Path:
    """Write a history to the regressions, which are replayed for good; return where."""
    REGRESSIONS.mkdir(exist_ok=True)
    path = REGRESSIONS / f"{name}.json"
    path.write_text(json.dumps(to_json(history), ensure_ascii=True, indent=1) + "\n")
    return path


def kept(room: str) -> list[Path]:
    """Return the histories of a room that failed once."""
    return sorted(REGRESSIONS.glob(f"{room}-*.json"))


def load(path: Path) -> History:
    """Return the history in a file."""
    history: History = from_json(json.loads(path.read_text()))
    return history


def failing(play: Callable[[History], Any]) -> Callable[[History], bool]:
    """Return a test that says whether a history fails when it is played."""

    def fails(history: History) -> bool:
        try:
            play(copy.deepcopy(history))
        except Exception:
            return True
        return False

    return fails


def check(history: History, play: Callable[[History], Any], name: str) -> Any:
    """Play a history; if it fails, make it small, write it to the regressions and fail with it."""
    try:
        return play(history)
    except Exception:
        small = minimised(history, failing(play))
        path = keep(small, name)
        try:
            play(small)
        except Exception as last:
            error = last
        raise AssertionError(f"{name}, written to {path.name}: {type(error).__name__}: {error}") from error
