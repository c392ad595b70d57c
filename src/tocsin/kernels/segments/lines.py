"""A query as a line of bytes, one for each column: tested against pairs of words, 16 at once.

As in `vectors.py`, the plain functions say what the compiled ones mean, and run with the JIT off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from tocsin.kernels.vectors import TABLE, gathered, permutes_bytes, picked

LINE = TABLE
"""Bytes of a line: as many as a register has."""

PAIRS = 16
"""Pairs of words that are tested at once."""

BLOCK = 6 * PAIRS
"""Their bytes."""

EDGE = 8
"""Rows and columns that `turn` exchanges at once."""

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LINE, _PAIRS = ir.VectorType(_BYTE, LINE), ir.VectorType(_BYTE, 2 * PAIRS)


def both_hold(words: Any, block: Any, lines: Any, query: Any) -> Any:
    """Test a query's bytes against a block of 16 pairs of words; return a bit for each pair of which both may hold.

    ``words`` uint8[BLOCK * blocks]: of each block 16 first and 16 second columns, then as many lowest bytes, then how
    far above those, round at 256, a query's bytes may be. ``lines`` uint8[queries, LINE], with three bytes of memory
    after them: the byte of each query in each column.
    """
    columns, lowest, room = words[BLOCK * block : BLOCK * (block + 1)].reshape(3, 2 * PAIRS)
    held = lines[query, columns] - lowest <= room
    return sum(1 << k for k in range(PAIRS) if held[k] and held[PAIRS + k])


def turn(columns: Any, known: Any, queries: Any, lines: Any) -> None:
    """Write the bytes of so many queries in the columns that are known, of ``columns`` uint8[LINE, queries], into
    ``lines`` uint8[queries, LINE]; of both as many more as fill squares of 8, for which there must be room."""
    known, queries = known + -known % EDGE, queries + -queries % EDGE
    lines[:queries, :known] = columns[:known, :queries].T


@intrinsic
def _both_hold(typing: Any, words: Any, block: Any, lines: Any, query: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, known = (context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2))
        begin = builder.gep(given, [builder.mul(arguments[1], ir.Constant(_LONG, BLOCK))])
        line = builder.gep(known, [builder.mul(arguments[3], ir.Constant(_LONG, LINE))])

        def part(place: int) -> Any:
            there = builder.gep(begin, [ir.Constant(_LONG, 2 * PAIRS * place)])
            loaded = builder.load(builder.bitcast(there, _PAIRS.as_pointer()))
            loaded.align = 1
            return loaded

        columns, lowest, room = (part(place) for place in range(3))
        look = _picked if permutes_bytes() else _gathered
        held = builder.icmp_unsigned("<=", builder.sub(look(builder, line, columns), lowest), room)
        bits = builder.zext(builder.bitcast(held, ir.IntType(2 * PAIRS)), _LONG)
        both = builder.and_(bits, builder.lshr(bits, ir.Constant(_LONG, PAIRS)))
        return builder.and_(both, ir.Constant(_LONG, (1 << PAIRS) - 1))

    return types.int64(words, types.int64, lines, types.int64), generate


def _picked(builder: Any, line: Any, columns: Any) -> Any:
    """Return the bytes of a line in these columns, by the instruction that looks up 64 at once."""
    found = picked(builder, line, _places(builder, columns, range(LINE)))
    return _places(builder, found, range(2 * PAIRS))


def _gathered(builder: Any, line: Any, columns: Any) -> Any:
    """Return the bytes of a line in these columns, on any machine."""
    found = gathered(builder, line, builder.zext(columns, ir.VectorType(_WORD, 2 * PAIRS)))
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
def _turn_square(typing: Any, columns: Any, column: Any, query: Any, lines: Any) -> Any:
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
            place = builder.add(
                builder.mul(builder.add(query, ir.Constant(_LONG, k)), ir.Constant(_LONG, LINE)), column
            )
            there = builder.bitcast(builder.gep(target.data, [place]), _LONG.as_pointer())
            builder.store(builder.extract_element(found, ir.Constant(_WORD, k)), there).align = 1
        return context.get_dummy_value()

    return types.void(columns, types.int64, types.int64, lines), generate


@overload(turn)
def _overload_turn(columns, known, queries, lines):  # type: ignore[no-untyped-def]
    def turn_squares(columns, known, queries, lines):  # type: ignore[no-untyped-def]
        for column in range(0, known, EDGE):
            for query in range(0, queries, EDGE):
                _turn_square(columns, column, query, lines)  # type: ignore[call-arg]

    return turn_squares
