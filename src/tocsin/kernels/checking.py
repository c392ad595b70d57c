"""Deciding one box against one query, and collecting the pairs found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments import (
    A_AXIS,
    AXIS_FIELDS,
    FIRST,
    HIGHS,
    LOWS,
    NUMBERS,
    PREDICATES,
    ROW_START,
    SET_START,
    WORDS,
    Checks,
    longs_section,
    words_section,
)

NULL = np.iinfo(np.int64).min


class Asked(NamedTuple):
    """Queries and their state of the index: ``low`` and ``high`` int64[axes, rows], the version that is asked about.

    ``died`` int64[positions] has the version at which each box was removed; it is empty where none was.
    """

    low: Any
    high: Any
    died: Any
    version: Any


class Found(NamedTuple):
    """Pairs found so far: parallel arrays with room to grow."""

    rows: Any
    numbers: Any


@inlined
def checks_of(segment):  # type: ignore[no-untyped-def]
    """Return the sections that decide about boxes."""
    return Checks(
        words_section(segment, NUMBERS),
        words_section(segment, FIRST),
        words_section(segment, ROW_START),
        words_section(segment, PREDICATES),
        words_section(segment, WORDS),
        words_section(segment, SET_START),
        longs_section(segment, LOWS),
        longs_section(segment, HIGHS),
    )


@kernel
def with_room(found, count, more):  # type: ignore[no-untyped-def]
    """Return the pairs with room for so many more."""
    if count + more <= len(found.rows):
        return found
    size = max(2 * len(found.rows), count + more)
    rows, numbers = np.empty(size, np.int32), np.empty(size, np.int32)
    rows[:count] = found.rows[:count]
    numbers[:count] = found.numbers[:count]
    return Found(rows, numbers)


@inlined
def code_at(codes, axis, row):  # type: ignore[no-untyped-def]
    """Return a query's code; NULL on an axis that it does not have."""
    if axis < codes.shape[0]:
        return codes[axis, row]
    return NULL


@inlined
def may_hold(word, low, high):  # type: ignore[no-untyped-def]
    """Return whether the buckets of a query leave room for the predicate of this word."""
    lowest = (word >> 8) & 255
    return low <= lowest + (word & 255) and high >= lowest


@kernel
def predicate_holds(checks, predicate, low, high):  # type: ignore[no-untyped-def]
    """Return whether one of a predicate's intervals overlaps the codes from ``low`` to ``high``."""
    singles = len(checks.words) - (len(checks.set_start) - 1)
    if predicate < singles:
        return checks.lows[predicate] <= high and low <= checks.highs[predicate]
    begin, end = checks.set_start[predicate - singles], checks.set_start[predicate - singles + 1]
    for interval in range(begin, end):
        if checks.lows[interval] <= high and low <= checks.highs[interval]:
            return True
    return False


@kernel
def box_holds(checks, axis_table, begin, end, low_buckets, high_buckets, asked, row):  # type: ignore[no-untyped-def]
    """Return whether a query meets the predicates ``begin:end``: by its buckets first, by its codes where they leave doubt.

    A bucket strictly inside those of a single interval leaves none.
    """
    singles = len(checks.words) - (len(checks.set_start) - 1)
    for place in range(begin, end):
        predicate = checks.predicates[place]
        word = checks.words[predicate]
        local = (word >> 16) & 0x7FFF
        low, high = low_buckets[local], high_buckets[local]
        lowest = (word >> 8) & 255
        highest = lowest + (word & 255)
        if low > highest or high < lowest:
            return False
        if word < 0 and (predicate >= singles or low == highest or high == lowest):
            axis = axis_table[local * AXIS_FIELDS + A_AXIS]
            if not predicate_holds(checks, predicate, code_at(asked.low, axis, row), code_at(asked.high, axis, row)):
                return False
    return True


@inlined
def alive(asked, position):  # type: ignore[no-untyped-def]
    """Return whether the box at a position had not been removed."""
    return len(asked.died) == 0 or asked.died[position] > asked.version


@kernel
def sort_by_row(found, count, begin, end):  # type: ignore[no-untyped-def]
    """Return the first ``count`` pairs sorted by row, of which there are those from ``begin`` to ``end``."""
    starts = np.zeros(end - begin + 1, np.int64)
    for pair in range(count):
        starts[found.rows[pair] - begin + 1] += 1
    for row in range(end - begin):
        starts[row + 1] += starts[row]
    sorted_rows, sorted_numbers = np.empty(count, np.int32), np.empty(count, np.int32)
    for row in range(end - begin):
        sorted_rows[starts[row] : starts[row + 1]] = row + begin
    for pair in range(count):
        row = found.rows[pair] - begin
        sorted_numbers[starts[row]] = found.numbers[pair]
        starts[row] += 1
    return Found(sorted_rows, sorted_numbers)
