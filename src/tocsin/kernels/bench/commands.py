"""Kernels of the covering paper's experiments: sequences of commands run on `G_k` and an index, compiled as one.

So that indexes are compared and not the host language. A command is the slot of a box that subscribes, or the
complement of the slot of one that unsubscribes. Edges are as in the paper, on all subscriptions held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from tocsin.kernels.compile import kernel
from tocsin.kernels.containment import grouped, grouped_search, kd, zcurve
from tocsin.kernels.containment.boxes import Line, Question, Rows, append_to_line, remove_from_line, scan_rows

LIVE, ASKED, REASKED, FORWARDED = range(4)
"""Places in ``Edges.state``: boxes held, questions of subscribes and of unsubscribes, subscriptions forwarded."""


class Edges(NamedTuple):
    """Edge ``k * slot + j`` leads from ``parent`` (or -1) to a slot; ``first`` chains the edges that leave a slot by
    ``after`` and ``before``; ``held`` counts those that arrive."""

    parent: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    held: npt.NDArray[np.int32]
    state: npt.NDArray[np.int64]


def ask(index: Any, rows: Rows, question: Question, settings: Any, live: Any, tally: Any) -> Any:
    """Ask an index of any kind; ``settings``: what its kernels need beside it."""
    if isinstance(index, Line):
        return scan_rows(rows, index, live, question, tally)
    if isinstance(index, kd.Tree):
        return kd.search_tree(index, rows, question, settings[0], tally)
    if isinstance(index, zcurve.Curve):
        return zcurve.search_curve(index, settings[0], rows, question, tally)
    return grouped_search.search_groups(index, rows, question, tally)


def put(index: Any, rows: Rows, slots: Any, settings: Any, live: Any) -> None:
    """Insert boxes into an index of any kind."""
    if isinstance(index, Line):
        append_to_line(index, live, slots)
    elif isinstance(index, kd.Tree):
        kd.insert_slots(index, rows, slots, settings[0], settings[1])
    elif isinstance(index, zcurve.Curve):
        zcurve.insert_slots(index, settings[0], rows, slots)
    else:
        grouped.insert_slots(index, rows, slots, 0)


def drop(index: Any, rows: Rows, slots: Any, settings: Any, live: Any) -> None:
    """Remove boxes from an index of any kind."""
    if isinstance(index, Line):
        remove_from_line(index, live, slots)
    elif isinstance(index, kd.Tree):
        kd.remove_slots(index, rows, slots, settings[1], settings[2])
    elif isinstance(index, zcurve.Curve):
        zcurve.remove_slots(index, settings[0], rows, slots)
    else:
        grouped.remove_slots(index, rows, slots)


@overload(ask)
def _overload_ask(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    if index.instance_class is Line:
        return lambda index, rows, question, settings, live, tally: scan_rows(rows, index, live, question, tally)
    if index.instance_class is kd.Tree:
        search = kd.search_tree
        return lambda index, rows, question, settings, live, tally: search(index, rows, question, settings[0], tally)
    if index.instance_class is zcurve.Curve:
        along = zcurve.search_curve
        return lambda index, rows, question, settings, live, tally: along(index, settings[0], rows, question, tally)
    within = grouped_search.search_groups
    return lambda index, rows, question, settings, live, tally: within(index, rows, question, tally)


@overload(put)
def _overload_put(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    if index.instance_class is Line:
        return lambda index, rows, slots, settings, live: append_to_line(index, live, slots)
    if index.instance_class is kd.Tree:
        insert = kd.insert_slots
        return lambda index, rows, slots, settings, live: insert(index, rows, slots, settings[0], settings[1])
    if index.instance_class is zcurve.Curve:
        along = zcurve.insert_slots
        return lambda index, rows, slots, settings, live: along(index, settings[0], rows, slots)
    within = grouped.insert_slots

    def insert_all(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
        within(index, rows, slots, 0)

    return insert_all


@overload(drop)
def _overload_drop(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    if index.instance_class is Line:
        return lambda index, rows, slots, settings, live: remove_from_line(index, live, slots)
    if index.instance_class is kd.Tree:
        remove = kd.remove_slots
        return lambda index, rows, slots, settings, live: remove(index, rows, slots, settings[1], settings[2])
    if index.instance_class is zcurve.Curve:
        along = zcurve.remove_slots
        return lambda index, rows, slots, settings, live: along(index, settings[0], rows, slots)
    within = grouped.remove_slots
    return lambda index, rows, slots, settings, live: within(index, rows, slots)


@kernel
def _hang(edges: Edges, k: Any, slot: Any, parent: Any) -> None:
    for edge in range(k * slot, k * slot + k):
        if edges.parent[edge] < 0:
            edges.parent[edge] = parent
            edges.before[edge], edges.after[edge] = -1, edges.first[parent]
            if edges.first[parent] >= 0:
                edges.before[edges.first[parent]] = edge
            edges.first[parent] = edge
            edges.held[slot] += 1
            return


@kernel
def _cut(edges: Edges, k: Any, edge: Any) -> None:
    parent, before, after = edges.parent[edge], edges.before[edge], edges.after[edge]
    if before >= 0:
        edges.after[before] = after
    else:
        edges.first[parent] = after
    if after >= 0:
        edges.before[after] = before
    edges.parent[edge] = -1
    edges.held[edge // k] -= 1


@kernel
def _cover(index: Any, rows: Rows, edges: Edges, k: Any, slot: Any, settings: Any, work: Any) -> None:
    """Ask for up to k boxes around that of a slot, other than itself, and let it hang on them.

    ``work``: whether the index holds the slot, and where the cost is counted.
    """
    inside, tally = work
    one = Rows(rows.start[slot : slot + 1], rows.length[slot : slot + 1], rows.axis, rows.low, rows.high)
    found, count = ask(index, rows, Question(one, k + inside, False), settings, edges.state[LIVE], tally)
    for place in range(count):
        if found[1, place] != slot and edges.held[slot] < k:
            _hang(edges, k, slot, found[1, place])
    edges.state[FORWARDED] += edges.held[slot] == 0


@kernel
def run_commands(index: Any, rows: Rows, commands: Any, k: Any, settings: Any, edges: Edges, tally: Any) -> None:
    """Run commands. ``tally`` int64[2, 2]: what the questions of subscribes and of unsubscribes cost."""
    state = edges.state
    orphans = np.empty(len(edges.held), np.int32)
    one = np.empty(1, np.int32)
    for command in commands:
        if command >= 0:
            one[0] = command
            state[ASKED] += 1
            _cover(index, rows, edges, k, command, settings, (0, tally[0]))
            put(index, rows, one, settings, state[LIVE])
            state[LIVE] += 1
            continue
        one[0] = ~command
        drop(index, rows, one, settings, state[LIVE])
        state[LIVE] -= 1
        for edge in range(k * ~command, k * ~command + k):
            if edges.parent[edge] >= 0:
                _cut(edges, k, edge)
        many, edge = 0, edges.first[~command]
        while edge >= 0:
            after = edges.after[edge]
            _cut(edges, k, edge)
            if edges.held[edge // k] == 0:
                orphans[many] = edge // k
                many += 1
            edge = after
        for slot in orphans[:many]:
            state[REASKED] += 1
            _cover(index, rows, edges, k, slot, settings, (1, tally[1]))
