"""Kernels of clusters: boxes grouped by an access predicate and by how many predicates remain, stored by columns.

An access predicate is a conjunction of points. A *list* belongs to one access predicate and chains its *clusters*, one
for each number of remaining predicates. Lists of a single point are found from that point directly; lists of several
points belong to a *table*, whose schema names the axes, and are found by hashing. List 0 has no access predicate: it
holds the boxes without any equality.

A cluster is a block of the pool: line ``i`` has the ``i``-th remaining predicate of each box, points first, and the
last line has the boxes' numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.clusters.interned import Predicates, mix, release
from tocsin.kernels.compile import kernel
from tocsin.kernels.numbers import ABSENT, Places, place_of
from tocsin.kernels.pool import CAPACITY, FILLED, FIRST, LINES, Blocks

MAX_KEY = 4
"""The most points an access predicate may have."""

TABLE, HEAD, POPULATION, WIDTH, KEY = range(5)
"""Columns of ``Clustering.records``, one a list: its table (0: none, -1: the list is not in use), its first cluster or
-1, its boxes, how many points its access predicate has, and from ``KEY`` on those points in the order of the table's
axes, -1 beyond."""

LISTS_USED, LISTS_FREE, CLUSTERS_USED, CLUSTERS_FREE, HASHED, TABLES, WIDEST = range(7)
"""Places in ``Clustering.tally``: lists and clusters ever handed out, heights of their free stacks, lists in the hash
table, tables ever made (the first is no table), and the most predicates that a box has had."""


class Clustering(NamedTuple):
    """All boxes.

    ``records``: int32[lists, 8]; ``slots``: int32[power of two], a list or -1; ``free_lists``: int32; ``settled``:
    float32[lists], the benefit margin up to which nothing better was found for a list's boxes; ``schema``:
    int32[tables, 5], how many axes a table has (0: not in use), then the axes; ``in_table``: int64[tables], boxes;
    ``blocks``, ``pool``: the clusters; ``owner`` and ``following``: int32[clusters], the list a cluster is in and the
    next one there; ``free_clusters``: int32; ``of_predicate``: int32[predicates], the list of a single point or -1;
    ``on_axis``: int32[axes], working space, -1 between calls; ``tally``: int64[7].
    """

    records: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    free_lists: npt.NDArray[np.int32]
    settled: npt.NDArray[np.float32]
    schema: npt.NDArray[np.int32]
    in_table: npt.NDArray[np.int64]
    blocks: Blocks
    pool: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    free_clusters: npt.NDArray[np.int32]
    of_predicate: npt.NDArray[np.int32]
    on_axis: npt.NDArray[np.int32]
    places: Places
    tally: npt.NDArray[np.int64]


@kernel
def _hash(table: Any, one: Any, two: Any, three: Any, four: Any) -> Any:
    return mix(mix(np.int64(table), one, two), three, four)


@kernel
def _record_hash(records: Any, number: Any) -> Any:
    return _hash(
        records[number, TABLE],
        records[number, KEY],
        records[number, KEY + 1],
        records[number, KEY + 2],
        records[number, KEY + 3],
    )


@kernel
def find_hashed(slots: Any, records: Any, table: Any, key: Any) -> Any:
    """Return the list of a table with these points, or -1."""
    mask = len(slots) - 1
    at = _hash(table, key[0], key[1], key[2], key[3]) & mask
    while True:
        found = slots[at]
        if found < 0 or (
            records[found, TABLE] == table
            and records[found, KEY] == key[0]
            and records[found, KEY + 1] == key[1]
            and records[found, KEY + 2] == key[2]
            and records[found, KEY + 3] == key[3]
        ):
            return found
        at = (at + 1) & mask


@kernel
def _enter(slots: Any, records: Any, number: Any) -> None:
    mask = len(slots) - 1
    at = _record_hash(records, number) & mask
    while slots[at] >= 0:
        at = (at + 1) & mask
    slots[at] = number


@kernel
def rehash_lists(slots: Any, records: Any, used: Any) -> None:
    """Fill an empty hash table with every list that belongs to a table."""
    for number in range(used):
        if records[number, TABLE] > 0:
            _enter(slots, records, number)


@kernel
def _leave(slots: Any, records: Any, number: Any) -> None:
    """Take a list out of the hash table, closing the gap."""
    mask = len(slots) - 1
    gap = _record_hash(records, number) & mask
    while slots[gap] != number:
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] < 0:
            break
        home = _record_hash(records, slots[at]) & mask
        if (at - home) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = -1


@kernel
def create_list(clustering: Clustering, table: Any, key: Any) -> Any:
    """Make the list of an access predicate that has none; there is room."""
    records, tally = clustering.records, clustering.tally
    if tally[LISTS_FREE] > 0:
        tally[LISTS_FREE] -= 1
        number = np.int64(clustering.free_lists[tally[LISTS_FREE]])
    else:
        number = tally[LISTS_USED]
        tally[LISTS_USED] += 1
    records[number, TABLE] = table
    records[number, HEAD] = -1
    records[number, POPULATION] = 0
    records[number, WIDTH] = 0
    clustering.settled[number] = 0
    for place in range(MAX_KEY):
        records[number, KEY + place] = key[place]
        records[number, WIDTH] += key[place] >= 0
    if table > 0:
        _enter(clustering.slots, records, number)
        tally[HASHED] += 1
    else:
        clustering.of_predicate[key[0]] = number
    return number


@kernel
def find_cluster(records: Any, following: Any, shape: Any, number: Any, lines: Any) -> Any:
    """Return the cluster of a list whose blocks have so many lines, or -1."""
    cluster = records[number, HEAD]
    while cluster >= 0 and shape[cluster, LINES] != lines:
        cluster = following[cluster]
    return cluster


@kernel
def create_cluster(clustering: Clustering, number: Any, lines: Any) -> Any:
    """Add a cluster to a list; there is room."""
    shape, tally = clustering.blocks.shape, clustering.tally
    if tally[CLUSTERS_FREE] > 0:
        tally[CLUSTERS_FREE] -= 1
        cluster = np.int64(clustering.free_clusters[tally[CLUSTERS_FREE]])
    else:
        cluster = tally[CLUSTERS_USED]
        tally[CLUSTERS_USED] += 1
    shape[cluster] = 0
    shape[cluster, LINES] = lines
    clustering.blocks.adding[cluster] = 0
    clustering.owner[cluster] = number
    clustering.following[cluster] = clustering.records[number, HEAD]
    clustering.records[number, HEAD] = cluster
    return cluster


@kernel
def _put(pool: Any, shape: Any, cluster: Any, owned: Any, begin: Any, end: Any, number: Any) -> Any:
    """Put a box with these remaining predicates at the end of a cluster that has room; return its position."""
    position = shape[cluster, FILLED]
    at = shape[cluster, FIRST] + position
    for index in range(begin, end):
        pool[at] = owned[index]
        at += shape[cluster, CAPACITY]
    pool[at] = number
    shape[cluster, FILLED] = position + 1
    return position


@kernel
def append_all(clustering: Clustering, numbers: Any, owned: Any, offsets: Any, targets: Any) -> None:
    """Put new boxes into their clusters; the points of each one's access predicate come first in ``owned``."""
    pool, shape, owner, records = clustering.pool, clustering.blocks.shape, clustering.owner, clustering.records
    in_table = clustering.in_table
    directory, where, position = clustering.places
    for box in range(len(numbers)):
        holder = owner[targets[box]]
        place = place_of(directory, numbers[box])
        where[place] = targets[box]
        begin = offsets[box] + records[holder, WIDTH]
        position[place] = _put(pool, shape, targets[box], owned, begin, offsets[box + 1], numbers[box])
        records[holder, POPULATION] += 1
        in_table[records[holder, TABLE]] += 1


@kernel
def owned_by(clustering: Clustering, numbers: Any) -> Any:
    """Return the predicates of these boxes, those of its access first in each, and the offsets at which each begins."""
    pool, shape, owner, records = clustering.pool, clustering.blocks.shape, clustering.owner, clustering.records
    directory, where, position = clustering.places
    offsets = np.zeros(len(numbers) + 1, np.int64)
    for box in range(len(numbers)):
        cluster = where[place_of(directory, numbers[box])]
        offsets[box + 1] = offsets[box] + records[owner[cluster], WIDTH] + shape[cluster, LINES] - 1
    owned = np.empty(offsets[-1], np.int32)
    for box in range(len(numbers)):
        place = place_of(directory, numbers[box])
        cluster = where[place]
        into = offsets[box]
        for key in range(records[owner[cluster], WIDTH]):
            owned[into] = records[owner[cluster], KEY + key]
            into += 1
        at = shape[cluster, FIRST] + position[place]
        while into < offsets[box + 1]:
            owned[into] = pool[at]
            at += shape[cluster, CAPACITY]
            into += 1
    return owned, offsets


@kernel
def _take_out(pool: Any, shape: Any, cluster: Any, index: Any, directory: Any, position: Any) -> None:
    """Remove a box from a cluster by putting the last one in its place. The cluster may be left empty."""
    last = shape[cluster, FILLED] - 1
    at = shape[cluster, FIRST]
    for _ in range(shape[cluster, LINES]):
        pool[at + index] = pool[at + last]
        at += shape[cluster, CAPACITY]
    moved = pool[at - shape[cluster, CAPACITY] + index]
    position[place_of(directory, moved)] = index
    shape[cluster, FILLED] = last


@kernel
def take_out_all(clustering: Clustering, numbers: Any, forget: Any) -> Any:
    """Remove boxes from their clusters, and their places if they are to be forgotten; return those clusters."""
    pool, shape, owner, records = clustering.pool, clustering.blocks.shape, clustering.owner, clustering.records
    in_table = clustering.in_table
    directory, where, position = clustering.places
    sources = np.empty(len(numbers), np.int32)
    for box in range(len(numbers)):
        place = place_of(directory, numbers[box])
        cluster = where[place]
        sources[box] = cluster
        _take_out(pool, shape, cluster, position[place], directory, position)
        records[owner[cluster], POPULATION] -= 1
        in_table[records[owner[cluster], TABLE]] -= 1
        if forget:
            where[place] = ABSENT
    return sources


@kernel
def drop_empty(clustering: Clustering, clusters: Any) -> None:
    """Free those of these clusters that have no boxes, and their lists if they have no other cluster."""
    shape = clustering.blocks.shape
    for cluster in clusters:
        if shape[cluster, FILLED] == 0 and shape[cluster, LINES] > 0:
            _drop(clustering, cluster)


@kernel
def _drop(clustering: Clustering, cluster: Any) -> None:
    records, following, tally = clustering.records, clustering.following, clustering.tally
    holder = clustering.owner[cluster]
    if records[holder, HEAD] == cluster:
        records[holder, HEAD] = following[cluster]
    else:
        before = records[holder, HEAD]
        while following[before] != cluster:
            before = following[before]
        following[before] = following[cluster]
    clustering.blocks.shape[cluster] = 0
    clustering.free_clusters[tally[CLUSTERS_FREE]] = cluster
    tally[CLUSTERS_FREE] += 1
    if records[holder, HEAD] >= 0 or holder == 0:
        return
    if records[holder, TABLE] > 0:
        _leave(clustering.slots, records, holder)
        tally[HASHED] -= 1
    else:
        clustering.of_predicate[records[holder, KEY]] = -1
    records[holder, TABLE] = -1
    clustering.free_lists[tally[LISTS_FREE]] = holder
    tally[LISTS_FREE] += 1


@kernel
def remove_all(clustering: Clustering, predicates: Predicates, numbers: Any) -> None:
    """Forget boxes, and the predicates that only they had."""
    owned, _ = owned_by(clustering, numbers)
    drop_empty(clustering, take_out_all(clustering, numbers, True))
    release(predicates, owned)
