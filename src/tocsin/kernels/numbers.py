"""Kernels of the map from a box's number to where an engine keeps it: a directory of pages of 4,096 numbers.

Dense numbers cost eight bytes each and one memory access; scattered ones cost a page each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

PAGE_BITS = 12
PAGE = 1 << PAGE_BITS

ABSENT, CLAIMED = -1, -2
"""In ``Places.where``: the number is not held; it is about to be."""


class Places(NamedTuple):
    """``directory``: int32[pages of the number range], which page holds a number, or -1; ``where`` and ``position``:
    int32[pages held * 4096], what the engine wrote there (``position`` may be empty if it needs only one of them).
    """

    directory: npt.NDArray[np.int32]
    where: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]


@kernel
def place_of(directory: Any, number: Any) -> Any:
    """Return the index of a number in ``where`` and ``position``; its page exists."""
    return (np.int64(directory[number >> PAGE_BITS]) << PAGE_BITS) + (number & (PAGE - 1))


@kernel
def claim(places: Places, numbers: Any) -> Any:
    """Claim numbers for insertion. Return -1, or the index of one already there or given twice, and claim none."""
    directory, where = places.directory, places.where
    for index in range(len(numbers)):
        place = place_of(directory, numbers[index])
        if where[place] != ABSENT:
            for earlier in range(index):
                where[place_of(directory, numbers[earlier])] = ABSENT
            return index
        where[place] = CLAIMED
    return -1


@kernel
def first_unknown(places: Places, numbers: Any) -> Any:
    """Return -1 if all these numbers are held and different, else the index of one that is not."""
    directory, where = places.directory, places.where
    offender = -1
    checked = 0
    for index in range(len(numbers)):
        number = numbers[index]
        page = number >> PAGE_BITS
        if page < 0 or page >= len(directory) or directory[page] < 0:
            offender = index
            break
        place = place_of(directory, number)
        if where[place] < 0:
            offender = index
            break
        where[place] = -3 - where[place]
        checked += 1
    for index in range(checked):
        place = place_of(directory, numbers[index])
        where[place] = -3 - where[place]
    return offender


@kernel
def held_numbers(places: Places, count: Any) -> Any:
    """Return the numbers held, ascending."""
    directory, where = places.directory, places.where
    numbers = np.empty(count, np.int32)
    at = 0
    for page in range(len(directory)):
        if directory[page] >= 0:
            first = np.int64(directory[page]) << PAGE_BITS
            for offset in range(PAGE):
                if where[first + offset] >= 0:
                    numbers[at] = (page << PAGE_BITS) + offset
                    at += 1
    return numbers
