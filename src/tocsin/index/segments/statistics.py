"""What is known about queries: a sample of those seen, from which the planner estimates chances."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import NULL, Int64s, Queries
from tocsin.kernels.picking import sample_into

SAMPLE = 1024
"""How many queries are remembered; the newest replace the oldest."""

EACH = 64
"""How many queries of one batch are remembered at most."""

EVERY = 16
"""Of calls with a single query, one in so many is remembered."""


class QueryStatistics:
    """A sample of recent queries, kept at the cost of copying a few columns a batch.

    Only the lower ends are kept: a range counts where it begins.

    >>> statistics = QueryStatistics()
    >>> statistics.observe(Queries.points(np.array([[1, 2], [3, 4]])))
    >>> statistics.codes(1).tolist(), statistics.codes(9).tolist(), statistics.seen
    ([3, 4], [-9223372036854775808, -9223372036854775808], 2)
    """

    def __init__(self) -> None:
        self.seen = 0
        self._calls = 0
        self._sample: Int64s = np.full((0, SAMPLE), NULL)
        self._next = 0
        self._held = 0

    def notice(self, queries: Queries) -> None:
        """Remember some of a batch on its way through the index. Threads may race here: a sample may be lost, no
        more."""
        self._calls += 1
        self.seen += queries.rows
        if queries.rows >= EACH or self._calls % EVERY == 0:
            self._remember(queries, EACH)

    def observe(self, queries: Queries) -> None:
        """Remember a batch that was gathered elsewhere: as much of it as there is room for."""
        self.seen += queries.rows
        self._remember(queries, SAMPLE)

    def codes(self, axis: int) -> Int64s:
        """Return the sampled codes of one axis."""
        held, sample = self._held, self._sample
        if axis < len(sample):
            return sample[axis, :held].copy()
        return np.full(held, NULL)

    def queries(self, most: int) -> Int64s:
        """Return the codes of up to so many sampled queries: int64[axes, queries]."""
        held, sample = self._held, self._sample
        return sample[:, :held][:, :: -(-held // most) if held else 1].copy()

    @property
    def held(self) -> int:
        """The number of queries in the sample."""
        return self._held

    def _remember(self, queries: Queries, most: int) -> None:
        if queries.rows == 0:
            return
        sample = self._sample  # another thread may replace it meanwhile: then what is written here is lost, no more
        if queries.axes > len(sample):
            grown = np.full((queries.axes, SAMPLE), NULL)
            grown[: len(sample)] = sample
            self._sample = sample = grown
        step = -(-queries.rows // most)
        first = self._calls % step  # other rows, should the same batch come again
        sample_into(np.ascontiguousarray(queries.low), first, step, sample, self._next)
        some = len(range(first, queries.rows, step))
        self._next = (self._next + some) % SAMPLE
        self._held = min(self._held + some, SAMPLE)
