"""Kernels of growing arrays in one pool: blocks of several lines of the same length, stored one line after another.

Element ``j`` of line ``i`` of a block is ``pool[first + i * capacity + j]``. A block that grows moves to the end of the
pool and leaves a gap, which `pack` closes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

FIRST, CAPACITY, FILLED, LINES = range(4)
"""Columns of ``Blocks.shape``: where a block begins, how long its lines are, how much of them is used, how many."""


class Blocks(NamedTuple):
    """Blocks by number. ``shape``: int64[blocks, 4]; ``adding``: int32[blocks], how many elements are about to come;
    ``used``: int64[1], how much of the pool has been handed out.
    """

    shape: npt.NDArray[np.int64]
    adding: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]


@kernel
def _next_capacity(filled: Any, capacity: Any, adding: Any) -> Any:
    """Exact for a first filling, half as much again for a block that keeps growing."""
    return max(filled + adding, capacity + (capacity >> 1))


@kernel
def room_for(blocks: Blocks, targets: Any) -> Any:
    """Return how much of the pool `make_room` would take for the elements announced in ``adding``.

    ``targets`` names every block with announced elements, as often as it likes. Afterwards ``adding`` is negative.
    """
    shape, announced = blocks.shape, blocks.adding
    room = 0
    for block in targets:
        adding = announced[block]
        if adding > 0:
            announced[block] = -adding
            if shape[block, FILLED] + adding > shape[block, CAPACITY]:
                room += _next_capacity(shape[block, FILLED], shape[block, CAPACITY], adding) * shape[block, LINES]
    return room


@kernel
def make_room(blocks: Blocks, pool: Any, targets: Any) -> None:
    """Move every block that lacks room for its announced elements to the end of the pool; clear ``adding``."""
    shape, announced, used = blocks.shape, blocks.adding, blocks.used
    for block in targets:
        adding = -announced[block]
        if adding > 0:
            announced[block] = 0
            filled, capacity = shape[block, FILLED], shape[block, CAPACITY]
            if filled + adding > capacity:
                larger = _next_capacity(filled, capacity, adding)
                into, source = used[0], shape[block, FIRST]
                for line in range(shape[block, LINES]):
                    for index in range(filled):
                        pool[into + line * larger + index] = pool[source + line * capacity + index]
                shape[block, FIRST] = into
                shape[block, CAPACITY] = larger
                used[0] += larger * shape[block, LINES]


@kernel
def pack(blocks: Blocks, pool: Any, packed: Any) -> None:
    """Copy all blocks to another pool without gaps; a block that is mostly empty shrinks."""
    shape = blocks.shape
    into = np.int64(0)
    for block in range(len(shape)):
        filled, capacity = shape[block, FILLED], shape[block, CAPACITY]
        smaller = filled if capacity > 2 * filled else capacity
        source = shape[block, FIRST]
        for line in range(shape[block, LINES]):
            for index in range(filled):
                packed[into + line * smaller + index] = pool[source + line * capacity + index]
        shape[block, FIRST] = into
        shape[block, CAPACITY] = smaller
        into += smaller * shape[block, LINES]
    blocks.used[0] = into


@kernel
def longer(array: Any, length: Any) -> Any:
    """Return the array with room at its end."""
    grown = np.empty(length, array.dtype)
    grown[: len(array)] = array
    return grown
