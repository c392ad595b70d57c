"""The instruction behind `prefetch.py`, for the compiler: imported only when something is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from tocsin.kernels.prefetch import prefetch


@intrinsic
def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = builder.bitcast(builder.gep(place.data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte.type, word, word, word])
        hint = builder.module.globals.get("llvm.prefetch.p0")
        hint = hint or ir.Function(builder.module, shape, "llvm.prefetch.p0")
        # for reading, kept as close as possible, data and not instructions
        builder.call(hint, [byte, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@overload(prefetch)
def _overload_prefetch(array, index):  # type: ignore[no-untyped-def]
    return lambda array, index: _prefetch(array, np.uint64(index))  # type: ignore[call-arg]
