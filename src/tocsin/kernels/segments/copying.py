"""Writing the rows of a segment anew: those of another segment that are alive, and new ones between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.kernels.compile import kernel
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
from tocsin.kernels.vectors import AT_ONCE


class Rows(NamedTuple):
    """New rows: their box ``numbers``, where the predicates of each begin, which they are (numbered after those of
    the segment), how many of these their slots imply, and the word of every new predicate."""

    numbers: Any
    row_start: Any
    held: Any
    implied: Any
    words: Any


class Copied(NamedTuple):
    """Rows in their new order, as the sections of a segment; ``held`` is not yet renumbered."""

    numbers: Any
    first: Any
    row_start: Any
    held: Any
    marks: Any


@kernel
def order_rows(segment, died, version, nodes_and_end, slots, order):  # type: ignore[no-untyped-def]
    """Return what stands at each new position (an old one, or -1 less a new row), where slots begin, where the
    bitmaps begin, and the new position of each old one.

    ``nodes_and_end`` is the new table of nodes and the end of their slots; each node has the slots that it had and
    perhaps some more. ``slots`` are those of the new rows, the end for the bitmaps; ``order`` lists these by slot.
    """
    starts, positions = words_section(segment, STARTS), segment.header[POSITIONS]
    old_table, nodes = longs_section(segment, NODE_TABLE), segment.header[NODES]
    table, last = nodes_and_end
    source, moved = np.empty(positions + len(order), np.int32), np.full(positions, -1, np.int32)
    new_starts = np.empty(last + 1, np.int32)
    count, k = 0, 0
    for node in range(nodes):
        begin, end = table[node * NODE_FIELDS + N_START], last
        old, old_end = old_table[node * NODE_FIELDS + N_START], len(starts) - 1
        if node + 1 < nodes:
            end = table[(node + 1) * NODE_FIELDS + N_START]
            old_end = old_table[(node + 1) * NODE_FIELDS + N_START]
        for slot in range(begin, end):
            new_starts[slot] = count
            if old < old_end:
                for position in range(starts[old], starts[old + 1]):
                    if len(died) == 0 or died[position] > version:
                        source[count], moved[position] = position, count
                        count += 1
                old += 1
            while k < len(order) and slots[order[k]] == slot:
                source[count] = -1 - order[k]
                count, k = count + 1, k + 1
    new_starts[len(new_starts) - 1] = count
    tree = count
    for position in range(segment.header[TREE], positions):
        if len(died) == 0 or died[position] > version:
            source[count], moved[position] = position, count
            count += 1
    for row in order[k:]:
        source[count] = -1 - row
        count += 1
    return source[:count], new_starts, tree, moved


@kernel
def copy_rows(segment, rows, source):  # type: ignore[no-untyped-def]
    """Return the rows that `order_rows` listed."""
    row_start, held = words_section(segment, ROW_START), words_section(segment, PREDICATES)
    numbers, first = words_section(segment, NUMBERS), words_section(segment, FIRST)
    old_words = segment.header[WORDS + 1] - segment.header[WORDS]
    old = words_section(segment, WORDS)
    starts, total = np.empty(len(source) + 1, np.int32), np.int64(0)
    for i in range(len(source)):
        starts[i] = total
        here = source[i]
        if here >= 0:
            total += row_start[here + 1] - row_start[here]
        else:
            total += rows.row_start[-here] - rows.row_start[-1 - here]
    starts[len(source)] = total
    new = Copied(
        np.empty(len(source), np.int32),
        np.full(len(source) + AT_ONCE, 255, np.int32),
        starts,
        np.empty(total, np.int32),
        np.zeros(len(source), np.uint8),
    )
    for i in range(len(source)):
        here, place = source[i], starts[i]
        if here >= 0:
            new.numbers[i], new.first[i], new.marks[i] = numbers[here], first[here], segment.marks[here] & ~STRUCK
            for k in range(row_start[here], row_start[here + 1]):
                new.held[place] = held[k]
                place += 1
            continue
        row = -1 - here
        begin, end = rows.row_start[row], rows.row_start[row + 1]
        new.numbers[i], mark = rows.numbers[row], rows.implied[row]
        for k in range(begin, end):
            predicate = rows.held[k]
            word = old[predicate] if predicate < old_words else rows.words[predicate - old_words]
            if word < 0:
                mark |= DOUBT
            if k == begin and end - begin > rows.implied[row]:
                alone = word >= 0 and end - begin == rows.implied[row] + 1
                new.first[i] = word | DECIDES if alone else word
            new.held[place] = predicate
            place += 1
        if end - begin == rows.implied[row]:
            new.first[i] |= DECIDES
        new.marks[i] = mark
    return new


@kernel
def merge_numbers(segment, moved, numbers, places):  # type: ignore[no-untyped-def]
    """Return the new positions in order of box number: those of the segment that are left, and new ``numbers``, which
    are sorted and stand at ``places``."""
    held, by_number = words_section(segment, NUMBERS), words_section(segment, BY_NUMBER)
    merged = np.empty(len(by_number) + len(numbers), np.int32)
    count, k = 0, 0
    for position in by_number:
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
    return merged[:count]


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
