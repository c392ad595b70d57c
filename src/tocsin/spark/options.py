"""What the arguments of `build_index`, `update_index`, `match` and `transitions` may be; all are checked before a job
runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tocsin.errors import OptionError
from tocsin.index import engine_of
from tocsin.operators.operator import Operator
from tocsin.space import Space
from tocsin.spark.quarantine import Quarantine


def check_choice(name: str, value: object, *allowed: str) -> None:
    """Raise OptionError unless an argument is one of those that are allowed.

    >>> check_choice("bad", "error", "quarantine", "error")
    """
    if not isinstance(value, str) or value not in allowed:
        raise OptionError(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise OptionError unless an argument is True or False.

    >>> check_flag("partial", True)
    """
    if not isinstance(value, bool):
        raise OptionError(f"{name} is True or False, not {value!r}")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise OptionError unless an argument is a whole number and not too small.

    >>> check_count("shards", 4)
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"{name} is a whole number of at least {least}, not {value!r}")


def check_name(name: str, value: object, what: str = "the name of a column") -> None:
    """Raise OptionError unless an argument is a text that is not empty.

    >>> check_name("column", "alert")
    """
    if not isinstance(value, str) or not value:
        raise OptionError(f"{name} is {what}, not {value!r}")


def check_version(version: object) -> None:
    """Raise OptionError unless this can be the number of a version of an index, or None.

    >>> check_version(3)
    """
    if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 1):
        raise OptionError(f"version is the number of a version of the index, 1 or more, not {version!r}")


def check_indexing(space: object, engine: str) -> None:
    """Raise unless subscriptions can be indexed with these: a space, or None, and the name of an engine.

    >>> check_indexing(None, "adaptive")
    """
    if space is not None and not isinstance(space, Space):
        raise OptionError(f"space is a tocsin.Space, not {space!r}; make one with Space({{...}})")
    engine_of(engine)


def check_quarantine(quarantine: object) -> None:
    """Raise OptionError unless this is a quarantine, or None.

    >>> check_quarantine(None)
    """
    if quarantine is not None and not isinstance(quarantine, Quarantine):
        raise OptionError(f"quarantine is a tocsin.spark.Quarantine(), not {quarantine!r}")


def operators_of(given: Iterable[Any]) -> tuple[Operator, ...]:
    """Return the operators of an argument; OptionError if one of them is none.

    >>> operators_of([])
    ()
    """
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for each in found:
        if not isinstance(each, Operator):
            raise OptionError(f"operators are a list of what tocsin.operator has declared; {each!r} is none")
    return found
