"""One step of change on either side: what begins and what ceases to match, each pair once.

Both steps are one: find pairs that may be affected, in the index of the other side, then ask of each whether it matched
before and whether it does now. Where only plain regions are involved the index says that by itself, and a region that
moves is asked about only where it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s, Moved, Pairs, Queries
from tocsin.index.numbers import ascending_once
from tocsin.index.protocol import under_names
from tocsin.kernels.picking import ascend
from tocsin.kernels.subjects import owners_of_moves, queries_of_boxes
from tocsin.subjects.holdings import COMPLEX, Holdings
from tocsin.subjects.plane import Plane
from tocsin.subjects.relation import Audiences, Version, related, side_of

Told = tuple["npt.NDArray[np.integer]", Int32s, "npt.NDArray[np.int8]"]
"""(position of the one that changed, slot of the other side, 0 for enter and 1 for leave)."""

NOTHING: Told = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8))

Versions = Sequence[Version | None]


def publications_changed(
    planes: list[Plane], audiences: Audiences, subscriptions: Holdings, old: Versions, new: Versions
) -> Told:
    """Return what changes when publications become others; the rows of both are stored."""
    found = [np.empty(0, np.int64)]
    for number, plane in enumerate(planes):
        who, rows = _members(number, old, new)
        if len(rows):
            near = plane.boxes_near(rows)
            found.append(who[near.rows] << 32 | plane.interests.owner[near.numbers])
    return decided(planes, audiences, subscriptions, old, new, _distinct(found))


def subscriptions_changed(
    planes: list[Plane], audiences: Audiences, publications: Holdings, old: Versions, new: Versions
) -> Told:
    """Return what changes when subscriptions become others; the boxes of both are stored."""
    found = [np.empty(0, np.int64)]
    for number, plane in enumerate(planes):
        who, boxes = _members(number, old, new)
        if len(boxes):
            near = plane.rows_near(boxes)
            found.append(who[near.rows] << 32 | plane.rows.owner[near.numbers])
    return decided(planes, audiences, publications, old, new, _distinct(found), published=False)


def decided(
    planes: list[Plane],
    audiences: Audiences,
    others: Holdings,
    old: Versions,
    new: Versions,
    pairs: Int64s,
    *,
    published: bool = True,
) -> Told:
    """Return which pairs of a changed one and one of the other side (position above slot, each once) began and ceased
    to match. The changed ones are publications or, where not ``published``, subscriptions."""
    if not len(pairs):
        return NOTHING
    if audiences.truths is not None:
        calling = audiences.truths.conditional(old, new, pairs, published=published)
        if calling.any():
            mine, rest = pairs[calling], pairs[~calling]
            before, after = audiences.truths.before_and_after(others, old, new, mine, published=published)
            return joined(
                [_turned(mine, before, after), _related(planes, audiences, others, old, new, rest, published)]
            )
    return _related(planes, audiences, others, old, new, pairs, published)


def _related(
    planes: list[Plane],
    audiences: Audiences,
    others: Holdings,
    old: Versions,
    new: Versions,
    pairs: Int64s,
    published: bool,
) -> Told:
    """Return the same of pairs that the regions themselves decide."""
    if not len(pairs):
        return NOTHING
    position, slots = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
    distinct, which = (slots, np.arange(len(slots))) if len(old) == 1 else np.unique(slots, return_inverse=True)
    # before and after are asked together: the changed ones follow each other, old and then new
    changed, other = side_of([*old, *new], len(planes)), others.side(distinct)
    both, which = np.concatenate([position, position + len(old)]), np.concatenate([which, which])
    sides = (changed, other, both, which) if published else (other, changed, which, both)
    before, after = related(planes, audiences, *sides).reshape(2, -1)
    return _turned(pairs, before, after)


def _turned(pairs: Int64s, before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_]) -> Told:
    """Return which pairs began and ceased to match."""
    told = np.flatnonzero(before != after)
    return pairs[told] >> 32, (pairs[told] & 0xFFFFFFFF).astype(np.int32), before[told].astype(np.int8)


def _distinct(found: list[Int64s]) -> Int64s:
    return ascending_once(np.concatenate(found) if len(found) > 2 else found[-1])


def plain_subscription_moved(plane: Plane, old: Int32s, new: Int32s) -> Told:
    """Return what changes when one plain subscription, without sets, moves among publications that are all plain."""
    before, after = (Queries(*queries_of_boxes(plane.interests.pool, side, len(plane.axes))) for side in (old, new))
    moved = plane.objects.moved(before, after)
    return _moves(moved, plane.rows.owner)


def plain_publications_moved(plane: Plane, subscriptions: Holdings, old: Queries, new: Queries) -> tuple[Told, Int64s]:
    """Return what changes when plain publications move, and which pairs (position above slot) are yet to be decided:
    those with subscriptions that are not plain."""
    told = _moves(plane.plain.moved(old, new), plane.interests.owner)
    return _sorted_out(plane, subscriptions, told, [old, new])


def plain_publications_came(
    plane: Plane, subscriptions: Holdings, asked: Queries, *, left: bool = False
) -> tuple[Told, Int64s]:
    """Return the same when plain publications come, or leave."""
    met = plane.plain.named_overlap(asked, plane.interests.owner)
    return _sorted_out(plane, subscriptions, _told(met, left), [asked])


def _sorted_out(plane: Plane, subscriptions: Holdings, told: Told, asked: list[Queries]) -> tuple[Told, Int64s]:
    """Return what is told by plain boxes, and the pairs that are not."""
    if not subscriptions.intricate:
        return told, np.empty(0, np.int64)
    position, slots, kinds = told
    plain = subscriptions.plane[slots] != COMPLEX
    open_pairs = [np.empty(0, np.int64), position[~plain].astype(np.int64) << 32 | slots[~plain]]
    for queries in asked if len(plane.verified) else ():
        near = plane.verified.overlap(queries)
        open_pairs.append(near.rows.astype(np.int64) << 32 | plane.interests.owner[near.numbers])
    return (position[plain], slots[plain], kinds[plain]), _distinct(open_pairs)


def told_of(pairs: Pairs, owner: Int32s, left: bool) -> Told:
    """Return what an answer says of owners, which is written over it."""
    return _told(under_names(pairs, owner), left)


def _told(pairs: Pairs, left: bool) -> Told:
    return pairs.rows, pairs.numbers, (np.ones if left else np.zeros)(len(pairs.rows), np.int8)


def _moves(moved: Moved, owner: Int32s) -> Told:
    if len(moved.entered.rows) and len(moved.left.rows):
        told: Told = owners_of_moves(tuple(moved.entered), tuple(moved.left), owner)
        return told
    return joined([told_of(moved.entered, owner, False), told_of(moved.left, owner, True)])


def _members(plane: int, old: Versions, new: Versions) -> tuple[Int64s, Int32s]:
    """Return the members in a plane of versions before and after, and whose they are."""
    parts = [
        (position, version.members[plane][0])
        for versions in (old, new)
        for position, version in enumerate(versions)
        if version is not None and plane in version.members
    ]
    who = np.repeat(np.array([each for each, _ in parts], np.int64), [len(numbers) for _, numbers in parts])
    return who, np.concatenate([np.empty(0, np.int32), *(numbers for _, numbers in parts)])


def joined(parts: list[Told]) -> Told:
    """Return all that is told, one after another."""
    some = [part for part in parts if len(part[0])]
    if len(some) < 2:
        return some[0] if some else NOTHING
    position, others, kinds = (np.concatenate(each) for each in zip(*some, strict=True))
    return position, others, kinds


def in_order(told: Told) -> Told:
    """Return the same in the order of the positions."""
    position, others, kinds = told
    if ascend(position):
        return told
    order = np.argsort(position, kind="stable")
    return position[order], others[order], kinds[order]


def renamed(told: Told, names: npt.NDArray[np.integer]) -> Told:
    """Return the same with other names for the positions: different ones, ascending, of which none may be needed."""
    nothing_new = len(names) > 0 and names[-1] == len(names) - 1
    return told if nothing_new else (names[told[0]], told[1], told[2])
