"""Kernels of `counting`: for each satisfied predicate, one hit for every box that has it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.interned import Predicates, entries_of, release, write_box
from tocsin.kernels.numbers import ABSENT, Places, place_of
from tocsin.kernels.pool import Blocks
from tocsin.kernels.satisfied import Scratch, satisfy

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
    taken = np.empty(len(numbers), np.int32)
    tally = slots.tally
    for box in range(len(numbers)):
        if tally[FREE] > 0:
            tally[FREE] -= 1
            slot = np.int64(slots.free[tally[FREE]])
        else:
            slot = tally[USED]
            tally[USED] += 1
        taken[box] = slot
        slots.number[slot] = numbers[box]
        slots.needed[slot] = offsets[box + 1] - offsets[box]
        slots.first[slot] = owned_first + offsets[box]
        places.where[place_of(places, numbers[box])] = slot
    slots.owned[owned_first : owned_first + len(owned)] = owned
    return taken


@kernel
def announce_postings(blocks: Blocks, owned: Any, offsets: Any) -> Any:
    """Announce one element to the block of each predicate of each box; return the blocks."""
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
        blocks.lines[target] = 1
        blocks.adding[target] += 1
    return targets[:count]


@kernel
def append_postings(postings: Postings, slots: Slots, taken: Any) -> None:
    """Append each taken slot to the block of each of its predicates; room has been made."""
    blocks, pool = postings
    for slot in taken:
        first = slots.first[slot]
        if slots.needed[slot] == 0:
            pool[blocks.first[0] + blocks.filled[0]] = slot
            blocks.filled[0] += 1
        for at in range(first, first + slots.needed[slot]):
            block = slots.owned[at] + 1
            pool[blocks.first[block] + blocks.filled[block]] = slot
            blocks.filled[block] += 1


@kernel
def remove_slots(slots: Slots, postings: Postings, predicates: Predicates, places: Places, numbers: Any) -> None:
    """Forget boxes: their slots die and stay in the postings until `sweep`, except where a predicate goes with them."""
    for number in numbers:
        place = place_of(places, number)
        slot = places.where[place]
        places.where[place] = ABSENT
        first = slots.first[slot]
        for at in range(first, first + slots.needed[slot]):
            if release(predicates, slots.owned[at]):
                postings.blocks.filled[slots.owned[at] + 1] = 0
        slots.needed[slot] = -1
        slots.tally[DEAD] += 1


@kernel
def sweep(slots: Slots, postings: Postings) -> None:
    """Take dead slots out of all postings and set them free."""
    blocks, pool = postings
    for block in range(len(blocks.first)):
        kept = 0
        for at in range(blocks.first[block], blocks.first[block] + blocks.filled[block]):
            if slots.needed[pool[at]] >= 0:
                pool[blocks.first[block] + kept] = pool[at]
                kept += 1
        blocks.filled[block] = kept
    tally = slots.tally
    tally[FREE] = 0
    for slot in range(tally[USED]):
        if slots.needed[slot] < 0:
            slots.free[tally[FREE]] = slot
            tally[FREE] += 1
    tally[DEAD] = 0


@kernel
def pack_owned(slots: Slots, packed: Any) -> Any:
    """Copy the predicates of all boxes to another pool without gaps; return its used length."""
    into = 0
    for slot in range(slots.tally[USED]):
        first = slots.first[slot]
        slots.first[slot] = into
        for at in range(first, first + slots.needed[slot]):
            packed[into] = slots.owned[at]
            into += 1
    return into


@kernel
def _hit(slots: Slots, postings: Postings, block: Any, scratch: Scratch, found: Any, count: Any) -> Any:
    """Give a hit to every box of a predicate; append to ``found`` those that have all they need."""
    base = scratch.generation[1] << HIT_BITS
    first = postings.blocks.first[block]
    for at in range(first, first + postings.blocks.filled[block]):
        slot = postings.pool[at]
        hits = max(np.int64(scratch.hits[slot]), base) + 1
        scratch.hits[slot] = hits
        if hits - base == slots.needed[slot]:
            found[count] = slots.number[slot]
            count += 1
    return count


@kernel
def count_hits(slots: Slots, postings: Postings, phase: Any, queries: Any, scratch: Scratch, buffer: Any) -> Any:
    """Match every row of ``queries``; ``phase`` is what `satisfy` needs. Return rows and numbers."""
    predicates, ranges, points = phase
    rows = np.empty(buffer, np.int32)
    found = np.empty(buffer, np.int32)
    count = 0
    for row in range(queries.low.shape[1]):
        scratch.generation[1] += 1
        if scratch.generation[1] > LAST_GENERATION:
            scratch.hits[:] = 0
            scratch.generation[1] = 1
        begun = count
        satisfied = satisfy(predicates, ranges, points, queries, row, scratch)[1]
        for index in range(-1, satisfied):
            block = 0 if index < 0 else scratch.satisfied[index] + 1
            if count + postings.blocks.filled[block] > len(found):
                larger = 2 * (count + postings.blocks.filled[block])
                rows, found = _longer(rows, larger), _longer(found, larger)
            if index >= 0:
                count = _hit(slots, postings, block, scratch, found, count)
            else:
                for at in range(postings.blocks.first[0], postings.blocks.first[0] + postings.blocks.filled[0]):
                    if slots.needed[postings.pool[at]] == 0:
                        found[count] = slots.number[postings.pool[at]]
                        count += 1
        rows[begun:count] = row
    return rows[:count].copy(), found[:count].copy()


@kernel
def _longer(array: Any, length: Any) -> Any:
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer


@kernel
def count_entries(slots: Slots, predicates: Predicates, places: Places, numbers: Any) -> Any:
    """Return the offsets of the entries of these boxes."""
    offsets = np.zeros(len(numbers) + 1, np.int64)
    for box in range(len(numbers)):
        slot = places.where[place_of(places, numbers[box])]
        offsets[box + 1] = offsets[box]
        for at in range(slots.first[slot], slots.first[slot] + slots.needed[slot]):
            offsets[box + 1] += entries_of(predicates, slots.owned[at])
    return offsets


@kernel
def write_boxes(slots: Slots, predicates: Predicates, places: Places, numbers: Any, boxes: Any) -> None:
    """Write the boxes of these numbers, whose offsets are set."""
    for box in range(len(numbers)):
        slot = places.where[place_of(places, numbers[box])]
        first = slots.first[slot]
        write_box(predicates, slots.owned[first : first + slots.needed[slot]], boxes, boxes.offsets[box])
