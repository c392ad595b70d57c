"""Operations on machine words that Numba does not offer, each beside the plain Python that says what it means.

With the JIT off, the plain functions run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 8
"""Words of 64 queries in a row of a bitmap: 512 queries are treated at once."""

_LONG = ir.IntType(64)
_VECTOR = ir.VectorType(_LONG, LANES)


def trailing_zeros(word: Any) -> int:
    """Return the number of zeros below the lowest one of a word that is not zero.

    >>> trailing_zeros(np.uint64(40))
    3
    """
    return (int(word) & -int(word)).bit_length() - 1


def meet(words: Any, predicates: Any, upper: Any, lower: Any, met: Any) -> int:
    """Intersect predicates (numbers of ``words``) over a chunk of queries.

    ``upper`` and ``lower`` are uint64[256 * axes, LANES]: row ``256 * axis + bucket`` has the bit of each query whose lower
    (in ``upper``) or higher (in ``lower``) bucket is below that one. ``met`` uint64[LANES] receives the queries that
    may meet all the predicates; the answer has a bit for each lane that is not empty.
    """
    met[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for predicate in predicates:
        word = int(words[predicate])
        row = (word >> 8) & 0x7FFFFF
        met &= upper[row + (word & 255) + 1] & ~lower[row]
    return sum(1 << lane for lane in range(LANES) if met[lane])


@intrinsic  # type: ignore[untyped-decorator]
def _trailing_zeros(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@overload(trailing_zeros)  # type: ignore[untyped-decorator]
def _overload_trailing_zeros(word):  # type: ignore[no-untyped-def]
    return lambda word: _trailing_zeros(np.uint64(word))


@intrinsic  # type: ignore[untyped-decorator]
def _meet(typing: Any, words: Any, predicates: Any, upper: Any, lower: Any, met: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args

        def array(i: int) -> Any:
            return context.make_array(kinds[i])(context, builder, arguments[i])

        def row(table: Any, number: Any) -> Any:
            place = builder.gep(table, [builder.mul(number, ir.Constant(_LONG, LANES))])
            loaded = builder.load(builder.bitcast(place, _VECTOR.as_pointer()))
            loaded.align = 8
            return loaded

        all_words, above, below = array(0).data, array(2).data, array(3).data
        which, count = array(1).data, array(1).nitems
        kept = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [-1] * LANES))
        one = ir.Constant(_LONG, 1)
        with cgutils.for_range(builder, count, intp=_LONG) as loop:
            predicate = builder.zext(builder.load(builder.gep(which, [loop.index])), _LONG)
            word = builder.zext(builder.load(builder.gep(all_words, [predicate])), _LONG)
            low = builder.and_(builder.lshr(word, ir.Constant(_LONG, 8)), ir.Constant(_LONG, 0x7FFFFF))
            high = builder.add(builder.add(low, builder.and_(word, ir.Constant(_LONG, 255))), one)
            mask = builder.and_(row(above, high), builder.not_(row(below, low)))
            builder.store(builder.and_(builder.load(kept), mask), kept)
        result = builder.load(kept)
        stored = builder.store(result, builder.bitcast(array(4).data, _VECTOR.as_pointer()))
        stored.align = 8
        some = builder.icmp_unsigned("!=", result, ir.Constant(_VECTOR, [0] * LANES))
        return builder.zext(builder.bitcast(some, ir.IntType(LANES)), _LONG)

    return types.int64(words, predicates, upper, lower, met), generate


@overload(meet)  # type: ignore[untyped-decorator]
def _overload_meet(words, predicates, upper, lower, met):  # type: ignore[no-untyped-def]
    return lambda words, predicates, upper, lower, met: _meet(words, predicates, upper, lower, met)
