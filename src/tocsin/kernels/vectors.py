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

AT_ONCE = 16
"""Words that `may_hold_from` tests at once, and pairs of words that `both_hold` does."""

LINE = 64
"""Bytes of a query among which `both_hold` looks: as many as a register has."""

BLOCK = 6 * AT_ONCE
"""Bytes of the pairs of words that `both_hold` tests at once."""

EDGE = 8
"""Rows and columns that `turn` exchanges at once."""

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LINE, _PAIRS = ir.VectorType(_BYTE, LINE), ir.VectorType(_BYTE, 2 * AT_ONCE)
_WORDS, _BITS = ir.VectorType(_WORD, AT_ONCE), ir.VectorType(ir.IntType(1), AT_ONCE)
_VECTOR = ir.VectorType(_LONG, LANES)


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

    There must be 16 words from ``begin`` on, and three bytes of memory after ``buckets`` uint8[queries, axes], which
    may be one by axis, turned round.
    """
    held = 0
    for k in range(AT_ONCE):
        word = int(words[begin + k])
        bucket = int(buckets[query, (word >> 16) & 0x3FFF]) if (word >> 16) & 0x3FFF < buckets.shape[1] else 0
        held |= (0 <= bucket - ((word >> 8) & 255) <= (word & 255)) << k
    return held


def both_hold(words: Any, block: Any, lines: Any, query: Any) -> Any:
    """Test a query's bytes against a block of 16 pairs of words; return a bit for each pair of which both may hold.

    ``words`` uint8[BLOCK * blocks]: of each block 16 first and 16 second columns, then as many lowest bytes, then how
    far above those a query's bytes may be. ``lines`` uint8[queries, LINE], with three bytes of memory after them: the
    byte of each query in each column.
    """
    columns, lowest, room = words[BLOCK * block : BLOCK * (block + 1)].reshape(3, 2 * AT_ONCE)
    held = lines[query, columns] - lowest <= room
    return sum(1 << k for k in range(AT_ONCE) if held[k] and held[AT_ONCE + k])


def turn(lines: Any, columns: Any, turned: Any) -> None:
    """Write the first ``columns`` of ``lines`` uint8[LINE, queries], one for each, into ``turned`` uint8[queries, LINE]
    or one with more rows; so many queries, and columns, as fill squares of 8."""
    columns += -columns % EDGE
    turned[: lines.shape[1], :columns] = lines[:columns].T


def _spread(builder: Any, kind: Any, value: Any) -> Any:
    """Return a vector all of whose lanes have one value."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_WORD, kind.count), [0] * kind.count))


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
        queries, axes = (builder.extract_value(lines.shape, i) for i in (0, 1))
        line = builder.gep(lines.data, [builder.mul(arguments[3], axes)])
        if signature.args[2].layout == "F":
            line = builder.gep(lines.data, [arguments[3]])
            axis = builder.mul(axis, _spread(builder, _WORDS, builder.trunc(queries, _WORD)))
        places = builder.gep(line, [axis], source_etype=_BYTE)
        places.type = ir.VectorType(_BYTE.as_pointer(), AT_ONCE)
        shape = ir.FunctionType(_WORDS, [places.type, _WORD, _BITS, _WORDS])
        name = f"llvm.masked.gather.v{AT_ONCE}i32.v{AT_ONCE}p0"
        gather = builder.module.globals.get(name) or ir.Function(builder.module, shape, name)
        every = ir.Constant(_BITS, [1] * AT_ONCE)
        bytes_from = builder.call(gather, [places, ir.Constant(_WORD, 1), every, all_lanes(0)])
        above = builder.sub(builder.and_(bytes_from, all_lanes(255)), lowest)
        held = builder.icmp_unsigned("<=", above, builder.and_(loaded, all_lanes(255)))
        return builder.zext(builder.bitcast(held, ir.IntType(AT_ONCE)), _LONG)

    return types.int64(words, types.int64, buckets, types.int64), generate


@overload(may_hold_from)
def _overload_may_hold_from(words, begin, buckets, query):  # type: ignore[no-untyped-def]
    return lambda words, begin, buckets, query: _may_hold_from(  # type: ignore[call-arg]
        words, np.int64(begin), buckets, np.int64(query)
    )


@intrinsic
def _both_hold(typing: Any, words: Any, block: Any, lines: Any, query: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, known = (context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2))
        begin = builder.gep(given, [builder.mul(arguments[1], ir.Constant(_LONG, BLOCK))])
        line = builder.gep(known, [builder.mul(arguments[3], ir.Constant(_LONG, LINE))])

        def part(place: int) -> Any:
            there = builder.gep(begin, [ir.Constant(_LONG, 2 * AT_ONCE * place)])
            loaded = builder.load(builder.bitcast(there, _PAIRS.as_pointer()))
            loaded.align = 1
            return loaded

        columns, lowest, room = (part(place) for place in range(3))
        look = _permuted if "+avx512vbmi," in context.codegen()._tm_features else _gathered
        held = builder.icmp_unsigned("<=", builder.sub(look(builder, line, columns), lowest), room)
        bits = builder.zext(builder.bitcast(held, ir.IntType(2 * AT_ONCE)), _LONG)
        both = builder.and_(bits, builder.lshr(bits, ir.Constant(_LONG, AT_ONCE)))
        return builder.and_(both, ir.Constant(_LONG, (1 << AT_ONCE) - 1))

    return types.int64(words, types.int64, lines, types.int64), generate


def _permuted(builder: Any, line: Any, columns: Any) -> Any:
    """Return the bytes of a line in these columns, by the instruction that looks up 64 at once."""
    loaded = builder.load(builder.bitcast(line, _LINE.as_pointer()))
    loaded.align = 1
    name = "llvm.x86.avx512.permvar.qi.512"
    shape = ir.FunctionType(_LINE, [_LINE, _LINE])
    permute = builder.module.globals.get(name) or ir.Function(builder.module, shape, name)
    found = builder.call(permute, [loaded, _places(builder, columns, range(LINE))])
    return _places(builder, found, range(2 * AT_ONCE))


def _gathered(builder: Any, line: Any, columns: Any) -> Any:
    """Return the bytes of a line in these columns, on any machine."""
    wide = ir.VectorType(_WORD, 2 * AT_ONCE)
    places = builder.gep(line, [builder.zext(columns, wide)], source_etype=_BYTE)
    places.type = ir.VectorType(_BYTE.as_pointer(), 2 * AT_ONCE)
    every = ir.VectorType(ir.IntType(1), 2 * AT_ONCE)
    name = f"llvm.masked.gather.v{2 * AT_ONCE}i32.v{2 * AT_ONCE}p0"
    shape = ir.FunctionType(wide, [places.type, _WORD, every, wide])
    gather = builder.module.globals.get(name) or ir.Function(builder.module, shape, name)
    nothing = ir.Constant(wide, [0] * 2 * AT_ONCE)
    found = builder.call(gather, [places, ir.Constant(_WORD, 1), ir.Constant(every, [1] * 2 * AT_ONCE), nothing])
    return builder.trunc(found, _PAIRS)


def _places(builder: Any, vector: Any, places: Any) -> Any:
    """Return the elements of a vector at some places; any element for places that it does not have."""
    nothing = ir.Constant(vector.type, ir.Undefined)
    chosen = ir.Constant(ir.VectorType(_WORD, len(places)), [place % vector.type.count for place in places])
    return builder.shuffle_vector(vector, nothing, chosen)


@overload(both_hold)
def _overload_both_hold(words, block, lines, query):  # type: ignore[no-untyped-def]
    return lambda words, block, lines, query: _both_hold(  # type: ignore[call-arg]
        words, np.int64(block), lines, np.int64(query)
    )


@intrinsic
def _turn_square(typing: Any, lines: Any, column: Any, query: Any, turned: Any) -> Any:
    """Turn the square of EDGE columns and queries from these on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 3))
        queries, column, query = builder.extract_value(source.shape, 1), arguments[1], arguments[2]
        square = ir.VectorType(_LONG, EDGE)
        filled: Any = ir.Constant(square, ir.Undefined)
        for k in range(EDGE):
            place = builder.add(builder.mul(builder.add(column, ir.Constant(_LONG, k)), queries), query)
            loaded = builder.load(builder.bitcast(builder.gep(source.data, [place]), _LONG.as_pointer()))
            loaded.align = 1
            filled = builder.insert_element(filled, loaded, ir.Constant(_WORD, k))
        order = [EDGE * (place % EDGE) + place // EDGE for place in range(EDGE * EDGE)]
        found = builder.bitcast(_places(builder, builder.bitcast(filled, _LINE), order), square)
        for k in range(EDGE):
            place = builder.add(builder.mul(builder.add(query, ir.Constant(_LONG, k)), ir.Constant(_LONG, LINE)), column)
            there = builder.bitcast(builder.gep(target.data, [place]), _LONG.as_pointer())
            builder.store(builder.extract_element(found, ir.Constant(_WORD, k)), there).align = 1
        return context.get_dummy_value()

    return types.void(lines, types.int64, types.int64, turned), generate


@overload(turn)
def _overload_turn(lines, columns, turned):  # type: ignore[no-untyped-def]
    def turn_squares(lines, columns, turned):  # type: ignore[no-untyped-def]
        for column in range(0, columns, EDGE):
            for query in range(0, lines.shape[1], EDGE):
                _turn_square(lines, column, query, turned)  # type: ignore[call-arg]

    return turn_squares
