"""What operators load, a model perhaps: once a process for each operator, kept as long as somebody uses it."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from tocsin.operators.operator import Operator


class Loaded:
    """The resource of one operator, loaded when it is first asked for."""

    def __init__(self, operator: Operator) -> None:
        self._load = operator.resource
        self._lock = threading.Lock()
        self._held: tuple[Any] | None = None

    @property
    def value(self) -> Any:
        """The resource; raises what its loading raises, and tries again at the next call."""
        if self._held is None:
            with self._lock:  # another operator does not wait for it
                if self._held is None and self._load is not None:
                    self._held = (self._load(),)
        return self._held[0] if self._held is not None else None


_known: weakref.WeakValueDictionary[str, Loaded] = weakref.WeakValueDictionary()
_finding = threading.Lock()


def loaded_of(operator: Operator) -> Loaded:
    """Return what holds the resource of an operator: the same for all matchers of this process, and for no other
    operator, whatever its name.

    >>> from tocsin.operators.operator import operator
    >>> first, second = (operator(lambda model: True, name="m", resource=lambda n=n: n) for n in (1, 2))
    >>> loaded_of(first).value, loaded_of(second).value
    (1, 2)
    """
    with _finding:
        found = _known.get(operator.token)
        if found is None:
            found = _known[operator.token] = Loaded(operator)
        return found
