"""From boxes as given to the arrays of a segment: distinct predicates, rows in order of their slots."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import inlined, kernel

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
