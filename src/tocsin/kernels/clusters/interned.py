"""Kernels of the predicate store: one number for each distinct (axis, set of intervals), with the count of its uses.

A *point* is a predicate of one interval that holds one code: an equality. Points are found from an event by hashing
(axis, code); every predicate is found from a box by hashing its content. A number that no box uses is free again.

Functions called for each predicate take arrays, not tuples of them: taking an array out of a tuple counts a reference,
which costs more than the work on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

USED, FREE, LIVE, SETS_USED, SETS_DEAD, RETIRED, KEEP_POINTS, SAMPLED = range(8)
"""Places in ``Predicates.tally``: numbers ever handed out, height of the free stack, predicates in use, intervals in
the pool of sets and how many of them are dead, numbers retired but not yet free, whether points retire too (they do
once they are kept in order), and how many events are behind ``chance``."""

AXIS, LOW, HIGH = range(3)
"""Columns of ``Predicates.content``."""

PRIOR = 16.0
"""How many imaginary events, uniform over an axis's points, are added to the sample when a chance is estimated."""

NO_POINT = 2.0
"""The ``chance`` of a predicate that is no point: worse than any."""


class Predicates(NamedTuple):
    """Predicates by number. A set of several intervals has ``~axis`` for its axis, and its place and length in ``sets``
    for low and high.

    ``content``: int64[numbers, 3], axis, low and high; ``uses``: int32[numbers]; ``chance``: float32[numbers], the
    probability that an event satisfies a point; ``slots``: int32[power of two], a number or -1; ``sets``: int64[pool,
    2]; ``free``: int32[numbers]; ``axis_points``: int64[axes], distinct points an axis; ``tally``: int64[8].
    """

    content: npt.NDArray[np.int64]
    uses: npt.NDArray[np.int32]
    chance: npt.NDArray[np.float32]
    slots: npt.NDArray[np.int32]
    sets: npt.NDArray[np.int64]
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
def find(slots: Any, content: Any, axis: Any, low: Any, high: Any) -> Any:
    """Return the number of the predicate of one interval, or -1."""
    mask = len(slots) - 1
    at = mix(axis, low, high) & mask
    while True:
        number = slots[at]
        if number < 0:
            return number
        row = np.uint32(number)
        if content[row, LOW] == low and content[row, HIGH] == high and content[row, AXIS] == axis:
            return number
        at = (at + 1) & mask


@kernel
def is_point(content: Any, number: Any) -> Any:
    """Return whether the predicate is an equality."""
    return content[number, AXIS] >= 0 and content[number, LOW] == content[number, HIGH]


@kernel
def axis_of(content: Any, number: Any) -> Any:
    """Return the axis of a predicate, set or not."""
    axis = content[number, AXIS]
    return axis if axis >= 0 else ~axis


@kernel
def entries_of(content: Any, number: Any) -> Any:
    """Return how many intervals a predicate has."""
    return np.int64(1) if content[number, AXIS] >= 0 else content[number, HIGH]


@kernel
def _content_hash(content: Any, sets: Any, number: Any) -> Any:
    axis = content[number, AXIS]
    if axis >= 0:
        return mix(axis, content[number, LOW], content[number, HIGH])
    hashed = ~axis
    for entry in range(content[number, LOW], content[number, LOW] + content[number, HIGH]):
        hashed = mix(hashed, sets[entry, 0], sets[entry, 1])
    return hashed


@kernel
def _find_set(slots: Any, content: Any, sets: Any, boxes: Any, at: Any, stop: Any) -> Any:
    """Return the number of the set of the intervals ``at`` to ``stop`` of some boxes, or -1."""
    axis = np.int64(boxes.axis[at])
    hashed = axis
    for entry in range(at, stop):
        hashed = mix(hashed, boxes.low[entry], boxes.high[entry])
    mask = len(slots) - 1
    slot = hashed & mask
    while True:
        number = slots[slot]
        if number < 0:
            return number
        if content[number, AXIS] == ~axis and content[number, HIGH] == stop - at:
            first = content[number, LOW]
            same = 0
            while same < stop - at and (
                sets[first + same, 0] == boxes.low[at + same] and sets[first + same, 1] == boxes.high[at + same]
            ):
                same += 1
            if same == stop - at:
                return number
        slot = (slot + 1) & mask


@kernel
def _enter(slots: Any, content: Any, sets: Any, number: Any) -> None:
    """Put a predicate that is not there into the hash table."""
    mask = len(slots) - 1
    at = _content_hash(content, sets, number) & mask
    while slots[at] >= 0:
        at = (at + 1) & mask
    slots[at] = number


@kernel
def rehash(predicates: Predicates) -> None:
    """Fill an empty hash table with every predicate in use."""
    slots, content, sets, uses = predicates.slots, predicates.content, predicates.sets, predicates.uses
    for number in range(predicates.tally[USED]):
        if uses[number] > 0:
            _enter(slots, content, sets, number)


@kernel
def _leave(slots: Any, content: Any, sets: Any, number: Any) -> None:
    """Take a predicate out of the hash table, closing the gap so that probing needs no tombstones."""
    mask = len(slots) - 1
    gap = _content_hash(content, sets, number) & mask
    while slots[gap] != number:
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] < 0:
            break
        home = _content_hash(content, sets, slots[at]) & mask
        if (at - home) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = -1


@kernel
def _create(predicates: Predicates, boxes: Any, at: Any, stop: Any) -> Any:
    """Give a number to the predicate of the entries ``at`` to ``stop``, which has none; the caller has made room."""
    tally, content = predicates.tally, predicates.content
    if tally[FREE] > 0:
        tally[FREE] -= 1
        number = np.int64(predicates.free[tally[FREE]])
    else:
        number = tally[USED]
        tally[USED] += 1
    tally[LIVE] += 1
    axis = np.int64(boxes.axis[at])
    predicates.uses[number] = 0
    predicates.chance[number] = NO_POINT
    content[number, AXIS] = axis
    content[number, LOW] = boxes.low[at]
    content[number, HIGH] = boxes.high[at]
    if stop - at > 1:
        content[number, AXIS] = ~axis
        content[number, LOW] = tally[SETS_USED]
        content[number, HIGH] = stop - at
        for entry in range(at, stop):
            predicates.sets[tally[SETS_USED], 0] = boxes.low[entry]
            predicates.sets[tally[SETS_USED], 1] = boxes.high[entry]
            tally[SETS_USED] += 1
    elif boxes.low[at] == boxes.high[at]:
        predicates.axis_points[axis] += 1
        predicates.chance[number] = PRIOR / predicates.axis_points[axis] / (tally[SAMPLED] + PRIOR)
    _enter(predicates.slots, content, predicates.sets, number)
    return number


@kernel
def intern(predicates: Predicates, boxes: Any, start: Any, owned: Any, owned_offsets: Any, created: Any) -> Any:
    """Number the predicates of boxes from ``start`` on, and count their uses, while there is room.

    Box ``b`` gets ``owned[owned_offsets[b]:owned_offsets[b + 1]]``, one number for each of its axes. Return the first
    box not done and how many new numbers were written to ``created``.
    """
    slots, content, sets, uses, tally = (
        predicates.slots,
        predicates.content,
        predicates.sets,
        predicates.uses,
        predicates.tally,
    )
    offsets, axes, lows, highs = boxes.offsets, boxes.axis, boxes.low, boxes.high
    news = 0
    for box in range(start, len(offsets) - 1):
        at, end = offsets[box], offsets[box + 1]
        entries = end - at
        if (
            tally[USED] + entries > len(content)
            or tally[SETS_USED] + entries > len(sets)
            or (tally[LIVE] + entries) * 2 > len(slots)
            or news + entries > len(created)
        ):
            return box, news
        into = owned_offsets[box]
        while at < end:
            axis = np.int64(axes[at])
            stop = at + 1
            while stop < end and axes[stop] == axis:
                stop += 1
            if stop - at == 1:
                number = np.int64(find(slots, content, axis, lows[at], highs[at]))
            else:
                number = np.int64(_find_set(slots, content, sets, boxes, at, stop))
            if number < 0:
                number = _create(predicates, boxes, at, stop)
                created[news] = number
                news += 1
            uses[number] += 1
            owned[into] = number
            into += 1
            at = stop
        owned_offsets[box + 1] = into
    return len(offsets) - 1, news


@kernel
def release(predicates: Predicates, numbers: Any) -> Any:
    """Count one use less of each of these predicates; return those whose last it was.

    A predicate that is kept in an ordered structure retires: its number stays out of use until the structure is purged,
    so that an entry left behind there speaks of nobody.
    """
    slots, content, sets, uses, tally = (
        predicates.slots,
        predicates.content,
        predicates.sets,
        predicates.uses,
        predicates.tally,
    )
    gone = np.empty(len(numbers), np.int32)
    count = 0
    for number in numbers:
        uses[number] -= 1
        if uses[number] > 0:
            continue
        gone[count] = number
        count += 1
        _leave(slots, content, sets, number)
        tally[LIVE] -= 1
        point = is_point(content, number)
        if point:
            predicates.axis_points[content[number, AXIS]] -= 1
        elif content[number, AXIS] < 0:
            tally[SETS_DEAD] += content[number, HIGH]
        if point and tally[KEEP_POINTS] == 0:
            predicates.free[tally[FREE]] = number
            tally[FREE] += 1
        else:
            tally[RETIRED] += 1
    return gone[:count]


@kernel
def _write_box(content: Any, sets: Any, owned: Any, begin: Any, end: Any, boxes: Any, at: Any) -> None:
    """Write the intervals of ``owned[begin:end]``, in the order of their axes, to ``boxes`` from ``at`` on."""
    previous = np.int64(-1)
    for _ in range(begin, end):
        following = np.int64(-1)
        for index in range(begin, end):
            axis = axis_of(content, owned[index])
            if axis > previous and (following < 0 or axis < axis_of(content, following)):
                following = np.int64(owned[index])
        previous = axis_of(content, following)
        for entry in range(entries_of(content, following)):
            boxes.axis[at] = previous
            if content[following, AXIS] >= 0:
                boxes.low[at] = content[following, LOW]
                boxes.high[at] = content[following, HIGH]
            else:
                boxes.low[at] = sets[content[following, LOW] + entry, 0]
                boxes.high[at] = sets[content[following, LOW] + entry, 1]
            at += 1


@kernel
def count_entries(predicates: Predicates, owned: Any, offsets: Any) -> Any:
    """Return the offsets of the entries of boxes that have these predicates."""
    content = predicates.content
    entries = np.zeros(len(offsets), np.int64)
    for box in range(len(offsets) - 1):
        entries[box + 1] = entries[box]
        for index in range(offsets[box], offsets[box + 1]):
            entries[box + 1] += entries_of(content, owned[index])
    return entries


@kernel
def write_boxes(predicates: Predicates, owned: Any, offsets: Any, boxes: Any) -> None:
    """Write boxes that have these predicates; their offsets are set."""
    content, sets = predicates.content, predicates.sets
    for box in range(len(offsets) - 1):
        _write_box(content, sets, owned, offsets[box], offsets[box + 1], boxes, boxes.offsets[box])


@kernel
def estimate(predicates: Predicates, codes: Any) -> None:
    """Estimate the chance of every point: its share of the sampled events (int64[axes, events]), smoothed."""
    slots, content, chance, axis_points = (
        predicates.slots,
        predicates.content,
        predicates.chance,
        predicates.axis_points,
    )
    events = codes.shape[1]
    seen = np.zeros(len(content), np.int32)
    for axis in range(min(codes.shape[0], len(axis_points))):
        if axis_points[axis] > 0:
            for event in range(events):
                number = find(slots, content, axis, codes[axis, event], codes[axis, event])
                if number >= 0:
                    seen[number] += 1
    for number in range(predicates.tally[USED]):
        if is_point(content, number) and predicates.uses[number] > 0:
            uniform = PRIOR / axis_points[content[number, AXIS]]
            chance[number] = (seen[number] + uniform) / (events + PRIOR)
    predicates.tally[SAMPLED] = events
