"""Kernels of shared boxes: digests by which equal boxes are found, and pairs spread over all that share a box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined, kernel

NONE = np.int32(-1)


class Chains(NamedTuple):
    """By number: ``first`` and ``next`` chain the numbers that share the box of another, ``before`` leads back (from
    the leader to the last of them); ``leader`` is whose box a number shares, -1 for its own; ``silent``: it is gone,
    and its box serves others only."""

    first: npt.NDArray[np.int32]
    next: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]
    leader: npt.NDArray[np.int32]
    silent: npt.NDArray[np.bool_]


@inlined
def _mixed(word: Any, value: Any) -> Any:
    word = (word ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(32))


@kernel
def box_digests(offsets: Any, axis: Any, low: Any, high: Any, seeds: Any) -> Any:
    """Return 128 bits of each box, uint64[boxes, 2], by two secret seeds."""
    found = np.empty((len(offsets) - 1, 2), np.uint64)
    for box in range(len(offsets) - 1):
        for side in range(2):
            word = _mixed(seeds[side], np.int64(offsets[box + 1] - offsets[box]))
            for at in range(offsets[box], offsets[box + 1]):
                word = _mixed(_mixed(_mixed(word, np.int64(axis[at])), low[at]), high[at])
            found[box, side] = word
    return found


@kernel
def follow(chains: Chains, numbers: Any, leaders: Any) -> None:
    """Let numbers share the boxes of others."""
    for place in range(len(numbers)):
        number, leader = numbers[place], leaders[place]
        last = chains.before[leader] if chains.first[leader] >= 0 else NONE
        chains.next[number], chains.before[number], chains.leader[number] = NONE, last, leader
        if last >= 0:
            chains.next[last] = number
        else:
            chains.first[leader] = number
        chains.before[leader] = number


@kernel
def leave(chains: Chains, numbers: Any) -> Any:
    """Take numbers out of what they share; return those whose box now serves nobody.

    A number that leaves keeps its ``next``: a reader that stands on it finds on. A leader that others still follow
    falls silent.
    """
    over = np.empty(2 * len(numbers), np.int32)
    count = 0
    for number in numbers:
        leader = chains.leader[number]
        if leader < 0:
            leader = number
            chains.silent[number] = True
        else:
            before, after = chains.before[number], chains.next[number]
            if before >= 0:
                chains.next[before] = after
            else:
                chains.first[leader] = after
            chains.before[after if after >= 0 else leader] = before
            chains.leader[number] = NONE
        if chains.silent[leader] and chains.first[leader] < 0:
            over[count] = leader
            count += 1
    return over[:count]


@kernel
def spread(chains: Chains, rows: Any, numbers: Any) -> Any:
    """Return pairs with every number that shares the box of one, in the order of their rows.

    Chains may change meanwhile: what was there all the time is found, what came or went may be or not.
    """
    found, count = np.empty((2, len(numbers) + 64), np.int32), 0
    for place in range(len(numbers)):
        at, own = numbers[place], not chains.silent[numbers[place]]
        while at >= 0:
            if own:
                if count == found.shape[1]:
                    grown = np.empty((2, 2 * count), np.int32)
                    grown[:, :count] = found
                    found = grown
                found[0, count], found[1, count] = rows[place], at
                count += 1
            at = chains.first[at] if at == numbers[place] else chains.next[at]
            own = True
    return found[0, :count], found[1, :count]
