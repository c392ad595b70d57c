"""Kernels of clusters: boxes grouped by an access predicate and by how many predicates remain, stored by columns.

An access predicate is a conjunction of points. A *list* belongs to one access predicate and chains its *clusters*,
one for each number of remaining predicates. Lists of a single point are found from that point directly; lists of
several points belong to a *table*, whose schema names the axes, and are found by hashing. List 0 has no access
predicate: it holds the boxes without any equality.

A cluster is a block of the pool: line ``i`` has the ``i``-th remaining predicate of each box, points first, and the
last line has the boxes' numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.interned import Predicates, entries_of, is_point, mix, probability, release, write_box
from tocsin.kernels.numbers import ABSENT, Places, place_of
from tocsin.kernels.pool import Blocks

MAX_KEY = 4
"""The most points an access predicate may have."""

LISTS_USED, LISTS_FREE, CLUSTERS_USED, CLUSTERS_FREE, HASHED, TABLES, WIDEST = range(7)
"""Places in ``Clustering.tally``: lists and clusters ever handed out, heights of their free stacks, lists in the hash
table, tables ever made (the first is no table), and the most predicates that a box has had."""


class Lists(NamedTuple):
    """Lists by number. ``table``: int32, 0 for none, -1 if not in use; ``head``: int32, its first cluster or -1;
    ``population``: int32, its boxes; ``key``: int32[lists, 4], its points in the order of the table's axes, -1 beyond;
    ``slots``: int32[power of two], a list or -1; ``free``: int32; ``settled``: float32, the benefit margin below which
    nothing better was found for its boxes.
    """

    table: npt.NDArray[np.int32]
    head: npt.NDArray[np.int32]
    population: npt.NDArray[np.int32]
    key: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    settled: npt.NDArray[np.float32]


class Tables(NamedTuple):
    """Tables by number, from 1. ``schema``: int32[tables, 4], its axes ascending; ``length``: int32, how many, 0 if
    not in use; ``population``: int64, its boxes.
    """

    schema: npt.NDArray[np.int32]
    length: npt.NDArray[np.int32]
    population: npt.NDArray[np.int64]


class Clustering(NamedTuple):
    """All boxes. ``owner`` and ``following``: int32[clusters], the list a cluster is in and the next one there;
    ``free``: int32; ``of_predicate``: int32[predicates], the list of a single point or -1; ``on_axis``: int32[axes],
    working space, -1 between calls; ``tally``: int64[7].
    """

    lists: Lists
    tables: Tables
    blocks: Blocks
    pool: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    of_predicate: npt.NDArray[np.int32]
    on_axis: npt.NDArray[np.int32]
    places: Places
    tally: npt.NDArray[np.int64]


@kernel
def key_hash(table: Any, key: Any) -> Any:
    """Return a hash of the points of an access predicate."""
    return mix(mix(table, key[0], key[1]), key[2], key[3])


@kernel
def find_hashed(lists: Lists, table: Any, key: Any) -> Any:
    """Return the list of a table with these points, or -1."""
    mask = len(lists.slots) - 1
    at = key_hash(table, key) & mask
    while True:
        found = lists.slots[at]
        if found < 0:
            return found
        held = lists.key[found]
        if lists.table[found] == table and (
            held[0] == key[0] and held[1] == key[1] and held[2] == key[2] and held[3] == key[3]
        ):
            return found
        at = (at + 1) & mask


@kernel
def _enter(lists: Lists, number: Any) -> None:
    mask = len(lists.slots) - 1
    at = key_hash(lists.table[number], lists.key[number]) & mask
    while lists.slots[at] >= 0:
        at = (at + 1) & mask
    lists.slots[at] = number


@kernel
def rehash_lists(lists: Lists, used: Any) -> None:
    """Fill an empty hash table with every list that belongs to a table."""
    for number in range(used):
        if lists.table[number] > 0:
            _enter(lists, number)


@kernel
def _leave(lists: Lists, number: Any) -> None:
    """Take a list out of the hash table, closing the gap."""
    slots = lists.slots
    mask = len(slots) - 1
    gap = key_hash(lists.table[number], lists.key[number]) & mask
    while slots[gap] != number:
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] < 0:
            break
        home = key_hash(lists.table[slots[at]], lists.key[slots[at]]) & mask
        if (at - home) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = -1


@kernel
def best_access(clustering: Clustering, predicates: Predicates, owned: Any, key: Any) -> Any:
    """Write to ``key`` the points of the least likely access predicate there is for a box, among single points and
    tables; return its table and its probability, which is 2 if the box has no point.
    """
    tables, on_axis = clustering.tables, clustering.on_axis
    table, best = 0, 2.0
    key[:] = -1
    for number in owned:
        if is_point(predicates, number):
            on_axis[predicates.axis[number]] = number
            likely = probability(predicates, number)
            if likely < best:
                best = likely
                key[0] = number
    for candidate in range(1, clustering.tally[TABLES]):
        likely = 1.0 if tables.length[candidate] > 0 else 2.0
        for place in range(tables.length[candidate]):
            number = on_axis[tables.schema[candidate, place]]
            if number < 0:
                likely = 2.0
                break
            likely *= probability(predicates, number)
        if likely < best:
            best = likely
            table = candidate
    if table > 0:
        for place in range(tables.length[table]):
            key[place] = on_axis[tables.schema[table, place]]
    for number in owned:
        if is_point(predicates, number):
            on_axis[predicates.axis[number]] = -1
    return table, best


@kernel
def _list_for(clustering: Clustering, table: Any, key: Any) -> Any:
    """Return the list of an access predicate, a new one if there is none."""
    lists, tally = clustering.lists, clustering.tally
    if key[0] < 0:
        return np.int64(0)
    number = np.int64(find_hashed(lists, table, key) if table > 0 else clustering.of_predicate[key[0]])
    if number >= 0:
        return number
    if tally[LISTS_FREE] > 0:
        tally[LISTS_FREE] -= 1
        number = np.int64(lists.free[tally[LISTS_FREE]])
    else:
        number = tally[LISTS_USED]
        tally[LISTS_USED] += 1
    lists.table[number] = table
    lists.head[number] = -1
    lists.population[number] = 0
    lists.settled[number] = 0
    lists.key[number] = key
    if table > 0:
        _enter(lists, number)
        tally[HASHED] += 1
    else:
        clustering.of_predicate[key[0]] = number
    return number


@kernel
def _cluster_for(clustering: Clustering, number: Any, remaining: Any) -> Any:
    """Return the cluster of a list for boxes with so many remaining predicates, a new one if there is none."""
    blocks, tally = clustering.blocks, clustering.tally
    cluster = np.int64(clustering.lists.head[number])
    while cluster >= 0:
        if blocks.lines[cluster] == remaining + 1:
            return cluster
        cluster = np.int64(clustering.following[cluster])
    if tally[CLUSTERS_FREE] > 0:
        tally[CLUSTERS_FREE] -= 1
        cluster = np.int64(clustering.free[tally[CLUSTERS_FREE]])
    else:
        cluster = tally[CLUSTERS_USED]
        tally[CLUSTERS_USED] += 1
    blocks.lines[cluster] = remaining + 1
    blocks.filled[cluster] = 0
    blocks.capacity[cluster] = 0
    blocks.adding[cluster] = 0
    clustering.owner[cluster] = number
    clustering.following[cluster] = clustering.lists.head[number]
    clustering.lists.head[number] = cluster
    return cluster


@kernel
def _points_in(key: Any) -> Any:
    count = 0
    while count < MAX_KEY and key[count] >= 0:
        count += 1
    return count


@kernel
def has_room(clustering: Clustering) -> Any:
    """Return whether one more list and one more cluster can be made without growing arrays."""
    lists, tally = clustering.lists, clustering.tally
    return (
        tally[LISTS_USED] < len(lists.table)
        and tally[CLUSTERS_USED] < len(clustering.owner)
        and (tally[HASHED] + 1) * 2 <= len(lists.slots)
    )


@kernel
def target_for(clustering: Clustering, table: Any, key: Any, predicates_owned: Any) -> Any:
    """Return the cluster for a box under an access predicate, and announce the box there."""
    number = _list_for(clustering, table, key)
    cluster = _cluster_for(clustering, number, predicates_owned - _points_in(key))
    clustering.blocks.adding[cluster] += 1
    return cluster


@kernel
def assign(clustering: Clustering, predicates: Predicates, owned: Any, offsets: Any, start: Any, targets: Any) -> Any:
    """Choose a cluster for each new box from ``start`` on while there is room; return the first box not done."""
    key = np.empty(MAX_KEY, np.int32)
    for box in range(start, len(offsets) - 1):
        if not has_room(clustering):
            return box
        mine = owned[offsets[box] : offsets[box + 1]]
        table, _ = best_access(clustering, predicates, mine, key)
        targets[box] = target_for(clustering, table, key, len(mine))
        clustering.tally[WIDEST] = max(clustering.tally[WIDEST], len(mine))
    return len(offsets) - 1


@kernel
def _append(clustering: Clustering, predicates: Predicates, cluster: Any, owned: Any, number: Any) -> None:
    """Put a box at the end of a cluster that has room; its points come first."""
    blocks, pool, lists = clustering.blocks, clustering.pool, clustering.lists
    holder = clustering.owner[cluster]
    key = lists.key[holder]
    position = blocks.filled[cluster]
    at = blocks.first[cluster] + position
    capacity = np.int64(blocks.capacity[cluster])
    for points in (True, False):
        for predicate in owned:
            if (
                predicate != key[0]
                and predicate != key[1]
                and predicate != key[2]
                and predicate != key[3]
                and is_point(predicates, predicate) == points
            ):
                pool[at] = predicate
                at += capacity
    pool[at] = number
    blocks.filled[cluster] += 1
    lists.population[holder] += 1
    clustering.tables.population[lists.table[holder]] += 1
    place = place_of(clustering.places, number)
    clustering.places.where[place] = cluster
    clustering.places.position[place] = position


@kernel
def append_all(
    clustering: Clustering, predicates: Predicates, numbers: Any, owned: Any, offsets: Any, targets: Any
) -> None:
    """Put new boxes into their clusters."""
    for box in range(len(numbers)):
        mine = owned[offsets[box] : offsets[box + 1]]
        _append(clustering, predicates, targets[box], mine, numbers[box])


@kernel
def owned_by(clustering: Clustering, cluster: Any, position: Any, owned: Any) -> Any:
    """Write the predicates of a box to ``owned``, those of its access first; return how many."""
    blocks = clustering.blocks
    key = clustering.lists.key[clustering.owner[cluster]]
    count = 0
    while count < MAX_KEY and key[count] >= 0:
        owned[count] = key[count]
        count += 1
    at = blocks.first[cluster] + position
    for _ in range(blocks.lines[cluster] - 1):
        owned[count] = clustering.pool[at]
        at += blocks.capacity[cluster]
        count += 1
    return count


@kernel
def _take_out(clustering: Clustering, cluster: Any, position: Any) -> None:
    """Remove a box from a cluster by putting the last one in its place. The cluster may be left empty."""
    blocks, pool, lists = clustering.blocks, clustering.pool, clustering.lists
    holder = clustering.owner[cluster]
    last = blocks.filled[cluster] - 1
    first, capacity = blocks.first[cluster], np.int64(blocks.capacity[cluster])
    for line in range(blocks.lines[cluster]):
        pool[first + line * capacity + position] = pool[first + line * capacity + last]
    moved = pool[first + (blocks.lines[cluster] - 1) * capacity + position]
    clustering.places.position[place_of(clustering.places, moved)] = position
    blocks.filled[cluster] = last
    lists.population[holder] -= 1
    clustering.tables.population[lists.table[holder]] -= 1


@kernel
def drop_if_empty(clustering: Clustering, cluster: Any) -> None:
    """Free a cluster without boxes, and its list if that was its last cluster."""
    blocks, lists, tally = clustering.blocks, clustering.lists, clustering.tally
    if blocks.filled[cluster] > 0 or blocks.lines[cluster] == 0:
        return
    holder = clustering.owner[cluster]
    if lists.head[holder] == cluster:
        lists.head[holder] = clustering.following[cluster]
    else:
        before = lists.head[holder]
        while clustering.following[before] != cluster:
            before = clustering.following[before]
        clustering.following[before] = clustering.following[cluster]
    blocks.lines[cluster] = 0
    blocks.capacity[cluster] = 0
    clustering.free[tally[CLUSTERS_FREE]] = cluster
    tally[CLUSTERS_FREE] += 1
    if lists.head[holder] >= 0 or holder == 0:
        return
    if lists.table[holder] > 0:
        _leave(lists, holder)
        tally[HASHED] -= 1
    else:
        clustering.of_predicate[lists.key[holder, 0]] = -1
    lists.table[holder] = -1
    lists.free[tally[LISTS_FREE]] = holder
    tally[LISTS_FREE] += 1


@kernel
def remove_all(clustering: Clustering, predicates: Predicates, numbers: Any) -> None:
    """Forget boxes, and the predicates that only they had."""
    owned = np.empty(clustering.tally[WIDEST] + MAX_KEY, np.int32)
    for number in numbers:
        place = place_of(clustering.places, number)
        cluster, position = clustering.places.where[place], clustering.places.position[place]
        count = owned_by(clustering, cluster, position, owned)
        _take_out(clustering, cluster, position)
        clustering.places.where[place] = ABSENT
        drop_if_empty(clustering, cluster)
        for index in range(count):
            release(predicates, owned[index])


@kernel
def move_all(clustering: Clustering, predicates: Predicates, numbers: Any, targets: Any) -> None:
    """Move boxes to other clusters, where they have been announced and room has been made."""
    owned = np.empty(clustering.tally[WIDEST] + MAX_KEY, np.int32)
    sources = np.empty(len(numbers), np.int32)
    for index in range(len(numbers)):
        place = place_of(clustering.places, numbers[index])
        cluster, position = clustering.places.where[place], clustering.places.position[place]
        count = owned_by(clustering, cluster, position, owned)
        _take_out(clustering, cluster, position)
        _append(clustering, predicates, targets[index], owned[:count], numbers[index])
        sources[index] = cluster
    for cluster in sources:
        drop_if_empty(clustering, cluster)


@kernel
def count_entries(clustering: Clustering, predicates: Predicates, numbers: Any) -> Any:
    """Return the offsets of the entries of these boxes."""
    owned = np.empty(clustering.tally[WIDEST] + MAX_KEY, np.int32)
    offsets = np.zeros(len(numbers) + 1, np.int64)
    for box in range(len(numbers)):
        place = place_of(clustering.places, numbers[box])
        count = owned_by(clustering, clustering.places.where[place], clustering.places.position[place], owned)
        offsets[box + 1] = offsets[box]
        for index in range(count):
            offsets[box + 1] += entries_of(predicates, owned[index])
    return offsets


@kernel
def write_boxes(clustering: Clustering, predicates: Predicates, numbers: Any, boxes: Any) -> None:
    """Write the boxes of these numbers, whose offsets are set."""
    owned = np.empty(clustering.tally[WIDEST] + MAX_KEY, np.int32)
    for box in range(len(numbers)):
        place = place_of(clustering.places, numbers[box])
        count = owned_by(clustering, clustering.places.where[place], clustering.places.position[place], owned)
        write_box(predicates, owned[:count], boxes, boxes.offsets[box])
