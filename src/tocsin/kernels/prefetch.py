"""Software prefetch: ask the processor to bring the cache line of an array's element, and do not wait for it."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

if getattr(config, "DISABLE_JIT"):  # noqa: B009 - set when numba is imported, so that type checkers cannot see it

    def prefetch(array: npt.NDArray[Any], index: int) -> None:
        """Do nothing: interpreted code has no cache lines to ask for."""

else:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        """Prefetch ``array[index]`` for reading, into every level of cache. The index need not lie in the array."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.gep(place.data, [args[1]])
            byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
            int32 = ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte.type, int32, int32, int32])
            hint = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")  # type:
            ignore[no-untyped-call] # read access, highest locality, data cache builder.call(hint, [byte, int32(0),
            int32(3), int32(1)]) return context.get_dummy_value()

        return types.void(array, types.int64), codegen
