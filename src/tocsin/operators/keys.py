"""Keys that tell values apart as Python does not: 1 from 1.0 and True, 0.0 from -0.0, 1.5 from 1.50."""

from __future__ import annotations

import threading
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import numpy as np

_SIMPLE = frozenset({int, str, bytes, type(None)})
"""Types whose equal values are the same; what is equal to one of them is of another type."""


def exact_key(value: Any) -> Any:
    """Return a key that is equal for values that nothing can tell apart; TypeError if a value has none.

    >>> len({exact_key(each) for each in (1, 1.0, True, 0.0, -0.0, Decimal("1.0"), Decimal("1.00"))})
    7
    >>> exact_key([1, "a"]) == exact_key([1, "a"]), exact_key([1]) == exact_key((1,)), exact_key({"a": 1}) is None
    (True, False, False)
    """
    kind = type(value)
    if kind in _SIMPLE:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is Decimal:
        return kind, value.as_tuple()
    if kind in (tuple, list):
        return kind, tuple(map(exact_key, value))
    if kind is dict:
        return kind, tuple((exact_key(name), exact_key(each)) for name, each in value.items())
    if kind is np.ndarray and value.dtype != object:
        return kind, value.dtype.str, value.shape, value.tobytes()
    hash(value)
    return kind, value


class Made:
    """What was made of constants and not yet used, at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Any, tuple[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, constants: tuple[Any, ...]) -> bool:
        return exact_key(constants) in self._held

    def put(self, constants: tuple[Any, ...], value: Any) -> None:
        """Keep what was made; what was kept longest goes when there is no room."""
        with self._lock:
            self._held[exact_key(constants)] = (value,)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def take(self, constants: tuple[Any, ...]) -> tuple[Any] | None:
        """Return what was made of these constants, which is no longer kept, as a tuple of one; None if there is none.

        >>> made = Made(10)
        >>> made.put((1,), "one")
        >>> made.take((1.0,)), made.take((1,)), made.take((1,))
        (None, ('one',), None)
        """
        with self._lock:
            return self._held.pop(exact_key(constants), None)
