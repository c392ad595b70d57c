"""Native kernels refuse what does not fit, without a crash: every entry is called with wrong things.

Each call has exactly one wrong argument, or too few or too many; the kernel itself is therefore never run. Where no
native code is built there is nothing to call.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tocsin.kernels import native, subjects
from tocsin.kernels.native.signatures import PACKAGE


def parsed(types: str) -> list[ast.expr]:
    """Return the types of arguments, each as an expression: an array is ``A(dtype, axes)``."""
    text = re.sub(r"(?:const )?(\w+)\[([:,1]*)\]", r"A('\1', '\2')", types)
    body = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(body, ast.List)
    return body.elts


def example(node: ast.expr) -> Any:
    """Return a value of a type: the smallest array, 1, 1.0, False."""
    match node:
        case ast.Call(func=ast.Name(id="A"), args=arguments):
            dtype, axes = (ast.literal_eval(argument) for argument in arguments)
            steps = axes.split(",")
            whole = np.zeros([3] * len(steps), dtype, order="F" if len(steps) > 1 and steps[0] == "::1" else "C")
            return whole if "::1" in steps else whole[tuple([slice(None, None, 2)] * len(steps))]
        case ast.Call(func=func, args=arguments):
            module, _, name = ast.unparse(func).rpartition(".")
            full = module if module.startswith("tocsin.") else f"{PACKAGE}.{module}"
            return getattr(importlib.import_module(full), name)(*map(example, arguments))
        case ast.Tuple(elts=items):
            return tuple(map(example, items))
        case _:
            return {"int64": 1, "int32": 1, "float64": 1.0, "bool": False, "none": None}[ast.unparse(node)]


def wrong_for(value: Any) -> Iterator[Any]:
    """Yield things that are not of the type of a value, whatever other types its kernel takes."""
    yield from (object(), "text", b"bytes", [1], {}, 1j, 1 << 70, np.complex128(1), np.datetime64(1, "s"), int, ...)
    yield from (np.int8(1), np.uint64(1), np.float32(1))
    yield from (np.zeros(3, kind) for kind in ("complex128", "datetime64[s]", "O", "U3", "V5", "float16", "longdouble"))
    yield np.zeros((2,) * 7, np.int64)
    if value is not None:
        yield None
    if not isinstance(value, tuple):
        yield from ((), (value,))
    if isinstance(value, np.ndarray):
        yield from wrong_arrays(value)
    elif isinstance(value, tuple):
        yield from (value[:-1], (*value, value[-1]), list(value), tuple.__new__(type("Other", (tuple,), {}), value))
        if type(value) is not tuple:
            yield from (tuple(value), tuple.__new__(type(value), value[:-1]), tuple.__new__(type(value), (*value, 1)))
        for place, item in enumerate(value):
            for wrong in wrong_for(item):
                yield tuple.__new__(type(value), (*value[:place], wrong, *value[place + 1 :]))


def wrong_arrays(value: Any) -> Iterator[Any]:
    """Yield arrays that differ from one in a way that no kernel takes."""
    shape, size = value.shape, value.itemsize
    yield value.view(type("Derived", (np.ndarray,), {}))
    if size > 1:
        yield value.astype(value.dtype.newbyteorder())
        odd = np.zeros(value.size * size + 1, np.uint8)[1:]
        yield odd.view(value.dtype).reshape(shape)
    yield np.zeros((*shape, *([1] * (4 - len(shape)))), value.dtype)
    yield value.tolist()
    yield memoryview(np.ascontiguousarray(value))


def refused(*arguments: Any) -> Any:
    """Stand where Numba would be asked."""
    raise TypeError("nothing fits")


@pytest.fixture(params=["product", "covering", "papers"])
def entries(request: pytest.FixtureRequest) -> list[tuple[Any, str]]:
    """Every native kernel with the types of an entry, bound to refuse what fits none."""
    code = native.load(request.param)
    return [] if code is None else [(code.bind(kernel, refused), types) for kernel, types in code.entries()]


def test_every_entry_refuses_wrong_arguments(entries: list[tuple[Any, str]]) -> None:
    calls = 0
    for kernel, types in entries:
        given = [example(each) for each in parsed(types)]
        for place, value in enumerate(given):
            for wrong in wrong_for(value):
                with pytest.raises(TypeError):
                    kernel(*given[:place], wrong, *given[place + 1 :])
                calls += 1
        for count in range(len(given)):
            with pytest.raises(TypeError):
                kernel(*given[:count])
        for more in ([None], [given[-1]], given * 40):
            with pytest.raises(TypeError):
                kernel(*given, *more)
        with pytest.raises(TypeError):
            kernel(*given[:-1], last=given[-1])
    assert calls >= 20 * len(entries)


def test_scalars_of_numpy_are_taken_as_those_of_python() -> None:
    code, rows = native.load("product"), np.arange(2)
    taken = subjects.boxes_of_rows if code is None else code.bind("subjects.boxes_of_rows", refused)
    low, high = np.full((2, 1), subjects.LOWEST), np.full((2, 1), subjects.HIGHEST)
    for spanning in (True, np.True_, False, np.False_):
        offsets, *_ = taken(low, high, rows, spanning)
        assert offsets.tolist() == ([0, 0, 0] if spanning else [0, 1, 2])


def test_entries_refuse_to_write_into_read_only_arrays(entries: list[tuple[Any, str]]) -> None:
    """Where no other entry of the kernel reads only."""
    names = [(kernel.__name__, types.replace("const ", "")) for kernel, types in entries]
    for kernel, types in entries:
        if "const " in types or names.count((kernel.__name__, types)) > 1:
            continue
        given = [example(each) for each in parsed(types)]
        for place, value in enumerate(given):
            if isinstance(value, np.ndarray):
                locked = value.copy(order="K")
                locked.flags.writeable = False
                with pytest.raises(TypeError):
                    kernel(*given[:place], locked, *given[place + 1 :])
