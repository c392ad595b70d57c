"""Events that were something else before: which subscriptions they begin and cease to satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import EventError
from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.kernels.picking import keep_first
from tocsin.language.arrays import number_array, text_array
from tocsin.matcher.ranges import undecided
from tocsin.matcher.state import State
from tocsin.matcher.tables import batches_of
from tocsin.matcher.views import View
from tocsin.space.events import Encoded

if TYPE_CHECKING:
    from tocsin.matcher.matcher import Matcher

TRANSITIONS = text_array(["enter", "leave"])
"""What a transition is called; in results a dictionary-encoded column."""

_FEW = 1_024
"""Fewer pairs are sorted to find those that are there twice."""


def moved_batch(matcher: Matcher, old: Any, new: Any, missing: str) -> pa.Table:
    """Return the transitions between two tables of as many rows: ``event``, ``subscription``, ``transition``."""
    if old is None and new is None:
        raise EventError("a move has a table before, or after, or both")
    before, after = (None if side is None else _table(side) for side in (old, new))
    if before is not None and after is not None and before.num_rows != after.num_rows:
        raise EventError(
            f"the tables before and after have {before.num_rows:,} and {after.num_rows:,} rows; row by row they are "
            "the same event, so they have as many"
        )
    given = before if before is not None else after
    assert given is not None  # one of them is there
    parts: list[tuple[Int64s, Int32s, Int64s]] = []
    subscriptions = matcher._subscriptions
    with subscriptions.reading():
        state, view, size = matcher._state, subscriptions.view(), matcher._batch_rows(given.num_rows)
        for start in range(0, given.num_rows, size):
            sides = [
                None if side is None else state.encoder.batch(_sliced(side, start, size), missing=missing, sets=True)
                for side in (before, after)
            ]
            rows, slots, kinds = _moved(matcher, state, view, *sides)
            parts.append((rows + start, slots, kinds))
        all_rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _, _ in parts)])
        all_slots = np.concatenate([np.empty(0, np.int32), *(slots for _, slots, _ in parts)])
        all_kinds = np.concatenate([np.empty(0, np.int64), *(kinds for _, _, kinds in parts)]).astype(np.int8)
        named = pa.DictionaryArray.from_arrays(number_array(all_kinds), TRANSITIONS)
        ids = subscriptions.ids_array(all_slots)
        return pa.table({"event": all_rows, "subscription": ids, "transition": named})


def _moved(
    matcher: Matcher, state: State, view: View, old: Encoded | None, new: Encoded | None
) -> tuple[Int64s, Int32s, Int64s]:
    """Return (row, slot, 0 or 1 for enter and leave) of a batch, sorted by row."""
    if old is None or new is None:
        entered, left = (_keys(matcher, state, view, side) for side in (new, old))
        return _told(entered, left)
    subscriptions = matcher._subscriptions
    plain = all(side.rows is None and side.fold is None for side in (old, new))
    closer = any(undecided(state.axes, side, np.arange(side.count), None) is not None for side in (old, new))
    if not plain or closer or subscriptions.has_programs or subscriptions.has_conditions:
        before, after = (_keys(matcher, state, view, side) for side in (old, new))
        return _told(np.setdiff1d(after, before, True), np.setdiff1d(before, after, True))
    moved = state.index.moved(old.queries, new.queries)
    keys = []
    for rows, numbers in moved:
        shown = subscriptions.visible(view, numbers)
        if shown is not None:
            rows, numbers = rows[shown], numbers[shown]
        keys.append(rows.astype(np.int64) << 32 | subscriptions.owner[numbers])
    if not subscriptions.has_several:
        return _told(*keys)
    changed = np.unique(np.concatenate([*(pairs.rows for pairs in moved)]))
    before, after = (_keys(matcher, state, view, _only(side, changed)) for side in (old, new))
    return _told(np.setdiff1d(after, before, True), np.setdiff1d(before, after, True), changed)


def _keys(matcher: Matcher, state: State, view: View, encoded: Encoded | None) -> Int64s:
    """Return the matches of a batch as one number each, row above slot, ascending."""
    if encoded is None:
        return np.empty(0, np.int64)
    rows, slots = matcher._matched(state, view, encoded)
    return np.sort(rows.astype(np.int64) << 32 | slots.astype(np.int64))


def _only(encoded: Encoded, rows: Int32s) -> Encoded:
    """Return some of the events; their values are left out, which nothing asks for where there is no program."""
    low = np.ascontiguousarray(encoded.queries.low[:, rows])
    high = low if encoded.queries.are_points else np.ascontiguousarray(encoded.queries.high[:, rows])
    return Encoded(len(rows), Queries(low, high), None, {})


def _told(entered: Int64s, left: Int64s, rows: Int32s | None = None) -> tuple[Int64s, Int32s, Int64s]:
    keys = np.concatenate([entered, left])
    kinds = np.repeat(np.array([0, 1]), [len(entered), len(left)])
    order = np.argsort(keys >> 32, kind="stable")
    keys = keys[order]
    found = keys >> 32
    return found if rows is None else rows[found].astype(np.int64), (keys & 0xFFFFFFFF).astype(np.int32), kinds[order]


def distinct(rows: npt.NDArray[Any], numbers: Int32s) -> tuple[npt.NDArray[Any], Int32s]:
    """Return each pair once, sorted by row. Rows are those of one batch.

    >>> [side.tolist() for side in distinct(np.array([2, 0, 2]), np.array([5, 5, 5], np.int32))]
    [[0, 2], [5, 5]]
    """
    if len(rows) < _FEW:
        keys = np.sort(rows.astype(np.int64) << 32 | numbers)
        keys = keys[np.diff(keys, prepend=-1) != 0]
        return keys >> 32, (keys & 0xFFFFFFFF).astype(np.int32)
    if (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        rows, numbers = rows[order], numbers[order]
    once, which = rows.astype(np.int64), numbers.astype(np.int32)
    count = keep_first(once, which, np.zeros(int(which.max()) + 1, np.int32))
    return once[:count], which[:count]


def _table(side: Any) -> pa.Table:
    return side if isinstance(side, pa.Table) else pa.Table.from_batches(list(batches_of(side, lambda left: left)))


def _sliced(table: pa.Table, start: int, size: int) -> pa.RecordBatch:
    found = table.slice(start, size).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], table.schema)
