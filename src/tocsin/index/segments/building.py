"""Immutable segments of `adaptive`: built from boxes by a plan, made of four plain arrays, read by kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.index.boxes import LOWEST, Boxes, Int32s, Int64s
from tocsin.index.segments.assignment import Assignment, assign
from tocsin.index.segments.covering import plan_runs
from tocsin.index.segments.planner import Plan, plan
from tocsin.index.segments.predicates import Axis, Predicates
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.building import arrange_rows, mark_pages, place_rows, renumber, second_words
from tocsin.kernels.segments.coding import build_lookup
from tocsin.kernels.segments.layout import Segment
from tocsin.kernels.vectors import AT_ONCE

LOOKUP_SLOTS = 4
"""How many slots the lookup table of an axis has for each cut, at most; 1,024 in any case."""

FEW = 65_536
"""The words of so many predicates stay in a cache: then no second one is held beside the first of each position."""

NO_WORDS = np.empty(0, np.int32)


def build(numbers: Int32s, boxes: Boxes, statistics: QueryStatistics) -> tuple[Segment, dict[str, Any]]:
    """Build a segment of these boxes, planned for such queries; return it and what the planner says about it."""
    predicates = Predicates.of(boxes, statistics)
    chosen = plan(predicates, len(boxes))
    assignment = assign(predicates, chosen)
    segment, covering = _assemble(numbers, predicates, chosen, assignment)
    return segment, {**describe(predicates, chosen, assignment), "covering": covering}


def describe(predicates: Predicates, chosen: Plan, assignment: Assignment) -> dict[str, Any]:
    """Say what was planned, in plain values."""
    filed = np.bincount(assignment.nodes, minlength=len(chosen.nodes))
    paths = [
        {
            "access": "node",
            "axes": [predicates.axes[axis].number for axis in chosen.path(number)],
            "boxes": int(filed[number]),
            "candidates": round(node.candidates, 4),
        }
        for number, node in enumerate(chosen.nodes)
        if filed[number]
    ]
    if len(assignment.left):
        paths.append({"access": "bitmaps", "axes": [], "boxes": len(assignment.left), "candidates": None})
    return {
        "paths": paths,
        "candidates": round(chosen.candidates, 4),
        "predicates": len(predicates.cells),
        "planned": len(predicates.row_start) - 1,
        "absorbed": 0,
    }


def _assemble(numbers: Int32s, of: Predicates, chosen: Plan, assignment: Assignment) -> tuple[Segment, dict[str, Any]]:
    """Put everything in order of position and into sections; return that, and what was decided about covering."""
    starts = np.zeros(assignment.slot_count + 1, np.int64)
    order = place_rows(assignment.slots, starts)
    tree = len(order)
    plain_words = _words(of)
    runs = plan_runs(of, plain_words, assignment.left[_neighbourly(of, assignment.left)])
    left = runs.boxes
    boxes = np.concatenate([assignment.boxes[order], left])
    nodes = np.concatenate([assignment.nodes[order], np.full(len(left), -1)])
    implied = np.zeros((max(len(chosen.nodes), 1), max(len(of.axes), 1)), np.bool_)
    for node in range(len(chosen.nodes)):
        for axis in chosen.path(node):
            implied[node, axis] = of.axes[axis].complete
    row_start, held, marks = arrange_rows(boxes, nodes, implied, of.row_start, of.held, of.axis_of, of.chance)
    old = renumber(held, np.diff(of.interval_start))
    words = plain_words[old]
    position_numbers = numbers[boxes].astype(np.int32)
    by_number = np.argsort(position_numbers, kind="stable").astype(np.int32)
    again = np.diff(position_numbers[by_number], prepend=-1) == 0
    marks[by_number[again]] |= at.REPLICA
    doubtful = np.concatenate([np.zeros(1, np.int64), np.cumsum(words[held] < 0)])
    marks[doubtful[row_start[1:]] > doubtful[row_start[:-1]]] |= at.DOUBT
    sets = np.diff(of.interval_start)[old] > 1
    singles = int(len(old) - sets.sum())
    intervals, set_start = _intervals(of, old, singles)
    axis_table, cuts, lookups = _axis_tables(of.axes, assignment.key_axes)
    first = _first_words(row_start, held, marks, words)
    node_table = assignment.node_table.copy()
    page_marks = mark_pages(node_table, starts, assignment.hash_keys, assignment.hash_pages)
    segment = pack(
        {
            at.TREE: tree,
            at.POSITIONS: len(boxes),
            at.SINGLES: singles,
            at.AXES: max(len(of.axes), 1),
            at.KEYS: max(len(assignment.key_axes), 1),
            at.NODES: len(assignment.node_table) // at.NODE_FIELDS,
            at.EMBEDDED: len(assignment.embedded),
            at.SORT_NODE: assignment.sort_node,
        },
        {
            at.NUMBERS: position_numbers,
            at.FIRST: first,
            at.ROW_START: row_start,
            at.PREDICATES: held,
            at.WORDS: words,
            at.SET_START: set_start,
            at.STARTS: starts,
            at.HASH_PAGES: assignment.hash_pages,
            at.LOOKUP: lookups,
            at.BY_NUMBER: by_number,
            at.EMBEDDED_KEY: assignment.embedded[:, 0],
            at.EMBEDDED_SLOT: assignment.embedded[:, 1],
            at.SECOND: second_words(row_start, held, marks, words) if len(words) > FEW else NO_WORDS,
            at.PAGE_MARKS: page_marks,
            at.RUN_START: tree + runs.starts,
            at.RUN_END: tree + runs.ends,
        },
        {
            at.LOWS: of.low[intervals],
            at.HIGHS: of.high[intervals],
            at.CUTS: cuts,
            at.HASH_KEYS: assignment.hash_keys,
            at.AXIS_TABLE: axis_table,
            at.NODE_TABLE: node_table,
        },
        marks,
    )
    return frozen(segment), runs.told


def pack(counts: dict[int, int], words: dict[int, Any], longs: dict[int, Any], marks: Any) -> Segment:
    """Join sections into the arrays of a segment; for one given by its length there is room, to be filled in."""
    header = np.zeros(at.HEADER, np.int64)
    for place, count in counts.items():
        header[place] = count
    joined: list[Any] = []
    for sections, end in ((words, at.WORDS_END), (longs, at.LONGS_END)):
        sizes = [section if isinstance(section, int) else len(section) for section in sections.values()]
        header[list(sections)] = np.cumsum([0, *sizes[:-1]])
        header[end] = sum(sizes)
        kind = np.int32 if end == at.WORDS_END else np.int64
        whole = np.empty(sum(sizes), kind)
        for (place, section), size in zip(sections.items(), sizes, strict=True):
            if not isinstance(section, int):
                whole[header[place] : header[place] + size] = section
        joined.append(whole)
    return Segment(header, joined[0], joined[1], marks)


def frozen(segment: Segment) -> Segment:
    """Make the arrays of a segment read-only: kernels are compiled once, for read-only arrays, mapped or not."""
    for array in segment:
        array.flags.writeable = False
    return segment


def _neighbourly(of: Predicates, boxes: Int64s) -> Int64s:
    """Return an order of boxes in which neighbours are on the same axes."""
    key = np.zeros(len(boxes), np.int64)
    begin, end = of.row_start[boxes], of.row_start[boxes + 1]
    for place in range(4):
        there = begin + place < end
        axis = np.zeros(len(boxes), np.int64)
        axis[there] = of.axis_of[of.held[(begin + place)[there]]] + 1
        key = (key << 15) | axis
    return np.argsort(key, kind="stable")


def _words(of: Predicates) -> Int64s:
    """Return the word of each predicate, as described in `kernels/segments/layout.py`."""
    first, last = of.interval_start[:-1], of.interval_start[1:] - 1
    lowest, highest = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    doubt = np.ones(len(first), np.bool_)
    in_axis_order = np.argsort(of.axis_of.astype(np.uint16), kind="stable")
    ends = np.searchsorted(of.axis_of[in_axis_order], np.arange(len(of.axes) + 1))
    for place, axis in enumerate(of.axes):
        these = in_axis_order[ends[place] : ends[place + 1]]
        lowest[these] = axis.buckets(of.first_cell[first[these]])
        highest[these] = axis.buckets(of.last_cell[last[these]])
        doubt[these] = (not axis.exact) | (first[these] != last[these])
    words = (of.axis_of.astype(np.int64) << 16) | (lowest << 8) | (highest - lowest)
    return np.where(doubt, words - (1 << 31), words)


def _first_words(row_start: Any, held: Int32s, marks: Any, words: Int64s) -> Int64s:
    """Return the word to check first at each position; one that always holds where nothing is left to check.

    There are some more at the end, for `may_hold_from`.
    """
    checks = np.diff(row_start) - (marks & at.IMPLIED)
    first = np.full(len(marks) + AT_ONCE, 255, np.int64)
    some = np.flatnonzero(checks > 0)
    first[some] = words[held[row_start[:-1][some]]]
    first[: len(marks)] |= np.where((checks <= 1) & (first[: len(marks)] >= 0), at.DECIDES, 0)
    return first


def _intervals(of: Predicates, old: Int32s, singles: int) -> tuple[Int64s, Int64s]:
    """Return the intervals in their new order, and where those of each set begin."""
    if singles == len(old):
        return of.interval_start[:-1][old], np.array([singles])
    lengths = np.diff(of.interval_start)[old]
    ends = np.cumsum(lengths)
    source = np.repeat(of.interval_start[:-1][old] - (ends - lengths), lengths) + np.arange(lengths.sum())
    return source, np.concatenate([[singles], ends[singles:]]).astype(np.int64)


def _axis_tables(axes: list[Axis], key_axes: list[int]) -> tuple[Int64s, Int64s, Int64s]:
    """Return the records of axes, their cuts and their lookup tables."""
    records: list[int] = []
    cuts: list[Int64s] = [np.empty(0, np.int64)]
    lookups: list[Int64s] = [np.empty(0, np.int64)]
    keys = {axis: key for key, axis in enumerate(key_axes)}
    for place, axis in enumerate(axes or [Axis(0, np.empty(0, np.int64), complete=True)]):
        above_null = int(len(axis.cuts) > 0 and axis.cuts[0] == LOWEST)
        inner = axis.cuts[above_null:]
        base = int(inner[0]) if len(inner) else 0
        span = int(inner[-1]) - base if len(inner) else 0
        shift = 0
        while (span >> shift) + 2 > max(1024, LOOKUP_SLOTS * len(inner)):
            shift += 1
        lookup = np.zeros((span >> shift) + 2, np.int64)
        build_lookup(inner, base, shift, lookup)
        where_cuts, where_lookup = sum(map(len, cuts)), sum(map(len, lookups))
        records += [axis.number, where_cuts, len(inner), where_lookup, len(lookup)]
        records += [base, shift, above_null, keys.get(place, -1)]
        cuts.append(inner)
        lookups.append(lookup)
    return np.array(records, np.int64), np.concatenate(cuts), np.concatenate(lookups)
