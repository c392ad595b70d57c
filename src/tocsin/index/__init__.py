"""Boxes and the questions asked of them: one file per engine, all with the protocol of `protocol.py`.

An engine module defines ``ENGINE``, its class, and is named in `NAMES`; only the engine asked for is imported. This
room imports `kernels` and nothing else of ours.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tocsin.arguments import brief
from tocsin.errors import ArgumentTypeError, UnknownEngineError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes, Pairs, Queries
from tocsin.index.protocol import Index

__all__ = ["HIGHEST", "LOWEST", "NULL", "Boxes", "Index", "Pairs", "Queries", "create", "engine_of", "engines"]

NAMES = ("adaptive", "bitmap", "bounds", "counting", "dynamic", "propagation", "scan", "static")
"""The engines there are, each in the module of its name."""


def engines() -> dict[str, type[Index]]:
    """Return every engine there is, by name.

    >>> "scan" in engines()
    True
    """
    return {name: engine_of(name) for name in NAMES}


def engine_of(name: str) -> type[Index]:
    """Return the class of the named engine; UnknownEngineError if there is none.

    >>> engine_of("scan").name
    'scan'
    """
    for known in NAMES:
        if isinstance(name, str) and name == known:
            engine: type[Index] = importlib.import_module(f"{__name__}.{known}").ENGINE
            return engine
    raise UnknownEngineError(f"there is no engine {brief(name)}; choose one of {', '.join(NAMES)}")


def create(name: str, **options: Any) -> Index:
    """Return an empty index of the named engine.

    >>> len(create("scan"))
    0
    """
    engine = engine_of(name)
    taken = inspect.signature(engine).parameters
    for option in options:
        if option not in taken:
            known = f"its options are {', '.join(taken)}" if taken else "it has no options"
            raise ArgumentTypeError(f"the engine {name} has no option {option!r}; {known}")
    return engine(**options)
