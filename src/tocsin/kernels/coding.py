"""From the codes of queries to the ranks of an axis in a segment.

The *cuts* of an axis are the codes at which some predicate on it begins to hold or ceases to. The *rank* of a code is the
number of cuts at or below it: two codes of one rank satisfy the same predicates wherever all cuts are kept. A lookup
table over the span of the cuts finds a rank at once (where the span is short) or leaves a short search.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments import (
    A_ABOVE_NULL,
    A_AXIS,
    A_BASE,
    A_COUNT,
    A_CUTS,
    A_KEY,
    A_LOOKUP,
    A_SHIFT,
    A_SLOTS,
    AXES,
    AXIS_FIELDS,
    AXIS_TABLE,
    BUCKETS,
    CUTS,
    LOOKUP,
    longs_section,
    words_section,
)

NULL = np.iinfo(np.int64).min


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

    An axis beyond those of ``codes`` is NULL everywhere.
    """
    table = longs_section(segment, AXIS_TABLE)
    all_cuts = longs_section(segment, CUTS)
    lookups = words_section(segment, LOOKUP)
    for axis in range(segment.header[AXES]):
        record = table[axis * AXIS_FIELDS : (axis + 1) * AXIS_FIELDS]
        outside, key, above_null = record[A_AXIS], record[A_KEY], record[A_ABOVE_NULL]
        cuts = all_cuts[record[A_CUTS] : record[A_CUTS] + record[A_COUNT]]
        lookup = lookups[record[A_LOOKUP] : record[A_LOOKUP] + record[A_SLOTS]]
        base, shift = record[A_BASE], record[A_SHIFT]
        count = len(cuts) + above_null
        if outside >= codes.shape[0]:
            for i in range(len(rows)):
                buckets[i, axis] = 0
                if key >= 0:
                    cells[i, key] = 0
            continue
        line = codes[outside]
        for i in range(len(rows)):
            code = line[rows[i]]
            rank = rank_of(code, cuts, lookup, base, shift)
            if code != NULL:
                rank += above_null
            if key >= 0:
                cells[i, key] = rank
            if count >= BUCKETS:
                rank = rank * BUCKETS // (count + 1)
            buckets[i, axis] = rank
