"""How kernels are compiled: the decorator flags, set once.

Kernels are lazy (no signatures), cached on disk, release the GIL, and never use fast-math: answers are exact. With
``NUMBA_DISABLE_JIT=1`` they are plain Python.

A compiled kernel has the kernels and constants it uses built in, also those of other files. Numba compares only the
file of the kernel itself with what it has cached; here every cached kernel carries the fingerprint of all files of
this room, so that a change to any of them, or an upgrade, compiles anew and never mixes old with new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

FINGERPRINT = hashlib.sha256(
    b"\0".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))) + numba.__version__.encode()
).hexdigest()
"""What the cached form of a kernel must have been compiled from."""


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
        cache._cache_file._source_stamp = FINGERPRINT
    return compiled
