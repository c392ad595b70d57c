"""How kernels come to run: the decorators, set once.

A kernel runs as native code that was built beforehand (`native/`); else Numba compiles it when it is first called
(`jit.py`); with ``NUMBA_DISABLE_JIT=1`` it is plain Python. The answers are the same: kernels never use fast-math. They
release Python's lock unless they are brief. This module imports no Numba, which takes longer than a first match.

A compiled kernel has the kernels and constants it uses built in, also those of other files. Native code and Numba's
cache are therefore used only if they carry the fingerprint of the kernel's file and of all files of this room that it
imports, directly or not: a change to any of them compiles anew and never mixes old with new.

``TOCSIN_NATIVE=0`` leaves native code alone; the name of a processor level (``v2``) takes the code of that level;
``record`` and ``build`` are for `native/signatures.py` and `native/build.py`. ``TOCSIN_NOTICES=0`` keeps what is said
on stderr back.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

from . import native

ROOM = Path(__file__).parent
IMPORTED = re.compile(rf"^\s*from {re.escape(__package__)}(?:\.([\w.]+))? import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether kernels are plain Python."""

RECORDING = os.environ.get("TOCSIN_NATIVE") == "record"
"""Whether every call of a kernel is recorded with its types."""


# What a kernel is compiled from


@functools.cache
def fingerprint(file: Path) -> str:
    """Return what the compiled kernels of a file of this room must have been compiled from."""
    seen, waiting = {Path(__file__)}, [file]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting.extend(_source(path)[1])
    seen.remove(Path(__file__))  # how a kernel comes to run changes nothing in its code
    return hashlib.sha256(b"".join(_source(path)[0] for path in sorted(seen))).hexdigest()


@functools.cache
def _source(file: Path) -> tuple[bytes, list[Path]]:
    """Return the digest of a file of this room, and the files of this room that its kernels are compiled from."""
    text = _text(file) or ""
    return hashlib.sha256(text.encode()).digest(), list(_imported(file, text))


def _imported(file: Path, text: str) -> Iterator[Path]:
    """Yield the files of this room that a file imports, whole or in part, and the one with its machine code."""
    for module, listed, in_line in IMPORTED.findall(text):
        origin = ROOM.joinpath(*module.split("."))
        within = [origin / f"{name}.py" for name in re.findall(r"\w+", listed or in_line)]
        yield from (path for path in (origin.with_suffix(".py"), *within) if _text(path) is not None)
    twin = file.with_name(f"{file.stem}_llvm.py")
    if _text(twin) is not None:
        yield twin


@functools.cache
def _text(file: Path) -> str | None:
    """Return the text of a file of this room, which may lie in a zip; None if there is none."""
    content = native.read(file)
    return None if content is None else content.decode()


# The decorators


def kernel(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that a caller outside this room may call."""
    return _registered(function, {"nogil": True})


def brief(function: Callable[..., Any]) -> Any:
    """Decorate a kernel of a tenth of a millisecond at most, which keeps Python's lock: whoever lets go of it waits
    until the thread that takes it does so too, which may be far longer."""
    return _registered(function, {"nogil": False})


def inlined(function: Callable[..., Any]) -> Any:
    """Decorate a small function used inside kernels, whose call would cost more than its work."""
    return _registered(function, {"nogil": True, "inline": "always"})


class Deferred:
    """A kernel that Numba compiles only if it is called: one without native code, or with types that it has none for.

    ``why`` says in which words that is told.
    """

    def __init__(self, function: FunctionType, flags: dict[str, Any]) -> None:
        self.function, self.flags = function, flags
        self.dispatcher: Any = None
        self.why = "there is no native code for arguments of these types"
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    @property
    def name(self) -> str:
        """The name of the kernel in this room."""
        return f"{self.function.__module__.removeprefix(f'{__package__}.')}.{self.function.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        """Have Numba compile the kernel, and call it."""
        return _compiler(self.why).call(self, arguments)


_native: dict[Any, Deferred] = {}
"""What stands behind each native kernel."""


def _registered(function: Any, flags: dict[str, Any]) -> Any:
    """Return what stands for a kernel in its module."""
    if PLAIN:
        return function
    deferred = Deferred(function, flags)
    if RECORDING:
        return deferred
    if native.load("product") is None:
        return _compiler().compiled(function, flags)
    bound = _bound(deferred)
    if bound is None:
        return deferred
    _native[bound] = deferred
    return bound


def _bound(deferred: Deferred) -> Any:
    """Return the native code of a kernel; None if there is none, or none of what its sources now say."""
    module, _, _ = deferred.name.rpartition(".")
    code = native.load(native.group_of(module))
    if code is None:
        deferred.why = native.reason(native.group_of(module))
        return None
    file = Path(deferred.function.__code__.co_filename)
    if code.sources is not None and code.sources.get(module) != fingerprint(file):
        deferred.why = f"{module} or what it imports has changed since native code was built"
        return None
    bound = code.bind(deferred.name, deferred)
    if bound is None:
        deferred.why = f"{code.file.name} does not have it"
    return bound


# For the compiler


def deferred_behind(held: Any) -> Deferred | None:
    """Return the kernel behind what a module holds under its name; None if that is no kernel, or Numba's own."""
    if isinstance(held, BuiltinFunctionType):
        return _native.get(held)
    return held if isinstance(held, Deferred) else None


def dispatcher(held: Any) -> Any:
    """Return a kernel as Numba's dispatcher, which other functions can be compiled with."""
    deferred = deferred_behind(held)
    return held if deferred is None else _compiler().dispatcher(deferred)


def for_compiler(function: Any) -> Any:
    """Return a plain function that Numba can compile: with dispatchers where its module holds native kernels."""
    return _compiler().for_compiler(function)


def _compiler(why: str | None = None) -> Any:
    """Return the module that compiles with Numba, which is needed because of what ``why`` says; importing it takes a
    quarter of a second."""
    try:
        from . import jit
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        why = why or native.reason("product")
        text = f"no native kernels ({why}) and no Numba to compile them: pip install 'tocsin[jit]'"
        raise ModuleNotFoundError(text, name=error.name) from None
    return jit


# What is told


def runs() -> dict[str, Any]:
    """Say what kernels run as: ``code`` is native, numba or python; the processor ``level`` of native code; and why.

    >>> sorted(runs())
    ['code', 'level', 'why']
    """
    if PLAIN:
        return {"code": "python", "level": None, "why": "NUMBA_DISABLE_JIT is set"}
    code = None if RECORDING else native.load("product")
    if code is None:
        return {"code": "numba", "level": None, "why": native.reason("product")}
    return {"code": "native", "level": code.level, "why": native.reason("product")}


_told: set[str] = set()


def notice(subject: str, text: str) -> None:
    """Tell something on stderr, once a process for each subject."""
    if subject not in _told and os.environ.get("TOCSIN_NOTICES") != "0" and sys.stderr is not None:
        _told.add(subject)
        print(f"tocsin: {text}", file=sys.stderr, flush=True)
