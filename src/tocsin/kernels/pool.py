"""Kernels of growing arrays in one pool: blocks of several lines of the same length, stored one line after another.

Element ``j`` of line ``i`` of a block is ``pool[first + i * capacity + j]``. A block that grows moves to the end of
the pool and leaves a gap, which `pack` closes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel


class Blocks(NamedTuple):
    """Blocks by number. ``first``: int64, where the block begins; ``capacity`` and ``filled``: int32, the length of its
    lines and how much of it is used; ``lines``: int32; ``adding``: int32, how many elements are about to come;
    ``used``: int64[1], how much of the pool has been handed out.
    """

    first: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.int32]
    filled: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]
    adding: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]


@kernel
def _next_capacity(count: Any, capacity: Any, adding: Any) -> Any:
    """Exact for a first filling, half as much again for a block that keeps growing."""
    return max(count + adding, capacity + (capacity >> 1))


@kernel
def room_for(blocks: Blocks, targets: Any) -> Any:
    """Return how much of the pool `make_room` would take for the elements announced in ``adding``.

    ``targets`` names every block with announced elements, as often as it likes. Afterwards ``adding`` is negative.
    """
    room = 0
    for block in targets:
        adding = blocks.adding[block]
        if adding > 0:
            blocks.adding[block] = -adding
            if blocks.filled[block] + adding > blocks.capacity[block]:
                capacity = _next_capacity(blocks.filled[block], blocks.capacity[block], adding)
                room += capacity * blocks.lines[block]
    return room


@kernel
def make_room(blocks: Blocks, pool: Any, targets: Any) -> None:
    """Move every block that lacks room for its announced elements to the end of the pool; clear ``adding``."""
    for block in targets:
        adding = -blocks.adding[block]
        if adding > 0:
            blocks.adding[block] = 0
            count, capacity = blocks.filled[block], blocks.capacity[block]
            if count + adding > capacity:
                larger = _next_capacity(count, capacity, adding)
                into, source = blocks.used[0], blocks.first[block]
                for line in range(blocks.lines[block]):
                    for index in range(count):
                        pool[into + line * larger + index] = pool[source + line * capacity + index]
                blocks.first[block] = into
                blocks.capacity[block] = larger
                blocks.used[0] += larger * blocks.lines[block]


@kernel
def pack(blocks: Blocks, pool: Any, packed: Any) -> None:
    """Copy all blocks to another pool without gaps; a block that is mostly empty shrinks."""
    into = 0
    for block in range(len(blocks.first)):
        count, capacity = blocks.filled[block], blocks.capacity[block]
        smaller = count if capacity > 2 * count else capacity
        source = blocks.first[block]
        for line in range(blocks.lines[block]):
            for index in range(count):
                packed[into + line * smaller + index] = pool[source + line * capacity + index]
        blocks.first[block] = into
        blocks.capacity[block] = smaller
        into += smaller * blocks.lines[block]
    blocks.used[0] = into
