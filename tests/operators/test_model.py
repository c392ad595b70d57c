"""What matchers answer is what the model of operators says: over random histories, and in cases found before."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operators.histories import REGRESSIONS, History, PairError, replay, write

FIXED = "20261116"
SEED = os.environ.get("TOCSIN_SEED") or (FIXED if os.environ.get("CI") else str(random.SystemRandom().randrange(10**9)))
HISTORIES, SLOW_HISTORIES, SLOW_PAIRS, SLOW_PARTS = 40, 20_000, 1_000_000, 20
CASES = sorted(REGRESSIONS.glob("operators-*.json"))


@pytest.fixture(autouse=True)
def _long_numbers() -> Iterator[None]:
    """Numbers of more digits than Python shows by itself are written when a case is."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


def _run(seed: str, asynchronous: bool) -> History:
    try:
        return History(seed, asynchronous).run()
    except PairError as difference:
        print(f"TOCSIN_SEED={SEED}: written to {write(difference)}")
        raise


def test_random_histories_give_what_the_model_says() -> None:
    ran = [_run(f"{SEED}/{number}", number % 10 == 0) for number in range(HISTORIES)]
    print(f"seed {SEED}: {len(ran)} histories, {sum(each.pairs for each in ran):,} pairs")
    assert sum(each.refused for each in ran) < sum(each.pairs for each in ran) / 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_many_random_histories_give_what_the_model_says(part: int) -> None:
    histories = pairs = 0
    while histories < SLOW_HISTORIES / SLOW_PARTS or pairs < SLOW_PAIRS / SLOW_PARTS:
        pairs += _run(f"{SEED}/slow/{part}/{histories}", histories % 50 == 0).pairs
        histories += 1
    print(f"operators: seed {SEED}, part {part}: {histories:,} histories, {pairs:,} pairs, none wrong")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_was_wrong_once_is_right(path: Path) -> None:
    case = json.loads(path.read_text())
    assert replay(case) == case["matches"]
