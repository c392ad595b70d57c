"""Where the boxes of `bounds` are, and changing those that wait in place."""

from __future__ import annotations

import numpy as np

from tocsin.kernels.compile import kernel
from tocsin.kernels.numbers import ABSENT, place_of


@kernel
def put_places(places, numbers, first):  # type: ignore[no-untyped-def]
    """Write where numbers are: one after another from ``first`` on."""
    for i in range(len(numbers)):
        places.where[place_of(places.directory, numbers[i])] = first + i


@kernel
def take_places(places, numbers):  # type: ignore[no-untyped-def]
    """Return where numbers are, and forget them."""
    found = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        place = place_of(places.directory, numbers[i])
        found[i] = places.where[place]
        places.where[place] = ABSENT
    return found


@kernel
def overwrite(places, numbers, first, arrays, boxes):  # type: ignore[no-untyped-def]
    """Write boxes, (offsets, axis, low, high), over those of the same numbers that wait, from place ``first`` on, and
    have as many entries; return which were not written, and where those are."""
    offsets, axis, low, high = boxes
    held_offsets, held_axis, held_low, held_high = arrays.offsets, arrays.axis, arrays.low, arrays.high
    left, where, count = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64), 0
    for i in range(len(numbers)):
        left[count] = i
        where[count] = places.where[place_of(places.directory, numbers[i])]
        place, source, length = where[count] - first, offsets[i], offsets[i + 1] - offsets[i]
        if place < 0 or held_offsets[place + 1] - held_offsets[place] != length:
            count += 1
            continue
        to = held_offsets[place]
        for entry in range(length):
            held_axis[to + entry] = axis[source + entry]
            held_low[to + entry] = low[source + entry]
            held_high[to + entry] = high[source + entry]
    return left[:count], where[:count]
