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
def where_places(places, numbers):  # type: ignore[no-untyped-def]
    """Return where numbers are."""
    found = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        found[i] = places.where[place_of(places.directory, numbers[i])]
    return found


@kernel
def overwrite(arrays, places, boxes):  # type: ignore[no-untyped-def]
    """Write boxes, (offsets, axis, low, high), over those that wait at some places and have as many entries; return
    which were written. A place below 0 does not wait."""
    offsets, axis, low, high = boxes
    held_offsets, held_axis, held_low, held_high = arrays.offsets, arrays.axis, arrays.low, arrays.high
    done = np.zeros(len(places), np.bool_)
    for i in range(len(places)):
        place = places[i]
        if place >= 0:
            to, source, count = held_offsets[place], offsets[i], offsets[i + 1] - offsets[i]
            if held_offsets[place + 1] - to == count:
                for entry in range(count):
                    held_axis[to + entry] = axis[source + entry]
                    held_low[to + entry] = low[source + entry]
                    held_high[to + entry] = high[source + entry]
                done[i] = True
    return done
