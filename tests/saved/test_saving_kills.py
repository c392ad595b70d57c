"""Saves that are killed at any step, that meet other saves, and that may not write: what was there stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")
"""A file system in memory, where waiting for the disk takes no time; the order of what is written is the same."""


@pytest.fixture(scope="module")
def outcomes() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as directory:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "tests.saved.saving", directory]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1800)
        assert done.returncode == 0, done.stderr[-3000:]
        lines = [line.partition(" ") for line in done.stdout.splitlines()]
        yield [(name, json.loads(found)) for name, _, found in lines]


def told(outcomes: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [found for each, found in outcomes if each == name]


def test_a_save_that_is_killed_leaves_the_matcher_before_or_the_one_after(outcomes: Any) -> None:
    over, fresh = told(outcomes, "killed")
    assert over["ended"] == fresh["ended"] == 0
    assert set(over["found"]) == {"old", "new"}
    assert set(fresh["found"]) == {"none", "new"}
    assert over["points"] > 15
    assert fresh["points"] > 10


def test_processes_that_save_to_one_place_take_turns_and_readers_never_fail(outcomes: Any) -> None:
    assert told(outcomes, "at_once") == [{"ended": [0, 0], "loads": True, "strays": 0}]


def test_a_place_that_may_not_be_written_or_read_is_named(outcomes: Any) -> None:
    (found,) = told(outcomes, "forbidden")
    assert found["ended"] == 0
    assert found["said"] == [
        "FileError: PLACE/held: the index cannot be saved here: Permission denied",
        "FileError: PLACE/new: the index cannot be saved here: Permission denied",
        "SavedIndexError: PLACE/held/FILE: cannot be read: Permission denied",
    ]
