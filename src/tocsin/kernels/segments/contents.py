"""Finding boxes in a segment by their numbers, and taking them out again as they were given."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.layout import longs_section, words_section


@kernel
def locate(segment, numbers, died, version):  # type: ignore[no-untyped-def]
    """Return where in ``by_number`` the positions of each number begin; -1 where it is absent or was removed.

    The search begins where the number would be if all were equally far apart, as they nearly are where none is missing.
    """
    held, by_number = words_section(segment, at.NUMBERS), words_section(segment, at.BY_NUMBER)
    places = np.full(len(numbers), -1, np.int64)
    last = np.int64(len(by_number) - 1)
    highest = np.int64(held[by_number[last]]) if last >= 0 else np.int64(-1)
    for i in range(len(numbers) if last >= 0 else 0):
        if numbers[i] > highest:
            continue
        high = np.int64(numbers[i]) * last // max(highest, np.int64(1))
        low, step = high, np.int64(1)
        while held[by_number[high]] < numbers[i]:
            low = high + 1
            high, step = min(high + step, last), step * 2
        while low > 0 and held[by_number[low - 1]] >= numbers[i]:
            high = low - 1
            low, step = max(low - step, np.int64(0)), step * 2
        while low < high:
            middle = (low + high) >> 1
            if held[by_number[middle]] < numbers[i]:
                low = middle + 1
            else:
                high = middle
        here = low < len(by_number) and held[by_number[low]] == numbers[i]
        if here and (len(died) == 0 or died[by_number[low]] > version):
            places[i] = low
    return places


@kernel
def strike(segment, places, marks, died, version):  # type: ignore[no-untyped-def]
    """Note that boxes, given by their places in ``by_number``, are gone from this version on, at all their positions:
    in their stamps, and then in their marks, which are those of the segment where they may be written."""
    held, by_number = words_section(segment, at.NUMBERS), words_section(segment, at.BY_NUMBER)
    for first in places:
        place = first
        while place < len(by_number) and held[by_number[place]] == held[by_number[first]]:
            died[by_number[place]] = version
            marks[by_number[place]] |= at.STRUCK
            place += 1


@kernel
def unpack_boxes(segment, positions):  # type: ignore[no-untyped-def]
    """Return the boxes at these positions: offsets, axis, low, high, with entries in order of their axes."""
    row_start, predicates = words_section(segment, at.ROW_START), words_section(segment, at.PREDICATES)
    words, set_start = words_section(segment, at.WORDS), words_section(segment, at.SET_START)
    lows, highs = longs_section(segment, at.LOWS), longs_section(segment, at.HIGHS)
    table, singles = longs_section(segment, at.AXIS_TABLE), segment.header[at.SINGLES]
    offsets = np.zeros(len(positions) + 1, np.int64)
    for i in range(len(positions)):
        offsets[i + 1] = offsets[i]
        for place in range(row_start[positions[i]], row_start[positions[i] + 1]):
            number = predicates[place] - singles
            offsets[i + 1] += 1 if number < 0 else set_start[number + 1] - set_start[number]
    axis, low = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
    high = np.empty(offsets[-1], np.int64)
    for i in range(len(positions)):
        begin, end = row_start[positions[i]], row_start[positions[i] + 1]
        row = predicates[begin:end].copy()
        for k in range(1, len(row)):
            spot, moved = k, row[k]
            while spot > 0 and words[row[spot - 1]] & 0x3FFF0000 > words[moved] & 0x3FFF0000:
                row[spot] = row[spot - 1]
                spot -= 1
            row[spot] = moved
        n = offsets[i]
        for predicate in row:
            first, last = np.int64(predicate), np.int64(predicate) + 1
            if predicate >= singles:
                first, last = np.int64(set_start[predicate - singles]), np.int64(set_start[predicate - singles + 1])
            for interval in range(first, last):
                axis[n] = table[((words[predicate] >> 16) & 0x3FFF) * at.AXIS_FIELDS + at.A_AXIS]
                low[n], high[n] = lows[interval], highs[interval]
                n += 1
    return offsets, axis, low, high
