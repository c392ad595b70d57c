"""Operations on machine words that Numba does not offer, as the plain Python that says what each means.

With the JIT off these functions run. Compiled kernels have the machine code that `vectors_llvm.py` gives for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 8
"""Words of 64 queries in a row of a bitmap: 512 queries are treated at once."""

AT_ONCE = 16
"""Words that `may_hold_from` tests at once."""

TABLE = 64
"""Bytes that one register holds."""


def trailing_zeros(word: Any) -> Any:
    """Return the number of zeros below the lowest one of a word that is not zero.

    >>> trailing_zeros(np.uint64(40))
    3
    """
    return (int(word) & -int(word)).bit_length() - 1


def ones(word: Any) -> Any:
    """Return the number of ones of a word.

    >>> ones(np.uint64(40))
    2
    """
    return int(word).bit_count()


def transpose(block: Any) -> None:
    """Exchange rows and bits of a block uint64[64, LANES], each lane by itself: bit ``b`` of row ``r`` becomes bit
    ``r`` of row ``b``."""
    bits = np.unpackbits(block.T.copy().view(np.uint8), axis=1, bitorder="little").reshape(LANES, 64, 64)
    turned = np.packbits(bits.transpose(0, 2, 1).reshape(LANES, -1), axis=1, bitorder="little")
    block[:] = turned.view(np.uint64).T


def meet(words: Any, predicates: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any) -> Any:
    """Intersect the predicates ``begin:end`` over a chunk of queries.

    ``upper`` and ``lower`` are uint64[256 * axes, LANES]: row ``256 * axis + bucket`` has the bit of each query whose
    lower (in ``upper``) or higher (in ``lower``) bucket is below that one. ``met`` uint64[LANES] receives the queries
    that may meet all the predicates; the answer has a bit for each lane that is not empty.
    """
    met[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for place in range(begin, end):
        word = int(words[predicates[place]])
        row = (word >> 8) & 0x3FFFFF
        met &= upper[row + (word & 255) + 1] & ~lower[row]
    return sum(1 << lane for lane in range(LANES) if met[lane])


def surely_meet(
    words: Any, predicates: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any, singles: Any
) -> None:
    """Do the same, and leave in ``met`` only the queries about which buckets leave no doubt.

    Where a word is below zero, those strictly inside the buckets of a single interval (a predicate below ``singles``)
    leave none.
    """
    met[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for place in range(begin, end):
        word = int(words[predicates[place]])
        row, doubt = (word >> 8) & 0x3FFFFF, int(word < 0)
        met &= upper[row + (word & 255) + 1 - doubt] & ~lower[row + doubt]
        if doubt and predicates[place] >= singles:
            met[:] = np.uint64(0)


def may_hold_from(words: Any, begin: Any, buckets: Any, query: Any) -> Any:
    """Test a query's buckets against the words of 16 predicates from ``begin`` on; return a bit for each that may hold.

    There must be 16 words from ``begin`` on, and three bytes of memory after ``buckets`` uint8[queries, axes].
    """
    held = 0
    for k in range(AT_ONCE):
        word = int(words[begin + k])
        bucket = int(buckets[query, (word >> 16) & 0x3FFF]) if (word >> 16) & 0x3FFF < buckets.shape[1] else 0
        held |= (0 <= bucket - ((word >> 8) & 255) <= (word & 255)) << k
    return held
