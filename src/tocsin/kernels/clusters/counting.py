"""Kernels of `counting`: for each satisfied predicate, one hit for every box that has it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.clusters.interned import Predicates, release
from tocsin.kernels.clusters.satisfied import Scratch, mark_points, mark_ranges, mark_spanned, next_generation
from tocsin.kernels.compile import kernel
from tocsin.kernels.numbers import ABSENT, Places, place_of
from tocsin.kernels.pool import FILLED, FIRST, LINES, Blocks, longer

HIT_BITS = 20
"""A counter holds its event's generation above this many bits, and its hits below."""

LAST_GENERATION = (1 << (31 - HIT_BITS)) - 1

USED, FREE, DEAD = range(3)
"""Places in ``Slots.tally``: slots ever handed out, height of the free stack, slots of removed boxes."""


class Slots(NamedTuple):
    """Boxes by slot. ``number``: int32; ``needed``: int32, the predicates that must be hit, -1 if there is no box;
    ``first``: int64, where the box's predicates begin in the pool ``owned`` (int32); ``free``: int32; ``tally``:
    int64[3].
    """

    number: npt.NDArray[np.int32]
    needed: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    owned: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    tally: npt.NDArray[np.int64]


class Postings(NamedTuple):
    """For each predicate the slots of the boxes that have it, in block ``predicate + 1`` of one line; block 0 holds the
    boxes without any predicate.
    """

    blocks: Blocks
    pool: npt.NDArray[np.int32]


@kernel
def take_slots(slots: Slots, places: Places, numbers: Any, owned: Any, offsets: Any, owned_first: Any) -> Any:
    """Give each new box a slot, and remember its predicates from ``owned_first`` of the pool on; return the slots."""
    tally, free, number_of, needed, first = slots.tally, slots.free, slots.number, slots.needed, slots.first
    directory, where = places.directory, places.where
    taken = np.empty(len(numbers), np.int32)
    for box in range(len(numbers)):
        if tally[FREE] > 0:
            tally[FREE] -= 1
            slot = np.int64(free[tally[FREE]])
        else:
            slot = tally[USED]
            tally[USED] += 1
        taken[box] = slot
        number_of[slot] = numbers[box]
        needed[slot] = offsets[box + 1] - offsets[box]
        first[slot] = owned_first + offsets[box]
        where[place_of(directory, numbers[box])] = slot
    slots.owned[owned_first : owned_first + len(owned)] = owned
    return taken


@kernel
def announce_postings(blocks: Blocks, owned: Any, offsets: Any) -> Any:
    """Announce one element to the block of each predicate of each box; return the blocks."""
    shape, adding = blocks.shape, blocks.adding
    targets = np.empty(len(owned) + len(offsets) - 1, np.int32)
    count = 0
    for box in range(len(offsets) - 1):
        if offsets[box] == offsets[box + 1]:
            targets[count] = 0
            count += 1
        for at in range(offsets[box], offsets[box + 1]):
            targets[count] = owned[at] + 1
            count += 1
    for target in targets[:count]:
        shape[target, LINES] = 1
        adding[target] += 1
    return targets[:count]


@kernel
def append_postings(postings: Postings, slots: Slots, taken: Any) -> None:
    """Append each taken slot to the block of each of its predicates; room has been made."""
    shape, pool = postings.blocks.shape, postings.pool
    needed, first, owned = slots.needed, slots.first, slots.owned
    for slot in taken:
        if needed[slot] == 0:
            pool[shape[0, FIRST] + shape[0, FILLED]] = slot
            shape[0, FILLED] += 1
        for at in range(first[slot], first[slot] + needed[slot]):
            block = owned[at] + 1
            pool[shape[block, FIRST] + shape[block, FILLED]] = slot
            shape[block, FILLED] += 1


@kernel
def owned_by(slots: Slots, places: Places, numbers: Any) -> Any:
    """Return the predicates of these boxes, and the offsets at which each one's begin."""
    needed, first, owned = slots.needed, slots.first, slots.owned
    directory, where = places.directory, places.where
    offsets = np.zeros(len(numbers) + 1, np.int64)
    for box in range(len(numbers)):
        offsets[box + 1] = offsets[box] + needed[where[place_of(directory, numbers[box])]]
    gathered = np.empty(offsets[-1], np.int32)
    for box in range(len(numbers)):
        source = first[where[place_of(directory, numbers[box])]]
        for index in range(offsets[box], offsets[box + 1]):
            gathered[index] = owned[source + index - offsets[box]]
    return gathered, offsets


@kernel
def remove_slots(slots: Slots, postings: Postings, predicates: Predicates, places: Places, numbers: Any) -> None:
    """Forget boxes: their slots die and stay in the postings until `sweep`, except where a predicate goes with them."""
    owned, _ = owned_by(slots, places, numbers)
    needed, directory, where = slots.needed, places.directory, places.where
    for number in numbers:
        place = place_of(directory, number)
        needed[where[place]] = -1
        where[place] = ABSENT
    slots.tally[DEAD] += len(numbers)
    for predicate in release(predicates, owned):
        postings.blocks.shape[predicate + 1, FILLED] = 0


@kernel
def sweep(slots: Slots, postings: Postings) -> None:
    """Take dead slots out of all postings and set them free."""
    shape, pool, needed = postings.blocks.shape, postings.pool, slots.needed
    for block in range(len(shape)):
        kept = shape[block, FIRST]
        for at in range(kept, kept + shape[block, FILLED]):
            if needed[pool[at]] >= 0:
                pool[kept] = pool[at]
                kept += 1
        shape[block, FILLED] = kept - shape[block, FIRST]
    tally, free = slots.tally, slots.free
    tally[FREE] = 0
    for slot in range(tally[USED]):
        if needed[slot] < 0:
            free[tally[FREE]] = slot
            tally[FREE] += 1
    tally[DEAD] = 0


@kernel
def pack_owned(slots: Slots, packed: Any) -> Any:
    """Copy the predicates of all boxes to another pool without gaps; return its used length."""
    needed, first, owned = slots.needed, slots.first, slots.owned
    into = 0
    for slot in range(slots.tally[USED]):
        source = first[slot]
        first[slot] = into
        for at in range(source, source + needed[slot]):
            packed[into] = owned[at]
            into += 1
    return into


@kernel
def _hit(pool: Any, begin: Any, end: Any, slots: Any, hits: Any, base: Any, found: Any, count: Any) -> Any:
    """Give a hit to the boxes of ``pool[begin:end]``; append to ``found`` the slots that have all they need.

    ``slots`` is what each slot needs; a counter below ``base`` is of an earlier event.
    """
    for at in range(begin, end):
        slot = pool[at]
        hit = max(np.int64(hits[slot]), base) + 1
        hits[slot] = hit
        if hit - base == slots[slot]:
            found[count] = slot
            count += 1
    return count


@kernel
def count_hits(slots: Slots, postings: Postings, phase: Any, queries: Any, scratch: Scratch, points: Any) -> Any:
    """Match every row of ``queries``; ``points`` says that all are points. Return rows and numbers.

    ``phase`` is (predicates, ordered ranges, ordered points), as the first phase needs them.
    """
    predicates, ranges, points_in_order = phase
    hash_slots, content, axis_points = predicates.slots, predicates.content, predicates.axis_points
    marks, satisfied, equal_on, hits = scratch.marks, scratch.satisfied, scratch.equal_on, scratch.hits
    pool, shape, needed, number_of = postings.pool, postings.blocks.shape, slots.needed, slots.number
    rows, found = np.empty(1024, np.int32), np.empty(1024, np.int32)
    count = 0
    for row in range(queries.low.shape[1]):
        scratch.generation[1] += 1
        if scratch.generation[1] > LAST_GENERATION:
            hits[:] = 0
            scratch.generation[1] = 1
        base = scratch.generation[1] << HIT_BITS
        generation = next_generation(marks, scratch.generation)
        if points:
            total = mark_points(
                hash_slots, content, axis_points, queries.low, row, generation, marks, satisfied, equal_on
            )
        else:
            total = mark_spanned(predicates, points_in_order, queries, row, scratch)
        total = mark_ranges(ranges, queries, row, scratch, total)
        begun = count
        for index in range(-1, total):
            block = 0 if index < 0 else satisfied[index] + 1
            begin, end = shape[block, FIRST], shape[block, FIRST] + shape[block, FILLED]
            if count + end - begin > len(found):
                larger = 2 * (count + end - begin)
                rows, found = longer(rows, larger), longer(found, larger)
            if index >= 0:
                count = _hit(pool, begin, end, needed, hits, base, found, count)
                continue
            for at in range(begin, end):
                if needed[pool[at]] == 0:
                    found[count] = pool[at]
                    count += 1
        rows[begun:count] = row
        for index in range(begun, count):
            found[index] = number_of[found[index]]
    return rows[:count].copy(), found[:count].copy()
