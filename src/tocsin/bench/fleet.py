"""A fleet from a seed: trucks that move about a map, and fences that ring when one comes in or goes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.space import Number, Space

SIDE = 1000.0
"""The map is a square of this side."""

KINDS, MOST_CARGO = 10, 100

SPACE = Space({"x": Number(), "y": Number(), "kind": Number("int64"), "cargo": Number("int64")})


@dataclass(frozen=True)
class Fleet:
    """So many trucks and fences; each fence is a rectangle, a kind of truck and a bound of its cargo."""

    trucks: int
    fences: int
    seed: int = 2004
    step: float = 1.0

    def subscriptions(self) -> pa.Table:
        """Return the fences as subscriptions.

        >>> Fleet(10, 1).subscriptions()["expression"][0].as_py()
        'x BETWEEN 387.095 AND 387.352 AND y BETWEEN 731.732 AND 737.644 AND kind = 5 AND cargo <= 30'
        """
        return self._drawn(np.random.default_rng([self.seed, 1]), np.arange(self.fences))

    def moved(self, count: int) -> pa.Table:
        """Return new places for some of the fences, as changes of subscriptions."""
        random = np.random.default_rng([self.seed, 3])
        return self._drawn(random, random.choice(self.fences, min(count, self.fences), replace=False))

    def _drawn(self, random: np.random.Generator, ids: npt.NDArray[np.int64]) -> pa.Table:
        count = len(ids)
        corner = random.uniform(0, SIDE, (2, count)).round(3)
        far = (corner + 0.2 + random.exponential(2.0, (2, count))).round(3)
        kind, cargo = random.integers(0, KINDS, count), random.integers(0, MOST_CARGO, count)
        texts = [
            f"x BETWEEN {x0} AND {x1} AND y BETWEEN {y0} AND {y1} AND kind = {k} AND cargo <= {c}"
            for x0, x1, y0, y1, k, c in zip(
                *(each.tolist() for each in (corner[0], far[0], corner[1], far[1], kind, cargo)), strict=True
            )
        ]
        return pa.table({"id": ids, "expression": texts})

    def batches(self, count: int, rows: int) -> Iterator[pa.Table]:
        """Yield the trucks as they start, then batches of updates of so many rows: a truck moves, or is told anew.

        A row of an update says where the truck is and leaves its kind and cargo out; one in twenty changes its cargo.
        """
        random = np.random.default_rng([self.seed, 2])
        place = random.uniform(0, SIDE, (2, self.trucks))
        start = {
            "truck": np.arange(self.trucks),
            "at": np.zeros(self.trucks, np.int64),
            "x": place[0].copy(),  # Arrow keeps the array it is given, and trucks move
            "y": place[1].copy(),
            "kind": random.integers(0, KINDS, self.trucks),
            "cargo": random.integers(0, MOST_CARGO, self.trucks),
        }
        yield pa.table(start)
        for batch in range(count):
            truck = random.choice(self.trucks, rows, replace=rows > self.trucks)
            at = np.arange(batch * rows, (batch + 1) * rows) + 1
            moved = random.normal(0, self.step, (2, rows))
            place[:, truck] = np.clip(place[:, truck] + moved, 0, SIDE)
            loads = pa.array(random.integers(0, MOST_CARGO, rows), mask=random.random(rows) > 0.05)
            where: list[npt.NDArray[np.float64]] = [place[axis, truck] for axis in (0, 1)]
            columns = [truck, at, *where, pa.nulls(rows, pa.int64()), loads]
            yield pa.table(columns, names=list(start))
