"""Kernels of the predicate store: one number for each distinct (axis, set of intervals), with the count of its uses.

A *point* is a predicate of one interval that holds one code: an equality. Points are found from an event by hashing
(axis, code); every predicate is found from a box by hashing its content. A number that no box uses is free again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

USED, FREE, LIVE, SETS_USED, SETS_DEAD, RETIRED, KEEP_POINTS, SAMPLED = range(8)
"""Places in ``Predicates.tally``: numbers ever handed out, height of the free stack, predicates in use, intervals in
the pool of sets and how many of them are dead, numbers retired but not yet free, whether points retire too (they do
once they are kept in order), and how many events are behind ``seen``."""

PRIOR = 16.0
"""How many imaginary events, uniform over an axis's points, are added to the sample when a probability is estimated."""


class Predicates(NamedTuple):
    """Predicates by number. A set of several intervals has ``~axis`` for its axis, and its place and length in the
    pool of sets for ``low`` and ``high``.

    ``axis``, ``uses`` and ``seen``: int32[numbers]; ``low`` and ``high``: int64[numbers]; ``slots``: int32[power of
    two], a number or -1; ``set_low`` and ``set_high``: int64[pool]; ``free``: int32[numbers]; ``axis_points``:
    int64[axes], distinct points an axis; ``tally``: int64[8].
    """

    axis: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    uses: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    set_low: npt.NDArray[np.int64]
    set_high: npt.NDArray[np.int64]
    free: npt.NDArray[np.int32]
    axis_points: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]


@kernel
def mix(start: Any, low: Any, high: Any) -> Any:
    """Return a hash of an interval, continued from ``start``."""
    hashed = (start ^ low) * -7046029254386353131
    hashed = (hashed ^ (hashed >> 29) ^ high) * -4658895280553007687
    return hashed ^ (hashed >> 32)


@kernel
def find(predicates: Predicates, axis: Any, low: Any, high: Any) -> Any:
    """Return the number of the predicate of one interval, or -1."""
    mask = len(predicates.slots) - 1
    at = mix(axis, low, high) & mask
    while True:
        number = predicates.slots[at]
        if number < 0 or (
            predicates.low[number] == low and predicates.axis[number] == axis and predicates.high[number] == high
        ):
            return number
        at = (at + 1) & mask


@kernel
def _content_hash(predicates: Predicates, number: Any) -> Any:
    axis = predicates.axis[number]
    if axis >= 0:
        return mix(axis, predicates.low[number], predicates.high[number])
    hashed = np.int64(~axis)
    first = predicates.low[number]
    for entry in range(first, first + predicates.high[number]):
        hashed = mix(hashed, predicates.set_low[entry], predicates.set_high[entry])
    return hashed


@kernel
def _find_set(predicates: Predicates, axis: Any, low: Any, high: Any) -> Any:
    """Return the number of the set of these intervals on this axis, or -1."""
    hashed = np.int64(axis)
    for entry in range(len(low)):
        hashed = mix(hashed, low[entry], high[entry])
    mask = len(predicates.slots) - 1
    at = hashed & mask
    while True:
        number = predicates.slots[at]
        if number < 0:
            return number
        if predicates.axis[number] == ~axis and predicates.high[number] == len(low):
            first = predicates.low[number]
            same = True
            for entry in range(len(low)):
                if predicates.set_low[first + entry] != low[entry] or predicates.set_high[first + entry] != high[entry]:
                    same = False
                    break
            if same:
                return number
        at = (at + 1) & mask


@kernel
def _enter(predicates: Predicates, number: Any) -> None:
    """Put a predicate that is not there into the hash table."""
    mask = len(predicates.slots) - 1
    at = _content_hash(predicates, number) & mask
    while predicates.slots[at] >= 0:
        at = (at + 1) & mask
    predicates.slots[at] = number


@kernel
def rehash(predicates: Predicates) -> None:
    """Fill an empty hash table with every predicate in use."""
    for number in range(predicates.tally[USED]):
        if predicates.uses[number] > 0:
            _enter(predicates, number)


@kernel
def _leave(predicates: Predicates, number: Any) -> None:
    """Take a predicate out of the hash table, closing the gap so that probing needs no tombstones."""
    slots = predicates.slots
    mask = len(slots) - 1
    gap = _content_hash(predicates, number) & mask
    while slots[gap] != number:
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] < 0:
            break
        home = _content_hash(predicates, slots[at]) & mask
        if (at - home) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = -1


@kernel
def _create(predicates: Predicates, axis: Any, low: Any, high: Any) -> Any:
    """Give a number to a predicate that has none; the caller has made room."""
    tally = predicates.tally
    if tally[FREE] > 0:
        tally[FREE] -= 1
        number = np.int64(predicates.free[tally[FREE]])
    else:
        number = tally[USED]
        tally[USED] += 1
    tally[LIVE] += 1
    predicates.seen[number] = 0
    predicates.uses[number] = 0
    if len(low) == 1:
        predicates.axis[number] = axis
        predicates.low[number] = low[0]
        predicates.high[number] = high[0]
        predicates.axis_points[axis] += low[0] == high[0]
    else:
        first = tally[SETS_USED]
        predicates.axis[number] = ~axis
        predicates.low[number] = first
        predicates.high[number] = len(low)
        predicates.set_low[first : first + len(low)] = low
        predicates.set_high[first : first + len(low)] = high
        tally[SETS_USED] += len(low)
    _enter(predicates, number)
    return number


@kernel
def _has_room(predicates: Predicates, entries: Any) -> Any:
    tally = predicates.tally
    return (
        tally[USED] + entries <= len(predicates.axis)
        and tally[SETS_USED] + entries <= len(predicates.set_low)
        and (tally[LIVE] + entries) * 2 <= len(predicates.slots)
    )


@kernel
def intern(predicates: Predicates, boxes: Any, start: Any, owned: Any, owned_offsets: Any, created: Any) -> Any:
    """Number the predicates of boxes from ``start`` on, and count their uses, while there is room.

    Box ``b`` gets ``owned[owned_offsets[b]:owned_offsets[b + 1]]``, one number for each of its axes. Return the first
    box not done and how many new numbers were written to ``created``.
    """
    news = 0
    for box in range(start, len(boxes.offsets) - 1):
        at, end = boxes.offsets[box], boxes.offsets[box + 1]
        if not _has_room(predicates, end - at) or news + end - at > len(created):
            return box, news
        into = owned_offsets[box]
        while at < end:
            axis = np.int64(boxes.axis[at])
            stop = at + 1
            while stop < end and boxes.axis[stop] == axis:
                stop += 1
            if stop - at == 1:
                number = np.int64(find(predicates, axis, boxes.low[at], boxes.high[at]))
            else:
                number = np.int64(_find_set(predicates, axis, boxes.low[at:stop], boxes.high[at:stop]))
            if number < 0:
                number = _create(predicates, axis, boxes.low[at:stop], boxes.high[at:stop])
                created[news] = number
                news += 1
            predicates.uses[number] += 1
            owned[into] = number
            into += 1
            at = stop
        owned_offsets[box + 1] = into
    return len(boxes.offsets) - 1, news


@kernel
def is_point(predicates: Predicates, number: Any) -> Any:
    """Return whether the predicate is an equality."""
    return predicates.axis[number] >= 0 and predicates.low[number] == predicates.high[number]


@kernel
def axis_of(predicates: Predicates, number: Any) -> Any:
    """Return the axis of a predicate, set or not."""
    axis = predicates.axis[number]
    return axis if axis >= 0 else ~axis


@kernel
def release(predicates: Predicates, number: Any) -> Any:
    """Count one use less; say whether that was the last.

    A predicate that is kept in an ordered structure retires: its number stays out of use until the structure is purged,
    so that an entry left behind there speaks of nobody.
    """
    predicates.uses[number] -= 1
    if predicates.uses[number] > 0:
        return False
    tally = predicates.tally
    _leave(predicates, number)
    tally[LIVE] -= 1
    point = is_point(predicates, number)
    if point:
        predicates.axis_points[predicates.axis[number]] -= 1
    elif predicates.axis[number] < 0:
        tally[SETS_DEAD] += predicates.high[number]
    if point and tally[KEEP_POINTS] == 0:
        predicates.free[tally[FREE]] = number
        tally[FREE] += 1
    else:
        tally[RETIRED] += 1
    return True


@kernel
def write_box(predicates: Predicates, numbers: Any, boxes: Any, at: Any) -> Any:
    """Write the intervals of these predicates, in the order of their axes, to ``boxes`` from ``at`` on; return the
    end.
    """
    previous = -1
    for _ in range(len(numbers)):
        following = np.int64(-1)
        for number in numbers:
            axis = axis_of(predicates, number)
            if axis > previous and (following < 0 or axis < axis_of(predicates, following)):
                following = np.int64(number)
        previous = axis_of(predicates, following)
        if predicates.axis[following] >= 0:
            boxes.axis[at] = previous
            boxes.low[at] = predicates.low[following]
            boxes.high[at] = predicates.high[following]
            at += 1
        else:
            first = predicates.low[following]
            for entry in range(first, first + predicates.high[following]):
                boxes.axis[at] = previous
                boxes.low[at] = predicates.set_low[entry]
                boxes.high[at] = predicates.set_high[entry]
                at += 1
    return at


@kernel
def entries_of(predicates: Predicates, number: Any) -> Any:
    """Return how many intervals a predicate has."""
    return np.int64(1) if predicates.axis[number] >= 0 else predicates.high[number]


@kernel
def count_sample(predicates: Predicates, codes: Any) -> None:
    """Count for each point how many of the sampled events (int64[axes, events]) satisfy it."""
    predicates.seen[:] = 0
    for axis in range(min(codes.shape[0], len(predicates.axis_points))):
        if predicates.axis_points[axis] > 0:
            for event in range(codes.shape[1]):
                number = find(predicates, axis, codes[axis, event], codes[axis, event])
                if number >= 0:
                    predicates.seen[number] += 1
    predicates.tally[SAMPLED] = codes.shape[1]


@kernel
def probability(predicates: Predicates, number: Any) -> Any:
    """Return the estimated probability that an event satisfies a point: its share of the sample, smoothed."""
    uniform = PRIOR / predicates.axis_points[predicates.axis[number]]
    return (predicates.seen[number] + uniform) / (predicates.tally[SAMPLED] + PRIOR)
