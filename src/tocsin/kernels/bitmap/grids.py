"""Intervals that cross, as a grid of buckets: for each bucket, which boxes it satisfies and which it leaves in doubt.

The grid of the paper files an interval under the buckets of its two ends. What a value in bucket ``r`` needs of it is
two unions of cells: those that reach the bucket (all but parts A and B of the paper's figure 6), and among them those
that end in it and leave the value in doubt (C, D and E, without ends that fall on the bucket's own).
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.bitmap.trees import HIGHEST_CODE
from tocsin.kernels.compile import kernel


@kernel
def bucket_of(starts, code):  # type: ignore[no-untyped-def]
    """Return the last bucket that begins at or below a code; the first begins at the lowest code there is."""
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[middle] <= code:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def span_buckets(low, high, starts):  # type: ignore[no-untyped-def]
    """Return int32[4, intervals]: the buckets of both ends, then the first and the last bucket covered wholly (the
    first is after the last where there is none); and which buckets have an end inside.
    """
    spans, in_doubt = np.empty((4, len(low)), np.int32), np.zeros(len(starts), np.bool_)
    for i in range(len(low)):
        begin, end = bucket_of(starts, low[i]), bucket_of(starts, high[i])
        bucket_end = HIGHEST_CODE if end + 1 == len(starts) else starts[end + 1] - 1
        first, last = begin + (low[i] != starts[begin]), end - (high[i] != bucket_end)
        spans[0, i], spans[1, i], spans[2, i], spans[3, i] = begin, end, first, last
        in_doubt[begin] |= first > begin or last < begin
        in_doubt[end] |= last < end or first > end
    return spans, in_doubt


@kernel
def fill_grid(rows, bucket_rows, spans, slots, intervals):  # type: ignore[no-untyped-def]
    """Set the bits of entries (a slot and an interval each) in the rows of a grid.

    ``bucket_rows``: int32[2, buckets], the row of the boxes with a part of an interval in a bucket, and of those among
    them that it leaves in doubt, -1 where there is none. ``spans``: what `span_buckets` returned.
    """
    for entry in range(len(slots)):
        word, bit = slots[entry] >> 6, np.uint64(1) << np.uint64(slots[entry] & 63)
        begin, end, first, last = spans[:, intervals[entry]]
        for bucket in range(begin, end + 1):
            rows[bucket_rows[0, bucket], word] |= bit
        if begin < first or begin > last:
            rows[bucket_rows[1, begin], word] |= bit
        if end < first or end > last:
            rows[bucket_rows[1, end], word] |= bit
