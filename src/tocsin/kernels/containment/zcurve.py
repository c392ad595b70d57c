"""Kernels of `zcurve`: the corners of boxes along the Z-curve, on an ordered map of blocks.

Each chosen dimension is cut into ``2**levels`` parts; the key of a corner interleaves the numbers of its parts, the
highest bit of every dimension first. So a key is a chain of groups, one a resolution, of one bit a dimension, and the
cells of a resolution are runs of keys with the same first groups. Bit ``d`` of a group is that of dimension ``d``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.containment.boxes import COMPARED, VISITED, Question, Rows, answers, coordinate, note

BLOCK = 128
"""Keys in a block at most."""

BLOCKS, LENGTH, LIVE, FREE = range(4)
"""Places in ``Curve.state``: blocks made so far, blocks in order, boxes held, the first free block (chained by
``filled``) or -1."""


class Curve(NamedTuple):
    """``dimensions``: int32[D]; ``cuts``: int64[D, 2**levels - 1], where its parts begin; ``keys`` int64[blocks,
    BLOCK] and ``slots``: the blocks, ``filled`` so far; ``order``: the blocks in the order of their keys; ``lows``:
    their first keys in that order.
    """

    dimensions: npt.NDArray[np.int32]
    cuts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    filled: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]
    lows: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


@kernel
def key_of(curve: Curve, levels: Any, rows: Rows, slot: Any) -> Any:
    """Return the key of a box."""
    key, many = np.int64(0), len(curve.dimensions)
    for place in range(many):
        value = coordinate(rows, slot, curve.dimensions[place])
        part = np.searchsorted(curve.cuts[place], value, side="right")
        for level in range(levels):
            bit = (part >> (levels - 1 - level)) & 1
            key |= np.int64(bit) << ((levels - 1 - level) * many + place)
    return key


@inlined
def _highest(word: Any) -> Any:
    """Return the highest bit of a positive number below 2**62."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> shift
    return (word + 1) >> 1


@kernel
def last_above(word: Any, needed: Any) -> Any:
    """Return the greatest number up to ``word`` that has all the bits ``needed``, or -1."""
    missing = needed & ~word
    if word < 0 or missing == 0:
        return word
    spare = word & ~needed & ~(2 * _highest(missing) - 1)
    if spare == 0:
        return np.int64(-1)
    lowest = spare & -spare
    return (word & ~(2 * lowest - 1)) | (lowest - 1)


@kernel
def last_below(word: Any, allowed: Any) -> Any:
    """Return the greatest number up to ``word`` that has no bit but those ``allowed``, or -1 if ``word`` is -1."""
    if word < 0 or word & ~allowed == 0:
        return word
    highest = _highest(word & ~allowed)
    return (word & ~(2 * highest - 1)) | (allowed & (highest - 1))


@kernel
def _place_before(curve: Curve, bound: Any) -> Any:
    """Return the last place whose key is below a bound: its block's place in the order, and its place in the block."""
    length = curve.state[LENGTH]
    at = np.searchsorted(curve.lows[:length], bound) - 1
    if at < 0:
        return np.int64(-1), np.int64(-1)
    block = curve.order[at]
    return np.int64(at), np.int64(np.searchsorted(curve.keys[block, : curve.filled[block]], bound) - 1)


@kernel
def _open_block(curve: Curve, at: Any) -> Any:
    """Return an empty block, put into the order at a place."""
    state = curve.state
    block = state[FREE]
    if block >= 0:
        state[FREE] = -2 - curve.filled[block]
    else:
        block = state[BLOCKS]
        state[BLOCKS] += 1
    for place in range(state[LENGTH], at, -1):
        curve.order[place], curve.lows[place] = curve.order[place - 1], curve.lows[place - 1]
    curve.order[at], curve.filled[block] = block, 0
    state[LENGTH] += 1
    return block


@kernel
def insert_key(curve: Curve, key: Any, slot: Any) -> None:
    """Add a key behind those that equal it. There must be a block of room."""
    if curve.state[LENGTH] == 0:
        _open_block(curve, 0)
        curve.lows[0] = key
    at, place = _place_before(curve, key + 1)
    if at < 0:
        at, place = np.int64(0), np.int64(-1)
    block = curve.order[at]
    if curve.filled[block] == BLOCK:
        half = BLOCK // 2
        after = _open_block(curve, at + 1)
        curve.keys[after, :half], curve.slots[after, :half] = curve.keys[block, half:], curve.slots[block, half:]
        curve.filled[block], curve.filled[after] = half, half
        curve.lows[at + 1] = curve.keys[after, 0]
        if place >= half:
            at, place, block = at + 1, place - half, after
    for move in range(curve.filled[block], place + 1, -1):
        curve.keys[block, move], curve.slots[block, move] = curve.keys[block, move - 1], curve.slots[block, move - 1]
    curve.keys[block, place + 1], curve.slots[block, place + 1] = key, slot
    curve.filled[block] += 1
    curve.lows[at] = curve.keys[block, 0]
    curve.state[LIVE] += 1


@kernel
def insert_slots(curve: Curve, levels: Any, rows: Rows, slots: Any) -> None:
    """Add boxes. There must be a block of room for each."""
    for slot in slots:
        insert_key(curve, key_of(curve, levels, rows, slot), slot)


@kernel
def keys_of(curve: Curve, levels: Any, rows: Rows, slots: Any) -> Any:
    """Return the keys of boxes."""
    keys = np.empty(len(slots), np.int64)
    for place in range(len(slots)):
        keys[place] = key_of(curve, levels, rows, slots[place])
    return keys


@kernel
def fill(curve: Curve, keys: Any, slots: Any) -> None:
    """Fill an empty curve with ascending keys, blocks three quarters full."""
    many = 3 * BLOCK // 4
    for begin in range(0, len(keys), many):
        end = min(begin + many, len(keys))
        at = curve.state[LENGTH]
        block = _open_block(curve, at)
        curve.keys[block, : end - begin], curve.slots[block, : end - begin] = keys[begin:end], slots[begin:end]
        curve.filled[block], curve.lows[at] = end - begin, keys[begin]
    curve.state[LIVE] = len(keys)


@kernel
def remove_slots(curve: Curve, levels: Any, rows: Rows, slots: Any) -> None:
    """Take boxes out; a block that becomes empty is free."""
    for slot in slots:
        at, place = _place_before(curve, key_of(curve, levels, rows, slot) + 1)
        block = curve.order[at]
        while curve.slots[block, place] != slot:
            if place == 0:
                at -= 1
                block = curve.order[at]
                place = np.int64(curve.filled[block])
            place -= 1
        curve.filled[block] -= 1
        for move in range(place, curve.filled[block]):
            curve.keys[block, move], curve.slots[block, move] = (
                curve.keys[block, move + 1],
                curve.slots[block, move + 1],
            )
        curve.lows[at] = curve.keys[block, 0]
        if curve.filled[block] == 0:
            curve.filled[block] = -2 - curve.state[FREE]
            curve.state[FREE] = block
            curve.state[LENGTH] -= 1
            for move in range(at, curve.state[LENGTH]):
                curve.order[move], curve.lows[move] = curve.order[move + 1], curve.lows[move + 1]
    curve.state[LIVE] -= len(slots)


@kernel
def next_bound(key: Any, wanted: Any, levels: Any, many: Any, inside: Any, tight: Any) -> Any:
    """Return -1 if the cell of a key may hold answers; else a bound below which the next cell ends that may, 0 if there
    is none.

    ``wanted`` is the key of the box asked about. ``tight`` int64[levels] is scratch: in which dimensions the groups so
    far are equal to those wanted. A dimension that is not tight is decided already.
    """
    full = (np.int64(1) << many) - 1
    level, now = 0, full
    while level < levels:
        shift = (levels - 1 - level) * many
        group, want = (key >> shift) & full, (wanted >> shift) & full
        tight[level] = now
        wrong = (group & ~want) if inside else (want & ~group)
        if wrong & now:
            break
        now &= ~(group ^ want)
        if now == 0:
            return np.int64(-1)
        level += 1
    if level == levels:
        return np.int64(-1)
    while level >= 0:
        shift = (levels - 1 - level) * many
        group, want = (key >> shift) & full, (wanted >> shift) & full
        if inside:
            lower = last_below(group - 1, (want | ~tight[level]) & full)
        else:
            lower = last_above(group - 1, want & tight[level])
        if lower >= 0:
            return ((((key >> shift) & ~full) | lower) + 1) << shift
        level -= 1
    return np.int64(0)


@kernel
def search_curve(curve: Curve, levels: Any, rows: Rows, question: Question, tally: Any) -> Any:
    """Answer questions, each from the end of the curve backwards, leaping over cells that hold no answer; return the
    pairs and how many there are."""
    found, count = np.empty((2, 256), np.int32), 0
    many = len(curve.dimensions)
    tight = np.empty(max(levels, 1), np.int64)
    end = np.int64(1) << (levels * many)
    for row in range(len(question.rows.start)):
        begin = count
        wanted = key_of(curve, levels, question.rows, row)
        at, place = _place_before(curve, end)
        while at >= 0 and count - begin < question.limit:
            block = curve.order[at]
            tally[VISITED] += 1
            bound = next_bound(curve.keys[block, place], wanted, levels, many, question.inside, tight)
            if bound >= 0:
                at, place = _place_before(curve, bound)
                continue
            tally[COMPARED] += 1
            slot = curve.slots[block, place]
            if answers(question, row, rows, slot):
                found = note(found, count, row, slot)
                count += 1
            place -= 1
            if place < 0:
                at -= 1
                if at >= 0:
                    place = np.int64(curve.filled[curve.order[at]] - 1)
    return found, count
