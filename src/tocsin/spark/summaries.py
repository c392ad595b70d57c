"""What a segment can match, in few boxes: events are sent only to shards one of whose summaries takes them in.

A summary is sound, not exact: a box of the segment lies within one of the summary's boxes, so that an event which none
of those takes in satisfies no subscription of the segment. Codes of listed axes (texts, addresses) mean something in
one matcher only; a summary names such a bound by its key.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import index as engines
from tocsin.covering import maximal_boxes
from tocsin.errors import EventError, SavedIndexError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes, Int64s
from tocsin.index.numbers import ascending_once
from tocsin.matcher import saved
from tocsin.matcher.matcher import Missing
from tocsin.space import Space
from tocsin.space.axes import Axes, AxisKey, Presence
from tocsin.space.codes import Booleans, Decimals, Doubles, Integers
from tocsin.space.events import Encoder
from tocsin.space.listed import Listed
from tocsin.space.times import Days, Moments
from tocsin.spark.sealed import read_sealed, write_sealed

MOST_BOXES = 16
"""Boxes a summary: subscriptions that test the same axes share one, as far as there are not more kinds than this."""

MOST_INTERVALS = 32
"""Intervals on one axis of such a box; the widest gaps between the values of the subscriptions are kept."""

MOST_COMPARED = 100_000
"""Boxes of a segment that are compared with each other before they are summed up: of more it would take too long."""

_DIRECT = (Booleans, Days, Decimals, Doubles, Integers, Moments, Presence)
_ENDS = (NULL, LOWEST, HIGHEST)

Bound = int | tuple[str, int]
"""A code, or of a listed axis the hexadecimal digits of a key and the step from its label."""


def is_portable(axes: Axes, axis: int) -> bool:
    """Return whether bounds on an axis mean the same in another matcher."""
    return isinstance(axes.codecs[axis], (*_DIRECT, Listed))


def bound_of(axes: Axes, axis: int, code: int) -> Bound | None:
    """Return a code in the form that another matcher reads; None if no key is near."""
    codec = axes.codecs[axis]
    if not isinstance(codec, Listed) or code in _ENDS:
        return int(code)
    try:
        key, step = codec.book.key_near(code)
    except KeyError:
        return None
    return key.hex(), step


def code_of(axes: Axes, axis: int, bound: Any) -> int:
    """Return the code that a bound has on this matcher's axes.

    >>> from tocsin.space import Text
    >>> here, there = (Axes(Space({"name": Text()})) for _ in range(2))
    >>> axis = here.number(AxisKey(("name",)))
    >>> code = int(here.codecs[axis].book.place([b"Ann"])[0])
    >>> axis = there.number(AxisKey(("name",)))
    >>> code_of(there, axis, bound_of(here, axis, code)) == there.codecs[axis].code("Ann")
    True
    """
    if isinstance(bound, int):
        return bound
    codec = axes.codecs[axis]
    if not isinstance(codec, Listed):
        raise SavedIndexError(f"the axis {'.'.join(axes.keys[axis].path)} has no keys; build the index anew")
    key, step = bound
    return int(codec.book.place([bytes.fromhex(key)])[0]) + int(step)


def summary_of(axes: Axes, boxes: Boxes, verified: Sequence[tuple[str, ...]] = ()) -> dict[str, Any]:
    """Return the summary of boxes as JSON values: all axes, and at most `MOST_BOXES` boxes that contain them.
    ``verified`` are the fields that programs look at, whose values are checked before an event goes anywhere.

    Boxes that others contain say nothing new; without them there are fewer kinds, and the summary is tighter.
    """
    if len(boxes) <= MOST_COMPARED:
        boxes = maximal_boxes(boxes)
    owner = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))
    portable = np.array([is_portable(axes, axis) for axis in range(len(axes))], bool)
    kept = portable[boxes.axis] if len(boxes.axis) else np.empty(0, bool)
    owner, axis, low, high = owner[kept], boxes.axis[kept], boxes.low[kept], boxes.high[kept]
    kind, kinds = _kinds(owner, axis, len(boxes), len(axes))
    sizes = np.bincount(kind, minlength=kinds)
    order = np.lexsort((low, axis, kind[owner]))
    owner, axis, low, high = owner[order], axis[order], low[order], high[order]
    key = kind[owner] * max(1, len(axes)) + axis
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    found: list[list[list[Any]]] = [[] for _ in range(kinds)]
    for start, end in zip(starts, [*starts[1:], len(key)][: len(starts)], strict=True):
        where, which = int(axis[start]), int(kind[owner[start]])
        if len(np.unique(owner[start:end])) < sizes[which]:
            continue  # a box of this kind leaves the axis free
        intervals = _told(axes, where, _united(low[start:end], high[start:end]))
        if intervals is not None:
            found[which].append([where, intervals])
    told = [[list(key.path), key.derivation] for key in axes.keys]
    return {"axes": told, "verified": [list(path) for path in verified], "boxes": found}


def _kinds(owner: Int64s, axis: npt.NDArray[np.int32], count: int, axes: int) -> tuple[Int64s, int]:
    """Return the kind of each box, and how many there are: boxes of a kind test the same of the most tested axes."""
    kind, kinds = np.zeros(count, np.int64), 1 if count else 0
    for each in np.argsort(-np.bincount(axis, minlength=axes), kind="stable"):
        tests = np.zeros(count, np.int64)
        tests[owner[axis == each]] = 1
        values, finer = np.unique(2 * kind + tests, return_inverse=True)
        if len(values) > MOST_BOXES:
            break
        kind, kinds = finer.astype(np.int64), len(values)
    return kind, kinds


def _united(low: Int64s, high: Int64s) -> list[tuple[int, int]]:
    """Return intervals (sorted by their lower ends) as few disjoint ones that contain them.

    >>> _united(np.array([NULL, 1, 2, 9]), np.array([NULL, 1, 4, 9]))
    [(-9223372036854775808, -9223372036854775808), (1, 4), (9, 9)]
    """
    reach = np.maximum.accumulate(high)
    gaps = np.zeros(len(low))
    gaps[1:] = low[1:].astype(np.float64) - reach[:-1].astype(np.float64)
    apart = np.zeros(len(low), bool)
    apart[1:] = low[1:] > np.where(reach[:-1] < HIGHEST, reach[:-1], HIGHEST - 1) + 1
    gaps[1:][reach[:-1] == NULL] = np.inf
    breaks = np.flatnonzero(apart)
    if len(breaks) >= MOST_INTERVALS:
        breaks = np.sort(breaks[np.argsort(-gaps[breaks], kind="stable")[: MOST_INTERVALS - 1]])
    starts = [0, *breaks.tolist()]
    return [(int(low[start]), int(reach[end - 1])) for start, end in zip(starts, [*starts[1:], len(low)], strict=True)]


def _told(axes: Axes, axis: int, intervals: list[tuple[int, int]]) -> list[list[Any]] | None:
    """Return intervals with bounds that another matcher reads; None if one of them has no such form."""
    told = [[bound_of(axes, axis, side) for side in interval] for interval in intervals]
    return None if any(side is None for interval in told for side in interval) else told


class Routes(NamedTuple):
    """Which events go where: parallel arrays of rows and shards, each pair once; and the rows refused, with why."""

    rows: Int64s
    shards: Int64s
    refused: dict[int, EventError]


class Router:
    """Sends events to the shards that can match them, by the summaries of their segments."""

    def __init__(self, space: Space, summaries: list[tuple[int, dict[str, Any]]]) -> None:
        self._axes = Axes(space)
        boxes: list[dict[int, list[list[Any]]]] = []
        shard_of: list[int] = []
        for shard, summary in summaries:
            numbers = [self._axes.number(AxisKey(tuple(path), derivation)) for path, derivation in summary["axes"]]
            boxes += [{numbers[axis]: told for axis, told in box} for box in summary["boxes"]]
            shard_of += [shard] * len(summary["boxes"])
        self._place_keys(boxes)
        described = [{axis: self._intervals(axis, told) for axis, told in box.items()} for box in boxes]
        self._shard_of = np.array(shard_of, np.int64)
        self._index = engines.create("adaptive")
        if described:
            self._index.insert(np.arange(len(described), dtype=np.int32), Boxes.of(described))
        verified = [tuple(path) for _, summary in summaries for path in summary.get("verified", [])]
        self._encoder = Encoder(self._axes, verified)

    def _place_keys(self, boxes: list[dict[int, list[list[Any]]]]) -> None:
        """Give all keys their labels at once: one by one, a book may run out of room between two."""
        for axis, codec in self._axes.listed():
            bounds = [side for box in boxes for interval in box.get(axis, ()) for side in interval]
            keys = sorted({bytes.fromhex(side[0]) for side in bounds if not isinstance(side, int)})
            if keys:
                codec.book.place(pa.array(keys, pa.large_binary()))

    def _intervals(self, axis: int, told: list[list[Any]]) -> list[tuple[int, int]]:
        low, high = (np.array([code_of(self._axes, axis, each[side]) for each in told], np.int64) for side in (0, 1))
        order = np.argsort(low, kind="stable")
        return _united(low[order], high[order])

    def route(self, batch: pa.RecordBatch, missing: Missing) -> Routes:
        """Return the shards of each event of a batch."""
        refused: dict[int, EventError] = {}
        kept: Int64s | None = None
        try:
            encoded = self._encoder.batch(batch, missing=missing)
        except EventError as error:
            if getattr(error, "row", None) is None:
                raise
            refused = self._encoder.misfits(batch, missing=missing)
            kept = np.delete(np.arange(batch.num_rows), list(refused))
            if not len(kept):
                return Routes(np.empty(0, np.int64), np.empty(0, np.int64), refused)
            encoded = self._encoder.batch(batch.take(pa.array(kept)), missing=missing)
        pairs = self._index.overlap(encoded.queries)
        rows = pairs.rows.astype(np.int64) if encoded.rows is None else encoded.rows[pairs.rows].astype(np.int64)
        keys = ascending_once(self._shard_of[pairs.numbers] << 32 | rows)
        rows = keys & 0xFFFFFFFF
        return Routes(rows if kept is None else kept[rows], keys >> 32, refused)


def write_summary(folder: Path) -> str:
    """Write the summary of a segment into its folder, where its matcher is saved; return the file's name."""
    held = saved.load(folder / "matcher", verify=False)
    text = json.dumps(summary_of(held.axes, held.index.contents()[1], held.programs.atoms.paths))
    return write_sealed(folder, "summary", "json", text.encode())


def read_summary(file: Path) -> dict[str, Any]:
    """Return the summary in a file."""
    found: dict[str, Any] = json.loads(read_sealed(file))
    return found
