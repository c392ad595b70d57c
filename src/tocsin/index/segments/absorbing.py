"""Taking new boxes into a segment without planning it anew: most of it is copied as it is.

That costs a tenth of building the segment, so that it keeps up with many changes a second. It is refused where the
plan does not suit what is new: then only a merge that plans anew helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.segments.building import frozen, pack
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
    Copied,
    Rows,
    arrange_new,
    copy_predicates,
    copy_rows,
    merge_numbers,
    moved_positions,
    order_rows,
    predicate_lengths,
)
from tocsin.kernels.segments.layout import Segment
from tocsin.kernels.vectors import AT_ONCE

MISPLACED = 8
"""One in so many new boxes may lack a place in the plan, or go to the bitmaps though those before them did not."""

NO_ROWS: Int64s = np.empty(0, np.int64)


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
    often = often_used(segment, UNSHARED + 1)
    found = find_shared(segment, often, new, coding)
    numbered = np.where(found >= 0, found, known + np.arange(len(found)))
    starts = node_table[at.N_START :: at.NODE_FIELDS]
    slots = np.where(nodes[kept] < 0, end, starts[nodes[kept]] + slots[kept])
    order = np.lexsort((_schema(row_start, held, coding.word), slots))
    rows = Rows(numbers[kept], row_start, numbered[held], marks, coding.word)
    gone = _gone(segment, died, version)
    starts = np.empty(end + 1, np.int32)
    arranged, tree = order_rows(segment, gone, (node_table, end), slots[order], starts)
    count = int(segment.header[at.POSITIONS]) - len(gone) + len(kept)
    copied: dict[int, Any] = {
        at.NUMBERS: count,
        at.FIRST: count + AT_ONCE,
        at.ROW_START: count + 1,
        at.PREDICATES: _entries(segment, gone) + len(held),
    }
    marks = np.empty(count, np.uint8)
    predicates = _sections(segment, at.WORDS, at.SET_START, at.LOWS, at.HIGHS)
    singles = int(segment.header[at.SINGLES])
    as_they_are = len(often) == known and bool((found >= 0).all())
    if not as_they_are:
        copied = {section: np.empty(room, np.int32) for section, room in copied.items()}
        copy_rows(segment, rows, arranged, order, Copied._make([*copied.values(), marks]))
        lengths = predicate_lengths(segment, new.length)
        old = renumber(copied[at.PREDICATES], lengths)
        *found_predicates, singles = copy_predicates(
            segment, coding.word, (new.first, boxes.low, boxes.high), lengths, old
        )
        predicates = dict(zip((at.WORDS, at.LOWS, at.HIGHS, at.SET_START), found_predicates, strict=True))
    moved = moved_positions(segment, arranged)
    run_start, run_end = moved_runs(segment, moved)
    has_second = segment.header[at.SECOND] < segment.header[at.SECOND + 1]
    whole = pack(
        {**_counts(segment), at.TREE: tree, at.POSITIONS: count, at.SINGLES: singles},
        {
            **copied,
            at.WORDS: predicates[at.WORDS],
            at.SET_START: predicates[at.SET_START],
            at.STARTS: starts,
            at.HASH_PAGES: hash_pages,
            **_sections(segment, at.LOOKUP),
            at.BY_NUMBER: count,
            **_sections(segment, at.EMBEDDED_KEY, at.EMBEDDED_SLOT),
            at.SECOND: count + AT_ONCE if has_second else 0,
            at.PAGE_MARKS: mark_pages(node_table, starts, hash_keys, hash_pages),
            at.RUN_START: run_start,
            at.RUN_END: run_end,
        },
        {
            at.LOWS: predicates[at.LOWS],
            at.HIGHS: predicates[at.HIGHS],
            **_sections(segment, at.CUTS),
            at.HASH_KEYS: hash_keys,
            **_sections(segment, at.AXIS_TABLE),
            at.NODE_TABLE: node_table,
        },
        marks,
    )
    written = _sections(whole, *copied, at.WORDS, at.BY_NUMBER, at.SECOND)
    if as_they_are:
        copy_rows(segment, rows, arranged, order, Copied._make([*(written[section] for section in copied), marks]))
    by_row = rows.numbers[order]
    rising = np.argsort(by_row)
    merge_numbers(segment, moved, by_row[rising], arranged.new_places[rising], written[at.BY_NUMBER])
    if has_second:
        of = written[at.ROW_START], written[at.PREDICATES], marks, written[at.WORDS]
        written[at.SECOND][:] = second_words(*of)
    return frozen(whole), np.flatnonzero(strange)


def _gone(segment: Segment, died: Int64s, version: int) -> Int64s:
    """Return the positions of the boxes that are no longer there at a version."""
    struck: Int64s = np.flatnonzero((segment.marks & at.STRUCK) != 0) if len(died) else NO_ROWS
    return struck[died[struck] <= version] if len(struck) else struck


def _entries(segment: Segment, gone: Int64s) -> int:
    """Return how many predicates the rows have that are left."""
    (row_start,) = _sections(segment, at.ROW_START).values()
    return int(row_start[-1]) - int((row_start[gone + 1] - row_start[gone]).sum())


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
