"""How kernels are compiled: the decorator flags, set once.

Kernels are lazy (no signatures), cached on disk, release the GIL, and never use fast-math: answers are exact. With
``NUMBA_DISABLE_JIT=1`` they are plain Python.

A compiled kernel has the kernels and constants it uses built in, also those of other files. Numba compares only the
file of the kernel itself with what it has cached; here every cached kernel carries the fingerprint of its file and of
all files of this room that it imports, directly or not, so that a change to any of them, or an upgrade, compiles anew
and never mixes old with new.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

ROOM = Path(__file__).parent
IMPORTED = re.compile(rf"^\s*(?:from|import)\s+{re.escape(__package__)}\.(\w+)", re.MULTILINE)


@functools.cache
def fingerprint(module: str) -> str:
    """Return what the cached kernels of a file of this room (its name without suffix) must have been compiled from."""
    seen, waiting = {Path(__file__).stem}, [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(IMPORTED.findall(_source(name)))
    text = "\0".join(_source(name) for name in sorted({*seen, module})) + numba.__version__
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _source(module: str) -> str:
    return (ROOM / f"{module}.py").read_text(encoding="utf-8")


def kernel(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that a caller outside this room may call."""
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorate a small function used inside kernels, whose call would cost more than its work."""
    return _compiled(function, inline="always")


def _compiled(function: Callable[..., Any], **flags: Any) -> Any:
    compiled = numba.njit(cache=True, nogil=True, boundscheck=False, **flags)(function)
    cache = getattr(compiled, "_cache", None)  # absent when the JIT is off
    if cache is not None:
        cache._cache_file._source_stamp = fingerprint(Path(function.__code__.co_filename).stem)
    return compiled
