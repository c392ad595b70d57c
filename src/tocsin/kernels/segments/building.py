"""From boxes as given to the arrays of a segment: distinct predicates, rows in order of their slots."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.segments.layout import (
    DECIDES,
    FILED,
    IMPLIED,
    LEADS,
    N_CELLS,
    N_HASH,
    N_MASK,
    N_PAGES,
    N_PARENT,
    N_START,
    N_STRIDE,
    NODE_FIELDS,
)
from tocsin.kernels.vectors import AT_ONCE

UNSHARED = 4
"""Up to so many rows, each has its own copy of a predicate."""

MIXER = np.uint64(0x9E3779B97F4A7C15)


@inlined
def mixed(seed, value):  # type: ignore[no-untyped-def]
    """Return a 64-bit hash of a value and what came before it."""
    word = (seed ^ np.uint64(value)) * MIXER
    return word ^ (word >> np.uint64(29))


@inlined
def longer(values, count):  # type: ignore[no-untyped-def]
    """Return the values with room for one more at ``count``."""
    if count < len(values):
        return values
    room = np.empty(2 * len(values), values.dtype)
    room[:count] = values
    return room


@inlined
def same_run(low, high, one, other, length):  # type: ignore[no-untyped-def]
    """Return whether two runs of entries have the same intervals."""
    same = True
    for k in range(length):
        same &= low[one + k] == low[other + k] and high[one + k] == high[other + k]
    return same


@kernel
def rehash(hashes, count, size):  # type: ignore[no-untyped-def]
    """Return a hash table of ``size`` slots with predicates 0 to ``count - 1``."""
    table = np.full(size, -1, np.int32)
    for predicate in range(count):
        slot = np.int64(hashes[predicate] >> np.uint64(20)) & (size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = predicate
    return table


@kernel
def number_predicates(offsets, axis, low, high):  # type: ignore[no-untyped-def]
    """Number the distinct predicates of boxes; a predicate is a run of entries of one box on one axis.

    Returns where each box's predicates begin, which they are, and of each distinct one its first entry and length.
    """
    boxes = len(offsets) - 1
    row_start, predicates = np.zeros(boxes + 1, np.int64), np.empty(len(axis), np.int32)
    table = np.full(1024, -1, np.int32)
    hashes, first, length = np.empty(256, np.uint64), np.empty(256, np.int64), np.empty(256, np.int32)
    runs, count = 0, 0
    for box in range(boxes):
        entry = offsets[box]
        while entry < offsets[box + 1]:
            begin = entry
            code = mixed(np.uint64(1), axis[begin])
            while entry < offsets[box + 1] and axis[entry] == axis[begin]:
                code = mixed(mixed(code, low[entry]), high[entry])
                entry += 1
            slot = np.int64(code >> np.uint64(20)) & (len(table) - 1)
            while table[slot] >= 0:
                there = table[slot]
                alike = hashes[there] == code and length[there] == entry - begin and axis[first[there]] == axis[begin]
                if alike and same_run(low, high, first[there], begin, entry - begin):
                    break
                slot = (slot + 1) & (len(table) - 1)
            if table[slot] < 0:
                hashes, first, length = longer(hashes, count), longer(first, count), longer(length, count)
                hashes[count], first[count], length[count] = code, begin, entry - begin
                table[slot] = count
                count += 1
                predicates[runs] = count - 1
                if 2 * count > len(table):
                    table = rehash(hashes, count, 4 * len(table))
            else:
                predicates[runs] = table[slot]
            runs += 1
        row_start[box + 1] = runs
    return row_start, predicates[:runs].copy(), first[:count].copy(), length[:count].copy()


@kernel
def place_rows(slots, starts):  # type: ignore[no-untyped-def]
    """Return the rows in the order of their slots; ``starts`` becomes where each slot begins, and the end."""
    for slot in slots:
        starts[slot + 1] += 1
    for slot in range(len(starts) - 1):
        starts[slot + 1] += starts[slot]
    following = starts.copy()
    order = np.empty(len(slots), np.int64)
    for row in range(len(slots)):
        order[following[slots[row]]] = row
        following[slots[row]] += 1
    return order


@kernel
def arrange_rows(boxes, nodes, implied, row_start, predicates, axis_of, chance):  # type: ignore[no-untyped-def]
    """Return where the predicates of each row begin, which they are, and how many are implied by its node.

    Row ``i`` is box ``boxes[i]`` at node ``nodes[i]`` (-1: at none). ``implied`` bool[nodes, axes]. Those implied come
    last, the others by increasing chance.
    """
    starts, marks = np.zeros(len(boxes) + 1, np.int32), np.zeros(len(boxes), np.uint8)
    for row in range(len(boxes)):
        starts[row + 1] = starts[row] + row_start[boxes[row] + 1] - row_start[boxes[row]]
    arranged = np.empty(starts[-1], np.int32)
    for row in range(len(boxes)):
        begin, end, node = starts[row], starts[row + 1], nodes[row]
        free, last = begin, end
        for place in range(row_start[boxes[row]], row_start[boxes[row] + 1]):
            predicate = predicates[place]
            if node >= 0 and implied[node, axis_of[predicate]]:
                last -= 1
                arranged[last] = predicate
                marks[row] += 1
                continue
            spot = free
            while spot > begin and chance[arranged[spot - 1]] > chance[predicate]:
                arranged[spot] = arranged[spot - 1]
                spot -= 1
            arranged[spot] = predicate
            free += 1
    return starts, arranged, marks


@kernel
def renumber(arranged, length):  # type: ignore[no-untyped-def]
    """Renumber predicates in the order in which rows mention them, single intervals before sets; return the old
    numbers.

    A predicate of few rows gets a number for each of them: what a row needs then lies side by side.
    """
    uses = np.zeros(len(length), np.int64)
    for predicate in arranged:
        uses[predicate] += 1
    single, several = np.int64(0), np.int64(0)
    for predicate in range(len(length)):
        copies = uses[predicate] if uses[predicate] <= UNSHARED else 1
        if length[predicate] == 1:
            single += copies
        else:
            several += copies
    new = np.full(len(length), -1, np.int32)
    old = np.empty(single + several, np.int32)
    single, several = np.int64(0), single
    for place in range(len(arranged)):
        predicate = arranged[place]
        if new[predicate] < 0 or uses[predicate] <= UNSHARED:
            if length[predicate] == 1:
                new[predicate] = single
                single += 1
            else:
                new[predicate] = several
                several += 1
            old[new[predicate]] = predicate
        arranged[place] = new[predicate]
    return old


@kernel
def second_words(row_start, predicates, marks, words):  # type: ignore[no-untyped-def]
    """Return the word to check second at each position; one that always holds where there is none, and 16 more."""
    second = np.full(len(marks) + AT_ONCE, 255 | DECIDES, np.int32)
    for position in range(len(marks)):
        checks = row_start[position + 1] - row_start[position] - (marks[position] & IMPLIED)
        if checks > 1:
            word = words[predicates[row_start[position] + 1]]
            second[position] = word | DECIDES if checks == 2 else word
    return second


@kernel
def mark_pages(table, starts, hash_keys, hash_pages):  # type: ignore[no-untyped-def]
    """Return the marks of the pages of all nodes, and write to the table of nodes where those of each begin."""
    nodes, total = len(table) // NODE_FIELDS, np.int64(0)
    ends = np.empty(nodes, np.int64)
    for node in range(nodes):
        record = node * NODE_FIELDS
        end = table[record + NODE_FIELDS + N_START] if node + 1 < nodes else len(starts) - 1
        table[record + N_PAGES] = total
        total += (end - table[record + N_START]) // table[record + N_STRIDE]
        ends[node] = total
    marks = np.zeros(total, np.uint8)
    for node in range(nodes - 1, -1, -1):
        record = node * NODE_FIELDS
        first, slot, stride = table[record + N_PAGES], table[record + N_START], table[record + N_STRIDE]
        for page in range(first, ends[node]):
            if starts[slot] != starts[slot + stride]:
                marks[page] |= FILED | LEADS
            slot += stride
        if node == 0:
            continue
        above, cells = table[table[record + N_PARENT] * NODE_FIELDS + N_PAGES], table[record + N_CELLS]
        if table[record + N_HASH] < 0:
            for page in range(first, ends[node]):
                marks[above + (page - first) // cells] |= marks[page] & LEADS
        else:
            for place in range(table[record + N_HASH], table[record + N_HASH] + table[record + N_MASK] + 1):
                if hash_keys[place] >= 0:
                    marks[above + hash_keys[place] // cells] |= marks[first + hash_pages[place]] & LEADS
    packed = np.zeros(total // 16 + 1, np.uint32)
    for page in range(total):
        packed[page >> 4] |= np.uint32(marks[page]) << np.uint32((page & 15) << 1)
    return packed.view(np.int32)
