"""Sixteen boxes against one query at once: what passes both of their first checks is listed without a branch.

Where the processor permutes bytes (AVX-512 VBMI) and a query has at most `TABLE` axes, its buckets are held in one
register, from which each of sixteen words picks its own (`sieve_llvm.py`); so many bytes of memory must go on after the
last query's first. Elsewhere they are gathered from memory. With the JIT off, the plain function runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.vectors import AT_ONCE, may_hold_from, trailing_zeros


def list_passing(words: Any, stretches: Any, count: Any, buckets: Any, candidates: Any) -> Any:
    """List (query, position) of the positions in stretches at which both words leave it possible that the box is met.

    ``words`` is two arrays, which go on for 16 after the last position. ``stretches`` is three, of which the first
    ``count`` count: query, first position, last plus one. ``candidates`` is two, query and position, with room for all
    positions and 16 more. Returns how many are listed.
    """
    listed = 0
    for query, begin, end in zip(*(part[:count].tolist() for part in stretches), strict=True):
        for position in range(begin, end):
            if all(may_hold_from(some, position, buckets, query) & 1 for some in words):
                candidates[0][listed], candidates[1][listed] = query, position
                listed += 1
    return listed


@kernel
def list_gathered(words, stretches, count, buckets, candidates):  # type: ignore[no-untyped-def]
    """Do the same with buckets gathered from memory."""
    first, second = words
    queries, begins, ends = stretches
    listed: Any = 0
    for i in range(count):
        query, end = queries[i], ends[i]
        for begin in range(begins[i], end, AT_ONCE):
            held = may_hold_from(first, begin, buckets, query) & ((1 << min(end - begin, AT_ONCE)) - 1)
            while held:
                position = begin + trailing_zeros(np.uint64(held))
                held &= held - 1
                word = second[position]
                bucket = buckets[query, (word >> 16) & 0x3FFF]
                candidates[0][listed], candidates[1][listed] = query, position
                listed += np.uint32(bucket - ((word >> 8) & 255)) <= np.uint32(word & 255)
    return listed
