"""The types that kernels are called with: as text in `signatures.txt`, and recorded from calls.

A line names a kernel and the types of its arguments: ``segments.overlap.f: int64, int32[::1], (int64, bool)``. Arrays
are written as Numba writes them: ``[:]`` is strided, ``[::1]`` contiguous, ``[:,::1]`` contiguous with two dimensions,
``[::1,:]`` by columns; ``const`` is one that may be read-only. Named tuples are ``module.Name(...)``, by the module of
this package if it has no ``tocsin.`` before it.

``python -m tocsin.kernels.native.signatures FILE ...`` adds the calls in such files, written by programs that ran with
``TOCSIN_NATIVE=record TOCSIN_ENTRIES=FILE``, to `signatures.txt`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from . import FOLDER

SIGNATURES = FOLDER / "signatures.txt"
PACKAGE = __package__.rpartition(".")[0]
TOKEN = re.compile(r"\s*(const\b|[\w.]+(?:\[[:,1]*\])?|[(),])")


def to_text(kind: Any) -> str:
    """Return how a type of Numba's is written."""
    from numba import types

    if isinstance(kind, types.Array):
        axes = [":"] * kind.ndim
        if kind.layout != "A" and kind.ndim:
            axes[-1 if kind.layout == "C" else 0] = "::1"
        return f"{'' if kind.mutable else 'const '}{kind.dtype}[{','.join(axes)}]"
    if isinstance(kind, types.BaseTuple):
        inside = ", ".join(to_text(each) for each in cast(Any, kind))
        named = getattr(kind, "instance_class", None)
        return f"{'' if named is None else _class_name(named)}({inside}{',' if len(kind) == 1 else ''})"
    return str(kind)


def _class_name(named: type) -> str:
    return f"{named.__module__}.{named.__qualname__}".removeprefix(f"{PACKAGE}.")


def from_text(text: str) -> tuple[Any, ...]:
    """Return the types of a line: what is listed in it, separated by commas."""
    tokens = TOKEN.findall(text)
    kinds, rest = _listed(tokens, 0)
    if rest != len(tokens) or "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"not a list of types: {text}")
    return tuple(kinds)


def _listed(tokens: list[str], at: int) -> tuple[list[Any], int]:
    """Return the types from a place on and where they end: at a closing bracket, or at the end."""
    kinds: list[Any] = []
    while at < len(tokens) and tokens[at] != ")":
        kind, at = _kind(tokens, at)
        kinds.append(kind)
        if at < len(tokens) and tokens[at] == ",":
            at += 1
    return kinds, at


def _kind(tokens: list[str], at: int) -> tuple[Any, int]:
    from numba import types as numba_types

    types: Any = numba_types
    if tokens[at] == "const":
        array, at = _kind(tokens, at + 1)
        return array.copy(readonly=True), at
    name = tokens[at]
    if name == "(" or tokens[at + 1 : at + 2] == ["("]:
        inside, end = _listed(tokens, at + 1 if name == "(" else at + 2)
        if name == "(":
            return types.BaseTuple.from_types(inside), end + 1
        return types.BaseTuple.from_types(inside, _class(name)), end + 1
    scalar, bracket, axes = name.partition("[")
    kind = getattr(types, {"bool": "boolean"}.get(scalar, scalar))
    if not bracket:
        return kind, at + 1
    steps = axes.rstrip("]").split(",")
    layout = "C" if steps[-1] == "::1" else "F" if steps[0] == "::1" else "A"
    return types.Array(kind, len(steps) if axes != "]" else 0, layout), at + 1


def _class(name: str) -> Any:
    module, _, named = name.rpartition(".")
    full = module if module.startswith("tocsin.") else f"{PACKAGE}.{module}"
    return getattr(importlib.import_module(full), named)


def listed() -> list[tuple[str, str]]:
    """Return every (kernel, types) of `signatures.txt`."""
    return _read(SIGNATURES)


def _read(file: Path) -> list[tuple[str, str]]:
    lines = (
        line.partition(": ") for line in file.read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")
    )
    return [(kernel, types) for kernel, _, types in lines]


def covers(types: str, call: str) -> bool:
    """Return whether code for some types serves a call: what may be read-only may also be written to.

    >>> covers("const int64[::1], bool", "int64[::1], bool"), covers("int64[::1]", "const int64[::1]")
    (True, False)
    """
    return _without_const(types) == _without_const(call) and merged([types, call]) == types


def merged(alike: list[str]) -> str:
    """Return the types that cover all of these, which differ only in what may be read-only.

    >>> merged(["const int64[::1], bool[::1]", "int64[::1], const bool[::1]"])
    'const int64[::1], const bool[::1]'
    """
    split = [types.split(", ") for types in alike]
    return ", ".join(max(places, key=lambda place: "const " in place) for places in zip(*split, strict=True))


def _without_const(types: str) -> str:
    return types.replace("const ", "")


# Recording

_seen: set[tuple[str, str]] = set()


def record(kernel: str, arguments: Iterable[Any], caller: str) -> None:
    """Add a call to the file that ``TOCSIN_ENTRIES`` names, if a module of the product made it."""
    file = os.environ.get("TOCSIN_ENTRIES")
    if file and caller.partition(".")[0] == "tocsin":
        import numba

        typeof: Any = numba.typeof
        call = kernel, ", ".join(to_text(typeof(argument)) for argument in arguments)
        if call not in _seen:
            _seen.add(call)
            with Path(file).open("a", encoding="utf-8") as entries:  # one write: processes may share the file
                entries.write(": ".join(call) + "\n")


HEADING = """\
# The kernels that Python calls, and the types of the arguments. Native code is built for these.
# Written by `python -m tocsin.kernels.native.signatures`; see the module of that name.
"""


def add(files: list[Path]) -> None:
    """Add recorded calls to `signatures.txt`: of those that differ only in what is read-only, one that covers all."""
    alike: dict[tuple[str, str], list[str]] = {}
    for kernel, types in (call for file in [SIGNATURES, *files] if file.exists() for call in _read(file)):
        alike.setdefault((kernel, _without_const(types)), []).append(types)
    lines = sorted(f"{kernel}: {merged(types)}\n" for (kernel, _), types in alike.items())
    SIGNATURES.write_text(HEADING + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    add([Path(name) for name in sys.argv[1:]])
