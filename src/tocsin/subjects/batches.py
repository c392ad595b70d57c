"""Tables of publications: many in one step, their transitions in one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.arguments import expect_text
from tocsin.errors import MissingColumnError, RegionError, SubjectError
from tocsin.index.bounds import Bounds
from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.index.marks import Marks
from tocsin.matcher.tables import table_of
from tocsin.space.scalars import brief
from tocsin.space.space import nearest_of
from tocsin.subjects.holdings import COMPLEX
from tocsin.subjects.plane import Plane
from tocsin.subjects.steps import Told, in_order, joined, plain_publications_came, publications_changed, renamed
from tocsin.subjects.transitions import Transitions

if TYPE_CHECKING:
    from tocsin.subjects.state import State


def put_many(state: State, publications: Any, key: str, space: str | None) -> Transitions:
    """Insert or update the publications of a table; see `Subjects.put_many`."""
    table = _table(publications)
    expect_text(key, "key", "the name of the column of keys")
    if key not in table.column_names:
        raise MissingColumnError(f"publications need a column {key}; {nearest_of(key, table.column_names)}")
    number = state._spaces.only(space)
    plane = state._planes[number]
    keys = state._keys(table.column(key).to_pylist())
    names = [name for name in table.column_names if name != key]
    if not names:
        raise RegionError("publications need at least one column beside their keys")
    codes = plane.coder.columns({name: _flat(table.column(name)) for name in names})
    slots, known = _slots(state, keys)
    _refuse_intricate(state, slots[known], number)
    order, starts = _rounds(slots, keys)
    _refuse_empty(state, plane, slots, known, codes)
    new = np.flatnonzero(~known)
    firsts = list(dict.fromkeys(keys[row] for row in new.tolist()))
    if firsts:
        added = dict(zip(firsts, state._publications.names.add(firsts, state._unread).tolist(), strict=True))
        slots[new] = [added[keys[row]] for row in new.tolist()]
    if not known.any() and not len(starts):
        marks = _inserted(state, number, slots, codes)
        if marks is not None:
            return state._transitions(marks, slots, True, numbered=True)
    parts = []
    for rows in np.split(order, starts):
        if len(rows):
            told = _put_round(state, number, slots[rows], _some(codes, rows))
            parts.append(renamed(told, rows))
    return state._transitions(in_order(joined(parts)), slots, True, numbered=True)


Codes = list[tuple[int, Int64s, Int64s]]
"""What publications are given, one row each: (axis, low, high)."""


def _some(codes: Codes, rows: Int64s) -> Codes:
    """Return what some rows are given, in ascending order, or all."""
    if not codes or len(rows) == len(codes[0][1]):
        return codes
    return [(axis, least[rows], most[rows]) for axis, least, most in codes]


def _anew(plane: Plane, codes: Codes, count: int) -> Queries:
    """Return what so many new publications are, with what is given."""
    low, high = (np.full((len(plane.axes), count), side, np.int64) for side in plane.coder.absent)
    return _given(plane, codes, low, high)


def _given(plane: Plane, codes: Codes, low: Int64s, high: Int64s) -> Queries:
    """Return codes, int64[axes, rows], with those that are given written over."""
    for axis, least, most in codes:
        low[axis], high[axis] = least, most
    plane.coder.compute(low, high)
    return plane.question(low, high)


def _put_round(state: State, number: int, slots: Int32s, codes: Codes) -> Told:
    """Insert or update different publications, of which each has the codes given."""
    plane, holdings = state._planes[number], state._publications
    there = np.zeros(len(slots), bool)
    known = slots < len(holdings.plane)
    there[known] = holdings.plane[slots[known]] == number
    parts = []
    old, fresh = np.flatnonzero(there), np.flatnonzero(~there)
    if len(old):
        rows = holdings.number[slots[old]]
        before = plane.stored(rows)
        after = _given(plane, _some(codes, old), before.low.copy(), before.high.copy())
        parts.append(renamed(state._moved_rows(plane, rows, before, after), old))
    if len(fresh):
        asked = _anew(plane, _some(codes, fresh), len(fresh))
        told, open_pairs = plain_publications_came(plane, state._subscriptions, asked)
        if len(open_pairs):
            told = state._with_open_rows(told, open_pairs, plane, None, asked, slots[fresh])
        _store(state, number, slots[fresh], asked)
        parts.append(renamed(told, fresh))
    return joined(parts)


def _inserted(state: State, number: int, slots: Int32s, codes: Codes) -> Marks | None:
    """Insert different publications that are all new, if what they match is said by marks; else do nothing."""
    plane = state._planes[number]
    if state._subscriptions.intricate or not isinstance(plane.plain, Bounds):
        return None
    asked = _anew(plane, codes, len(slots))
    marks = plane.plain.marked_overlap(asked, plane.interests.owner)
    if marks is not None:
        _store(state, number, slots, asked)
    return marks


def _store(state: State, number: int, slots: Int32s, asked: Queries) -> None:
    """Hold new plain publications."""
    plane = state._planes[number]
    rows = plane.rows.add(asked.low.T, asked.high.T, slots, np.ones(len(slots)))
    plane.insert_rows(rows)
    state._publications.hold_plain(slots, number, rows)


def delete_many(state: State, keys: Any) -> Transitions:
    """Take publications away; see `Subjects.delete_many`."""
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise SubjectError(f"delete_many takes several keys, a list or a column, not {brief(keys)}; for one use delete")
    listed = keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)
    slots = np.array([state._known(state._publications, key) for key in listed], np.int32)
    if len(np.unique(slots)) < len(slots):
        raise SubjectError("a key is given twice")
    holdings, parts = state._publications, []
    for number, plane in enumerate(state._planes):
        rows = np.flatnonzero(holdings.plane[slots] == number)
        if len(rows):
            held = holdings.number[slots[rows]]
            asked = plane.stored(held)
            told, open_pairs = plain_publications_came(plane, state._subscriptions, asked, left=True)
            if len(open_pairs):
                told = state._with_open_rows(told, open_pairs, plane, asked, None, slots[rows])
            plane.remove_rows(held)
            parts.append(renamed(told, rows))
    odd = np.flatnonzero(holdings.plane[slots] == COMPLEX)
    for row in odd.tolist():
        version = holdings.version(int(slots[row]))
        told = publications_changed(state._planes, state._audiences, state._subscriptions, [version], [None])
        state._drop_rows(version)
        parts.append((np.full(len(told[0]), row), told[1], told[2]))
    result = state._transitions(in_order(joined(parts)), slots, True, numbered=True)
    holdings.release(slots)
    holdings.names.drop(listed, state._epoch)
    return result


def _slots(state: State, keys: list[Any]) -> tuple[Int32s, npt.NDArray[np.bool_]]:
    """Return the slots of keys, -1 and False for those that are new."""
    slot_of = state._publications.names.slot_of
    slots = np.array([slot_of.get(key, -1) for key in keys], np.int32)
    return slots, slots >= 0


def _refuse_intricate(state: State, slots: Int32s, number: int) -> None:
    """Refuse to update publications that are not plain, or that do not lie in the plane of a table alone."""
    holdings = state._publications
    odd = slots[holdings.plane[slots] != number]
    if len(odd):
        key, plane = holdings.names.listed(odd[:1])[0], int(holdings.plane[odd[0]])
        if plane == COMPLEX:
            raise SubjectError(
                f"the publication {key!r} has several regions, a set, a filter or an audience; update it by itself"
            )
        here, there = (state._spaces.names[each] for each in (number, plane))
        raise RegionError(f"the publication {key!r} lies in the space {there}, and the table is of {here}")
    if len(state._planes) > 1:
        for slot in slots.tolist():
            record = holdings.records.get(slot)
            if record is not None and None in record.said.values():
                key = holdings.names.listed(np.array([slot], np.int32))[0]
                raise RegionError(f"the publication {key!r} was given without a space; update it by itself")


def _rounds(slots: Int32s, keys: list[Any]) -> tuple[Int64s, Int64s]:
    """Return rows so that each of several stretches has every key at most once, in the order given; and where the
    second and later stretches begin."""
    if len(set(keys)) == len(keys):
        return np.arange(len(keys)), np.empty(0, np.int64)
    turn: dict[Any, int] = {}
    turns = np.empty(len(keys), np.int64)
    for row, key in enumerate(keys):
        turns[row] = turn[key] = turn.get(key, -1) + 1
    order = np.argsort(turns, kind="stable")
    return order, np.flatnonzero(np.diff(turns[order])) + 1


def _refuse_empty(state: State, plane: Plane, slots: Int32s, known: npt.NDArray[np.bool_], codes: Codes) -> None:
    """Refuse a row after which its publication would constrain nothing."""
    absent = plane.coder.absent
    given = np.zeros(len(slots), bool)
    for _, least, most in codes:
        given |= (least != absent[0]) | (most != absent[1])
        if given.all():
            return
    named = [axis for axis, _, _ in codes]
    for row in np.flatnonzero(~given).tolist():
        if known[row]:
            held = state._publications.number[slots[row]]
            low, high = plane.rows.low[held].copy(), plane.rows.high[held].copy()
            low[named], high[named] = absent
            if plane.coder.constrained(low[:, None], high[:, None]).any():
                continue
        raise RegionError(f"row {row}: a region constrains at least one dimension; this one constrains none")


def _table(publications: Any) -> pa.Table:
    try:
        return table_of(publications)
    except TypeError:
        raise SubjectError(
            f"publications are a table (pyarrow, pandas, Polars, DuckDB, ...), not {type(publications).__name__}; "
            "for one publication use put, for a list of dictionaries pyarrow.Table.from_pylist"
        ) from None


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
