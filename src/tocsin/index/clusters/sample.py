"""A sample of recent events: what the cost models of `static` and `dynamic` know about event streams.

The clusters paper assumes a tool that provides these statistics from time to time (section 4.1).
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import NULL, Int64s, Queries

SIZE = 1_024
"""How many events are remembered."""

STRIDE = 7_919
"""By how much the first row noted of a batch moves from call to call: a prime, which leads to every row in time."""


class EventSample:
    """The last events sampled. Of every batch a few rows are noted, of single questions every sixteenth.

    >>> sample = EventSample()
    >>> sample.note(Queries.points(np.array([[1, 2, 3]])))
    >>> sample.codes.tolist(), sample.noted
    ([[1, 2, 3]], 3)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ring = np.empty((0, SIZE), np.int64)
        self._calls = 0
        self.noted = 0

    @property
    def codes(self) -> Int64s:
        """The remembered events, int64[axes, events]; a range is represented by its low end."""
        with self._lock:
            return self._ring[:, : min(self.noted, SIZE)].copy()

    @property
    def nbytes(self) -> int:
        """The bytes of the sample."""
        return self._ring.nbytes

    def note(self, queries: Queries) -> None:
        """Remember some rows of a batch."""
        self._calls += 1
        full = self.noted >= SIZE
        if not queries.rows or (full and queries.rows < 64 and self._calls % 16):
            return
        count = min(queries.rows, max(1, queries.rows // 64), 32) if full else min(queries.rows, 64)
        first = self._calls * STRIDE if count < queries.rows else 0  # other rows, should the same batch come again
        rows = (first + np.arange(count) * queries.rows // count) % queries.rows
        with self._lock:
            if queries.axes > len(self._ring):
                missing = np.full((queries.axes - len(self._ring), SIZE), NULL)
                self._ring = np.concatenate([self._ring, missing])
            places = (self.noted + np.arange(count)) % SIZE
            self._ring[:, places] = NULL
            self._ring[: queries.axes, places] = queries.low[:, rows]
            self.noted += count

    def presence(self, axes: int) -> npt.NDArray[np.float64]:
        """Return for each of so many axes the share of remembered events that carry it; 1 if there are no events."""
        codes = self.codes
        if not codes.shape[1]:
            return np.ones(axes)
        shares = np.zeros(axes)
        known = min(axes, len(codes))
        shares[:known] = (codes[:known] != NULL).mean(axis=1)
        return shares
