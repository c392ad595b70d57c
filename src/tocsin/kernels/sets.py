"""Sets of intervals, one a column: the part of their algebra that NumPy has no function for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel


@kernel
def merge_intervals(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], empty_low: int, empty_high: int) -> int:
    """Merge, in place, the overlapping and adjacent intervals of each column; return the most that a column keeps.

    ``low`` and ``high``: int64[intervals, columns], each column sorted by ``low``, empty intervals (``low > high``)
    anywhere. What is kept moves to the front of its column; the rest is filled with the empty interval given.
    """
    most = 0
    for column in range(low.shape[1]):
        kept = 0
        for row in range(low.shape[0]):
            if low[row, column] > high[row, column]:
                continue
            last = high[kept - 1, column] if kept else empty_high
            if kept and (low[row, column] <= last or low[row, column] - 1 == last):
                high[kept - 1, column] = max(high[kept - 1, column], high[row, column])
            else:
                low[kept, column], high[kept, column] = low[row, column], high[row, column]
                kept += 1
        for row in range(kept, low.shape[0]):
            low[row, column], high[row, column] = empty_low, empty_high
        most = max(most, kept)
    return most
