"""Damage to saved matchers: what a disk, a copy that was cut short or a careless hand does to one file.

Run as a program, it opens damaged matchers without verifying anything, uses each, and says what came of it: the parent
learns from a missing line that the interpreter did not survive.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.saved.every_dimension import OPERATORS, event, expression, space
from tocsin import Matcher, TocsinError
from tocsin.index import array_files

WAYS = ("flip", "cut", "zero", "remove")


def filled(engine: str, count: int = 300) -> Matcher:
    """Return a matcher of every type of dimension, with programs, operators, shared boxes and removals."""
    source = random.Random(f"damage/{engine}")
    texts = [expression(source, operators=source.random() < 0.2) for _ in range(count)]
    texts += source.choices(texts, k=count // 5)
    matcher = Matcher(space(), engine, operators=OPERATORS)
    matcher.subscribe_many(pa.table({"id": [f"id {at}" for at in range(len(texts))], "expression": texts}))
    matcher.unsubscribe_many([f"id {at}" for at in range(0, count, 7)])
    return matcher


def events(count: int = 4) -> list[dict[str, Any]]:
    source = random.Random("events")
    return [event(source) for _ in range(count)]


def answers(matcher: Matcher) -> list[list[str]]:
    return [sorted(matcher.match(asked)) for asked in events()]


@contextmanager
def damaged(directory: Path, source: random.Random) -> Iterator[tuple[Path, str]]:
    """Damage one file for a while; yield it and what was done, '' if that changed nothing."""
    file = source.choice(sorted(directory.iterdir()))
    whole, way = file.read_bytes(), source.choice(WAYS)
    place = source.randrange(len(whole))
    changed = bytearray(whole)
    if way == "flip":
        changed[place] ^= 1 << source.randrange(8)
    elif way == "cut":
        del changed[place:]
    elif way == "zero":
        changed[place : place + 64] = bytes(len(changed[place : place + 64]))
    if way == "remove":
        file.unlink()
    elif changed != whole:
        file.write_bytes(bytes(changed))
    try:
        yield file, f"{way} at {place}" if way == "remove" or changed != whole else ""
    finally:
        file.write_bytes(whole)


def use(directory: Path) -> str:
    """Open a matcher without verifying, and use it: match, look, change. Only errors of ours are expected."""
    try:
        matcher = Matcher.load(directory, verify=False, operators=OPERATORS)
    except TocsinError:
        return "refused"
    try:
        answers(matcher)
        matcher.stats()
        matcher.subscribe("more", "whole = 1 AND name = 'more'")
        for id in list(matcher)[:3]:
            matcher.unsubscribe(id)
        answers(matcher)
    except TocsinError:
        return "failed"
    except Exception as error:
        return f"raised {type(error).__name__}"
    return "used"


def main(directory: str, seed: str, tries: int) -> None:
    array_files.SMALL = -1
    source = random.Random(seed)
    for turn in range(tries):
        with damaged(Path(directory), source) as (file, done):
            print(turn, file.name.partition("-")[2], done, end=": ", flush=True)
            print(use(Path(directory)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
