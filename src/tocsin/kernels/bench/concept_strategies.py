"""The loops of the older strategies for concepts: walk up the tree, expand events, expand subscriptions.

Subscriptions: ``concepts`` int32[subscriptions, trees], ``low`` and ``high`` int64[subscriptions, numerics]. Events:
``codes`` int64[trees + numerics, rows]. ``parent`` int32[concepts], -1 above the root.
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.pool import longer
from tocsin.kernels.segments.nodes import fill_hash, look_up


@kernel
def in_ranges(low, high, subscription, codes, row):  # type: ignore[no-untyped-def]
    """Return whether the numbers of an event, which are its last codes, are in all ranges of a subscription."""
    first = codes.shape[0] - low.shape[1]
    for numeric in range(low.shape[1]):
        code = codes[first + numeric, row]
        if code < low[subscription, numeric] or high[subscription, numeric] < code:
            return False
    return True


@kernel
def walk_up(concepts, low, high, parent, codes):  # type: ignore[no-untyped-def]
    """Match every event with every subscription: for each of its concepts, walk from the event's concept towards the
    root until it is met; leave the subscription at the first that is not. Return rows and subscriptions.
    """
    rows, found, count = np.empty(1024, np.int32), np.empty(1024, np.int32), 0
    for row in range(codes.shape[1]):
        if count + len(concepts) > len(rows):
            larger = 2 * (count + len(concepts))
            rows, found = longer(rows, larger), longer(found, larger)
        for subscription in range(len(concepts)):
            met = True
            for tree in range(concepts.shape[1]):
                here = np.int32(codes[tree, row])
                while here >= 0 and here != concepts[subscription, tree]:
                    here = parent[here]
                if here < 0:
                    met = False
                    break
            if met and in_ranges(low, high, subscription, codes, row):
                rows[count], found[count] = row, subscription
                count += 1
    return rows[:count].copy(), found[:count].copy()


@kernel
def copies_of(concepts, last, size):  # type: ignore[no-untyped-def]
    """Return a key for every combination of concepts at or below those of each subscription, and whose it is.

    ``last`` int64[concepts]: the last concept below each; ``size``: how many there are.
    """
    total = np.int64(0)
    for subscription in range(len(concepts)):
        product = np.int64(1)
        for concept in concepts[subscription]:
            product *= last[concept] - concept + 1
        total += product
    keys, owners, count = np.empty(total, np.int64), np.empty(total, np.int32), 0
    trees = concepts.shape[1]
    for subscription in range(len(concepts)):
        here = concepts[subscription].copy()
        turning = 0
        while turning >= 0:
            key = np.int64(0)
            for concept in here:
                key = key * size + concept
            keys[count], owners[count] = key, subscription
            count += 1
            turning = trees - 1
            while turning >= 0 and here[turning] == last[concepts[subscription, turning]]:
                here[turning] = concepts[subscription, turning]
                turning -= 1
            if turning >= 0:
                here[turning] += 1
    return keys, owners


@kernel
def hashed_keys(keys):  # type: ignore[no-untyped-def]
    """Return a hash table of distinct keys, by which each one's place is found."""
    size = 8
    while size < 2 * len(keys):
        size *= 2
    slots, places = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    fill_hash(keys, slots, places)
    return slots, places


@kernel
def append_met(table, ranges, key, codes, row, found):  # type: ignore[no-untyped-def]
    """Append the subscriptions under a key whose ranges an event is in. ``table``: slots, places, starts, owners;
    ``ranges``: low, high; ``found``: rows, subscriptions and their count, of which longer ones may be returned.
    """
    slots, places, starts, owners = table
    rows, subscriptions, count = found
    place = look_up(key, slots, places, 0, len(slots) - 1)
    if place >= 0:
        begin, end = starts[place], starts[place + 1]
        if count + end - begin > len(rows):
            larger = 2 * (count + end - begin)
            rows, subscriptions = longer(rows, larger), longer(subscriptions, larger)
        for at in range(begin, end):
            if in_ranges(ranges[0], ranges[1], owners[at], codes, row):
                rows[count], subscriptions[count] = row, owners[at]
                count += 1
    return rows, subscriptions, count


@kernel
def expand_events(table, ranges, parent, codes):  # type: ignore[no-untyped-def]
    """Match events with subscriptions filed by their own concepts: replace each event by all combinations of its
    concepts and what is above them, and look each up. Return rows and subscriptions.
    """
    trees, size = codes.shape[0] - ranges[0].shape[1], len(parent)
    found = np.empty(1024, np.int32), np.empty(1024, np.int32), 0
    here = np.empty(trees, np.int64)
    for row in range(codes.shape[1]):
        here[:] = codes[:trees, row]
        turning = 0
        while turning >= 0:
            key = np.int64(0)
            for concept in here:
                key = key * size + concept
            found = append_met(table, ranges, key, codes, row, found)
            turning = trees - 1
            while turning >= 0 and parent[here[turning]] < 0:
                here[turning] = codes[turning, row]
                turning -= 1
            if turning >= 0:
                here[turning] = parent[here[turning]]
    return found[0][: found[2]].copy(), found[1][: found[2]].copy()


@kernel
def look_up_events(table, ranges, parent, codes):  # type: ignore[no-untyped-def]
    """Match events with subscriptions filed under every combination below their concepts: one look-up each. Return rows
    and subscriptions.
    """
    trees, size = codes.shape[0] - ranges[0].shape[1], len(parent)
    found = np.empty(1024, np.int32), np.empty(1024, np.int32), 0
    for row in range(codes.shape[1]):
        key = np.int64(0)
        for tree in range(trees):
            key = key * size + codes[tree, row]
        found = append_met(table, ranges, key, codes, row, found)
    return found[0][: found[2]].copy(), found[1][: found[2]].copy()
