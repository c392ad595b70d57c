"""Software prefetch: ask the processor to bring the cache line of an array's element, and do not wait for it."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


def prefetch(array: npt.NDArray[Any], index: Any) -> None:
    """Prefetch ``array[index]`` for reading, into every level of cache. The index need not lie in the array.

    Interpreted, this does nothing; compiled kernels have what `prefetch_llvm.py` gives for it.
    """
