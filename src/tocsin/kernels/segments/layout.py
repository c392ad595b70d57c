"""The arrays of a segment of `adaptive`, and how kernels read them.

A segment is immutable and consists of four plain arrays, so that a kernel is called with few arguments and a saved
segment is four files. ``header`` holds counts and says where each section begins in ``words`` (int32) and ``longs``
(int64); a section ends where the next one begins.

Boxes stand at *positions*. Those below ``TREE`` are reached through nodes (see `kernels/segments/nodes.py`), the others
through bitmaps of queries (see `kernels/segments/bitmaps.py`). A *predicate* is what a box demands of one axis: a
single interval, or a set of them; equal predicates are stored once. Predicates below ``SINGLES`` are single intervals,
and intervals of that number; the intervals of set ``s`` (predicate ``SINGLES + s``) are those from ``set_start[s]`` to
``set_start[s + 1]``.

A *bucket* is an 8-bit, order-preserving code of an axis. A predicate's word holds, from the top: 1 bit that says that
buckets do not decide it alone, 1 bit that says (in ``first`` only) that it decides about its box, 14 bits of axis, 8
bits of lowest bucket, 8 bits of width (highest minus lowest).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined

TREE, POSITIONS, SINGLES, AXES, KEYS, NODES, EMBEDDED, SORT_NODE = range(8)
"""Places of counts in a header. ``SORT_NODE``: the node by whose pages a batch of queries is sorted."""

NUMBERS, FIRST, ROW_START, PREDICATES, WORDS, SET_START, STARTS, HASH_PAGES, LOOKUP, BY_NUMBER = range(8, 18)
EMBEDDED_KEY, EMBEDDED_SLOT, SECOND, PAGE_MARKS, RUN_START, RUN_END, WORDS_END = range(18, 25)
"""Places of the beginnings of the sections of ``words``.

``numbers``: the box number of a position. ``first``: the word of its first predicate to check. ``row_start``: where
its predicates begin. ``predicates``: which they are, those implied by its node last. ``words``: the word of a
predicate. ``starts``: where the positions of a slot begin. ``hash_pages``: see `nodes.py`. ``lookup``: see
`coding.py`. ``by_number``: positions sorted by box number. ``embedded_key``, ``embedded_slot``: of an embedded child,
the axis (its cells being buckets) or else the place in ``cells`` of its key, and its first slot within a page of its
node. ``second``: the word of the second predicate to check; empty where predicates are few, whose words are at hand
anyway. ``page_marks``: two bits a page, `FILED` and `LEADS`, sixteen pages a word.
``run_start``, ``run_end``: positions of the bitmaps whose first box covers the others, see `covering.py`.
"""

LOWS, HIGHS, CUTS, HASH_KEYS, AXIS_TABLE, NODE_TABLE, LONGS_END = range(25, 32)
"""Places of the beginnings of the sections of ``longs``: interval bounds, cuts of axes, hash keys, tables of
records."""

HEADER = 32
"""The length of a header."""

AXIS_FIELDS = 9
A_AXIS, A_CUTS, A_COUNT, A_LOOKUP, A_SLOTS, A_BASE, A_SHIFT, A_ABOVE_NULL, A_KEY = range(AXIS_FIELDS)
"""An axis of a segment: its number outside, its cuts (where, how many), its lookup table (where, slots, base, shift),
whether a cut between NULL and every value comes before its cuts, and its place among the axes that have cells, or -1.

The cell of a key axis is its bucket, where it has no more cells than there are buckets; else it has a place in
``cells``."""

NODE_FIELDS = 11
N_PARENT, N_KEY, N_CELLS, N_START, N_STRIDE, N_HASH, N_MASK, N_EMBEDDED, N_WIDE, N_EMBEDDED_END, N_PAGES = range(
    NODE_FIELDS
)
"""A node: its parent, the key that leads to it, that axis's cells, its first slot, slots a page, its hash table
(where, mask; -1 where pages are computed), its embedded children: those whose cells are buckets, then the others; its
first page among those of all nodes. A key is an axis of the segment, whose bucket is the cell, or -1 less a place in
``cells``."""

FILED, LEADS = 1, 2
"""The bits of a page's mark: boxes are in its slots; there are some in these or in those of pages below."""

REPLICA = 128
"""The bit of a mark that says that this box also stands at an earlier position."""

DOUBT = 64
"""The bit of a mark that says that buckets do not decide about all predicates of this box."""

STRUCK = 32
"""The bit of a mark that says that this box was removed: another array says from which version on."""

IMPLIED = 31
"""The bits of a mark that count the predicates implied by the box's node."""

DECIDES = 1 << 30
"""The bit of a first word, or a second one where there are, that says that nothing else is left to check."""

MOST_AXES = 1 << 14
"""A segment cannot have more axes."""

BUCKETS = 255
"""The greatest number of buckets of an axis."""


class Segment(NamedTuple):
    """The arrays of a segment: ``header`` int64, ``words`` int32, ``longs`` int64, ``marks`` uint8[positions]."""

    header: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    longs: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint8]


class Coded(NamedTuple):
    """Queries as a segment sees them: ``low``/``high`` buckets uint8[rows, axes], ``cells`` int32[rows, keys]."""

    low: Any
    high: Any
    cells: Any


@inlined
def words_section(segment, section):  # type: ignore[no-untyped-def]
    """Return one section of ``words``."""
    return segment.words[segment.header[section] : segment.header[section + 1]]


@inlined
def longs_section(segment, section):  # type: ignore[no-untyped-def]
    """Return one section of ``longs``."""
    return segment.longs[segment.header[section] : segment.header[section + 1]]
