"""Kernels that ask the trees of `grouped`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.kernels.compile import inlined, kernel
from tocsin.kernels.containment.boxes import COMPARED, TOP, VISITED, Question, Rows, answers, note
from tocsin.kernels.containment.grouped import (
    BLOCK,
    DEEPEST,
    DIMENSION,
    FILLED,
    GROUPS,
    HELD,
    LANES,
    LEFT,
    MANY,
    MARK,
    NEXT,
    RIGHT,
    ROOT,
    SLOTS,
    Groups,
    local_corner,
    mark_of,
)

VISIT, COMPARE = 60, 18
"""What a node and a box of a tree cost a question, in nanoseconds on the machine they were measured on."""


@inlined
def _may_answer(groups: Groups, node: Any, wide: Any, wanted: Any, inside: Any) -> Any:
    """Return whether some box below a node may answer, by what the node knows."""
    at = groups.corner_at[node]
    may = True
    if inside:
        for j in range(wide):
            if groups.corners[at + j] > wanted[j]:
                may = False
                break
    else:
        at += wide
        for j in range(wide):
            if groups.corners[at + j] < wanted[j]:
                may = False
                break
    return may


@kernel
def compare_block(groups: Groups, block: Any, wide: Any, wanted: Any, inside: Any, failed: Any) -> Any:
    """Set ``failed`` int64[LANES] for each box of a block whose corner cannot answer; return whether any can."""
    filled = groups.blocks[block, FILLED]
    failed[:] = 0
    failed[filled:] = 1
    base = groups.column_at[block]
    for j in range(wide):
        limit = wanted[j]
        column = groups.columns[base + j * LANES : base + (j + 1) * LANES]
        if inside:
            for lane in range(LANES):
                failed[lane] |= np.int64(column[lane] > limit)
        else:
            for lane in range(LANES):
                failed[lane] |= np.int64(column[lane] < limit)
        if j & 3 == 3:
            left = np.int64(0)
            for lane in range(LANES):
                left += failed[lane]
            if left == LANES:
                return False
    return True


@kernel
def search_group(
    groups: Groups, group: Any, rows: Rows, question: Question, row: Any, work: Any, found: Any, counts: Any
) -> Any:
    """Ask the tree of one group, from the right (from the left where boxes inside are wanted).

    ``work`` is scratch: wanted coordinates, lanes, stack. ``counts``: how many pairs there are, how many there may be,
    and the tally. Return the pairs.
    """
    wanted, failed, stack = work
    wide = 2 * groups.groups[group, MANY]
    inside = question.inside
    stack[0], waiting = groups.groups[group, ROOT], 1
    while waiting:
        waiting -= 1
        node = stack[waiting]
        counts[2 + VISITED] += 1
        if not _may_answer(groups, node, wide, wanted, inside):
            continue
        if groups.nodes[node, DIMENSION] >= 0:
            near, far = groups.nodes[node, RIGHT], groups.nodes[node, LEFT]
            if inside:
                near, far = far, near
            stack[waiting], stack[waiting + 1] = far, near
            waiting += 2
            continue
        block = groups.nodes[node, BLOCK]
        while block >= 0:
            filled = groups.blocks[block, FILLED]
            counts[2 + COMPARED] += filled
            if filled and compare_block(groups, block, wide, wanted, inside, failed):
                for lane in range(filled):
                    slot = groups.blocks[block, SLOTS + lane]
                    if failed[lane] == 0 and answers(question, row, rows, slot):
                        found = note(found, counts[0], row, slot)
                        counts[0] += 1
                        if counts[0] == counts[1]:
                            return found
            block = groups.blocks[block, NEXT]
    return found


@kernel
def search_groups(groups: Groups, rows: Rows, question: Question, tally: Any) -> Any:
    """Answer questions from every group that can hold answers; return the pairs and how many there are."""
    return search_some(groups, rows, question, tally, np.zeros(0, np.bool_), np.zeros(0, np.int64))


@kernel
def search_some(groups: Groups, rows: Rows, question: Question, tally: Any, apart: Any, spent: Any) -> Any:
    """Do the same without the groups that are set ``apart`` bool[groups]; note what each group costs in ``spent``
    int64[groups], in nanoseconds. Either may be empty."""
    known = groups.state[GROUPS]
    found = np.empty((2, 256), np.int32)
    counts = np.zeros(4, np.int64)
    widest = 2 * groups.groups[:known, MANY].max() if known else np.int64(0)
    work = np.empty(max(widest, 1), np.int64), np.empty(LANES, np.int64), np.empty(2 * DEEPEST + 4, np.int32)
    for row in range(len(question.rows.start)):
        counts[1] = min(counts[0] + question.limit, TOP - 1)
        mark = mark_of(question.rows, row)
        for group in range(known):
            if len(apart) and apart[group]:
                continue
            theirs = groups.groups[group, MARK]
            if (mark & ~theirs if question.inside else theirs & ~mark) or groups.groups[group, HELD] == 0:
                continue
            shared, own = local_corner(groups, group, question.rows, row, work[0])
            if shared == (own if question.inside else groups.groups[group, MANY]):
                visited, compared = counts[2 + VISITED], counts[2 + COMPARED]
                found = search_group(groups, group, rows, question, row, work, found, counts)
                if len(spent):
                    spent[group] += VISIT * (counts[2 + VISITED] - visited)
                    spent[group] += COMPARE * (counts[2 + COMPARED] - compared)
                if counts[0] == counts[1]:
                    break
    tally[VISITED] += counts[2 + VISITED]
    tally[COMPARED] += counts[2 + COMPARED]
    return found, counts[0]
