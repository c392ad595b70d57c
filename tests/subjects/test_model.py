"""Any history of both sides: each change tells exactly M(t) without M(t-1) and M(t-1) without M(t)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.subjects.model import World

STEPS = 20_000
"""How many steps the test run takes with seeds, beside those that Hypothesis draws."""


class History(RuleBasedStateMachine):
    """Each rule is one step, drawn to the last value by Hypothesis so that a failure shrinks."""

    @initialize(
        unspecified=st.sampled_from(["null", "any"]),
        engine=st.sampled_from(["adaptive", "bounds"]),
        spaces=st.sampled_from([1, 2]),
    )
    def begin(self, unspecified: str, engine: str, spaces: int) -> None:
        self.world = World(unspecified, engine, spaces)

    @rule(random=st.randoms(use_true_random=False))
    def step(self, random: Random) -> None:
        self.world.step(random)

    @invariant()
    def what_is_held_matches(self) -> None:
        if hasattr(self, "world"):
            assert self.world.subjects.matches() == self.world.now


def test_any_history_tells_what_the_definition_says() -> None:
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def run(seed: int, history: int, steps: int) -> World:
    """Take so many steps in one history. Of eight one after another, each has other spaces or another engine."""
    random = Random(f"{seed}/{history}")
    world = World(["null", "any"][history % 2], ["adaptive", "bounds"][history // 2 % 2], 1 + history // 4 % 2)
    while world.steps < steps:
        world.step(random)
    assert world.subjects.matches() == world.now
    return world


@pytest.mark.parametrize("history", range(8))
def test_many_steps_in_long_histories(history: int) -> None:
    world = run(5, history, STEPS // 8)
    assert min(world.enters, world.leaves) > STEPS // 64


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_millions_of_steps(seed: int) -> None:
    """Two million steps; a pair enters and leaves in turn, as the definition has it."""
    for history in range(8):
        run(seed, history, 2_500)
