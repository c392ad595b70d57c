"""Binary search among sorted byte strings, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel


class Keys(NamedTuple):
    """Byte strings: key ``i`` is ``data[offsets[i]:offsets[i + 1]]``; ``heads[i]`` holds its first eight bytes as a
    number."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    heads: npt.NDArray[np.uint64]


@kernel
def heads_of(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each key, big-endian, short keys padded with zeros."""
    heads = np.zeros(len(offsets) - 1, np.uint64)
    for key in range(len(heads)):
        head = np.uint64(0)
        for at in range(8):
            head <<= np.uint64(8)
            if offsets[key] + at < offsets[key + 1]:
                head |= np.uint64(data[offsets[key] + at])
        heads[key] = head
    return heads


@kernel
def _order(keys: Keys, key: int, others: Keys, other: int) -> int:
    """Return -1, 0 or 1 as the key is below, equal to or above the other."""
    if keys.heads[key] != others.heads[other]:
        return -1 if keys.heads[key] < others.heads[other] else 1
    start, other_start = keys.offsets[key], others.offsets[other]
    length, other_length = keys.offsets[key + 1] - start, others.offsets[other + 1] - other_start
    for at in range(min(8, length, other_length), min(length, other_length)):
        byte, other_byte = keys.data[start + at], others.data[other_start + at]
        if byte != other_byte:
            return -1 if byte < other_byte else 1
    return -1 if length < other_length else int(length > other_length)


@kernel
def search_keys(keys: Keys, sought: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return for each sought key the position of the last of the sorted keys not above it (-1: none), and if they are
    equal."""
    positions = np.empty(len(sought.heads), np.int64)
    equal = np.zeros(len(sought.heads), np.bool_)
    for query in range(len(positions)):
        low, high = -1, len(keys.heads) - 1
        while low < high:
            middle = (low + high + 1) >> 1
            if _order(keys, middle, sought, query) <= 0:
                low = middle
            else:
                high = middle - 1
        positions[query] = low
        equal[query] = low >= 0 and _order(keys, low, sought, query) == 0
    return positions, equal
