"""Many questions at once of the groups of `adaptive`: by a sheet of words where that costs less than the trees.

A tree answers one question after another. A sheet (`kernels/containment/sheets.py`) has no structure at all, but holds
512 questions against a box for about what a tree needs for a node; so it wins where trees have to be searched widely,
which is the more so the more dimensions there are. Which it is, some of the questions are asked first to find out. A
sheet is made when it first pays, then kept up to date, and made anew when there are twice as many boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tocsin.index.blocks import longer
from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.containment.boxes import Question, Rows
from tocsin.kernels.containment.grouped import GROUPS, HELD, MANY, Groups
from tocsin.kernels.containment.grouped_search import search_groups, search_some
from tocsin.kernels.containment.sheets import (
    CHUNK,
    CUTS,
    Sheet,
    append_to_sheet,
    ask_sheet,
    group_ends,
    remove_from_sheet,
)

LEAST = 128
"""Fewer questions at once are asked of the trees."""

TRIED = 32
"""So many of them tell what trees cost."""

BOX, AXIS = 2.0, 1.0
"""What a box costs a chunk of questions, and each of its axes, in nanoseconds on the machine it was measured on."""

MADE = 40.0
"""What a box costs for each axis when a sheet is made."""

SAMPLE = 8_192
"""By so many ends at most the cuts of an axis are chosen."""


class Sheets:
    """The sheets of an index, by group."""

    def __init__(self) -> None:
        self._sheets: dict[int, Sheet] = {}

    def added(self, groups: Groups, rows: Rows, slots: Int32s) -> None:
        """Take note of boxes in new slots."""
        for group, some in self._by_group(groups, slots):
            sheet = self._sheets[group]
            if int(sheet.filled[0]) + len(some) > len(sheet.slots):
                del self._sheets[group]
                continue
            if len(groups.group_of) > len(sheet.place_of):
                sheet = sheet._replace(place_of=longer(sheet.place_of, len(groups.group_of), -1))
                self._sheets[group] = sheet
            append_to_sheet(sheet, some, group_ends(groups, group, rows, some)[0])

    def removing(self, groups: Groups, slots: Int32s) -> None:
        """Take note of boxes that are about to go."""
        for group, some in self._by_group(groups, slots):
            remove_from_sheet(self._sheets[group], some)

    def arrays(self) -> tuple[Any, ...]:
        """Return what is held."""
        return tuple(part for sheet in list(self._sheets.values()) for part in sheet)

    def ask(self, groups: Groups, rows: Rows, live: Callable[[], Int32s], question: Question, tally: Int64s) -> Any:
        """Return the pairs of row and slot that answer, and how many there are; ``live`` tells the slots in use."""
        count = len(question.rows.start)
        if question.inside or count < LEAST:
            return search_groups(groups, rows, question, tally)
        apart = self._paying(groups, rows, question, tally)
        if not apart.any():
            return search_groups(groups, rows, question, tally)
        every = np.arange(count, dtype=np.int32)
        answered = np.zeros(count, np.int64)
        parts = []
        for group in np.flatnonzero(apart).tolist():
            sheet = self._sheets.get(group)
            if sheet is None:
                slots = live()
                slots = slots[groups.group_of[slots] == group]
                sheet = self._sheets[group] = _sheet_of(groups, group, rows, slots)
            ends, whole = group_ends(groups, group, question.rows, every)
            asked = np.flatnonzero(whole & (answered < question.limit)).astype(np.int32)
            found, many = ask_sheet(sheet, rows, question, ends, asked, tally)
            parts.append(found[:, :many])
            answered += np.bincount(found[0, :many], minlength=count)
        left = np.flatnonzero(answered < question.limit)
        if len(left) and not apart.all():
            some = question._replace(rows=_only(question.rows, left))
            found, many = search_some(groups, rows, some, tally, apart, np.zeros(0, np.int64))
            parts.append(np.stack([left[found[0, :many]].astype(np.int32), found[1, :many]]))
        pairs = np.concatenate(parts, axis=1)
        pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
        rank = np.arange(pairs.shape[1]) - np.searchsorted(pairs[0], pairs[0])
        pairs = np.ascontiguousarray(pairs[:, rank < question.limit])
        return pairs, pairs.shape[1]

    def _paying(self, groups: Groups, rows: Rows, question: Question, tally: Int64s) -> Any:
        """Return for each group whether a sheet costs less than its tree."""
        known, count = int(groups.state[GROUPS]), len(question.rows.start)
        spent = np.zeros(known, np.int64)
        tried = np.arange(0, count, -(-count // TRIED))
        some = question._replace(rows=_only(question.rows, tried))
        search_some(groups, rows, some, tally, np.zeros(0, np.bool_), spent)
        held, axes = groups.groups[:known, HELD], groups.groups[:known, MANY]
        by_sheet = -(-count // CHUNK) * held * (BOX + AXIS * axes)
        made = np.array([group in self._sheets for group in range(known)], np.bool_)
        by_sheet += np.where(made, 0.0, MADE * held * axes)
        paying: Any = (spent * (count / len(tried)) > by_sheet) & (axes > 0)
        return paying

    def _by_group(self, groups: Groups, slots: Int32s) -> list[tuple[int, Int32s]]:
        """Return the slots of each group that has a sheet."""
        if not self._sheets:
            return []
        of = groups.group_of[slots]
        found = [(group, slots[of == group]) for group in self._sheets]
        return [(group, some) for group, some in found if len(some)]


def _only(rows: Rows, places: Any) -> Rows:
    """Return some of the rows."""
    return rows._replace(start=rows.start[places], length=rows.length[places])


def _sheet_of(groups: Groups, group: int, rows: Rows, slots: Int32s) -> Sheet:
    """Return a sheet of these boxes, with room for as many more."""
    ends, _ = group_ends(groups, group, rows, slots)
    axes, room = len(ends), 2 * len(slots) + 64
    cuts = np.empty((axes, CUTS), np.int64)
    for axis in range(axes):
        values = np.sort(ends[axis, :, :: 1 + 2 * len(slots) // SAMPLE].ravel())
        cuts[axis] = values[np.linspace(0, len(values) - 1, CUTS).astype(np.int64)]
    place_of = np.full(len(groups.group_of), -1, np.int32)
    words, count = np.empty((room, axes), np.int32), np.zeros(1, np.int64)
    sheet = Sheet(cuts, words, np.empty(room, np.int32), place_of, count)
    append_to_sheet(sheet, slots, ends)
    return sheet
