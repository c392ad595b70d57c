"""Kernels that choose the access predicate of a box, and the cluster that goes with it (clusters paper, 3.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.clusters.family import (
    CLUSTERS_USED,
    HASHED,
    KEY,
    LISTS_USED,
    MAX_KEY,
    TABLE,
    TABLES,
    WIDEST,
    WIDTH,
    Clustering,
    append_all,
    create_cluster,
    create_list,
    drop_empty,
    find_cluster,
    find_hashed,
    owned_by,
    take_out_all,
)
from tocsin.kernels.clusters.interned import AXIS, NO_POINT, Predicates
from tocsin.kernels.compile import kernel
from tocsin.kernels.numbers import place_of


@kernel
def best_access(
    content: Any, chance: Any, owned: Any, begin: Any, end: Any, schema: Any, on_axis: Any, key: Any
) -> Any:
    """Write to ``key`` the points of the least likely access predicate there is for a box, among its single points and
    the tables; return its table and its chance, which is ``NO_POINT`` if the box has no point.
    """
    table = 0
    best: Any = np.float64(NO_POINT)
    key[0] = key[1] = key[2] = key[3] = -1
    for index in range(begin, end):
        number = owned[index]
        if chance[number] < NO_POINT:
            on_axis[content[number, AXIS]] = number
            if chance[number] < best:
                best = np.float64(chance[number])
                key[0] = number
    for candidate in range(1, len(schema)):
        likely = 1.0 if schema[candidate, 0] > 0 else NO_POINT
        for place in range(1, schema[candidate, 0] + 1):
            number = on_axis[schema[candidate, place]]
            if number < 0:
                likely = NO_POINT
                break
            likely *= chance[number]
        if likely < best:
            best = likely
            table = candidate
    if table > 0:
        for place in range(schema[table, 0]):
            key[place] = on_axis[schema[table, place + 1]]
    for index in range(begin, end):
        if chance[owned[index]] < NO_POINT:
            on_axis[content[owned[index], AXIS]] = -1
    return table, best


@kernel
def arrange(chance: Any, owned: Any, begin: Any, end: Any, key: Any) -> None:
    """Bring the points of ``key`` to the front of ``owned[begin:end]``, in order, and other points next."""
    place = 0
    while place < MAX_KEY and key[place] >= 0:
        index = begin
        while owned[index] != key[place]:
            index += 1
        owned[index] = owned[begin]
        owned[begin] = key[place]
        begin += 1
        place += 1
    for index in range(begin, end):
        number = owned[index]
        if chance[number] < NO_POINT:
            owned[index] = owned[begin]
            owned[begin] = number
            begin += 1


@kernel
def _has_room(clustering: Clustering) -> Any:
    """Return whether one more list and one more cluster can be made without growing arrays."""
    tally = clustering.tally
    return (
        tally[LISTS_USED] < len(clustering.records)
        and tally[CLUSTERS_USED] < len(clustering.owner)
        and (tally[HASHED] + 1) * 2 <= len(clustering.slots)
    )


@kernel
def assign(clustering: Clustering, predicates: Predicates, owned: Any, offsets: Any, start: Any, targets: Any) -> Any:
    """Choose a cluster for each box from ``start`` on, announce the box there, and arrange its predicates to suit.

    Stop where there is no room for another list or cluster; return the first box not done.
    """
    content, chance = predicates.content, predicates.chance
    schema, on_axis, of_predicate = (
        clustering.schema[: clustering.tally[TABLES]],
        clustering.on_axis,
        clustering.of_predicate,
    )
    slots, records, following = clustering.slots, clustering.records, clustering.following
    shape, adding = clustering.blocks.shape, clustering.blocks.adding
    key = np.empty(MAX_KEY, np.int32)
    for box in range(start, len(offsets) - 1):
        begin, end = offsets[box], offsets[box + 1]
        table, _ = best_access(content, chance, owned, begin, end, schema, on_axis, key)
        number, width = np.int64(0), 0
        if key[0] >= 0:
            width = max(1, schema[table, 0])
            number = np.int64(find_hashed(slots, records, table, key) if table > 0 else of_predicate[key[0]])
        cluster = np.int64(-1)
        if number >= 0:
            cluster = np.int64(find_cluster(records, following, shape, number, end - begin - width + 1))
        if cluster < 0:
            if not _has_room(clustering):
                return box
            if number < 0:
                number = create_list(clustering, table, key)
            cluster = create_cluster(clustering, number, end - begin - width + 1)
            clustering.tally[WIDEST] = max(clustering.tally[WIDEST], end - begin)
        arrange(chance, owned, begin, end, key)
        adding[cluster] += 1
        targets[box] = cluster
    return len(offsets) - 1


@kernel
def move_all(clustering: Clustering, numbers: Any, owned: Any, offsets: Any, targets: Any) -> None:
    """Move boxes to the clusters that `assign` chose for them and in which room has been made."""
    sources = take_out_all(clustering, numbers, False)
    append_all(clustering, numbers, owned, offsets, targets)
    drop_empty(clustering, sources)


@kernel
def improvable(clustering: Clustering, predicates: Predicates, numbers: Any) -> Any:
    """Return those of these boxes that are in a table no longer in use, or could be under a less likely access
    predicate.
    """
    content, chance = predicates.content, predicates.chance
    schema, on_axis = clustering.schema[: clustering.tally[TABLES]], clustering.on_axis
    records, owner = clustering.records, clustering.owner
    directory, where, _ = clustering.places
    owned, offsets = owned_by(clustering, numbers)
    key = np.empty(MAX_KEY, np.int32)
    better = np.empty(len(numbers), np.int32)
    count = 0
    for box in range(len(numbers)):
        _, best = best_access(content, chance, owned, offsets[box], offsets[box + 1], schema, on_axis, key)
        holder = owner[where[place_of(directory, numbers[box])]]
        present = 1.0 if records[holder, WIDTH] > 0 else NO_POINT
        for place in range(records[holder, WIDTH]):
            present *= chance[records[holder, KEY + place]]
        dropped = records[holder, TABLE] > 0 and schema[records[holder, TABLE], 0] == 0
        if dropped or best < present * 0.999:
            better[count] = numbers[box]
            count += 1
    return better[:count]
