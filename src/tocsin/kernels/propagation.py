"""Kernels of propagation: from the satisfied points to the clusters they give access to, and through those clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.clusters import MAX_KEY, TABLES, Clustering, find_hashed
from tocsin.kernels.compile import kernel
from tocsin.kernels.prefetch import prefetch
from tocsin.kernels.satisfied import RANGED, Scratch, satisfy

UNFOLD = 16
"""Predicates (int32) in a cache line of 64 bytes."""

LOOKAHEAD = 192
"""How many boxes ahead lines are asked for: about the latency of memory at one box a nanosecond, and twelve lines."""


@kernel
def _collect(clustering: Clustering, number: Any, candidates: Any, count: Any) -> Any:
    """Append the clusters of a list to the candidates."""
    cluster = clustering.lists.head[number]
    while cluster >= 0:
        candidates[count] = cluster
        count += 1
        cluster = clustering.following[cluster]
    return count


@kernel
def _collect_marked(clustering: Clustering, table: Any, scratch: Scratch, count: Any) -> Any:
    """Append the clusters of every list of a table whose points are all marked: for events that span several codes."""
    lists = clustering.lists
    generation = scratch.generation[0]
    for number in range(len(lists.table)):
        if lists.table[number] == table:
            held = True
            for place in range(clustering.tables.length[table]):
                if scratch.marks[lists.key[number, place]] != generation:
                    held = False
                    break
            if held:
                count = _collect(clustering, number, scratch.candidates, count)
    return count


@kernel
def candidate_clusters(clustering: Clustering, scratch: Scratch, equal: Any, key: Any) -> Any:
    """List in ``scratch.candidates`` the clusters whose access predicate holds; return how many.

    ``equal`` is the number of points at the beginning of ``scratch.satisfied``.
    """
    tables = clustering.tables
    count = _collect(clustering, 0, scratch.candidates, 0)
    for index in range(equal):
        number = clustering.of_predicate[scratch.satisfied[index]]
        if number >= 0:
            count = _collect(clustering, number, scratch.candidates, count)
    for table in range(1, clustering.tally[TABLES]):
        spans = False
        held = tables.length[table] > 0
        for place in range(tables.length[table]):
            point = scratch.equal_on[tables.schema[table, place]]
            key[place] = point
            if point == RANGED:
                spans = True
            elif point < 0:
                held = False
                break
        if held and spans:
            count = _collect_marked(clustering, table, scratch, count)
        elif held:
            for place in range(tables.length[table], MAX_KEY):
                key[place] = -1
            number = find_hashed(clustering.lists, table, key)
            if number >= 0:
                count = _collect(clustering, number, scratch.candidates, count)
    return count


@kernel
def _rest_holds(pool: Any, at: Any, capacity: Any, rest: Any, scratch: Scratch) -> Any:
    """Return whether the predicates below the one at ``at`` are all marked."""
    generation = scratch.generation[0]
    for _ in range(rest):
        at += capacity
        if scratch.marks[pool[at]] != generation:
            return False
    return True


@kernel
def match_cluster(clustering: Clustering, cluster: Any, scratch: Scratch, found: Any, count: Any) -> Any:
    """Append to ``found`` the boxes of a cluster whose remaining predicates are all marked; return the new
    ``count``.
    """
    blocks, pool, marks = clustering.blocks, clustering.pool, scratch.marks
    first, capacity = blocks.first[cluster], np.int64(blocks.capacity[cluster])
    rest = blocks.lines[cluster] - 2
    numbers = first + (rest + 1) * capacity
    generation = scratch.generation[0]
    for position in range(blocks.filled[cluster]):
        if rest < 0 or (
            marks[pool[first + position]] == generation and _rest_holds(pool, first + position, capacity, rest, scratch)
        ):
            found[count] = pool[numbers + position]
            count += 1
    return count


@kernel
def match_cluster_ahead(clustering: Clustering, cluster: Any, scratch: Scratch, found: Any, count: Any) -> Any:
    """Do what `match_cluster` does, a cache line at a time, asking for the lines to come of the first two columns.

    Further columns are not asked for: few boxes get that far.
    """
    blocks, pool, marks = clustering.blocks, clustering.pool, scratch.marks
    first, capacity = blocks.first[cluster], np.int64(blocks.capacity[cluster])
    rest = blocks.lines[cluster] - 2
    filled = blocks.filled[cluster]
    if rest < 0 or filled < UNFOLD:
        return match_cluster(clustering, cluster, scratch, found, count)
    numbers = first + (rest + 1) * capacity
    generation = scratch.generation[0]
    second = first + capacity
    for begin in range(0, filled, UNFOLD):
        prefetch(pool, first + begin + LOOKAHEAD)
        prefetch(pool, second + begin + LOOKAHEAD)
        for position in range(begin, min(begin + UNFOLD, filled)):
            if marks[pool[first + position]] == generation and _rest_holds(
                pool, first + position, capacity, rest, scratch
            ):
                found[count] = pool[numbers + position]
                count += 1
    return count


@kernel
def propagate(clustering: Clustering, phase: Any, queries: Any, scratch: Scratch, ahead: Any, buffer: Any) -> Any:
    """Match every row of ``queries``; ``phase`` is what `satisfy` needs. Return rows and numbers."""
    predicates, ranges, points = phase
    rows = np.empty(buffer, np.int32)
    found = np.empty(buffer, np.int32)
    key = np.empty(MAX_KEY, np.int32)
    count = 0
    for row in range(queries.low.shape[1]):
        begun = count
        equal = satisfy(predicates, ranges, points, queries, row, scratch)[0]
        for index in range(candidate_clusters(clustering, scratch, equal, key)):
            cluster = scratch.candidates[index]
            enough = count + clustering.blocks.filled[cluster]
            if enough > len(found):
                rows, found = _longer(rows, 2 * enough), _longer(found, 2 * enough)
            if ahead:
                count = match_cluster_ahead(clustering, cluster, scratch, found, count)
            else:
                count = match_cluster(clustering, cluster, scratch, found, count)
        rows[begun:count] = row
    return rows[:count].copy(), found[:count].copy()


@kernel
def _longer(array: Any, length: Any) -> Any:
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer
