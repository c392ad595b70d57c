"""Moves of queries, and the answer that any engine can give: ask before, ask after, take the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tocsin.errors import EngineError
from tocsin.index.boxes import NULL, Int64s, Moved, Pairs, Queries
from tocsin.kernels.moves import difference

if TYPE_CHECKING:
    from tocsin.index.protocol import Index


def checked(old: Queries, new: Queries) -> None:
    """Refuse a move whose sides have different numbers of rows."""
    if old.rows != new.rows:
        raise EngineError(f"a move is from as many rows as to, not from {old.rows:,} to {new.rows:,}")


def asked_twice(index: Index, old: Queries, new: Queries) -> Moved:
    """Return what an engine answers to the old and to the new rows, less what is in both.

    Both are asked in one call, so that they are answered from one state of the index.
    """
    checked(old, new)
    axes = max(old.axes, new.axes)
    low = np.concatenate([widened(old.low, axes), widened(new.low, axes)], axis=1)
    high = low
    if not (old.are_points and new.are_points):
        high = np.concatenate([widened(old.high, axes), widened(new.high, axes)], axis=1)
    pairs = index.overlap(Queries(low, high))
    return differences(pairs, old.rows)


def differences(pairs: Pairs, rows: int) -> Moved:
    """Return what differs between the answers to the first ``rows`` rows and to as many that follow them."""
    middle = int(np.searchsorted(pairs.rows, rows))
    before = pairs.rows[:middle], pairs.numbers[:middle]
    after = pairs.rows[middle:] - np.int32(rows), pairs.numbers[middle:]
    return Moved(Pairs(*difference(*after, *before)), Pairs(*difference(*before, *after)))


def widened(codes: Int64s, axes: int) -> Int64s:
    """Return codes with lines of NULL for the axes that they lack."""
    if len(codes) == axes:
        return codes
    return np.concatenate([codes, np.full((axes - len(codes), codes.shape[1]), NULL)])
