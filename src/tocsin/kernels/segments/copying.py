"""Writing the rows of a segment anew: those of another segment that are alive, and new ones between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.segments.checking import AHEAD
from tocsin.kernels.segments.layout import (
    BY_NUMBER,
    DECIDES,
    DOUBT,
    FIRST,
    HIGHS,
    LOWS,
    N_START,
    NODE_FIELDS,
    NODE_TABLE,
    NODES,
    NUMBERS,
    POSITIONS,
    PREDICATES,
    ROW_START,
    SET_START,
    SINGLES,
    STARTS,
    STRUCK,
    TREE,
    WORDS,
    longs_section,
    words_section,
)


class Rows(NamedTuple):
    """New rows: their box ``numbers``, where the predicates of each begin, which they are (numbered after those of
    the segment), how many of these their slots imply, and the word of every new predicate."""

    numbers: Any
    row_start: Any
    held: Any
    implied: Any
    words: Any


class Copied(NamedTuple):
    """Room for rows in their new order, as in the sections of a segment and its marks; 16 more in ``first``."""

    numbers: Any
    first: Any
    row_start: Any
    held: Any
    marks: Any


class Arranged(NamedTuple):
    """Where rows go: run ``r`` is the old positions ``begins[r]:ends[r]``, the first of which goes to ``places[r]``;
    ``new_places`` are those of the new rows in their order."""

    begins: Any
    ends: Any
    places: Any
    new_places: Any


@kernel
def order_rows(segment, gone, nodes_and_end, slots, new_starts):  # type: ignore[no-untyped-def]
    """Return where rows go and where the bitmaps begin then, and fill in where slots begin.

    ``gone`` are old positions that are left out, which rise. ``nodes_and_end`` is the new table of nodes and the end of
    their slots; each node has the slots that it had and perhaps some more. ``slots`` are those of the new rows, which
    rise too, the end for the bitmaps.
    """
    starts, positions = words_section(segment, STARTS), segment.header[POSITIONS]
    old_table, nodes = longs_section(segment, NODE_TABLE), segment.header[NODES]
    table, last = nodes_and_end
    room = len(gone) + len(slots) + 2
    begins, ends, places = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    new_places = np.empty(len(slots), np.int32)
    runs, since, passed, k = 0, np.int64(0), 0, 0
    for node in range(nodes + 1):  # the last time for the bitmaps, as if they were one slot
        begin, end, old, old_end = last, last + 1, np.int64(0), np.int64(0)
        if node < nodes:
            begin, end = table[node * NODE_FIELDS + N_START], last
            old, old_end = old_table[node * NODE_FIELDS + N_START], np.int64(len(starts) - 1)
        if node + 1 < nodes:
            end = table[(node + 1) * NODE_FIELDS + N_START]
            old_end = old_table[(node + 1) * NODE_FIELDS + N_START]
        for slot in range(begin, end):
            here = np.int64(starts[old]) if node < nodes else segment.header[TREE]
            new_starts[slot] = here - passed + k
            old += old < old_end
            until = np.int64(starts[old]) if node < nodes else positions
            while passed < len(gone) and gone[passed] < until:
                if since < gone[passed]:
                    begins[runs], ends[runs], places[runs] = since, gone[passed], since - passed + k
                    runs += 1
                since = np.int64(gone[passed]) + 1
                passed += 1
            if (k < len(slots) and slots[k] == slot) or node == nodes:
                if since < until:
                    begins[runs], ends[runs], places[runs] = since, until, since - passed + k
                    runs += 1
                since = until
                while k < len(slots) and slots[k] == slot:
                    new_places[k] = until - passed + k
                    k += 1
    return Arranged(begins[:runs], ends[:runs], places[:runs], new_places), np.int64(new_starts[last])


@inlined
def copy_some(source, begin, end, target, place):  # type: ignore[no-untyped-def]
    """Copy ``source[begin:end]`` to ``target`` from ``place`` on. Indices without sign leave a loop that vectors do."""
    first, there = np.uint64(begin), np.uint64(place)
    for k in range(np.uint64(end - begin)):
        target[there + np.uint64(k)] = source[first + np.uint64(k)]


@kernel
def copy_rows(segment, rows, arranged, order, new):  # type: ignore[no-untyped-def]
    """Write the rows that are kept, and the new ones, ``order`` of which says where they stand in ``rows``."""
    row_start, held = words_section(segment, ROW_START), words_section(segment, PREDICATES)
    numbers, first, marks = words_section(segment, NUMBERS), words_section(segment, FIRST), segment.marks
    begins, ends, places, new_places = arranged
    total, k, kept, last = np.int64(0), 0, np.uint8(255 - STRUCK), len(new.numbers)
    for run in range(len(begins) + 1):
        place = np.int64(places[run]) if run < len(begins) else np.int64(last)
        while k < len(order) and new_places[k] < place:
            new.row_start[new_places[k]] = total
            total = write_row(segment, rows, order[k], new_places[k], total, new)
            k += 1
        if run < len(begins):
            begin, end = np.int64(begins[run]), np.int64(ends[run])
            copy_some(numbers, begin, end, new.numbers, place)
            copy_some(first, begin, end, new.first, place)
            shift, from_here, to_there = np.int32(total - row_start[begin]), np.uint64(begin), np.uint64(place)
            for i in range(np.uint64(end - begin)):
                new.row_start[to_there + np.uint64(i)] = row_start[from_here + np.uint64(i)] + shift
                new.marks[to_there + np.uint64(i)] = marks[from_here + np.uint64(i)] & kept
            copy_some(held, row_start[begin], row_start[end], new.held, total)
            total += row_start[end] - row_start[begin]
    new.row_start[last] = total
    new.first[last:] = 255


@kernel
def write_row(segment, rows, row, place, total, new):  # type: ignore[no-untyped-def]
    """Write a new row to its place, and its predicates after ``total`` others; return how many there are then."""
    old = words_section(segment, WORDS)
    begin, end = rows.row_start[row], rows.row_start[row + 1]
    new.numbers[place], new.first[place], mark = rows.numbers[row], 255, rows.implied[row]
    for k in range(begin, end):
        predicate = rows.held[k]
        word = np.int64(old[predicate]) if predicate < len(old) else rows.words[predicate - len(old)]
        if word < 0:
            mark |= DOUBT
        if k == begin and end - begin > rows.implied[row]:
            alone = word >= 0 and end - begin == rows.implied[row] + 1
            new.first[place] = word | DECIDES if alone else word
        new.held[total] = predicate
        total += 1
    if end - begin == rows.implied[row]:
        new.first[place] |= DECIDES
    new.marks[place] = mark
    return total


@kernel
def moved_positions(segment, arranged):  # type: ignore[no-untyped-def]
    """Return the new position of each old one, -1 where it is left out."""
    begins, ends, places, _ = arranged
    moved = np.full(segment.header[POSITIONS], -1, np.int32)
    for run in range(len(begins)):
        for i in range(np.uint64(ends[run] - begins[run])):
            moved[np.uint64(begins[run]) + np.uint64(i)] = places[run] + np.int32(i)
    return moved


@kernel
def merge_numbers(segment, moved, numbers, places, merged):  # type: ignore[no-untyped-def]
    """Fill in the new positions in order of box number: those of the segment that are left, and new ``numbers``, which
    are sorted and stand at ``places``."""
    held, by_number = words_section(segment, NUMBERS), words_section(segment, BY_NUMBER)
    count, k, last = 0, 0, len(by_number) - 1
    for i in range(len(by_number)):
        position, ahead = by_number[i], np.int64(by_number[min(i + AHEAD, last)])
        prefetch(moved, ahead)
        prefetch(held, ahead)
        if moved[position] < 0:
            continue
        while k < len(numbers) and numbers[k] < held[position]:
            merged[count] = places[k]
            count, k = count + 1, k + 1
        merged[count] = moved[position]
        count += 1
    while k < len(numbers):
        merged[count] = places[k]
        count, k = count + 1, k + 1


@kernel
def predicate_lengths(segment, lengths):  # type: ignore[no-untyped-def]
    """Return how many intervals each predicate has: those of a segment, then new ones of these lengths."""
    singles, set_start = segment.header[SINGLES], words_section(segment, SET_START)
    known = segment.header[WORDS + 1] - segment.header[WORDS]
    both = np.ones(known + len(lengths), np.int64)
    for predicate in range(singles, known):
        both[predicate] = set_start[predicate - singles + 1] - set_start[predicate - singles]
    both[known:] = lengths
    return both


@kernel
def copy_predicates(segment, new_words, intervals, lengths, old):  # type: ignore[no-untyped-def]
    """Return words, bounds and starts of sets of the predicates ``old`` (as numbered by `predicate_lengths`).

    ``intervals`` is (first entry, low, high) of the new ones.
    """
    words, set_start = words_section(segment, WORDS), words_section(segment, SET_START)
    lows, highs, singles = longs_section(segment, LOWS), longs_section(segment, HIGHS), segment.header[SINGLES]
    (first, new_low, new_high), known = intervals, len(words)
    total, sets = np.int64(0), 0
    for predicate in old:
        total += lengths[predicate]
        sets += lengths[predicate] > 1
    copied, set_starts = np.empty(len(old), np.int32), np.empty(sets + 1, np.int32)
    low, high = np.empty(total, np.int64), np.empty(total, np.int64)
    n, alone = 0, len(old) - sets
    for i in range(len(old)):
        predicate = np.int64(old[i])
        if i >= alone:
            set_starts[i - alone] = n
        if predicate >= known:
            copied[i], begin = new_words[predicate - known], np.int64(first[predicate - known])
            for k in range(lengths[predicate]):
                low[n], high[n] = new_low[begin + k], new_high[begin + k]
                n += 1
            continue
        copied[i] = words[predicate]
        begin = predicate if predicate < singles else np.int64(set_start[predicate - singles])
        for k in range(lengths[predicate]):
            low[n], high[n] = lows[begin + k], highs[begin + k]
            n += 1
    set_starts[sets] = n
    return copied, low, high, set_starts, alone


@kernel
def arrange_new(row_start, held, implied, words, keep):  # type: ignore[no-untyped-def]
    """Return the rows that are kept: where the predicates of each begin, which they are, how many are implied.

    Those implied come last, the others by the width of their words.
    """
    starts, total, count = np.zeros(keep.sum() + 1, np.int64), np.int64(0), 0
    arranged, marks = np.empty(len(held), np.int64), np.zeros(len(starts) - 1, np.uint8)
    for row in range(len(keep)):
        if not keep[row]:
            continue
        begin, free, last = total, total, total + row_start[row + 1] - row_start[row]
        total = last
        for place in range(row_start[row], row_start[row + 1]):
            predicate = held[place]
            if implied[place]:
                last -= 1
                arranged[last] = predicate
                marks[count] += 1
                continue
            spot = free
            while spot > begin and words[arranged[spot - 1]] & 255 > words[predicate] & 255:
                arranged[spot] = arranged[spot - 1]
                spot -= 1
            arranged[spot] = predicate
            free += 1
        count += 1
        starts[count] = total
    return starts, arranged[:total], marks
