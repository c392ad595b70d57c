"""How kernels are compiled: the decorator flags, set once.

Kernels are lazy (no signatures), cached on disk, release the GIL unless they are brief, and never use fast-math:
answers are exact. With ``NUMBA_DISABLE_JIT=1`` they are plain Python.

A compiled kernel has the kernels and constants it uses built in, also those of other files. Numba compares only the
file of the kernel itself with what it has cached; here every cached kernel carries the fingerprint of its file and of
all files of this room that it imports, directly or not, so that a change to any of them, or an upgrade, compiles anew
and never mixes old with new.

Before Numba loads a cached kernel it imports all that it could compile with, and then the modules of all functions
that are built into it, a quarter of a second in the first call of a process. What a cached kernel needs of that is the
memory management alone; the rest is imported when something is compiled, which Numba sees to by itself.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.environment import Environment
from numba.core.runtime.nrt import rtsys

ROOM = Path(__file__).parent
IMPORTED = re.compile(rf"^\s*from {re.escape(__package__)}(?:\.([\w.]+))? import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


@functools.cache
def fingerprint(file: Path) -> str:
    """Return what the cached kernels of a file of this room must have been compiled from."""
    seen, waiting = {Path(__file__)}, [file]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting.extend(_imported(path))
    text = "\0".join(_source(path) for path in sorted(seen)) + numba.__version__
    return hashlib.sha256(text.encode()).hexdigest()


def _imported(file: Path) -> Iterator[Path]:
    """Yield the files of this room that a file imports, whole or in part."""
    for module, listed, in_line in IMPORTED.findall(_source(file)):
        origin = ROOM.joinpath(*module.split("."))
        within = [origin / f"{name}.py" for name in re.findall(r"\w+", listed or in_line)]
        yield from (path for path in (origin.with_suffix(".py"), *within) if path.exists())


@functools.cache
def _source(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def kernel(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that a caller outside this room may call."""
    return _compiled(function)


def brief(function: Callable[..., Any]) -> Any:
    """Decorate a kernel of a tenth of a millisecond at most, which keeps Python's lock: whoever lets go of it waits
    until the thread that takes it does so too, which may be far longer."""
    return _compiled(function, nogil=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorate a small function used inside kernels, whose call would cost more than its work."""
    return _compiled(function, inline="always")


class _Unpickler(pickle.Unpickler):
    """Reads a kernel without the modules of the functions that are built into it."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return the environment of a function, as Numba's own `_rebuild_env`, but for the module's variables: only object
    mode, in which no kernel runs, looks at more than the name of the module."""
    known = Environment._memo.get(name)
    if known is None:
        known = Environment({"__name__": module})
        known.consts[:] = constants
        known.env_name = name
        Environment._memo[name] = known
    return known


class _File(IndexDataCacheFile):
    """The files of a cached kernel, read as above."""

    def _load_data(self, name: str) -> Any:
        with Path(self._data_path(name)).open("rb") as file:  # type: ignore[no-untyped-call]
            return _Unpickler(file).load()


class _Cache(FunctionCache):
    """A cache that loads kernels without what it takes to compile them."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def _compiled(function: Callable[..., Any], *, nogil: bool = True, **flags: Any) -> Any:
    compiled = numba.njit(cache=True, boundscheck=False, nogil=nogil, **flags)(function)
    cache = getattr(compiled, "_cache", None)  # absent when the JIT is off
    if cache is not None:
        cache.__class__ = _Cache
        cache._cache_file.__class__ = _File
        cache._cache_file._source_stamp = fingerprint(Path(function.__code__.co_filename))
    return compiled
