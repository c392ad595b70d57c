"""Software prefetch: ask the processor to bring the cache line of an array's element, and do not wait for it."""

from __future__ import annotations

import os
from typing import Any

import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":

    def prefetch(array: npt.NDArray[Any], index: Any) -> None:
        """Do nothing: interpreted code has no cache lines to ask for."""

else:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        """Prefetch ``array[index]`` for reading, into every level of cache. The index need not lie in the array."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = context.make_array(signature.args[0])(context, builder, args[0])
            byte = builder.bitcast(builder.gep(place.data, [args[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte.type, word, word, word])
            hint = builder.module.globals.get("llvm.prefetch.p0")
            hint = hint or ir.Function(builder.module, shape, "llvm.prefetch.p0")
            # for reading, kept as close as possible, data and not instructions
            builder.call(hint, [byte, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), codegen
