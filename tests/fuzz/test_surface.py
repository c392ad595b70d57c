"""Whatever the public surface is given, it answers or raises TocsinError: it never hangs, and leaves nothing behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Tocsin, tocsin_here
from tests.fuzz import commands
from tests.fuzz.surface import Surface, run
from tocsin.index import engines

SEED = os.environ.get("TOCSIN_SEED", "20261116")
PARTS = 4
SLOW_INPUTS, SLOW_PARTS = int(os.environ.get("TOCSIN_FUZZ", "2000000")), 40
COMMANDS = 300

__all__ = ["tocsin_here"]


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_but_our_errors_comes_out_of_20_000_inputs(part: int) -> None:
    counts = run(f"{SEED}/{part}", 20_000 // PARTS)
    assert sum(counts.values()) == 20_000 // PARTS and len(counts) == 13


@pytest.mark.parametrize("engine", engines())
def test_nothing_but_our_errors_comes_out_of_any_engine(engine: str) -> None:
    run(f"{SEED}/{engine}", 200, engine)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_nothing_but_our_errors_comes_out_of_many_inputs(part: int) -> None:
    print(f"seed {SEED}, part {part}: {SLOW_INPUTS // SLOW_PARTS:,} inputs")
    run(f"{SEED}/slow/{part}", SLOW_INPUTS // SLOW_PARTS)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_what_fails_is_made_small(pick: random.Random) -> None:
    """The same calls with choices that Hypothesis makes, and makes simpler where one fails."""
    surface = Surface(pick)
    for _ in range(5):
        surface.step()


def test_the_command_line_ends_with_a_sentence(tocsin_here: Tocsin, tmp_path: Path) -> None:
    pick = random.Random(f"{SEED}/commands")
    for number in range(COMMANDS):
        commands.files(pick, tmp_path)
        command = commands.arguments(pick)
        done = tocsin_here(*command)
        told = f"seed {SEED}, command {number}: {command}: {done.err}"
        assert done.code in (0, 1, 2) and "Traceback" not in done.err, told
        assert done.code == 0 or done.err or done.out, told


def test_nothing_is_left_open_and_no_thread_is_left() -> None:
    script = (
        "import threading; from tests.fuzz.surface import run; run('leaks', 400); "
        "left = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]; "
        "assert not left, left"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", script]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning" not in done.stderr
