"""Reading many elements of an array at scattered places, and leaving out what came before."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import brief, kernel
from tocsin.kernels.prefetch import prefetch

SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Multiplied by it, neighbouring numbers are far apart."""

AHEAD = 16
"""How many elements before its use a cache line is asked for."""

NULL = np.iinfo(np.int64).min
"""Stands for no value, below all values."""

NEAR = 1 << 17
"""So many values are in the cache anyway."""


@kernel
def pick_into(values, places, picked):  # type: ignore[no-untyped-def]
    """Write the values at these places, none of which is negative, into ``picked``.

    >>> picked = np.empty(2, np.int64)
    >>> pick_into(np.array([5, 6, 7]), np.array([2, 0], np.int32), picked)
    >>> picked.tolist()
    [7, 5]
    """
    if len(values) <= NEAR:
        for i in range(len(places)):
            picked[i] = values[places[i]]
        return
    inner = max(len(places) - AHEAD, 0)
    for i in range(inner):
        prefetch(values, np.int64(places[i + AHEAD]))
        picked[i] = values[places[i]]
    for i in range(inner, len(places)):
        picked[i] = values[places[i]]


@brief
def pick_few_into(values, places, picked):  # type: ignore[no-untyped-def]
    """Do the same for a few places."""
    pick_into(values, places, picked)


@kernel
def mark_absent(numbers, few, absent):  # type: ignore[no-untyped-def]
    """Say for each number whether it is not among a few, which ascend; return how many are among them.

    Most numbers are decided by a bit of 65,536.

    >>> absent = np.empty(3, np.bool_)
    >>> mark_absent(np.array([5, 7, 6], np.int32), np.array([2, 7], np.int32), absent), absent.tolist()
    (1, [True, False, True])
    """
    bits, count = np.zeros(1024, np.uint64), 0
    for number in few:
        place = (np.uint64(number) * SPREAD) >> np.uint64(48)
        bits[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
    for i in range(len(numbers)):
        place = (np.uint64(numbers[i]) * SPREAD) >> np.uint64(48)
        absent[i] = True
        if (bits[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1):
            where = np.searchsorted(few, numbers[i])
            absent[i] = where == len(few) or few[where] != numbers[i]
            count += not absent[i]
    return count


@brief
def sample_into(table, first, step, sample, place):  # type: ignore[no-untyped-def]
    """Write every ``step``-th column of a table from the ``first`` on into a sample with at least as many lines, from a
    place on and round; lines that the table does not have hold NULL there.

    >>> sample = np.array([[1, 2, 3], [4, 5, 6]])
    >>> sample_into(np.array([[7, 8, 9, 10]]), 1, 2, sample, 2)
    >>> sample[0].tolist(), sample[1, 1].item()
    ([10, 2, 8], 5)
    """
    for line in range(len(sample)):
        there = place
        for column in range(first, table.shape[1], step):
            sample[line, there] = table[line, column] if line < len(table) else NULL
            there = there + 1 if there + 1 < sample.shape[1] else 0


@kernel
def spread_into(values, starts, spread):  # type: ignore[no-untyped-def]
    """Write each value from its start up to that of the next into ``spread``; ``starts`` has one more, the end.

    >>> spread = np.empty(3, np.int64)
    >>> spread_into(np.array([5, 6]), np.array([0, 1, 3]), spread)
    >>> spread.tolist()
    [5, 6, 6]
    """
    for i in range(len(values)):
        spread[starts[i] : starts[i + 1]] = values[i]


@brief
def raise_to(values, lines, least):  # type: ignore[no-untyped-def]
    """Replace what is below the least, in some lines of a table.

    >>> values = np.array([[1, 5], [1, 5], [1, 5]])
    >>> raise_to(values, np.array([0, 2]), 3)
    >>> values.tolist()
    [[3, 5], [1, 5], [3, 5]]
    """
    for line in lines:
        for place in range(values.shape[1]):
            values[line, place] = max(values[line, place], least)


@kernel
def ascend(values):  # type: ignore[no-untyped-def]
    """Return whether no value is below the one before.

    >>> ascend(np.array([1, 1, 2])), ascend(np.array([2, 1]))
    (True, False)
    """
    falls = False
    for i in range(1, len(values)):
        falls |= values[i] < values[i - 1]
    return not falls


@kernel
def pick_over(values, places):  # type: ignore[no-untyped-def]
    """Write the values at these places over the places, of the same type: no memory is touched that was not before.

    >>> places = np.array([2, 0])
    >>> pick_over(np.array([5, 6, 7]), places)
    >>> places.tolist()
    [7, 5]
    """
    for i in range(len(places)):
        places[i] = values[places[i]]


@kernel
def keep_first(rows, numbers, seen):  # type: ignore[no-untyped-def]
    """Move each pair of row and number to the front, once, in the order in which they stand; return how many there are.

    ``rows`` ascend from 0 on; ``seen`` int32, zeros, has a place for every number: the last row it was seen in, plus
    one.

    >>> rows, numbers = np.array([0, 0, 0, 2]), np.array([7, 1, 7, 7], np.int32)
    >>> count = keep_first(rows, numbers, np.zeros(8, np.int32))
    >>> rows[:count].tolist(), numbers[:count].tolist()
    ([0, 0, 2], [7, 1, 7])
    """
    kept = 0
    inner = max(len(rows) - AHEAD, 0)
    for i in range(len(rows)):
        if i < inner:
            prefetch(seen, np.int64(numbers[i + AHEAD]))
        row, number = rows[i], numbers[i]
        rows[kept], numbers[kept] = row, number
        kept += seen[number] != row + 1
        seen[number] = row + 1
    return kept


@kernel
def firsts(places, rows, numbers, room):  # type: ignore[no-untyped-def]
    """Return those of the ``places`` in pairs at which a number, below ``room``, occurs for the first time in its row;
    pairs of one row lie together.

    >>> firsts(np.array([0, 2, 3]), np.array([0, 0, 0, 1]), np.array([5, 6, 5, 5], np.int32), 7).tolist()
    [0, 3]
    """
    last = np.full(room, -1, np.int64)
    kept = np.empty(len(places), np.int64)
    count = 0
    for place in places:
        if last[numbers[place]] != rows[place]:
            last[numbers[place]] = rows[place]
            kept[count] = place
            count += 1
    return kept[:count]
