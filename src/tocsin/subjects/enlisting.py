"""Tables of subscriptions: read, stored, indexed and answered from the index of publications, all rows together.

A row whose expression is one box and nothing else is *plain* and stays an entry in arrays. The few others, of several
boxes or with a pattern that no box says, have records as single subscriptions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tocsin.arguments import expect_flag
from tocsin.errors import (
    BadSubscriptionsError,
    DuplicateSubscriptionError,
    ExpressionError,
    RegionError,
    TocsinError,
)
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.numbers import ascending_once
from tocsin.matcher.tables import subscriptions_of
from tocsin.subjects.conditions import CONDITIONAL
from tocsin.subjects.holdings import COMPLEX, Record
from tocsin.subjects.regions import REGION, Region
from tocsin.subjects.relation import ONE_REGION, Version
from tocsin.subjects.steps import Told, Versions, decided, in_order, joined, renamed, subscriptions_changed, told_of
from tocsin.subjects.transitions import Transitions

if TYPE_CHECKING:
    from tocsin.subjects.state import State


def subscribe_many(state: State, subscriptions: Any, space: str | None, tell: bool) -> Transitions:
    """Insert subscriptions of one expression each; see `Subjects.subscribe_many`."""
    expect_flag(tell, "tell")
    ids, texts = subscriptions_of(subscriptions)
    number = state._spaces.only(space)
    plane, holdings = state._planes[number], state._subscriptions
    listed = ids.to_pylist()
    rows, boxes, programs = _read(state, number, listed, texts)
    slots = holdings.names.add(listed, state._unread)
    numbers = plane.interests.add(boxes, slots[rows], np.ones(len(rows)), programs)
    guards = state._store_declared(state._declared(None), len(slots))
    boxed = np.bincount(rows, minlength=len(slots))
    plain = boxed == 1
    plain[rows[programs >= 0]] = False
    alone = plain[rows]
    said = texts.to_pylist()
    holdings.hold_plain(
        slots[plain], number, numbers[alone], guards[plain], [said[row] for row in np.flatnonzero(plain)]
    )
    others = np.flatnonzero(~plain)
    versions: list[Version | None] = []
    ends = np.cumsum(boxed)
    for row in others.tolist():
        mine = numbers[ends[row] - boxed[row] : ends[row]]
        members = {number: (mine, np.ones(len(mine), np.int64))} if len(mine) else {}
        version = Version(members, ONE_REGION, int(guards[row]))
        region = Region(said[row], state._spaces.names[number])
        holdings.hold(int(slots[row]), Record({REGION: region}, "all", None, version), plain=False)
        versions.append(version)
    parts: list[Told] = []
    if tell:
        parts.append(found_by(state, number, numbers[alone], rows[alone], guards))
        nothing = [None] * len(versions)
        told = subscriptions_changed(state._planes, state._audiences, state._publications, nothing, versions)
        parts.append((others[told[0]], told[1], told[2]))
    elif any(state._truths.calls(each) for each in versions):  # what operators say of them now counts as told
        nothing = [None] * len(versions)
        subscriptions_changed(state._planes, state._audiences, state._publications, nothing, versions)
    plane.insert_boxes(numbers)
    return state._transitions(in_order(joined(parts)), slots, False, numbered=True)


def _read(state: State, number: int, ids: list[Any], texts: pa.Array) -> tuple[Int32s, Boxes, Int32s]:
    """Return (row, boxes, program) of every box; every row that is refused is named in the error."""
    known = state._subscriptions.names.slot_of
    refused: dict[int, TocsinError] = {}
    distinct = set(ids)
    if len(distinct) < len(ids) or None in distinct or not distinct.isdisjoint(known):
        seen: set[Any] = set()
        for row, id in enumerate(ids):
            if id is None or id in seen or id in known:
                refused[row] = DuplicateSubscriptionError(f"the id {id!r} is NULL, given twice or there already")
            seen.add(id)
    if texts.null_count:
        refused |= {int(row): ExpressionError("the expression is NULL") for row in np.flatnonzero(texts.is_null())}
    if not refused:
        rows, boxes, programs, problems = state._planes[number].boxes_of_text(texts.cast(pa.string()))
        refused |= problems
        free = np.unique(rows[(np.diff(boxes.offsets) == 0) & (programs < CONDITIONAL)])
        refused |= {int(row): RegionError("a region constrains at least one dimension") for row in free}
    if refused:
        raise BadSubscriptionsError([(row, ids[row], refused[row]) for row in sorted(refused)])
    return rows, boxes, programs


def found_by(state: State, number: int, boxes: Int32s, rows: Int32s, guards: Int32s, *, left: bool = False) -> Told:
    """Return which publications plain subscriptions, stored as these boxes and given in these rows, find; or cease to,
    where they ``left``. ``guards`` are the rows of their properties."""
    plane, publications = state._planes[number], state._publications
    place, slots, kinds = told_of(plane.rows_met(boxes), plane.rows.owner, left)
    if not publications.intricate:
        return renamed((place, slots, kinds), rows)
    plain = publications.plane[slots] != COMPLEX
    told: Told = rows[place[plain]], slots[plain], kinds[plain]
    pairs: Int64s = ascending_once(place[~plain].astype(np.int64) << 32 | slots[~plain])
    involved, which = np.unique(pairs >> 32, return_inverse=True)
    one = np.ones(1, np.int64)
    versions: Versions = [
        Version({number: (boxes[each : each + 1], one)}, ONE_REGION, int(guards[rows[each]])) for each in involved
    ]
    renumbered = which.astype(np.int64) << 32 | pairs & 0xFFFFFFFF
    nothing: Versions = [None] * len(versions)
    old, new = (versions, nothing) if left else (nothing, versions)
    odd = decided(state._planes, state._audiences, publications, old, new, renumbered, published=False)
    return joined([told, (rows[involved[odd[0]]], odd[1], odd[2])])
