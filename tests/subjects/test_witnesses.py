"""Random histories of publications over every type of dimension tell what the model of finite witnesses says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.models.histories import check, kept, load, seed
from tests.models.tagged import from_json, to_json
from tests.subjects.publication_draws import KNOWN_GAPS, Histories
from tests.subjects.publication_runs import play
from tocsin import Number, Repeated, Space, Subjects
from tocsin.errors import SpaceError

HISTORIES, STEPS = 60, 20
SLOW_HISTORIES, SLOW_STEPS, SLOW_PARTS = 20_000, 25, 20


@pytest.mark.parametrize("part", range(4))
def test_histories_tell_what_the_witnesses_say(part: int) -> None:
    first = seed(bool(KNOWN_GAPS))
    print(f"seed {first}, part {part}: {HISTORIES} histories of {STEPS} steps (TOCSIN_SEED={first} plays them again)")
    for number in range(HISTORIES // 4):
        random = Random(f"{first}/{part}/{number}")
        check(Histories(random).history(STEPS), play, f"publications-{first}-{part}-{number}")


def test_what_failed_once_holds() -> None:
    for path in kept("publications"):
        print(path.name)
        play(load(path))


def test_a_history_is_the_same_after_it_was_written() -> None:
    for number in range(20):
        history = Histories(Random(number), frozenset()).history(30)
        assert to_json(from_json(to_json(history))) == to_json(history)


@pytest.mark.parametrize("more", [{"attributes": {"z": ["x", "y"]}}, {}])
def test_what_is_repeated_is_no_dimension_of_a_region(more: dict[str, Any]) -> None:
    kind: Any = Number() if more else Repeated(Number())
    with pytest.raises(SpaceError, match="repeated"):
        Subjects(Space({"x": kind, "y": kind}, **more))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_a_million_pairs_in_many_histories(part: int) -> None:
    first = seed(bool(KNOWN_GAPS))
    pairs = steps = refused = transitions = 0
    for number in range(part, SLOW_HISTORIES, SLOW_PARTS):
        history = Histories(Random(f"{first}/slow/{number}")).history(SLOW_STEPS)
        run = check(history, play, f"publications-{first}-slow-{number}")
        pairs += run.model.checked
        steps += run.counts["steps"]
        refused += run.counts["refused"]
        transitions += run.counts["transitions"]
    print(
        f"publications: seed {first}, part {part}, {SLOW_HISTORIES // SLOW_PARTS:,} histories, {steps:,} steps, "
        f"{refused:,} refused, {pairs:,} pairs checked, {transitions:,} transitions"
    )
    assert pairs > 1_000_000 / SLOW_PARTS
