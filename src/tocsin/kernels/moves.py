"""The difference of two answers: which pairs are in one and not in the other."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments.checking import Found


@kernel
def difference(rows, numbers, other_rows, other_numbers):  # type: ignore[no-untyped-def]
    """Return the pairs of the first answer that are not in the second; both are sorted by row, each pair once.

    The numbers of a row are sorted, so that what is returned is sorted by row and number.
    """
    kept_rows, kept_numbers = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    kept, begin, other = 0, 0, 0
    while begin < len(rows):
        row, end = rows[begin], begin
        while end < len(rows) and rows[end] == row:
            end += 1
        while other < len(other_rows) and other_rows[other] < row:
            other += 1
        stop = other
        while stop < len(other_rows) and other_rows[stop] == row:
            stop += 1
        mine = np.sort(numbers[begin:end])
        if stop == other:
            for number in mine:
                kept_rows[kept], kept_numbers[kept] = row, number
                kept += 1
        else:
            theirs = np.sort(other_numbers[other:stop])
            at = 0
            for number in mine:
                while at < len(theirs) and theirs[at] < number:
                    at += 1
                kept_rows[kept], kept_numbers[kept] = row, number
                kept += at == len(theirs) or theirs[at] != number
        begin, other = end, stop
    return Found(kept_rows[:kept], kept_numbers[:kept])
