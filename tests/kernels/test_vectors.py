"""The vector operations mean what the plain Python beside them says."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from tocsin.kernels import vectors_llvm  # noqa: F401 - how the compiled functions here are compiled
from tocsin.kernels.vectors import AT_ONCE, LANES, may_hold_from, meet, ones, surely_meet, trailing_zeros, transpose


@numba.njit  # type: ignore[untyped-decorator]
def compiled_trailing_zeros(word: Any) -> Any:
    return trailing_zeros(word)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_ones(word: Any) -> Any:
    return ones(word)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_transpose(block: Any) -> None:
    transpose(block)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_meet(words: Any, predicates: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any) -> Any:
    return meet(words, predicates, begin, end, upper, lower, met)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_surely_meet(words: Any, held: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any, n: Any) -> None:
    surely_meet(words, held, begin, end, upper, lower, met, n)


@numba.njit  # type: ignore[untyped-decorator]
def compiled_may_hold_from(words: Any, begin: Any, buckets: Any, query: Any) -> Any:
    return may_hold_from(words, begin, buckets, query)


def words_on(random: np.random.Generator, axes: int, count: int) -> Any:
    """Draw words of predicates, some of which leave doubt or decide."""
    lowest = random.integers(0, 200, count)
    width = random.integers(0, 255 - lowest)
    flags = random.integers(0, 4, count) << 30
    return ((flags | (random.integers(0, axes, count) << 16) | (lowest << 8) | width).astype(np.uint32)).view(np.int32)


def test_trailing_zeros_of_every_power_of_two() -> None:
    for power in range(64):
        word = np.uint64(1 << power) | np.uint64(1 << 63)
        assert compiled_trailing_zeros(word) == trailing_zeros(word) == power


def test_ones_are_counted() -> None:
    for word in (0, 1, 1 << 63, 2**64 - 1, 0x5555555555555555):
        assert compiled_ones(np.uint64(word)) == ones(np.uint64(word)) == bin(word).count("1")


def test_a_block_is_transposed_lane_by_lane() -> None:
    block = np.random.default_rng(3).integers(0, 2**64, (64, LANES), dtype=np.uint64)
    plain, compiled = block.copy(), block.copy()
    transpose(plain)
    compiled_transpose(compiled)
    np.testing.assert_array_equal(plain, compiled)
    for row, lane, bit in ((0, 0, 0), (5, 3, 60), (63, 7, 1), (17, 1, 17)):
        assert (int(plain[bit, lane]) >> row) & 1 == (int(block[row, lane]) >> bit) & 1


@pytest.mark.parametrize("seed", range(20))
def test_meet_intersects_as_plainly_said(seed: int) -> None:
    random = np.random.default_rng(seed)
    axes = int(random.integers(1, 6))
    words = words_on(random, axes, 40) & 0x3FFFFFFF
    predicates = random.permutation(40).astype(np.int32)
    upper = random.integers(0, 2**64, (256 * axes, LANES), dtype=np.uint64)
    lower = random.integers(0, 2**64, (256 * axes, LANES), dtype=np.uint64) & np.uint64(0x1111111111111111)
    begin = int(random.integers(0, 38))
    end = begin + int(random.integers(0, 3))
    plain, compiled = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    said = meet(words, predicates, begin, end, upper, lower, plain)
    assert compiled_meet(words, predicates, begin, end, upper, lower, compiled) == said
    np.testing.assert_array_equal(plain, compiled)


@pytest.mark.parametrize("seed", range(20))
def test_only_queries_inside_leave_no_doubt_as_plainly_said(seed: int) -> None:
    random = np.random.default_rng(seed)
    words = words_on(random, 3, 40)
    predicates, singles = random.permutation(40).astype(np.int32), int(random.integers(0, 41))
    upper = random.integers(0, 2**64, (256 * 3, LANES), dtype=np.uint64)
    lower = random.integers(0, 2**64, (256 * 3, LANES), dtype=np.uint64) & np.uint64(0x1111111111111111)
    for begin, end in ((0, 1), (3, 5), (7, 10), (39, 39)):
        plain, compiled = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
        surely_meet(words, predicates, begin, end, upper, lower, plain, singles)
        compiled_surely_meet(words, predicates, begin, end, upper, lower, compiled, singles)
        np.testing.assert_array_equal(plain, compiled)


@pytest.mark.parametrize("seed", range(20))
def test_sixteen_words_are_tested_as_plainly_said(seed: int) -> None:
    random = np.random.default_rng(seed)
    axes = int(random.integers(1, 40))
    words = words_on(random, axes, 64)
    buckets = random.integers(0, 255, (9 + 4, axes)).astype(np.uint8)[:9]
    for query in range(9):
        for begin in (0, 5, 64 - AT_ONCE):
            said = may_hold_from(words, begin, buckets, query)
            assert compiled_may_hold_from(words, begin, buckets, query) == said
