"""The operations on lines of bytes mean what the plain Python beside them says, whatever the processor offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tocsin.kernels.segments import lines_llvm  # noqa: F401 - how the compiled functions here are compiled
from tocsin.kernels.segments.lines import BLOCK, LINE, PAIRS, both_hold, turn


@numba.njit  # type: ignore[untyped-decorator]
def compiled_both_hold(words: Any, block: Any, lines: Any, query: Any) -> Any:
    return both_hold(words, block, lines, query)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_turn(columns: Any, known: Any, queries: Any, lines: Any) -> None:
    turn(columns, known, queries, lines)


def blocks_and_lines(seed: int, queries: int) -> tuple[Any, Any]:
    """Draw three blocks of words, of which about half hold, and lines of queries."""
    random = np.random.default_rng(seed)
    columns = random.integers(0, LINE, (3, 2 * PAIRS))
    lowest = random.integers(0, 256, (3, 2 * PAIRS))
    room = random.choice([0, 60, 255], (3, 2 * PAIRS))
    words = np.stack([columns, lowest, room], axis=1).astype(np.uint8).ravel()
    return words, random.integers(0, 256, (queries + 1, LINE)).astype(np.uint8)[:queries]


@pytest.mark.parametrize("seed", range(20))
def test_pairs_of_words_are_tested_as_plainly_said(seed: int) -> None:
    words, lines = blocks_and_lines(seed, 9)
    for query in range(9):
        for block in range(3):
            assert compiled_both_hold(words, block, lines, query) == both_hold(words, block, lines, query)


def test_a_pair_holds_where_both_words_do() -> None:
    words, lines = np.zeros(BLOCK, np.uint8), np.zeros((2, LINE), np.uint8)
    words[:PAIRS], words[PAIRS : 2 * PAIRS] = 3, 63  # columns
    words[2 * PAIRS : 4 * PAIRS] = 200  # the lowest bytes
    words[4 * PAIRS : 6 * PAIRS] = 10  # and how far above
    words[2 * PAIRS + 5] = 250  # the fifth first word: 250 to 4, round
    for low, high, held in ((200, 210, 0xFFDF), (199, 205, 0), (205, 211, 0), (255, 205, 0x20), (4, 205, 0x20)):
        lines[0, 3], lines[0, 63] = low, high
        assert compiled_both_hold(words, 0, lines, 0) == both_hold(words, 0, lines, 0) == held


def test_another_processor_gives_the_same_answers() -> None:
    """One that cannot look up 64 bytes at once has them gathered."""
    words, lines = blocks_and_lines(7, 3)
    wanted = [[both_hold(words, block, lines, query) for block in range(3)] for query in range(3)]
    program = """
from tests.kernels.test_lines import blocks_and_lines, compiled_both_hold
words, lines = blocks_and_lines(7, 3)
print([[int(compiled_both_hold(words, block, lines, query)) for block in range(3)] for query in range(3)])
assert "permvar" not in next(iter(compiled_both_hold.inspect_llvm().values()))
assert "vpermb" not in next(iter(compiled_both_hold.inspect_asm().values()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([[int(held) for held in row] for row in wanted])


@pytest.mark.parametrize(("known", "queries"), [(1, 1), (8, 8), (30, 128), (33, 50), (64, 121)])
def test_columns_are_turned_into_lines(known: int, queries: int) -> None:
    columns = np.random.default_rng(known).integers(0, 256, (LINE, 128)).astype(np.uint8)
    plain, compiled = np.zeros((129, LINE), np.uint8), np.zeros((129, LINE), np.uint8)
    turn(columns, known, queries, plain)
    compiled_turn(columns, known, queries, compiled)
    np.testing.assert_array_equal(plain, compiled)
    np.testing.assert_array_equal(plain[:queries, :known], columns[:known, :queries].T)
