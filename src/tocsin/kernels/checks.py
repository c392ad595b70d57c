"""Checks of arrays that are read from files, before a kernel uses their values as places in others: kernels do not look
where they read.

Each raises ValueError with what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def check_within(what: str, values: Array, low: int, end: int) -> None:
    """Refuse values outside ``low <= value < end``.

    >>> check_within("places", np.array([0, 7]), 0, 7)
    Traceback (most recent call last):
        ...
    ValueError: places: 7 is not in 0 to 6
    """
    if len(values):
        for value in (int(values.min()), int(values.max())):
            if not low <= value < end:
                raise ValueError(f"{what}: {value} is not in {low} to {end - 1}")


def check_rising(what: str, values: Array, first: int, last: int) -> None:
    """Refuse values that fall anywhere, that begin below ``first`` or end above ``last``, and an empty array.

    >>> check_rising("offsets", np.array([0, 3, 2]), 0, 3)
    Traceback (most recent call last):
        ...
    ValueError: offsets: not in ascending order from 0 to 3
    """
    if not len(values) or values[0] < first or values[-1] > last or not bool(np.all(values[:-1] <= values[1:])):
        raise ValueError(f"{what}: not in ascending order from {first} to {last}")


def check_length(what: str, found: int, wanted: int) -> None:
    """Refuse another length than wanted.

    >>> check_length("marks", 3, 4)
    Traceback (most recent call last):
        ...
    ValueError: marks: 3 instead of 4
    """
    if found != wanted:
        raise ValueError(f"{what}: {found} instead of {wanted}")


def check(holds: bool, what: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise ValueError(what)
