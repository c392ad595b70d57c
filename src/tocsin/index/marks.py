"""An answer of very many pairs as bits, a bit a box and row, until somebody wants the pairs.

Where a row meets a third of all boxes, its pairs take sixty times the memory of its bits. Whoever wants the ids of what
was met has them written at once, and not numbers first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.blocks import ANSWERS
from tocsin.index.boxes import Int32s, Int64s, Pairs
from tocsin.kernels.bounds.stateless import SOME, write_all_met
from tocsin.kernels.picking import spread_into


class Marks:
    """Which boxes some rows met: ``met`` uint64[rows, words] has a bit for each position, ``counts`` int64[rows] says
    how many are set in a row, ``names`` int32[positions] what is at each position.

    >>> marks = Marks(np.array([[5], [0], [2]], np.uint64), np.array([2, 0, 1]), np.array([7, 8, 9], np.int32))
    >>> len(marks), [part.tolist() for part in marks.pairs()]
    (3, [[0, 0, 2], [7, 9, 8]])
    >>> marks.written(np.arange(10) * 10).tolist()
    [70, 90, 80]
    """

    def __init__(self, met: npt.NDArray[np.uint64], counts: Int64s, names: Int32s) -> None:
        self.met, self.counts, self.names = met, counts, names
        self._all = int(counts.sum())

    def __len__(self) -> int:
        return self._all

    def pairs(self) -> Pairs:
        """Return row and name of everything met."""
        return Pairs(self.rows(), self._written(self.names))

    def rows(self) -> Int32s:
        """Return the row of everything met."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])
        rows = ANSWERS.taken(self._all, np.int32)
        spread_into(np.arange(len(self.counts), dtype=np.int32), ends, rows)
        return rows

    def written(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``values[name]`` of everything met."""
        return self._written(values[self.names])

    def _written(self, by_position: npt.NDArray[Any]) -> npt.NDArray[Any]:
        written = ANSWERS.taken(self._all + SOME, by_position.dtype)
        write_all_met(self.met, by_position, written)
        return written[: self._all]
