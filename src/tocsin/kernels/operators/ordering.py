"""Which operator call to evaluate next: the graph between candidate pairs and calls, kept up to date as results come.

A *pair* is an event row with a condition; its *entries* are the literals that must hold. A *task* is a call for a row:
all entries of the row with that call share it. Pairs and tasks of a row are contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

NAIVE = 0
SEQUENTIAL = 1
SUB_ORDER = 2
ADAPTIVE = 3

OPEN = 0
HOLDS = 1
FAILS = 2

DEAD = -1
NOTHING = -1

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Graph(NamedTuple):
    """Pairs, entries and tasks. Pair ``p`` owns the entries ``pair_offsets[p]:pair_offsets[p + 1]``; task ``t`` is in
    the entries ``task_entry[task_offsets[t]:task_offsets[t + 1]]``."""

    pair_offsets: Int64s
    entry_pair: Int32s
    entry_task: Int32s
    entry_literal: Int32s
    task_offsets: Int64s
    task_entry: Int32s
    task_row: Int32s
    task_call: Int32s
    row_pairs: Int64s
    row_tasks: Int64s


class Progress(NamedTuple):
    """How far each row is. ``pair_left`` counts the open entries of a pair (DEAD when one fails); ``task_alive`` the
    undecided pairs that want a task; ``task_gain`` what it may be expected to decide a unit of cost. The heap of a row
    lies at its tasks; ``forced`` holds there the tasks without which some pair cannot be decided."""

    entry_state: npt.NDArray[np.int8]
    pair_left: Int32s
    task_done: Bools
    task_alive: Int32s
    task_gain: Floats
    heap_task: Int32s
    heap_gain: Floats
    heap_size: Int64s
    forced: Int32s
    forced_size: Int64s
    cursor: Int64s
    marked: Bools


@kernel
def number_tasks(
    pair_row: Int32s,
    pair_condition: Int32s,
    condition_offsets: Int64s,
    condition_literal: Int32s,
    literal_call: Int32s,
    rows: int,
    calls: int,
) -> tuple[
    Int64s,
    Int32s,
    Int32s,
    Int32s,
    Int32s,
    Int64s,
]:
    """Return the entries of pairs (offsets, task, literal), the call and row of each task, and the first task of each
    row; pairs are sorted by row."""
    pairs = len(pair_row)
    pair_offsets = np.zeros(pairs + 1, np.int64)
    for pair in range(pairs):
        condition = pair_condition[pair]
        pair_offsets[pair + 1] = pair_offsets[pair] + condition_offsets[condition + 1] - condition_offsets[condition]
    entry_task = np.empty(pair_offsets[pairs], np.int32)
    entry_literal = np.empty(pair_offsets[pairs], np.int32)
    task_call = np.empty(pair_offsets[pairs], np.int32)
    task_row = np.empty(pair_offsets[pairs], np.int32)
    row_tasks = np.zeros(rows + 1, np.int64)
    task_of, seen_in = np.empty(calls, np.int32), np.full(calls, -1, np.int32)
    tasks = 0
    done = 0
    for pair in range(pairs):
        row = pair_row[pair]
        while done < row:
            done += 1
            row_tasks[done] = tasks
        start = condition_offsets[pair_condition[pair]]
        for entry in range(pair_offsets[pair], pair_offsets[pair + 1]):
            literal = condition_literal[start + entry - pair_offsets[pair]]
            call = literal_call[literal]
            if seen_in[call] != row:
                seen_in[call] = row
                task_of[call] = tasks
                task_call[tasks] = call
                task_row[tasks] = row
                tasks += 1
            entry_task[entry] = task_of[call]
            entry_literal[entry] = literal
    row_tasks[done + 1 :] = tasks
    return pair_offsets, entry_task, entry_literal, task_call[:tasks].copy(), task_row[:tasks].copy(), row_tasks


@kernel
def sort_entries(
    pair_offsets: Int64s,
    entry_task: Int32s,
    entry_literal: Int32s,
    literal_key: Floats,
) -> None:
    """Sort the entries of each pair by the key of their literals, in place."""
    for pair in range(len(pair_offsets) - 1):
        for at in range(pair_offsets[pair] + 1, pair_offsets[pair + 1]):
            task, literal = entry_task[at], entry_literal[at]
            place = at
            while place > pair_offsets[pair] and literal_key[entry_literal[place - 1]] > literal_key[literal]:
                entry_task[place], entry_literal[place] = entry_task[place - 1], entry_literal[place - 1]
                place -= 1
            entry_task[place], entry_literal[place] = task, literal


@kernel
def by_task(entry_task: Int32s, tasks: int) -> tuple[Int64s, Int32s]:
    """Return the entries of each task: offsets and entries."""
    offsets = np.zeros(tasks + 1, np.int64)
    for task in entry_task:
        offsets[task + 1] += 1
    offsets = np.cumsum(offsets)
    entries = np.empty(len(entry_task), np.int32)
    place = offsets[:-1].copy()
    for entry in range(len(entry_task)):
        entries[place[entry_task[entry]]] = entry
        place[entry_task[entry]] += 1
    return offsets, entries


@kernel
def start(
    graph: Graph,
    progress: Progress,
    order: int,
    literal_kill: Floats,
    call_cost: Floats,
) -> None:
    """Set the progress of all rows to nothing known. ``literal_kill`` is the probability that a literal fails."""
    progress.entry_state[:] = OPEN
    progress.task_done[:] = False
    progress.forced_size[:] = 0
    progress.marked[:] = False
    for pair in range(len(progress.pair_left)):
        progress.pair_left[pair] = graph.pair_offsets[pair + 1] - graph.pair_offsets[pair]
    for row in range(len(progress.cursor)):
        progress.cursor[row] = graph.row_pairs[row]
        progress.heap_size[row] = 0
    for task in range(len(progress.task_alive)):
        progress.task_alive[task] = graph.task_offsets[task + 1] - graph.task_offsets[task]
        if order == ADAPTIVE:
            gain = 0.0
            for at in range(graph.task_offsets[task], graph.task_offsets[task + 1]):
                entry = graph.task_entry[at]
                gain += literal_kill[graph.entry_literal[entry]] * _weight(graph, graph.entry_pair[entry])
            progress.task_gain[task] = gain / call_cost[graph.task_call[task]]
            _push(graph, progress, graph.task_row[task], task)
    if order == ADAPTIVE:
        for pair in range(len(progress.pair_left)):
            if progress.pair_left[pair] == 1:
                _force(graph, progress, pair)


@kernel
def next_task(graph: Graph, progress: Progress, order: int, row: int) -> int:
    """Return the task that a row evaluates next, or NOTHING when all of its pairs are decided."""
    if order == ADAPTIVE:
        return int(_next_adaptive(graph, progress, row))
    end = graph.row_pairs[row + 1]
    while progress.cursor[row] < end:
        pair = progress.cursor[row]
        first, last = graph.pair_offsets[pair], graph.pair_offsets[pair + 1]
        if order == NAIVE:
            for entry in range(first, last):
                if progress.entry_state[entry] == FAILS:
                    break
                if progress.entry_state[entry] == OPEN:
                    return int(graph.entry_task[entry])
        elif order == SUB_ORDER:
            if progress.pair_left[pair] > 0:
                for entry in range(first, last):
                    if progress.entry_state[entry] == OPEN:
                        return int(graph.entry_task[entry])
        elif progress.marked[row] or progress.pair_left[pair] > 0:
            progress.marked[row] = True
            for entry in range(first, last):
                task = graph.entry_task[entry]
                if not progress.task_done[task] and progress.task_alive[task] > 0:
                    return int(task)
        progress.marked[row] = False
        progress.cursor[row] += 1
    return NOTHING


@kernel
def apply(
    graph: Graph,
    progress: Progress,
    order: int,
    task: int,
    literal_holds: Bools,
    literal_kill: Floats,
    call_cost: Floats,
) -> None:
    """Enter the result of a task: for each of its literals whether it holds."""
    progress.task_done[task] = True
    for at in range(graph.task_offsets[task], graph.task_offsets[task + 1]):
        entry = graph.task_entry[at]
        holds = literal_holds[graph.entry_literal[entry]]
        progress.entry_state[entry] = HOLDS if holds else FAILS
        pair = graph.entry_pair[entry]
        if progress.pair_left[pair] <= 0:
            continue
        if holds:
            progress.pair_left[pair] -= 1
            if progress.pair_left[pair] == 1 and order == ADAPTIVE:
                _force(graph, progress, pair)
            continue
        progress.pair_left[pair] = DEAD
        for other in range(graph.pair_offsets[pair], graph.pair_offsets[pair + 1]):
            spared = graph.entry_task[other]
            if not progress.task_done[spared]:
                progress.task_alive[spared] -= 1
                cost = call_cost[graph.task_call[spared]]
                progress.task_gain[spared] -= literal_kill[graph.entry_literal[other]] * _weight(graph, pair) / cost


@kernel
def _weight(graph: Graph, pair: int) -> float:
    """Return what deciding a pair is worth: the fewer its entries, the fewer other tasks could decide it."""
    return float(1.0 / (graph.pair_offsets[pair + 1] - graph.pair_offsets[pair]))


@kernel
def _force(graph: Graph, progress: Progress, pair: int) -> None:
    """Note the one task that is left of a pair: no order can do without it. An infinite gain says that it is noted."""
    for entry in range(graph.pair_offsets[pair], graph.pair_offsets[pair + 1]):
        task = graph.entry_task[entry]
        if progress.entry_state[entry] == OPEN and not progress.task_done[task]:
            if progress.task_gain[task] < np.inf:
                row = graph.task_row[task]
                progress.forced[graph.row_tasks[row] + progress.forced_size[row]] = task
                progress.forced_size[row] += 1
                progress.task_gain[task] = np.inf
            return


@kernel
def _next_adaptive(graph: Graph, progress: Progress, row: int) -> int:
    """Return the task that decides most for its cost among the undecided pairs; forced ones first."""
    base = graph.row_tasks[row]
    while progress.forced_size[row] > 0:
        progress.forced_size[row] -= 1
        task = progress.forced[base + progress.forced_size[row]]
        if not progress.task_done[task] and progress.task_alive[task] > 0:
            return int(task)
    while progress.heap_size[row] > 0:
        task = progress.heap_task[base]
        promised = progress.heap_gain[base]
        _pop(graph, progress, row)
        if progress.task_done[task] or progress.task_alive[task] <= 0:
            continue
        if progress.task_gain[task] < promised - 1e-9 * promised:
            _push(graph, progress, row, task)
            continue
        return int(task)
    return NOTHING


@kernel
def _place(progress: Progress, at: int, gain: float, task: int) -> None:
    """Put a task at a place of a heap."""
    progress.heap_gain[at] = gain
    progress.heap_task[at] = task


@kernel
def _push(graph: Graph, progress: Progress, row: int, task: int) -> None:
    """Add a task to the heap of its row. A task is in the heap at most once, so its place among the tasks suffices."""
    base = graph.row_tasks[row]
    at = progress.heap_size[row]
    progress.heap_size[row] += 1
    gain = progress.task_gain[task]
    while at > 0:
        above = (at - 1) >> 1
        if progress.heap_gain[base + above] >= gain:
            break
        _place(progress, base + at, progress.heap_gain[base + above], progress.heap_task[base + above])
        at = above
    _place(progress, base + at, gain, task)


@kernel
def _pop(graph: Graph, progress: Progress, row: int) -> None:
    """Remove the first task of the heap of a row."""
    base = graph.row_tasks[row]
    progress.heap_size[row] -= 1
    size = progress.heap_size[row]
    gain, task = progress.heap_gain[base + size], progress.heap_task[base + size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and progress.heap_gain[base + child + 1] > progress.heap_gain[base + child]:
            child += 1
        if progress.heap_gain[base + child] <= gain:
            break
        _place(progress, base + at, progress.heap_gain[base + child], progress.heap_task[base + child])
        at = child
    _place(progress, base + at, gain, task)


@kernel
def step(
    graph: Graph,
    progress: Progress,
    order: int,
    row: int,
    task: int,
    literal_holds: Bools,
    literal_kill: Floats,
    call_cost: Floats,
) -> int:
    """Enter the result of a row's task, unless that is NOTHING; return the task that the row evaluates next."""
    if task != NOTHING:
        apply(graph, progress, order, task, literal_holds, literal_kill, call_cost)
    return int(next_task(graph, progress, order, row))


@kernel
def drive(
    graph: Graph,
    progress: Progress,
    order: int,
    literal_holds: Bools,
    literal_kill: Floats,
    call_cost: Floats,
) -> int:
    """Run row 0 to its end with outcomes known beforehand; return how many tasks were evaluated."""
    evaluated = 0
    task = next_task(graph, progress, order, 0)
    while task != NOTHING:
        task = step(graph, progress, order, 0, task, literal_holds, literal_kill, call_cost)
        evaluated += 1
    return evaluated
