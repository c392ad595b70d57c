"""The machine code of the operations in `vectors.py`, for the compiler: imported only when something is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from tocsin.kernels.vectors import (
    AT_ONCE,
    LANES,
    TABLE,
    may_hold_from,
    meet,
    ones,
    surely_meet,
    trailing_zeros,
    transpose,
)

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_WORD, AT_ONCE)
_VECTOR, _TABLE = ir.VectorType(_LONG, LANES), ir.VectorType(_BYTE, TABLE)


def _spread(builder: Any, kind: Any, value: Any) -> Any:
    """Return a vector all of whose lanes have one value."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_WORD, kind.count), [0] * kind.count))


def permutes_bytes() -> bool:
    """Return whether the processor compiled for picks bytes from a register, as `picked` does (AVX-512 VBMI)."""
    return "+avx512vbmi" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")


def picked(builder: Any, begin: Any, places: Any) -> Any:
    """Return which of the TABLE bytes from ``begin`` on stand at these places, of which the low six bits count: one
    for each of TABLE."""
    table = builder.load(builder.bitcast(begin, _TABLE.as_pointer()))
    table.align = 1
    shape = ir.FunctionType(_TABLE, [_TABLE, _TABLE])
    pick = cgutils.get_or_insert_function(builder.module, shape, "llvm.x86.avx512.permvar.qi.512")  # type: ignore[no-untyped-call]
    return builder.call(pick, [table, places])


def gathered(builder: Any, begin: Any, places: Any) -> Any:
    """Return the bytes at these places from ``begin`` on, a word for each; the three bytes after it are read too."""
    words = places.type
    pointers = builder.gep(begin, [places], source_etype=_BYTE)
    pointers.type = ir.VectorType(_BYTE.as_pointer(), words.count)
    bits = ir.VectorType(ir.IntType(1), words.count)
    shape = ir.FunctionType(words, [pointers.type, _WORD, bits, words])
    name = f"llvm.masked.gather.v{words.count}i32.v{words.count}p0"
    gather = cgutils.get_or_insert_function(builder.module, shape, name)  # type: ignore[no-untyped-call]
    every, nothing = (ir.Constant(kind, [value] * words.count) for kind, value in ((bits, 1), (words, 0)))
    found = builder.call(gather, [pointers, ir.Constant(_WORD, 1), every, nothing])
    return builder.and_(found, ir.Constant(words, [255] * words.count))


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@overload(trailing_zeros)
def _overload_trailing_zeros(word):  # type: ignore[no-untyped-def]
    return lambda word: _trailing_zeros(np.uint64(word))  # type: ignore[call-arg]


@intrinsic
def _ones(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(ones)
def _overload_ones(word):  # type: ignore[no-untyped-def]
    return lambda word: _ones(np.uint64(word))  # type: ignore[call-arg]


@intrinsic
def _exchange(typing: Any, block: Any, row: Any, shift: Any, mask: Any) -> Any:
    """Exchange, of a row and of the one ``shift`` rows below, the bits that ``mask`` selects in the latter and the bits
    ``shift`` places above them in the former."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, arguments[0]).data

        def there(number: Any) -> Any:
            place = builder.gep(rows, [builder.mul(number, ir.Constant(_LONG, LANES))])
            return builder.bitcast(place, _VECTOR.as_pointer())

        first, second = there(arguments[1]), there(builder.add(arguments[1], arguments[2]))
        by = _spread(builder, _VECTOR, arguments[2])
        above, below = builder.load(first), builder.load(second)
        above.align = below.align = 8
        chosen = _spread(builder, _VECTOR, arguments[3])
        changed = builder.and_(builder.xor(builder.lshr(above, by), below), chosen)
        builder.store(builder.xor(below, changed), second).align = 8
        builder.store(builder.xor(above, builder.shl(changed, by)), first).align = 8
        return context.get_dummy_value()

    return types.void(block, types.int64, types.int64, types.uint64), generate


@overload(transpose)
def _overload_transpose(block):  # type: ignore[no-untyped-def]
    def exchange_halves(block):  # type: ignore[no-untyped-def]
        shift, mask = 32, np.uint64(0xFFFFFFFF)
        while shift:
            for begin in range(0, 64, 2 * shift):
                for row in range(begin, begin + shift):
                    _exchange(block, row, shift, mask)  # type: ignore[call-arg]
            shift >>= 1
            mask ^= mask << np.uint64(shift)

    return exchange_halves


def _intersect(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the intersection of predicates to the seventh argument and return it; see `meet`, and `surely_meet`
    where there is an eighth argument."""

    def array(i: int) -> Any:
        return context.make_array(signature.args[i])(context, builder, arguments[i])

    def row(table: Any, number: Any) -> Any:
        place = builder.gep(table, [builder.mul(number, ir.Constant(_LONG, LANES))])
        loaded = builder.load(builder.bitcast(place, _VECTOR.as_pointer()))
        loaded.align = 8
        return loaded

    all_words, which, above, below = array(0).data, array(1).data, array(4).data, array(5).data
    kept = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [-1] * LANES))  # type: ignore[no-untyped-call]
    one, certain = ir.Constant(_LONG, 1), len(arguments) > 7
    with cgutils.for_range_slice(builder, arguments[2], arguments[3], one, intp=_LONG) as (place, _):
        predicate = builder.zext(builder.load(builder.gep(which, [place])), _LONG)
        word = builder.zext(builder.load(builder.gep(all_words, [predicate])), _LONG)
        low = builder.and_(builder.lshr(word, ir.Constant(_LONG, 8)), ir.Constant(_LONG, 0x3FFFFF))
        high = builder.add(builder.add(low, builder.and_(word, ir.Constant(_LONG, 255))), one)
        if certain:
            doubt = builder.lshr(word, ir.Constant(_LONG, 31))
            low, high = builder.add(low, doubt), builder.sub(high, doubt)
        mask = builder.and_(row(above, high), builder.not_(row(below, low)))
        if certain:
            is_set = builder.and_(
                builder.icmp_signed(">=", predicate, arguments[7]), builder.trunc(doubt, ir.IntType(1))
            )
            mask = builder.select(is_set, ir.Constant(_VECTOR, [0] * LANES), mask)
        builder.store(builder.and_(builder.load(kept), mask), kept)
    result = builder.load(kept)
    stored = builder.store(result, builder.bitcast(array(6).data, _VECTOR.as_pointer()))
    stored.align = 8
    return result


@intrinsic
def _meet(typing: Any, words: Any, predicates: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = _intersect(context, builder, signature, arguments)
        some = builder.icmp_unsigned("!=", result, ir.Constant(_VECTOR, [0] * LANES))
        return builder.zext(builder.bitcast(some, ir.IntType(LANES)), _LONG)

    return types.int64(words, predicates, types.int64, types.int64, upper, lower, met), generate


@intrinsic
def _surely_meet(
    typing: Any, words: Any, predicates: Any, begin: Any, end: Any, upper: Any, lower: Any, met: Any, singles: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _intersect(context, builder, signature, arguments)
        return context.get_dummy_value()

    long = types.int64
    return types.none(words, predicates, long, long, upper, lower, met, long), generate


@overload(meet)
def _overload_meet(words, predicates, begin, end, upper, lower, met):  # type: ignore[no-untyped-def]
    return lambda words, predicates, begin, end, upper, lower, met: _meet(  # type: ignore[call-arg]
        words, predicates, np.int64(begin), np.int64(end), upper, lower, met
    )


@overload(surely_meet)
def _overload_surely_meet(words, predicates, begin, end, upper, lower, met, singles):  # type: ignore[no-untyped-def]
    return lambda words, predicates, begin, end, upper, lower, met, singles: _surely_meet(  # type: ignore[call-arg]
        words, predicates, np.int64(begin), np.int64(end), upper, lower, met, np.int64(singles)
    )


@intrinsic
def _may_hold_from(typing: Any, words: Any, begin: Any, buckets: Any, query: Any) -> Any:
    def all_lanes(value: int) -> Any:
        return ir.Constant(_WORDS, [value] * AT_ONCE)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, lines = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2))
        loaded = builder.load(builder.bitcast(builder.gep(given.data, [arguments[1]]), _WORDS.as_pointer()))
        loaded.align = 4
        axis = builder.and_(builder.lshr(loaded, all_lanes(16)), all_lanes(0x3FFF))
        lowest = builder.and_(builder.lshr(loaded, all_lanes(8)), all_lanes(255))
        axes = builder.extract_value(lines.shape, 1)
        line = builder.gep(lines.data, [builder.mul(arguments[3], axes)])
        above = builder.sub(gathered(builder, line, axis), lowest)
        held = builder.icmp_unsigned("<=", above, builder.and_(loaded, all_lanes(255)))
        return builder.zext(builder.bitcast(held, ir.IntType(AT_ONCE)), _LONG)

    return types.int64(words, types.int64, buckets, types.int64), generate


@overload(may_hold_from)
def _overload_may_hold_from(words, begin, buckets, query):  # type: ignore[no-untyped-def]
    return lambda words, begin, buckets, query: _may_hold_from(  # type: ignore[call-arg]
        words, np.int64(begin), buckets, np.int64(query)
    )
