"""The order of chains: pairwise cost differences and the greedy path through them (operators paper, 4.2.4 and 4.2.5).

A chain is a condition's literals, the least likely first. ``probability`` and ``cost`` are those of literals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@kernel
def cost_difference(
    offsets: Int64s, chain_literal: Int32s, probability: Floats, cost: Floats, one: int, other: int
) -> float:
    """Return the cost of evaluating ``one`` first less that of evaluating ``other`` first.

    For each literal that both have: (1 - p) (reach of the other x cost above it in one - reach of one x cost above it
    in the other), the cost above leaving out literals shared before.
    """
    difference = 0.0
    reach_one, above_one = 1.0, 0.0
    free_one = 1.0  # the reach without the literals shared before, for the cost above
    for at in range(offsets[one], offsets[one + 1]):
        literal = chain_literal[at]
        reach_other, above_other, free_other = 1.0, 0.0, 1.0
        found = False
        for place in range(offsets[other], offsets[other + 1]):
            beside = chain_literal[place]
            if beside == literal:
                found = True
                break
            shared = False
            for earlier in range(offsets[one], at):
                if chain_literal[earlier] == beside:
                    shared = True
                    break
            if not shared:
                above_other += free_other * cost[beside]
                free_other *= probability[beside]
            reach_other *= probability[beside]
        if found:
            miss = 1.0 - probability[literal]
            difference += miss * (reach_other * above_one - reach_one * above_other)
        else:
            above_one += free_one * cost[literal]
            free_one *= probability[literal]
        reach_one *= probability[literal]
    return difference


@kernel
def link_chains(
    offsets: Int64s,
    chain_literal: Int32s,
    probability: Floats,
    cost: Floats,
    members_offsets: Int64s,
    members: Int32s,
    most: int,
) -> tuple[Int32s, Int32s, Floats]:
    """Return the pairs of chains that share a literal and whose order matters: which should be first, which second,
    and what that saves.

    ``members`` are the chains of each literal. Of a literal with more than ``most`` chains each is compared with
    ``most`` others at even distances, not with all.
    """
    total = 0
    for literal in range(len(members_offsets) - 1):
        count = members_offsets[literal + 1] - members_offsets[literal]
        total += count * (count - 1) // 2 if count <= most else count * most
    first, second = np.empty(total, np.int32), np.empty(total, np.int32)
    saving = np.empty(total, np.float64)
    links = 0
    for literal in range(len(members_offsets) - 1):
        begin, count = members_offsets[literal], members_offsets[literal + 1] - members_offsets[literal]
        steps = count - 1 if count <= most else most
        for at in range(count):
            last = count - 1 - at if count <= most else steps
            for step in range(1, last + 1):
                distance = step if count <= most else step * (count // most) % count
                one, other = members[begin + at], members[begin + (at + distance) % count]
                if one == other:
                    continue
                difference = cost_difference(offsets, chain_literal, probability, cost, one, other)
                if difference != 0.0:
                    first[links], second[links] = (one, other) if difference < 0 else (other, one)
                    saving[links] = abs(difference)
                    links += 1
    return first[:links].copy(), second[:links].copy(), saving[:links].copy()


@kernel
def _root(parent: Int32s, chain: int) -> int:
    while parent[chain] != chain:
        parent[chain] = parent[parent[chain]]
        chain = parent[chain]
    return chain


@kernel
def greedy_paths(first: Int32s, second: Int32s, order: Int64s, chains: int) -> tuple[Int32s, Int32s]:
    """Take links in this order wherever no chain gets three and no cycle forms; return the neighbours of each chain
    on its path: those it should precede and those it should follow come as found, -1 for none."""
    parent = np.arange(chains).astype(np.int32)
    left, right = np.full(chains, -1, np.int32), np.full(chains, -1, np.int32)
    for link in order:
        one, other = first[link], second[link]
        if (left[one] >= 0 and right[one] >= 0) or (left[other] >= 0 and right[other] >= 0):
            continue
        root_one, root_other = _root(parent, one), _root(parent, other)
        if root_one == root_other:
            continue
        parent[root_one] = root_other
        if right[one] < 0:
            right[one] = other
        else:
            left[one] = other
        if left[other] < 0:
            left[other] = one
        else:
            right[other] = one
    return left, right


@kernel
def walk_paths(
    left: Int32s, right: Int32s, offsets: Int64s, chain_literal: Int32s, probability: Floats, cost: Floats
) -> tuple[Int32s, Int64s, Floats]:
    """Return the chains path after path, each path in its better direction; where paths begin and what each saves."""
    chains = len(left)
    walked = np.empty(chains, np.int32)
    seen = np.zeros(chains, np.bool_)
    starts = np.empty(chains + 1, np.int64)
    savings = np.zeros(chains, np.float64)
    paths = 0
    done = 0
    for chain in range(chains):
        if seen[chain] or (left[chain] >= 0 and right[chain] >= 0):
            continue
        starts[paths] = done
        saved = 0.0
        at, before = chain, -1
        while at >= 0:
            seen[at] = True
            walked[done] = at
            done += 1
            following = left[at] if left[at] >= 0 and left[at] != before else right[at]
            if following == before:
                following = -1
            if following >= 0:
                saved -= cost_difference(offsets, chain_literal, probability, cost, at, following)
            before, at = at, following
        if saved < 0:
            walked[starts[paths] : done] = walked[starts[paths] : done][::-1].copy()
        savings[paths] = abs(saved)
        paths += 1
    starts[paths] = done
    return walked, starts[: paths + 1], savings[:paths]
