"""Dictionaries in dictionaries and lists: the values of an event by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tocsin.errors import EventError
from tocsin.space.scalars import brief

Path = tuple[str, ...]

_LISTS = (list, np.ndarray)

MOST_LISTS = 16
"""In how many lists a list of an event may stand."""


def with_values(event: Mapping[str, Any], values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an event with other values at some paths; what is nested is copied, not changed."""
    found = dict(event)
    for path, value in values.items():
        level = found
        for name in path[:-1]:
            level[name] = level = dict(level[name])
        level[path[-1]] = value
    return found


def value_at(event: Any, path: Path, start: int = 0, within: tuple[int, ...] = ()) -> Any:
    """Return the value at a path of nested dictionaries (through lists: of all their elements), or None.

    ``within`` are the lists that this one stands in.
    """
    value: Any = event
    for depth in range(start, len(path)):
        if isinstance(value, Mapping):
            value = value.get(path[depth])
        elif isinstance(value, (list, tuple)):
            if id(value) in within or len(within) == MOST_LISTS:
                raise EventError(f"field {'.'.join(path[:depth])}: lists stand in more than {MOST_LISTS} others")
            found = [value_at(each, path, depth, (*within, id(value))) for each in value]
            return [each for some in found for each in ([None] if some is None else elements_of(some, path))]
        elif value is None:
            return None
        else:
            above = ".".join(path[:depth])
            raise EventError(f"field {above}: {brief(value)} is no mapping; one with {path[depth]} is expected")
    return value


def elements_of(value: Any, path: Path, depth: int = 0) -> list[Any]:
    """Return the elements of the repeated value of a field; a single value counts as one, and a list in a list as its
    elements.

    >>> elements_of(["a", ["b", None], []], ("tags",)), elements_of("c", ("tags",)), elements_of(None, ("tags",))
    (['a', 'b', None], ['c'], [])
    """
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        found = list(value) if value.shape else [value[()]]
    elif isinstance(value, (list, tuple, set, frozenset)):
        found = list(value)
    else:
        return [value]
    if not any(isinstance(each, _LISTS) for each in found):
        return found
    if depth == MOST_LISTS:
        raise EventError(f"field {'.'.join(path)}: lists stand in more than {MOST_LISTS} others")
    parts = (elements_of(some, path, depth + 1) if isinstance(some, _LISTS) else [some] for some in found)
    return [each for part in parts for each in part]
