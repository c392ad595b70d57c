"""How kernels are compiled: the decorator flags, set once.

Kernels are lazy (no signatures), cached on disk, release the GIL, and never use fast-math: answers are exact. With
``NUMBA_DISABLE_JIT=1`` they are plain Python.
"""

from __future__ import annotations

import numba

kernel = numba.njit(cache=True, nogil=True, boundscheck=False)
"""Decorates a kernel that a caller outside this room may call."""

inlined = numba.njit(cache=True, nogil=True, boundscheck=False, inline="always")
"""Decorates a small function used inside kernels, whose call would cost more than its work."""
