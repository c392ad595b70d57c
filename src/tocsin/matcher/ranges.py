"""Events with ranges, decided exactly: whether some point of a range satisfies a subscription.

The index and the programs test each field by itself. That leaves too much where an OR is verified, one part of which
may take one value of a range and another part another, and where the case or the end of a text is asked for. What they
leave is decided here, as publications are: alternatives are multiplied out into boxes, and texts are searched for (see
`folding`). Axes and codes are of this room alone, so that readers change nothing that others read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import Int32s
from tocsin.language.symbolic import AxisKey, Check
from tocsin.operators.programs import Programs
from tocsin.space.axes import Axes
from tocsin.space.books import BookFullError
from tocsin.space.choices import TooManyError, choices, lineage
from tocsin.space.columns import Path
from tocsin.space.elements import Chosen
from tocsin.space.events import Encoded, Encoder
from tocsin.space.filling import Planner
from tocsin.space.folding import Entries, changed_axes, witnessed
from tocsin.space.intervals import ends_at, ends_of, is_range, is_ranged
from tocsin.space.listed import Texts
from tocsin.space.witnesses import Between

MOST_TEXTS = 4_096
"""So many subscriptions are remembered as they were last decided."""


class _Box(NamedTuple):
    """A box of a subscription, its program (-1 for none), and what operators must decide of it."""

    entries: Entries
    program: int
    checks: tuple[Check, ...]


class Ranges:
    """Decides pairs of an event with ranges and a subscription, over the space of some axes. Any number of threads."""

    def __init__(self, axes: Axes) -> None:
        self._space, self._operators = axes.space, axes.operators
        self._lock = threading.Lock()
        self._known: dict[str, list[_Box] | None] | None = None

    def _begin(self) -> None:
        self._axes = Axes(self._space, self._operators)
        self._planner, self._encoder = Planner(self._axes, ranged=True), Encoder(self._axes)
        self._programs = Programs()
        self._known = {}

    def accept(
        self, encoded: Encoded, rows: npt.NDArray[Any], texts: list[str], checks: list[tuple[Check, ...]]
    ) -> npt.NDArray[np.bool_]:
        """Return which pairs of event row and text of a subscription, whose codes have some in common, match by a box
        of which operators must decide these ``checks``. A text that needs too many boxes counts as matching."""
        with self._lock:
            if self._known is None or len(self._known) > MOST_TEXTS:
                self._begin()
            known = self._read(dict.fromkeys(texts))
            found = np.ones(len(rows), bool)
            for row in np.unique(rows).tolist():
                event = _Event(self._encoder, encoded.source, row)
                for pair in np.flatnonzero(rows == row).tolist():
                    boxes = known[texts[pair]]
                    mine = boxes and [box for box in boxes if box.checks == checks[pair]]
                    found[pair] = mine is None or any(self._met(event, box) for box in mine)
            return found

    def _read(self, texts: Iterable[str]) -> dict[str, list[_Box] | None]:
        """Plan the texts that are new; return the boxes of all, None where they are too many."""
        known = self._known = self._known or {}
        new = [text for text in texts if text not in known]
        if not new:
            return known
        try:
            filled = self._planner.fill(pa.array(new, pa.string()))
        except BookFullError:
            known |= dict.fromkeys(new)
            return known
        programs = np.full(len(filled.rows), -1, np.int32)
        for program in filled.programs:
            programs[program.boxes] = self._programs.add(program)
        checks: dict[int, tuple[Check, ...]] = {}
        for condition in filled.conditions:
            pairs = zip(condition.boxes.tolist(), condition.text_of.tolist(), strict=True)
            checks |= {box: condition.checks(text) for box, text in pairs}
        boxes: list[list[_Box]] = [[] for _ in new]
        for at, row in enumerate(filled.rows.tolist()):
            mine = slice(filled.boxes.offsets[at], filled.boxes.offsets[at + 1])
            entries = filled.boxes.axis[mine], filled.boxes.low[mine], filled.boxes.high[mine]
            boxes[row].append(_Box(entries, int(programs[at]), checks.get(at, ())))
        known |= dict(zip(new, boxes, strict=True))
        known |= dict.fromkeys(new[row] for row in filled.problems)
        for key in list(self._axes.keys):
            self._axes.number(AxisKey(key.path))
        self._changed = changed_axes(self._axes)
        return known

    def _met(self, event: _Event, box: _Box) -> bool:
        """Return whether some point of an event lies in a box and passes its program. Where a field below an attribute
        has a range, its values are tried, unless one axis alone asks for them."""
        if not self._overlap(event.encoded, box):
            return False
        tests = box.entries
        if box.program >= 0:
            axis, low, high = self._programs.tests_of(box.program)
            tests = np.append(tests[0], axis), np.append(tests[1], low), np.append(tests[2], high)
        asked = {member: np.isin(lineage(self._axes, member), tests[0]) for member in event.open}
        ranges = {member: event.open[member] for member, axes in asked.items() if axes.any()}
        alone = all(np.count_nonzero(axes) < 2 for axes in asked.values()) and not self._changed[tests[0]].any()
        if not ranges or (box.program < 0 and alone):
            return self._passes(event, event.encoded, box)
        try:
            tried = (event.chosen(chosen) for chosen in choices(self._axes, tests, ranges))
            return any(self._overlap(each, box) and self._passes(event, each, box) for each in tried)
        except TooManyError:
            return True

    @staticmethod
    def _overlap(encoded: Encoded, box: _Box) -> bool:
        """Return whether an event has codes in common with a box."""
        axis, low, high = box.entries
        queries = encoded.queries
        met = np.ones(queries.low.shape[1], bool)
        for each in np.unique(axis).tolist():
            mine = axis == each
            inside = (low[mine, None] <= queries.high[each]) & (queries.low[each] <= high[mine, None])
            met &= inside.any(axis=0)
        return bool(met.any())

    def _passes(self, event: _Event, encoded: Encoded, box: _Box) -> bool:
        """Return whether an event that has codes in common with a box passes its program and has texts that meet it."""
        if box.program >= 0:
            any_unspecified = self._space.unspecified == "any"
            none = np.zeros(1, np.int32)
            program = np.array([box.program], np.int32)
            if not self._programs.accept(encoded, none, program, any_unspecified)[0]:
                return False
        return witnessed(self._axes, box.entries, self._changed, event.range_of)


class _Event:
    """One event on the axes of this room, and its ranges of texts. ``open`` are those of fields below attributes."""

    def __init__(self, encoder: Encoder, source: Any, row: int) -> None:
        self._encoder = encoder
        if isinstance(source, pa.RecordBatch):
            self._source: Any = source.slice(row, 1)
            self.encoded = encoder.batch(self._source, missing="unspecified")
        else:
            self._source = source[row] if isinstance(source, list) else source
            self.encoded = encoder.one(self._source)
        self.open = {member: ends[0] for member, ends in self.encoded.open.items() if ends[0] is not None}

    def chosen(self, chosen: Chosen) -> Encoded:
        """Return the event with values chosen of some ranges. Patterns may still hold of them."""
        if isinstance(self._source, pa.RecordBatch):
            found = self._encoder.batch(self._source, missing="unspecified", chosen=chosen)
        else:
            found = self._encoder.one(self._source, chosen)
        texts = {path: here for path, here in self.encoded.ranged.items() if self._encoder.holds_text(path)}
        return replace(found, ranged={**found.ranged, **texts})

    def range_of(self, path: Path) -> Between | None:
        """Return the texts of the range that the event has in a field; None if it has a single one, or none."""
        if path not in self.encoded.ranged or not self.encoded.ranged[path][0]:
            return None
        if isinstance(self._source, pa.RecordBatch):
            values = self._encoder.column(self._source, path, "unspecified").values
            ends = ends_at(values, 0) if is_ranged(values.type) else None
        else:
            value = self._encoder.value(self._source, path)
            ends = ends_of(value) if is_range(value) else None
        if ends is None or ends.low is None is ends.high:
            return None
        least, most, below = Texts().bounds(ends)
        return Between(least.decode(), None if most is None else most.decode(), below)


def open_rows(encoded: Encoded) -> npt.NDArray[np.bool_]:
    """Return which events have a range in a field below an attribute."""
    found = np.zeros(encoded.count, bool)
    for ends in encoded.open.values():
        found |= np.array([each is not None for each in ends], bool)
    return found


def undecided(
    axes: Axes, encoded: Encoded, rows: npt.NDArray[Any], programs: Int32s | None
) -> npt.NDArray[np.bool_] | None:
    """Return which pairs of event row and box need a closer look, given the programs of the boxes; None if none does.

    Those are events with a range of texts of which subscriptions ask for the case or the end, or with one below an
    attribute, and boxes with programs, in which there may be alternatives. Where fields left out span their domain
    there are none of those.
    """
    folded = {key.path for key, changes in zip(axes.keys, changed_axes(axes), strict=False) if changes}
    spans = np.zeros(encoded.count, bool)
    texts = np.zeros(encoded.count, bool)
    for path, here in encoded.ranged.items():
        spans |= here
        if path in folded:
            texts |= here
    found = texts[rows]
    if programs is not None and axes.space.unspecified != "any":
        found |= spans[rows] & (programs >= 0)
    if encoded.open:
        found |= open_rows(encoded)[rows]
    return found if found.any() else None
