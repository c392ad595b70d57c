"""A process of the build: compiles kernels that it is told of, for the processor that its environment names.

`build.py` writes a line of JSON for each kernel to its standard input and reads one back when the object file and its
description are there.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tocsin.kernels.compile import dispatcher
from tocsin.kernels.native.entries import KINDS, LAYOUTS, OP_ARRAY, OP_BOOL, OP_FLOAT, OP_INT, OP_NONE, OP_TUPLE
from tocsin.kernels.native.signatures import PACKAGE, from_text

RUNTIME = {
    "NRT_Allocate", "NRT_Free", "NRT_MemInfo_alloc", "NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe",
    "NRT_MemInfo_alloc_safe_aligned", "NRT_MemInfo_call_dtor", "NRT_MemInfo_new_varsize",
    "NRT_MemInfo_new_varsize_dtor", "NRT_MemInfo_varsize_realloc", "NRT_Reallocate", "numba_attempt_nocopy_reshape",
}  # fmt: skip
"""What `dispatcher.c` has of Numba's runtime."""

LIBRARY = {
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "exp",
    "log",
    "log2",
    "pow",
    "floor",
    "ceil",
    "round",
    "trunc",
    "fmod",
}
"""What kernels may call in the C library."""


class Classes:
    """Numbers for the named tuples that signatures mention."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def number(self, named: type) -> int:
        """Return the number of a class; -1 for a plain tuple."""
        if named is tuple:
            return -1
        name = f"{named.__module__}:{named.__qualname__}"
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def argument_program(kind: Any, classes: Classes) -> Iterator[int]:
    """Yield how an argument is unpacked; see `dispatcher.c`."""
    from numba import types

    if isinstance(kind, types.Array):
        yield from (OP_ARRAY, KINDS.index(str(kind.dtype)), kind.ndim, LAYOUTS[kind.layout], int(kind.mutable))
    elif isinstance(kind, types.BaseTuple):
        each: Any
        yield from (OP_TUPLE, len(kind), classes.number(getattr(kind, "instance_class", tuple)))
        for each in kind:  # type: ignore[attr-defined]
            yield from argument_program(each, classes)
    else:
        yield from _scalar(kind)


def _scalar(kind: Any) -> tuple[int, ...]:
    import numba

    types: Any = numba.types
    if isinstance(kind, types.Boolean):
        return (OP_BOOL,)
    if isinstance(kind, types.NoneType):
        return (OP_NONE,)
    if isinstance(kind, types.Integer) and kind.signed and kind.bitwidth in (32, 64):
        return OP_INT, kind.bitwidth // 8
    if kind == types.float64:
        return OP_FLOAT, 8
    raise TypeError(f"{kind} is neither taken nor returned by native kernels")


def result_program(kind: Any, classes: Classes, offset: int = 0) -> tuple[list[int], int]:
    """Return how a result is wrapped that begins at an offset, and where it ends."""
    from numba import types

    if isinstance(kind, types.Array):
        if not kind.mutable:
            raise TypeError(f"{kind} is returned: where arguments may be read-only, results must not be parts of them")
        offset = -(-offset // 8) * 8
        program = [OP_ARRAY, offset, KINDS.index(str(kind.dtype)), kind.ndim]
        return program, offset + 8 * (5 + 2 * kind.ndim)
    if isinstance(kind, types.BaseTuple):
        program = [OP_TUPLE, len(kind), classes.number(getattr(kind, "instance_class", tuple))]
        for each in kind:  # type: ignore[attr-defined]
            inner, offset = result_program(each, classes, offset)
            program += inner
        return program, offset
    operation, *size = _scalar(kind)
    width = size[0] if size else 1 if operation == OP_BOOL else 8
    offset = -(-offset // width) * width
    return [operation, offset, *size], offset + width


def emit(kernel: str, types: str, symbol: str, machine: Any, output: Path) -> dict[str, Any]:
    """Write the object file of one kernel, and return what the dispatcher must know of it."""
    from numba.core.registry import cpu_target

    module, _, name = kernel.rpartition(".")
    held = dispatcher(getattr(importlib.import_module(f"{PACKAGE}.{module}"), name))
    kinds, classes = from_text(types), Classes()
    held.compile(kinds)
    compiled = held.overloads[kinds]
    reduced, function = _reduced(compiled, symbol, machine)
    output.write_bytes(machine.emit_object(reduced))
    wrapped, size = result_program(compiled.signature.return_type, classes)
    model = cpu_target.target_context.data_model_manager[compiled.signature.return_type]
    really = cpu_target.target_context.get_abi_sizeof(model.get_return_type())
    if -(-size // 8) != -(-really // 8):
        raise TypeError(f"the result has {really} bytes and not {size}")
    return {
        "parameters": [str(each.type) for each in function.arguments][2:],
        "arguments": [op for kind in kinds for op in argument_program(kind, classes)],
        "argument_count": len(kinds),
        "result": wrapped,
        "result_bytes": max(size, 8),
        "releases_lock": bool(held.targetoptions.get("nogil")),
        "classes": classes.names,
    }


def _reduced(compiled: Any, name: str, machine: Any) -> tuple[Any, Any]:
    """Return a kernel's module with only what the kernel itself needs, and the kernel in it under a name."""
    from llvmlite import binding

    module = _without_messages(compiled.library._final_module.clone())
    wanted = compiled.fndesc.llvm_func_name
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != wanted:
            each.linkage = "internal"
    function = module.get_function(wanted)
    function.name, function.linkage = name, "external"
    function.visibility = "hidden"
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3)))
    outside = {each.name for each in [*module.functions, *module.global_variables] if each.is_declaration}
    foreign = {each for each in outside - RUNTIME - LIBRARY if not each.startswith("llvm.")}
    if foreign:
        raise TypeError(f"the kernel calls {', '.join(sorted(foreign))}, which native code does not have")
    return module, module.get_function(name)


UNWRAP = re.compile(r"(store ptr )@__excinfo_unwrap_args\w+")


def _without_messages(module: Any) -> Any:
    """Return a module without the functions that make Python objects of what an error message is composed of, which
    need more of Python than its stable ABI. Such an error is raised without its message: `raise_error` in
    `dispatcher.c`."""
    from llvmlite import binding

    if not any(each.name.startswith("__excinfo_unwrap_args") for each in module.functions):
        return module
    return binding.parse_assembly(UNWRAP.sub(r"\1null", str(module)))


def main() -> None:
    """Compile what standard input names."""
    from llvmlite import binding

    (cpu, features), folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small")
    part = folder / f"{os.getpid()}.part"  # files come to be whole: another process may build the same
    for text in sys.stdin:
        kernel, types, symbol, key = json.loads(text)
        try:
            described = emit(kernel, types, symbol, machine, part)
        except Exception as error:
            raise SystemExit(f"{kernel}: {types}\n{type(error).__name__}: {error}") from error
        part.replace(folder / f"{key}.o")
        part.write_text(json.dumps(described))
        part.replace(folder / f"{key}.json")
        print(kernel, flush=True)


if __name__ == "__main__":
    main()
