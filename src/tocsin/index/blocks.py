"""Memory of large answers, used again once nobody holds what was in it.

A thread other than the first gives freed memory back to the system, and touching it anew costs more than writing the
answer, most of all where two threads do so at once.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

LEAST = 1 << 20
"""Arrays of fewer bytes are left to NumPy."""

KEPT = 1 << 27
"""So many bytes are kept for later, at most."""


class Blocks:
    """Blocks of memory, of which at most ``most`` bytes are kept while nobody uses them. Any thread may take some.

    An array is a buffer over its block, not a view of it: whatever refers to the array or to a part of it, be it NumPy
    or Arrow, keeps the array alive, and the block comes back when the last of them is gone.

    >>> blocks = Blocks()
    >>> blocks.taken(1 << 20, np.int32)[:2].base.shape
    (1048576,)
    >>> blocks.kept == 4 << 20
    True
    """

    def __init__(self, most: int = KEPT) -> None:
        self.most = most
        self._unused: list[npt.NDArray[np.uint8]] = []
        self._returned: deque[npt.NDArray[np.uint8]] = deque()
        self._changing = threading.Lock()

    @property
    def kept(self) -> int:
        """The bytes kept."""
        with self._changing:
            self._collect()
            return sum(block.nbytes for block in self._unused)

    def taken(self, count: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of so many elements, which hold anything."""
        size = count * np.dtype(kind).itemsize
        if size < LEAST:
            return np.empty(count, kind)
        block = self._kept_for(size)
        if block is None:
            block = np.empty(-(-size // LEAST) * LEAST, np.uint8)
        array = np.frombuffer(block.data, kind, count)
        weakref.finalize(array, self._returned.append, block).atexit = False
        return array

    def _kept_for(self, size: int) -> npt.NDArray[np.uint8] | None:
        """Return the smallest block that suffices, unless it is twice as large as needed."""
        with self._changing:
            self._collect()
            fitting = [place for place, block in enumerate(self._unused) if size <= block.nbytes <= 2 * size]
            if not fitting:
                return None
            return self._unused.pop(min(fitting, key=lambda place: self._unused[place].nbytes))

    def _collect(self) -> None:
        """Keep what has come back, as far as there is room: an array may end in any thread at any moment, also while
        this one has the lock, so that it only leaves its block in a queue."""
        kept = sum(block.nbytes for block in self._unused)
        while self._returned:
            block = self._returned.popleft()
            if kept + block.nbytes <= self.most:
                self._unused.append(block)
                kept += block.nbytes


ANSWERS = Blocks()
"""What the answers of this process are made of."""
