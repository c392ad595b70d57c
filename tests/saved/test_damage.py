"""Damaged files of a saved matcher are refused by name; without verifying, nothing worse than a wrong answer comes of
them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.saved.damage import answers, damaged, filled
from tests.saved.every_dimension import OPERATORS
from tests.saved.test_saved_again import SEED
from tocsin import Matcher
from tocsin.errors import SavedIndexError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["adaptive", "bounds"])
def saved(request: Any, tmp_path_factory: Any) -> Path:
    directory: Path = tmp_path_factory.mktemp(request.param)
    filled(request.param).save(directory)
    return directory


def refusals(directory: Path, seed: str, tries: int) -> int:
    """Damage a file so many times; return how often the change was one that had to be refused, and was."""
    source, right = random.Random(seed), answers(Matcher.load(directory, operators=OPERATORS))
    refused = 0
    for _ in range(tries):
        with damaged(directory, source) as (file, done):
            if done:
                with pytest.raises(SavedIndexError) as caught:
                    Matcher.load(directory, operators=OPERATORS)
                assert file.name in str(caught.value), (file, done)
                refused += 1
    assert answers(Matcher.load(directory, operators=OPERATORS)) == right
    return refused


def unverified(directory: Path, seed: str, tries: int) -> list[str]:
    """Use so many damaged matchers without verifying, in a process of their own; return what came of each."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.saved.damage", str(directory), seed, str(tries)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=3600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"it ended with {done.returncode} at {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == tries
    return [line.rpartition(": ")[2] for line in lines]


def test_every_damage_is_refused_with_the_name_of_the_file(saved: Path) -> None:
    assert refusals(saved, SEED, 150) > 100


def test_without_verifying_damage_neither_crashes_nor_hangs(saved: Path) -> None:
    assert set(unverified(saved, SEED, 25)) <= {"refused", "failed", "used"}


@pytest.mark.slow
def test_much_damage_is_refused_with_the_name_of_the_file(saved: Path) -> None:
    print(f"damage: {refusals(saved, SEED, 10_000):,} refused of 10,000, seed {SEED}")


@pytest.mark.slow
def test_much_damage_neither_crashes_nor_hangs_without_verifying(saved: Path) -> None:
    found = unverified(saved, SEED, 2_000)
    assert set(found) <= {"refused", "failed", "used"}
    print(f"damage unverified: {len(found):,} tries, {found.count('refused'):,} refused, seed {SEED}")
