"""Random histories of concepts, synonyms, attributes, units and derived fields answer as the model of meaning does."""

from __future__ import annotations

from random import Random

import pytest

from tests.matcher.meaning_draws import ENGINES, KNOWN_GAPS, Meanings
from tests.matcher.meaning_runs import play
from tests.models.histories import check, kept, load, seed
from tocsin.index import engines

HISTORIES, STEPS = 40, 10
SLOW_HISTORIES, SLOW_STEPS, SLOW_PARTS = 20_000, 8, 20


@pytest.mark.parametrize("part", range(4))
def test_histories_answer_as_the_model(part: int) -> None:
    first = seed(bool(KNOWN_GAPS))
    print(f"seed {first}, part {part}: {HISTORIES // 4} histories (TOCSIN_SEED={first} plays them again)")
    for number in range(HISTORIES // 4):
        history = Meanings(Random(f"{first}/{part}/{number}")).history(STEPS)
        check(history, play, f"meaning-{first}-{part}-{number}")


def test_every_engine_is_in_the_histories() -> None:
    assert sorted(engines()) == ENGINES


def test_what_failed_once_holds() -> None:
    for path in kept("meaning"):
        print(path.name)
        play(load(path))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_a_million_pairs_in_many_histories(part: int) -> None:
    first = seed(bool(KNOWN_GAPS))
    pairs = answers = events = bad = 0
    for number in range(part, SLOW_HISTORIES, SLOW_PARTS):
        history = Meanings(Random(f"{first}/slow/{number}")).history(SLOW_STEPS)
        run = check(history, play, f"meaning-{first}-slow-{number}")
        pairs += run.model.checked
        answers += run.counts["answers"]
        events += run.counts["events"]
        bad += run.counts["bad"]
    print(
        f"meaning: seed {first}, part {part}, {SLOW_HISTORIES // SLOW_PARTS:,} histories, {pairs:,} pairs of event and "
        f"subscription, {answers:,} in all forms, {events:,} answers compared, {bad:,} refused"
    )
    assert pairs > 1_000_000 / SLOW_PARTS
