"""Boxes are sieved as the plain Python says, in registers or not."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from tests.kernels.test_vectors import words_on

from tocsin.kernels.segments import sieve_llvm  # noqa: F401 - how the compiled function here is compiled
from tocsin.kernels.segments.sieve import list_gathered, list_passing
from tocsin.kernels.vectors import AT_ONCE, TABLE


@numba.njit  # type: ignore[untyped-decorator]
def compiled(words: Any, stretches: Any, count: Any, buckets: Any, candidates: Any) -> Any:
    return list_passing(words, stretches, count, buckets, candidates)


@pytest.mark.parametrize("axes", [1, 5, TABLE - 1, TABLE, TABLE + 1, 300])
@pytest.mark.parametrize("seed", range(4))
def test_what_may_be_met_is_listed(axes: int, seed: int) -> None:
    random = np.random.default_rng([axes, seed])
    boxes, rows, count = 200, 9, 30
    first = np.concatenate([words_on(random, axes, boxes), np.full(AT_ONCE, 255, np.int32)])
    second = np.concatenate([words_on(random, axes, boxes), np.full(AT_ONCE, 255, np.int32)])
    buckets = random.integers(0, 255, (rows + 4 + TABLE // axes, axes)).astype(np.uint8)[:rows]
    begins = random.integers(0, boxes, count).astype(np.int32)
    ends = np.minimum(begins + random.integers(0, 50, count), boxes).astype(np.int32)
    stretches = (random.integers(0, rows, count).astype(np.int32), begins, ends)
    room = int((ends - begins).sum()) + AT_ONCE
    for words in ((first, second), (first, first)):
        plain, listed, gathered = ((np.zeros(room, np.int32), np.zeros(room, np.int32)) for _ in range(3))
        passed = list_passing(words, stretches, count, buckets, plain)
        assert compiled(words, stretches, count, buckets, listed) == passed
        assert list_gathered(words, stretches, count, buckets, gathered) == passed
        for query, position in (listed, gathered):
            np.testing.assert_array_equal(query[:passed], plain[0][:passed])
            np.testing.assert_array_equal(position[:passed], plain[1][:passed])
