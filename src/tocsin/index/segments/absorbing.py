"""Taking new boxes into a segment without planning it anew: most of it is copied as it is.

That costs a tenth of building the segment, so that it keeps up with many changes a second. It is refused where the
plan does not suit what is new: then only a merge that plans anew helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.segments.building import NO_WORDS, pack
from tocsin.index.segments.covering import moved_runs
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.absorbing import (
    Arrivals,
    code_predicates,
    find_shared,
    find_slots,
    grown_nodes,
    often_used,
    pages_of,
)
from tocsin.kernels.segments.building import UNSHARED, mark_pages, number_predicates, renumber, second_words
from tocsin.kernels.segments.copying import (
    Rows,
    arrange_new,
    copy_predicates,
    copy_rows,
    merge_numbers,
    order_rows,
    predicate_lengths,
)
from tocsin.kernels.segments.layout import Segment

MISPLACED = 8
"""One in so many new boxes may lack a place in the plan, or go to the bitmaps though those before them did not."""


def absorb(
    segment: Segment, died: Int64s, version: int, numbers: Int32s, boxes: Boxes
) -> tuple[Segment, Int64s] | None:
    """Return the segment as of a version with these boxes, and which of them have no place in it; None if too many."""
    row_start, held, first, length = number_predicates(*boxes)
    new = Arrivals(row_start, held, first, length, boxes.axis, boxes.low, boxes.high)
    coding = code_predicates(segment, new)
    pages = pages_of(segment)
    hashed = _sections(segment, at.HASH_KEYS, at.HASH_PAGES)
    tables = hashed[at.HASH_KEYS].copy(), hashed[at.HASH_PAGES].astype(np.int64), len(hashed[at.HASH_KEYS])
    nodes, slots, implied, tables = find_slots(segment, new, coding, pages, tables)
    strange = nodes == -2
    if (int(strange.sum()) + _excess(segment, nodes)) * MISPLACED > len(numbers):
        return None
    node_table, hash_keys, hash_pages, end = grown_nodes(segment, pages, tables)
    kept = np.flatnonzero(~strange)
    row_start, held, marks = arrange_new(new.row_start, new.held, implied, coding.word, ~strange)
    known = int(segment.header[at.WORDS + 1] - segment.header[at.WORDS])
    found = find_shared(segment, often_used(segment, UNSHARED + 1), new, coding)
    numbered = np.where(found >= 0, found, known + np.arange(len(found)))
    starts = node_table[at.N_START :: at.NODE_FIELDS]
    slots = np.where(nodes[kept] < 0, end, starts[nodes[kept]] + slots[kept])
    order = np.lexsort((_schema(row_start, held, coding.word), slots))
    rows = Rows(numbers[kept], row_start, numbered[held], marks, coding.word)
    source, starts, tree, moved = order_rows(segment, died, version, (node_table, end), slots, order)
    copied = copy_rows(segment, rows, source)
    run_start, run_end = moved_runs(segment, moved)
    lengths = predicate_lengths(segment, new.length)
    old = renumber(copied.held, lengths)
    words, low, high, set_start, singles = copy_predicates(
        segment, coding.word, (new.first, boxes.low, boxes.high), lengths, old
    )
    places = np.flatnonzero(source < 0)
    by_row = rows.numbers[-1 - source[places]]
    rising = np.argsort(by_row)
    by_number = merge_numbers(segment, moved, by_row[rising], places[rising])
    has_second = segment.header[at.SECOND] < segment.header[at.SECOND + 1]
    page_marks = mark_pages(node_table, starts, hash_keys, hash_pages)
    whole = pack(
        {**_counts(segment), at.TREE: tree, at.POSITIONS: len(source), at.SINGLES: singles},
        {
            at.NUMBERS: copied.numbers,
            at.FIRST: copied.first,
            at.ROW_START: copied.row_start,
            at.PREDICATES: copied.held,
            at.WORDS: words,
            at.SET_START: set_start,
            at.STARTS: starts,
            at.HASH_PAGES: hash_pages,
            **_sections(segment, at.LOOKUP),
            at.BY_NUMBER: by_number,
            **_sections(segment, at.EMBEDDED_KEY, at.EMBEDDED_SLOT),
            at.SECOND: second_words(copied.row_start, copied.held, copied.marks, words) if has_second else NO_WORDS,
            at.PAGE_MARKS: page_marks,
            at.RUN_START: run_start,
            at.RUN_END: run_end,
        },
        {
            at.LOWS: low,
            at.HIGHS: high,
            **_sections(segment, at.CUTS),
            at.HASH_KEYS: hash_keys,
            **_sections(segment, at.AXIS_TABLE),
            at.NODE_TABLE: node_table,
        },
        copied.marks,
    )
    return whole, np.flatnonzero(strange)


def _excess(segment: Segment, nodes: Int64s) -> int:
    """Return how many more of the new boxes go to the bitmaps than would if they were like those that are there."""
    tree, positions = (int(segment.header[place]) for place in (at.TREE, at.POSITIONS))
    share = (positions - tree) / max(positions, 1)
    return max(0, int((nodes == -1).sum()) - round(share * len(nodes)))


def _schema(row_start: Int64s, held: Int64s, words: Int64s) -> Int64s:
    """Return keys by which boxes on the same axes are neighbours."""
    axis = (words[held] >> 16) & 0x3FFF
    joined: Int64s = np.zeros(len(row_start) - 1, np.int64)
    some = np.diff(row_start) > 0
    joined[some] = np.bitwise_or.reduceat(np.left_shift(1, axis % 62), row_start[:-1][some])
    return joined


def _counts(segment: Segment) -> dict[int, int]:
    return {place: int(segment.header[place]) for place in range(at.NUMBERS)}


def _sections(segment: Segment, *sections: int) -> dict[int, Any]:
    """Return sections as they are."""
    return {
        section: (segment.words if section < at.WORDS_END else segment.longs)[
            segment.header[section] : segment.header[section + 1]
        ]
        for section in sections
    }
