"""From the codes of queries to the ranks of an axis in a segment.

The *cuts* of an axis are the codes at which some predicate on it begins to hold or ceases to. The *rank* of a code is
the number of cuts at or below it: two codes of one rank satisfy the same predicates wherever all cuts are kept. A
lookup table over the span of the cuts finds a rank at once (where the span is short) or leaves a short search.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.layout import longs_section, words_section

NULL = np.int64(np.iinfo(np.int64).min)

TOGETHER = 128
"""How many rows are coded axis by axis before the next ones."""


@kernel
def build_lookup(cuts, base, shift, lookup):  # type: ignore[no-untyped-def]
    """Fill a lookup table: the rank of the first code of each slot, and one slot more."""
    rank = 0
    for slot in range(len(lookup)):
        if shift == 0:
            while rank < len(cuts) and np.uint64(cuts[rank] - base) <= np.uint64(slot):
                rank += 1
        else:
            while rank < len(cuts) and np.uint64(cuts[rank] - base) >> np.uint64(shift) < np.uint64(slot):
                rank += 1
        lookup[slot] = rank


@inlined
def rank_of(code, cuts, lookup, base, shift):  # type: ignore[no-untyped-def]
    """Return the number of cuts at or below a code."""
    if code < base:
        return 0
    slot = np.uint64(code - base) >> np.uint64(shift)
    if slot >= np.uint64(len(lookup) - 1):
        return len(cuts)
    rank = np.int64(lookup[slot])
    if shift > 0:
        end = np.int64(lookup[slot + np.uint64(1)])
        while rank < end:
            middle = (rank + end) >> 1
            if cuts[middle] <= code:
                rank = middle + 1
            else:
                end = middle
    return rank


@kernel
def code_rows(segment, codes, rows, buckets, cells):  # type: ignore[no-untyped-def]
    """Code the given rows of ``codes`` int64[axes, rows]: buckets uint8[len(rows), axes], cells int32[len(rows), keys].

    An axis beyond those of ``codes`` is NULL everywhere. Rows are treated a few at a time, so that what is written to
    one line after another stays in the nearest cache.
    """
    table = longs_section(segment, at.AXIS_TABLE)
    all_cuts = longs_section(segment, at.CUTS)
    lookups = words_section(segment, at.LOOKUP)
    for begin in range(0, len(rows), TOGETHER):
        end = min(begin + TOGETHER, len(rows))
        for axis in range(segment.header[at.AXES]):
            record = axis * at.AXIS_FIELDS
            outside, key = table[record + at.A_AXIS], table[record + at.A_KEY]
            above_null, count = table[record + at.A_ABOVE_NULL], table[record + at.A_COUNT]
            base, shift = table[record + at.A_BASE], table[record + at.A_SHIFT]
            where, last = table[record + at.A_LOOKUP], table[record + at.A_SLOTS] - 1
            if outside >= codes.shape[0]:
                buckets[begin:end, axis] = 0
                if key >= 0:
                    cells[begin:end, key] = 0
            elif shift == 0 and count + above_null < at.BUCKETS:
                for i in range(begin, end):
                    code = codes[outside, rows[i]]
                    slot = min(np.uint64(code - base), np.uint64(last))
                    rank = lookups[where + np.int64(slot)]
                    buckets[i, axis] = (rank if code >= base else 0) + (above_null if code != NULL else 0)
            else:
                cuts = all_cuts[table[record + at.A_CUTS] : table[record + at.A_CUTS] + count]
                lookup = lookups[where : where + last + 1]
                for i in range(begin, end):
                    code = codes[outside, rows[i]]
                    rank = rank_of(code, cuts, lookup, base, shift) + (above_null if code != NULL else 0)
                    if key >= 0:
                        cells[i, key] = rank
                    if count + above_null >= at.BUCKETS:
                        rank = rank * at.BUCKETS // (count + above_null + 1)
                    buckets[i, axis] = rank
