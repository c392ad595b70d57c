"""Kernels of `dynamic`: benefit margins, and which boxes a new table would take over (clusters paper, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.clusters.family import HEAD, KEY, LISTS_USED, POPULATION, TABLE, WIDTH, Clustering
from tocsin.kernels.clusters.interned import AXIS, NO_POINT, Predicates
from tocsin.kernels.clusters.static import BETTER
from tocsin.kernels.compile import kernel
from tocsin.kernels.pool import CAPACITY, FILLED, FIRST, LINES


@kernel
def _chance_of(records: Any, chance: Any, number: Any) -> Any:
    """Return the probability that an event satisfies a list's access predicate."""
    likely = 1.0
    for place in range(records[number, WIDTH]):
        likely *= chance[records[number, KEY + place]]
    return likely


@kernel
def excessive(clustering: Clustering, predicates: Predicates, most: Any) -> Any:
    """Return the lists whose benefit margin, probability times boxes, is above ``most``; list 0 has none."""
    records, chance = clustering.records, predicates.chance
    used = clustering.tally[LISTS_USED]
    over = np.empty(used, np.int32)
    count = 0
    for number in range(1, used):
        if records[number, TABLE] >= 0 and _chance_of(records, chance, number) * records[number, POPULATION] > most:
            over[count] = number
            count += 1
    return over[:count]


@kernel
def any_unsettled(clustering: Clustering, predicates: Predicates, clusters: Any, most: Any) -> Any:
    """Return whether a list of these clusters has a margin above ``most`` that has grown since it was last settled."""
    records, chance, owner, settled = clustering.records, predicates.chance, clustering.owner, clustering.settled
    for cluster in clusters:
        number = owner[cluster]
        margin = _chance_of(records, chance, number) * records[number, POPULATION]
        if number > 0 and margin > most and margin > 1.25 * settled[number]:
            return True
    return False


@kernel
def settle(clustering: Clustering, predicates: Predicates, lists: Any) -> None:
    """Remember the margins of lists for whose boxes nothing better was found."""
    for number in lists:
        margin = _chance_of(clustering.records, predicates.chance, number) * clustering.records[number, POPULATION]
        clustering.settled[number] = margin


@kernel
def boxes_in(clustering: Clustering, lists: Any) -> Any:
    """Return the numbers of all boxes in these lists."""
    records, shape, following, pool = clustering.records, clustering.blocks.shape, clustering.following, clustering.pool
    total = 0
    for number in lists:
        total += records[number, POPULATION]
    numbers = np.empty(total, np.int32)
    count = 0
    for number in lists:
        cluster = records[number, HEAD]
        while cluster >= 0:
            line = shape[cluster, FIRST] + (shape[cluster, LINES] - 1) * shape[cluster, CAPACITY]
            for position in range(shape[cluster, FILLED]):
                numbers[count] = pool[line + position]
                count += 1
            cluster = following[cluster]
    return numbers


@kernel
def lists_of(clustering: Clustering, table: Any) -> Any:
    """Return the lists of a table."""
    records = clustering.records
    found = np.empty(clustering.tally[LISTS_USED], np.int32)
    count = 0
    for number in range(1, clustering.tally[LISTS_USED]):
        if records[number, TABLE] == table:
            found[count] = number
            count += 1
    return found[:count]


@kernel
def _chance_in(clustering: Clustering, predicates: Predicates, number: Any, cluster: Any, table: Any) -> Any:
    """Return the chance of the access predicate that each box of a cluster would have in a table, or infinity."""
    content, chance, records = predicates.content, predicates.chance, clustering.records
    shape, pool, schema = clustering.blocks.shape, clustering.pool, clustering.schema
    filled = shape[cluster, FILLED]
    chances = np.ones(filled, np.float64)
    for place in range(1, schema[table, 0] + 1):
        axis = schema[table, place]
        on_key = NO_POINT
        for key in range(records[number, WIDTH]):
            if content[records[number, KEY + key], AXIS] == axis:
                on_key = np.float64(chance[records[number, KEY + key]])
        for position in range(filled):
            likely = on_key
            at = shape[cluster, FIRST] + position
            line = 1
            while likely >= NO_POINT and line < shape[cluster, LINES]:
                if chance[pool[at]] >= NO_POINT:
                    break  # points come first
                if content[pool[at], AXIS] == axis:
                    likely = np.float64(chance[pool[at]])
                at += shape[cluster, CAPACITY]
                line += 1
            chances[position] *= likely if likely < NO_POINT else np.inf
    return chances


@kernel
def movable(clustering: Clustering, predicates: Predicates, lists: Any, table: Any) -> Any:
    """Return the boxes of these lists that are better off in a table (Dmove of the paper)."""
    records, shape, following, pool = clustering.records, clustering.blocks.shape, clustering.following, clustering.pool
    total = 0
    for number in lists:
        total += records[number, POPULATION]
    numbers = np.empty(total, np.int32)
    count = 0
    for number in lists:
        present = _chance_of(records, predicates.chance, number) * BETTER
        cluster = records[number, HEAD]
        while cluster >= 0:
            chances = _chance_in(clustering, predicates, number, cluster, table)
            line = shape[cluster, FIRST] + (shape[cluster, LINES] - 1) * shape[cluster, CAPACITY]
            for position in range(len(chances)):
                if chances[position] < present:
                    numbers[count] = pool[line + position]
                    count += 1
            cluster = following[cluster]
    return numbers[:count]
