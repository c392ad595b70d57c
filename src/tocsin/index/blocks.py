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

from tocsin.kernels.picking import pick_few_into, pick_into, spread_into

LEAST = 1 << 20
"""Arrays of fewer bytes are left to NumPy."""

SOME = 64
"""So many values are picked by a kernel."""

FEW = 4_096
"""So many are picked without letting go of Python's lock, at most."""

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
            step = max(LEAST, 1 << (size.bit_length() - 4))  # answers a little larger find room in it too
            block = np.empty(-(-size // step) * step, np.uint8)
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


def picked(values: npt.NDArray[Any], places: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """Return the values at these places, none of which is negative: many of them in memory that is used again, and
    three times as fast as NumPy.

    >>> picked(np.array([5, 6, 7]), np.array([2, 0], np.int32)).tolist()
    [7, 5]
    """
    found: npt.NDArray[Any]
    if len(places) < SOME:  # not worth a kernel
        found = values[places]
        return found
    found = ANSWERS.taken(len(places), values.dtype)
    (pick_few_into if len(places) <= FEW else pick_into)(values, places, found)
    return found


def spread(values: npt.NDArray[Any], places: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """Return the same for places that ascend, of which each may come many times in a row.

    >>> spread(np.array([5, 6]), np.array([0, 1, 1], np.int32)).tolist()
    [5, 6, 6]
    """
    if len(places) < max(FEW, 16 * len(values)):
        return picked(values, places)
    found = ANSWERS.taken(len(places), values.dtype)
    spread_into(values, np.searchsorted(places, np.arange(len(values) + 1, dtype=places.dtype)), found)
    return found


def longer(values: Any, length: int, filling: int) -> Any:
    """Return a longer copy of an array of one dimension or two, with this filling at its end."""
    grown = np.full((length, *values.shape[1:]), filling, values.dtype)
    grown[: len(values)] = values
    return grown
