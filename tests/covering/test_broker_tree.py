"""The no-loss simulation: random trees of brokers, random commands, messages as late as they like but in order."""

from __future__ import annotations

import pytest

from tocsin.bench.broker_tree import simulate

PACES = [0.0, 0.5, 2.0, 6.0, 40.0]
"""From a network in which nothing arrives before all is said to one that is nearly always quiet."""


def check(seed: int) -> None:
    found = simulate(2 + seed % 9, 30 + 10 * (seed % 7), seed, covering=seed % 10 > 0, pace=PACES[seed % len(PACES)])
    assert found["lost"] == [] and found["needless"] == [] and found["unacknowledged"] == [], (seed, found)


def test_no_publication_is_lost_and_none_goes_astray() -> None:
    for seed in range(60):
        check(seed)


@pytest.mark.slow
def test_no_publication_is_lost_at_length() -> None:
    for seed in range(60, 1_500):
        check(seed)


def test_covering_saves_messages_and_table_entries_and_delivers_the_same() -> None:
    with_it, without = (simulate(12, 300, 7, covering=covering, pace=None) for covering in (True, False))
    assert with_it["deliveries"] == without["deliveries"] > 0
    assert with_it["forward"] < without["forward"] / 2
    assert with_it["table"] < without["table"] / 2
