"""The machine code of the operations in `lines.py`, for the compiler: imported only when something is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from tocsin.kernels.segments.lines import BLOCK, EDGE, LINE, PAIRS, both_hold, turn
from tocsin.kernels.vectors_llvm import gathered, permutes_bytes, picked

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LINE, _PAIRS = ir.VectorType(_BYTE, LINE), ir.VectorType(_BYTE, 2 * PAIRS)


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
