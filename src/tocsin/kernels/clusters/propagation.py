"""Kernels of propagation: from the satisfied points to the clusters they give access to, and through those clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.clusters.family import HEAD, KEY, MAX_KEY, TABLE, TABLES, Clustering, find_hashed
from tocsin.kernels.clusters.satisfied import RANGED, Scratch, mark_points, mark_ranges, mark_spanned, next_generation
from tocsin.kernels.compile import kernel
from tocsin.kernels.pool import CAPACITY, FILLED, FIRST, LINES, longer
from tocsin.kernels.prefetch import prefetch

UNFOLD = 16
"""Predicates (int32) in a cache line of 64 bytes."""

LOOKAHEAD = 128
"""How many boxes ahead lines are asked for: eight lines, enough for the latency of memory."""


@kernel
def _collect(records: Any, following: Any, number: Any, candidates: Any, count: Any) -> Any:
    """Append the clusters of a list to the candidates."""
    cluster = records[number, HEAD]
    while cluster >= 0:
        candidates[count] = cluster
        count += 1
        cluster = following[cluster]
    return count


@kernel
def _collect_marked(clustering: Clustering, table: Any, scratch: Scratch, count: Any) -> Any:
    """Append the clusters of every list of a table whose points are all marked: for events that span several codes."""
    records, following = clustering.records, clustering.following
    marks, candidates, generation = scratch.marks, scratch.candidates, scratch.generation[0]
    for number in range(len(records)):
        if records[number, TABLE] == table:
            held = True
            for place in range(clustering.schema[table, 0]):
                held = held and marks[records[number, KEY + place]] == generation
            if held:
                count = _collect(records, following, number, candidates, count)
    return count


@kernel
def _key_of(schema: Any, table: Any, equal_on: Any, key: Any) -> Any:
    """Write the points that an event satisfies on a table's axes to ``key``; return -1 if one is missing, ``RANGED`` if
    the event spans several codes on an axis, else 0.
    """
    state = 0 if schema[table, 0] > 0 else -1
    for place in range(MAX_KEY):
        key[place] = -1
        if place < schema[table, 0]:
            point = equal_on[schema[table, place + 1]]
            key[place] = point
            if point == RANGED:
                state = RANGED
            elif point < 0:
                return -1
    return state


@kernel
def collect_from_tables(clustering: Clustering, scratch: Scratch, key: Any, count: Any) -> Any:
    """Append the clusters that the tables give access to; return the new ``count``."""
    schema, slots, records, following = clustering.schema, clustering.slots, clustering.records, clustering.following
    equal_on, candidates = scratch.equal_on, scratch.candidates
    for table in range(1, clustering.tally[TABLES]):
        state = _key_of(schema, table, equal_on, key)
        if state == RANGED:
            count = _collect_marked(clustering, table, scratch, count)
        elif state == 0:
            number = find_hashed(slots, records, table, key)
            if number >= 0:
                count = _collect(records, following, number, candidates, count)
    return count


@kernel
def _rest_holds(pool: Any, at: Any, capacity: Any, rest: Any, marks: Any, generation: Any) -> Any:
    """Return whether the predicates below the one at ``at`` are all marked."""
    for _ in range(rest):
        at += capacity
        if marks[np.uint32(pool[at])] != generation:
            return False
    return True


@kernel
def match_cluster(pool: Any, shape: Any, cluster: Any, marks: Any, generation: Any, found: Any, count: Any) -> Any:
    """Append to ``found`` the boxes of a cluster whose remaining predicates are all marked; return the new ``count``.

    Indices are unsigned: signed ones are tested for being negative, which makes this loop four times slower.
    """
    first, capacity = np.uint64(shape[cluster, FIRST]), np.uint64(shape[cluster, CAPACITY])
    rest = shape[cluster, LINES] - 2
    to_numbers = np.uint64(rest + 1) * capacity
    end = first + np.uint64(shape[cluster, FILLED])
    if rest < 0:
        for at in range(first, end):
            found[count] = pool[at]
            count += 1
        return count
    for at in range(first, end):
        if marks[np.uint32(pool[at])] == generation and _rest_holds(pool, at, capacity, rest, marks, generation):
            found[count] = pool[at + to_numbers]
            count += 1
    return count


@kernel
def match_cluster_ahead(
    pool: Any, shape: Any, cluster: Any, marks: Any, generation: Any, found: Any, count: Any
) -> Any:
    """Do what `match_cluster` does, a cache line at a time, asking for the lines to come of the second column.

    The first is read in sequence, which the processor foresees by itself; of the second a line in three is needed;
    further ones are read so seldom that asking for them costs more than it saves.
    """
    rest = shape[cluster, LINES] - 2
    if rest < 1 or shape[cluster, FILLED] < 2 * UNFOLD:
        return match_cluster(pool, shape, cluster, marks, generation, found, count)
    first, capacity = np.uint64(shape[cluster, FIRST]), np.uint64(shape[cluster, CAPACITY])
    to_numbers = np.uint64(rest + 1) * capacity
    end = first + np.uint64(shape[cluster, FILLED])
    whole = end - np.uint64(shape[cluster, FILLED] % UNFOLD)
    for begin in range(first, whole, np.uint64(UNFOLD)):
        prefetch(pool, begin + capacity + np.uint64(LOOKAHEAD))
        for offset in range(np.uint64(UNFOLD)):
            at = begin + offset
            if marks[np.uint32(pool[at])] == generation and _rest_holds(pool, at, capacity, rest, marks, generation):
                found[count] = pool[at + to_numbers]
                count += 1
    for at in range(whole, end):
        if marks[np.uint32(pool[at])] == generation and _rest_holds(pool, at, capacity, rest, marks, generation):
            found[count] = pool[at + to_numbers]
            count += 1
    return count


@kernel
def propagate(clustering: Clustering, phase: Any, queries: Any, scratch: Scratch, points: Any, ahead: Any) -> Any:
    """Match every row of ``queries``; ``points`` says that all are points. Return rows and numbers.

    ``phase`` is (predicates, ordered ranges, ordered points), as the first phase needs them.
    """
    predicates, ranges, points_in_order = phase
    slots, content, axis_points = predicates.slots, predicates.content, predicates.axis_points
    marks, satisfied, equal_on, candidates = scratch.marks, scratch.satisfied, scratch.equal_on, scratch.candidates
    records, following, of_predicate = clustering.records, clustering.following, clustering.of_predicate
    pool, shape, codes = clustering.pool, clustering.blocks.shape, queries.low
    any_ranges = len(ranges.main.low) + len(ranges.middle.low) + ranges.fresh.filled[0] > 0
    rows, found, key = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(MAX_KEY, np.int32)
    count = 0
    for row in range(codes.shape[1]):
        begun = count
        generation = next_generation(marks, scratch.generation)
        if points:
            equal = mark_points(slots, content, axis_points, codes, row, generation, marks, satisfied, equal_on)
        else:
            equal = mark_spanned(predicates, points_in_order, queries, row, scratch)
        if any_ranges:
            mark_ranges(ranges, queries, row, scratch, equal)
        clusters = _collect(records, following, 0, candidates, 0)
        for index in range(equal):
            if of_predicate[satisfied[index]] >= 0:
                clusters = _collect(records, following, of_predicate[satisfied[index]], candidates, clusters)
        if clustering.tally[TABLES] > 1:
            clusters = collect_from_tables(clustering, scratch, key, clusters)
        for index in range(clusters):
            cluster = candidates[index]
            enough = count + shape[cluster, FILLED]
            if enough > len(found):
                rows, found = longer(rows, 2 * enough), longer(found, 2 * enough)
            if ahead:
                count = match_cluster_ahead(pool, shape, cluster, marks, generation, found, count)
            else:
                count = match_cluster(pool, shape, cluster, marks, generation, found, count)
        rows[begun:count] = row
    return rows[:count].copy(), found[:count].copy()
