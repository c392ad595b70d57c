"""The orders in which operator calls are evaluated, and the graph that they walk.

| name | what it does | paper |
|---|---|---|
| ``naive`` | condition after condition, each until a literal fails; results are remembered | 5.2 |
| ``sequential`` | as they come; all calls of a chosen condition that an undecided one still wants | 4.1 |
| ``sub-order`` | chains, least likely first, in the order of a greedy path over cost differences | 4.2, 4.3 |
| ``adaptive`` | at each step the call that decides most for its cost among what is undecided now | ours |

Departures: a path of chains is walked in its better direction, paths by what they save (the paper leaves both open); of
a literal with more than `MOST_LINKED` chains each is compared with that many others, not with all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators import ordering, suborder

Floats = npt.NDArray[np.float64]

CODES: dict[str, int] = {
    "naive": ordering.NAIVE,
    "sequential": ordering.SEQUENTIAL,
    "sub-order": ordering.SUB_ORDER,
    "adaptive": ordering.ADAPTIVE,
}
MOST_LINKED = 64


def chain_key(probability: Floats, popularity: Floats) -> Floats:
    """Return by what the literals of a chain are sorted: the least likely first, of equals the most popular."""
    most = float(popularity.max(initial=1.0)) or 1.0
    return probability - 1e-9 * popularity / most


def sub_order(offsets: Int64s, literals: Int32s, probability: Floats, cost: Floats) -> Int64s:
    """Return the rank of each condition: the order in which chains are walked.

    ``offsets`` and ``literals`` are the conditions; ``probability`` and ``cost`` those of literals.
    """
    chains = len(offsets) - 1
    count = len(probability)
    popularity = np.bincount(literals, minlength=count).astype(np.float64)
    owner = np.repeat(np.arange(chains), np.diff(offsets))
    order = np.lexsort((chain_key(probability, popularity)[literals], owner))
    chain = np.ascontiguousarray(literals[order])
    members_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(popularity.astype(np.int64))])
    members = owner[np.argsort(chain, kind="stable")].astype(np.int32)
    first, second, saving = suborder.link_chains(
        offsets, chain, probability, cost, members_offsets, members, MOST_LINKED
    )
    left, right = suborder.greedy_paths(first, second, np.argsort(-saving, kind="stable"), chains)
    walked, starts, savings = suborder.walk_paths(left, right, offsets, chain, probability, cost)
    lengths = np.diff(starts)
    best = np.argsort(-savings, kind="stable")
    at = np.repeat(starts[:-1][best] - (np.cumsum(lengths[best]) - lengths[best]), lengths[best]) + np.arange(chains)
    rank = np.empty(chains, np.int64)
    rank[walked[at]] = np.arange(chains)
    return rank


def build_graph(
    rows: Int32s, conditions: Int32s, offsets: Int64s, members: Int32s, literal_call: Int32s, count: int, calls: int
) -> ordering.Graph:
    """Return the graph of candidate pairs, sorted by row, of ``count`` rows."""
    pair_offsets, entry_task, entry_literal, task_call, task_row, row_tasks = ordering.number_tasks(
        rows, conditions, offsets, members, literal_call, count, calls
    )
    return _finished(rows, count, pair_offsets, entry_task, entry_literal, task_call, task_row, row_tasks)


def sorted_graph(graph: ordering.Graph, key: Floats) -> ordering.Graph:
    """Return the graph with the entries of each pair sorted by the key of their literals."""
    entry_task, entry_literal = graph.entry_task.copy(), graph.entry_literal.copy()
    ordering.sort_entries(graph.pair_offsets, entry_task, entry_literal, key)
    task_offsets, task_entry = ordering.by_task(entry_task, len(graph.task_call))
    return graph._replace(
        entry_task=entry_task, entry_literal=entry_literal, task_offsets=task_offsets, task_entry=task_entry
    )


def _finished(
    rows: Int32s,
    count: int,
    pair_offsets: Int64s,
    entry_task: Int32s,
    entry_literal: Int32s,
    task_call: Int32s,
    task_row: Int32s,
    row_tasks: Int64s,
) -> ordering.Graph:
    task_offsets, task_entry = ordering.by_task(entry_task, len(task_call))
    entry_pair = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(pair_offsets))
    row_pairs = np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
    return ordering.Graph(
        pair_offsets,
        entry_pair,
        entry_task,
        entry_literal,
        task_offsets,
        task_entry,
        task_row,
        task_call,
        row_pairs,
        row_tasks,
    )


def new_progress(graph: ordering.Graph) -> ordering.Progress:
    """Return room for the progress of a graph's rows."""
    entries, pairs, tasks = len(graph.entry_task), len(graph.pair_offsets) - 1, len(graph.task_call)
    rows = len(graph.row_pairs) - 1
    return ordering.Progress(
        entry_state=np.zeros(entries, np.int8),
        pair_left=np.zeros(pairs, np.int32),
        task_done=np.zeros(tasks, bool),
        task_alive=np.zeros(tasks, np.int32),
        task_gain=np.zeros(tasks),
        heap_task=np.zeros(tasks, np.int32),
        heap_gain=np.zeros(tasks),
        heap_size=np.zeros(rows, np.int64),
        forced=np.zeros(tasks, np.int32),
        forced_size=np.zeros(rows, np.int64),
        cursor=np.zeros(rows, np.int64),
        marked=np.zeros(rows, bool),
    )
