"""Numbers to hand out and to take back, while readers may still hold some that are gone."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Int32s


class Free:
    """Numbers to hand out: freed ones first, those that no reader can still see, then new ones."""

    def __init__(self, first: int = 0) -> None:
        self._ready: list[int] = []
        self._limbo: list[tuple[int, Int32s]] = []
        self._next = first

    def take(self, wanted: int, oldest_reader: int) -> Int32s:
        """Return so many numbers."""
        while self._limbo and self._limbo[0][0] < oldest_reader:
            self._ready += self._limbo.pop(0)[1].tolist()
        reused = self._ready[len(self._ready) - min(wanted, len(self._ready)) :]
        del self._ready[len(self._ready) - len(reused) :]
        fresh = np.arange(self._next, self._next + wanted - len(reused), dtype=np.int32)
        self._next += len(fresh)
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def give(self, numbers: Int32s, epoch: int) -> None:
        """Take numbers back."""
        if len(numbers):
            self._limbo.append((epoch, numbers))
