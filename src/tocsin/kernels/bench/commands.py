"""Kernels of the covering paper's experiments: sequences of commands run on `G_k` and an index, compiled as one.

So that indexes are compared and not the host language. A command is the slot of a box that subscribes, or the
complement of the slot of one that unsubscribes. Edges are as in the paper, on all subscriptions held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.containment.boxes import Line, Question, Rows, append_to_line, remove_from_line, scan_rows
from tocsin.kernels.containment.grouped import Groups
from tocsin.kernels.containment.grouped import insert_slots as insert_into_groups
from tocsin.kernels.containment.grouped import remove_slots as remove_from_groups
from tocsin.kernels.containment.grouped_search import search_groups
from tocsin.kernels.containment.kd import Tree, search_tree
from tocsin.kernels.containment.kd import insert_slots as insert_into_tree
from tocsin.kernels.containment.kd import remove_slots as remove_from_tree
from tocsin.kernels.containment.zcurve import Curve, search_curve
from tocsin.kernels.containment.zcurve import insert_slots as insert_into_curve
from tocsin.kernels.containment.zcurve import remove_slots as remove_from_curve

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


class Kind(NamedTuple):
    """How an index of some kind is asked, and how boxes are put into it and dropped from it. ``settings``: what its
    kernels need beside it; ``live``: how many boxes it holds."""

    ask: Any
    put: Any
    drop: Any


def _ask_line(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    return scan_rows(rows, index, live, question, tally)


def _put_line(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    append_to_line(index, live, slots)


def _drop_line(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    remove_from_line(index, live, slots)


def _ask_tree(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    return search_tree(index, rows, question, settings[0], tally)


def _put_tree(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    insert_into_tree(index, rows, slots, settings[0], settings[1])


def _drop_tree(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    remove_from_tree(index, rows, slots, settings[1], settings[2])


def _ask_curve(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    return search_curve(index, settings[0], rows, question, tally)


def _put_curve(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    insert_into_curve(index, settings[0], rows, slots)


def _drop_curve(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    remove_from_curve(index, settings[0], rows, slots)


def _ask_groups(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    return search_groups(index, rows, question, tally)


def _put_groups(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    insert_into_groups(index, rows, slots, 0)


def _drop_groups(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    remove_from_groups(index, rows, slots)


KINDS = {
    Line: Kind(_ask_line, _put_line, _drop_line),
    Tree: Kind(_ask_tree, _put_tree, _drop_tree),
    Curve: Kind(_ask_curve, _put_curve, _drop_curve),
    Groups: Kind(_ask_groups, _put_groups, _drop_groups),
}
"""How each kind of index is used, by the type of its arrays."""


def ask(index: Any, rows: Any, question: Any, settings: Any, live: Any, tally: Any) -> Any:
    """Ask an index of any kind. Compiled kernels choose while they are compiled: `commands_llvm.py`."""
    return KINDS[type(index)].ask(index, rows, question, settings, live, tally)


def put(index: Any, rows: Any, slots: Any, settings: Any, live: Any) -> Any:
    """Insert boxes into an index of any kind."""
    KINDS[type(index)].put(index, rows, slots, settings, live)


def drop(index: Any, rows: Any, slots: Any, settings: Any, live: Any) -> Any:
    """Remove boxes from an index of any kind."""
    KINDS[type(index)].drop(index, rows, slots, settings, live)


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
