"""Whether a segment that was read from files leads kernels only to places that are there.

`check_segment` looks at every number that a kernel uses as a place, a count or a jump, so that one that passes cannot
crash the process or keep it busy for ever, whatever the files held. It does not tell whether the answers are right:
checksums do. It takes some 20 ms a million boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.checks import check, check_length, check_rising, check_within
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.layout import Segment
from tocsin.kernels.vectors import AT_ONCE

MOST_OUTSIDE = 1 << 24
"""The numbers of axes outside a segment are below this."""


class _Sections:
    """The sections of a segment by name of their place, once the header is known to be in order."""

    def __init__(self, segment: Segment) -> None:
        self.header = segment.header.tolist()
        self._words, self._longs, self.marks = segment.words, segment.longs, segment.marks
        for first, last, whole in (
            (at.NUMBERS, at.WORDS_END, segment.words),
            (at.LOWS, at.LONGS_END, segment.longs),
        ):
            check_rising("sections", segment.header[first : last + 1], 0, len(whole))

    def words(self, section: int) -> Int32s:
        return self._words[self.header[section] : self.header[section + 1]]

    def longs(self, section: int) -> Int64s:
        return self._longs[self.header[section] : self.header[section + 1]]


def check_segment(segment: Segment) -> None:
    """Raise ValueError if a kernel could read or write outside the arrays of a segment, or never end."""
    of = _Sections(segment)
    _check_lengths(of)
    _check_positions(of)
    _check_predicates(of)
    most_cells = _check_axes(of)
    _check_nodes(of, *most_cells)


def _check_lengths(of: _Sections) -> None:
    header, positions = of.header, len(of.marks)
    check_length("positions", header[at.POSITIONS], positions)
    check(0 <= header[at.TREE] <= positions, "the boxes in nodes are more than all")
    check(1 <= header[at.AXES] <= at.MOST_AXES, "a number of axes that no segment has")
    check(1 <= header[at.KEYS] <= at.MOST_AXES, "a number of keys that no segment has")
    check(header[at.NODES] >= 1, "no nodes")
    predicates = len(of.words(at.WORDS))
    check(0 <= header[at.SINGLES] <= predicates, "more single intervals than predicates")
    for section, wanted in (
        (at.NUMBERS, positions),
        (at.FIRST, positions + AT_ONCE),
        (at.ROW_START, positions + 1),
        (at.SET_START, predicates - header[at.SINGLES] + 1),
        (at.BY_NUMBER, positions),
        (at.HASH_PAGES, len(of.longs(at.HASH_KEYS))),
        (at.EMBEDDED_KEY, header[at.EMBEDDED]),
        (at.EMBEDDED_SLOT, header[at.EMBEDDED]),
        (at.RUN_END, len(of.words(at.RUN_START))),
    ):
        check_length(f"section {section}", len(of.words(section)), wanted)
    if len(of.words(at.SECOND)):
        check_length("second words", len(of.words(at.SECOND)), positions + AT_ONCE)
    check_length("ends of intervals", len(of.longs(at.HIGHS)), len(of.longs(at.LOWS)))
    check_length("records of axes", len(of.longs(at.AXIS_TABLE)), header[at.AXES] * at.AXIS_FIELDS)
    check_length("records of nodes", len(of.longs(at.NODE_TABLE)), header[at.NODES] * at.NODE_FIELDS)


def _check_positions(of: _Sections) -> None:
    """Check what is said of each position: its predicates, its slot, its run."""
    positions, tree = len(of.marks), of.header[at.TREE]
    rows = of.words(at.ROW_START)
    check_within("box numbers", of.words(at.NUMBERS), 0, 2**31)
    check_within("positions by number", of.words(at.BY_NUMBER), 0, positions)
    check_rising("predicates of rows", rows, 0, len(of.words(at.PREDICATES)))
    checked = np.diff(rows)
    check(bool(np.all((of.marks & at.IMPLIED) <= checked)), "more predicates are implied than there are")
    check(not bool(np.any((of.marks & at.DOUBT != 0) & (checked == 0))), "doubt about no predicate")
    check_rising("positions of slots", of.words(at.STARTS), 0, tree)
    starts, ends = of.words(at.RUN_START), of.words(at.RUN_END)
    if len(starts):
        bounds = np.stack([starts, ends], axis=1).ravel()
        check_rising("runs", bounds, tree, positions)
        check(bool(np.all(starts < ends)), "a run of no boxes")


def _check_predicates(of: _Sections) -> None:
    axes, words = of.header[at.AXES], of.words(at.WORDS)
    check_within("predicates", of.words(at.PREDICATES), 0, len(words))
    for section in (at.FIRST, at.SECOND, at.WORDS):
        check_within("axes of words", of.words(section) & 0x3FFF0000, 0, axes << 16)
    check_within("buckets of words", ((words >> 8) & 255) + (words & 255), 0, at.BUCKETS)
    check_rising("sets", of.words(at.SET_START), of.header[at.SINGLES], len(of.longs(at.LOWS)))


def _check_axes(of: _Sections) -> tuple[list[int], dict[int, int]]:
    """Check the records of axes; return the highest bucket of each, and the highest cell of each key."""
    buckets: list[int] = []
    cells: dict[int, int] = {}
    cuts, lookups = len(of.longs(at.CUTS)), of.words(at.LOOKUP)
    for record in of.longs(at.AXIS_TABLE).reshape(-1, at.AXIS_FIELDS).tolist():
        count, above_null = record[at.A_COUNT], record[at.A_ABOVE_NULL]
        where, slots = record[at.A_LOOKUP], record[at.A_SLOTS]
        check(0 <= record[at.A_AXIS] < MOST_OUTSIDE, "an axis of a number that there is not")
        check(above_null in (0, 1) and 0 <= record[at.A_SHIFT] <= 63, "an axis that cannot be looked up")
        check(0 <= record[at.A_CUTS] <= record[at.A_CUTS] + count <= cuts, "cuts of an axis that are not there")
        check(where >= 0 and slots >= 2 and where + slots <= len(lookups), "a lookup table that is not there")
        check(-1 <= record[at.A_KEY] < of.header[at.KEYS], "a key that is not there")
        check_within("ranks", lookups[where : where + slots], 0, count + 1)
        buckets.append(min(count + above_null, at.BUCKETS - 1))
        if record[at.A_KEY] >= 0:
            cells[record[at.A_KEY]] = count + above_null
    return buckets, cells


def _check_nodes(of: _Sections, buckets: list[int], cells: dict[int, int]) -> None:
    table = of.longs(at.NODE_TABLE).reshape(-1, at.NODE_FIELDS).tolist()
    slots = len(of.words(at.STARTS)) - 1
    check(0 <= of.header[at.SORT_NODE] < len(table), "queries are sorted by a node that is not there")
    pages: list[int] = []
    for number, record in enumerate(table):
        start, stride = record[at.N_START], record[at.N_STRIDE]
        end = table[number + 1][at.N_START] if number + 1 < len(table) else slots
        check(0 <= start <= end <= slots and stride >= 1, "slots of a node that are not there")
        check_length("pages before a node", record[at.N_PAGES], sum(pages))
        pages.append((end - start) // stride)
        check(0 <= record[at.N_PARENT] < max(number, 1), "a node before its parent")
        if number:
            above = pages[record[at.N_PARENT]]
            _check_pages(of, record, pages[number], above, _highest(record[at.N_KEY], buckets, cells))
        _check_embedded(of, record, buckets, cells)
    check(pages[0] >= 1, "a root without a page")
    check(sum(pages) <= 16 * len(of.words(at.PAGE_MARKS)), "pages without marks")


def _highest(key: int, buckets: list[int], cells: dict[int, int]) -> int:
    """Return the highest cell of a query under a key."""
    if key >= 0:
        check(key < len(buckets), "a key of an axis that is not there")
        return buckets[key]
    check(-1 - key in cells, "a key that no axis has")
    return cells[-1 - key]


def _check_pages(of: _Sections, record: list[int], pages: int, above: int, highest: int) -> None:
    """Check how the pages of a node are found from those of its parent."""
    check(highest < record[at.N_CELLS] < 2**31, "more cells than a node has")
    where, size = record[at.N_HASH], record[at.N_MASK] + 1
    if where < 0:
        check(above * record[at.N_CELLS] <= pages, "pages of a node that are not there")
        return
    keys: Any = of.longs(at.HASH_KEYS)
    check(size >= 1 and size & (size - 1) == 0 and where + size <= len(keys), "a hash table that is not there")
    used = keys[where : where + size] >= 0
    check(not bool(used.all()), "a hash table without a free slot")
    check_within("hashed pages", of.words(at.HASH_PAGES)[where : where + size][used], 0, pages)


def _check_embedded(of: _Sections, record: list[int], buckets: list[int], cells: dict[int, int]) -> None:
    first, wide, end = record[at.N_EMBEDDED], record[at.N_WIDE], record[at.N_EMBEDDED_END]
    check(0 <= first <= wide <= end <= of.header[at.EMBEDDED], "embedded children that are not there")
    keys, slots = of.words(at.EMBEDDED_KEY).tolist(), of.words(at.EMBEDDED_SLOT).tolist()
    for child in range(first, end):
        key = keys[child]
        check(key >= 0, "a key below zero")
        highest = _highest(key if child < wide else -1 - key, buckets, cells)
        check(slots[child] >= 0 and slots[child] + highest < record[at.N_STRIDE], "a slot beyond its page")
