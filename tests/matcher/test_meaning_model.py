"""Random histories of concepts, synonyms, attributes, units and derived fields answer as the model of meaning does."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import tocsin
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


@pytest.mark.parametrize("fold", ["lower", "upper"])
def test_a_cast_slice_of_texts_is_folded_where_it_begins(fold: str) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"t": tocsin.Text(), "made": tocsin.Derived(f"{fold}(t)", tocsin.Text())}))
    word = "ss" if fold == "lower" else "SS"
    matcher.subscribe("derived", f"made = '{word}'")
    matcher.subscribe("tested", f"{fold}(t) = '{word}'")
    sliced = pa.array(["q", "ß", "sS"], pa.large_string()).slice(2)
    for texts in (sliced, sliced.cast(pa.string())):
        assert matcher.match_batch(pa.table({"t": texts}))["subscription"].to_pylist() == ["derived", "tested"]


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
