"""The machine code of `sieve.py` where the processor permutes bytes, for the compiler: imported only when something is
compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from tocsin.kernels.compile import dispatcher
from tocsin.kernels.segments import sieve
from tocsin.kernels.segments.sieve import list_passing
from tocsin.kernels.vectors import AT_ONCE, TABLE
from tocsin.kernels.vectors_llvm import permutes_bytes, picked

list_gathered = dispatcher(sieve.list_gathered)

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_WORDS, _BITS = ir.VectorType(_WORD, AT_ONCE), ir.VectorType(ir.IntType(1), AT_ONCE)
_TABLE = ir.VectorType(_BYTE, TABLE)


@overload(list_passing)
def _overload_list_passing(words, stretches, count, buckets, candidates):  # type: ignore[no-untyped-def]
    if not permutes_bytes():
        return lambda words, stretches, count, buckets, candidates: list_gathered(
            words, stretches, count, buckets, candidates
        )

    def chosen(words, stretches, count, buckets, candidates):  # type: ignore[no-untyped-def]
        if buckets.shape[1] > TABLE:
            return list_gathered(words, stretches, count, buckets, candidates)
        (first, second), (queries, begins, ends), (query_of, position_of) = words, stretches, candidates
        listed = 0
        for i in range(count):
            query, end = np.int64(queries[i]), np.int64(ends[i])
            for begin in range(np.int64(begins[i]), end, AT_ONCE):
                listed = _sieve(first, second, begin, end, buckets, query, query_of, position_of, listed)  # type: ignore[call-arg]
        return listed

    return chosen


@intrinsic
def _sieve(
    typing: Any, first: Any, second: Any, begin: Any, end: Any, buckets: Any, query: Any, out: Any, at: Any, listed: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, stop, row, place = (arguments[i] for i in (2, 3, 5, 8))

        def array(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, arguments[i])

        def lanes(value: int) -> Any:
            return ir.Constant(_WORDS, [value] * AT_ONCE)

        def spread(value: Any) -> Any:
            nothing = ir.Constant(_WORDS, ir.Undefined)
            one = builder.insert_element(nothing, builder.trunc(value, _WORD), ir.Constant(_WORD, 0))
            return builder.shuffle_vector(one, nothing, ir.Constant(_WORDS, [0] * AT_ONCE))

        def function(name: str, *shape: Any) -> Any:
            return cgutils.get_or_insert_function(builder.module, ir.FunctionType(shape[0], shape[1:]), name)  # type: ignore[no-untyped-call]

        def read(data: Any, index: Any, kind: Any, align: int) -> Any:
            loaded = builder.load(builder.bitcast(builder.gep(data, [index]), kind.as_pointer()))
            loaded.align = align
            return loaded

        lines = array(4)
        line = builder.gep(lines.data, [builder.mul(row, builder.extract_value(lines.shape, 1))])

        def holds(words: Any) -> Any:
            word = read(words.data, start, _WORDS, 4)
            axis = builder.bitcast(builder.lshr(word, lanes(16)), _TABLE)  # its low byte counts, modulo 64
            bucket = builder.and_(builder.bitcast(picked(builder, line, axis), _WORDS), lanes(255))
            above = builder.sub(bucket, builder.and_(builder.lshr(word, lanes(8)), lanes(255)))
            return builder.icmp_unsigned("<=", above, builder.and_(word, lanes(255)))

        order = ir.Constant(_WORDS, list(range(AT_ONCE)))
        held = builder.icmp_signed("<", order, spread(builder.sub(stop, start)))
        held = builder.and_(held, builder.and_(holds(array(0)), holds(array(1))))
        pack = function("llvm.x86.avx512.mask.compress.v16i32", _WORDS, _WORDS, _WORDS, _BITS)
        passed = builder.call(pack, [builder.add(order, spread(start)), lanes(0), held])
        for listing, values in ((array(6), spread(row)), (array(7), passed)):
            where = builder.bitcast(builder.gep(listing.data, [place]), _WORDS.as_pointer())
            builder.store(values, where).align = 4
        bits = builder.zext(builder.bitcast(held, ir.IntType(AT_ONCE)), _LONG)
        return builder.add(place, builder.call(function("llvm.ctpop.i64", _LONG, _LONG), [bits]))

    whole = types.int64
    return whole(first, second, whole, whole, buckets, whole, out, at, whole), generate
