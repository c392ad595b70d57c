"""Boxes and the questions asked of them: one file per engine, all with the protocol of `protocol.py`.

An engine module defines ``ENGINE``, its class. `create` imports only the engine asked for. This room imports `kernels`
and nothing else of ours.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from tocsin.errors import UnknownEngineError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes, Pairs, Queries
from tocsin.index.protocol import Index

__all__ = ["HIGHEST", "LOWEST", "NULL", "Boxes", "Index", "Pairs", "Queries", "create", "engines"]


def engines() -> dict[str, type[Index]]:
    """Return every engine there is, by name.

    >>> "scan" in engines()
    True
    """
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return {module.ENGINE.name: module.ENGINE for module in modules if hasattr(module, "ENGINE")}


def create(name: str, **options: Any) -> Index:
    """Return an empty index of the named engine.

    >>> len(create("scan"))
    0
    """
    if any(found.name == name for found in pkgutil.iter_modules(__path__)):
        engine = getattr(importlib.import_module(f"{__name__}.{name}"), "ENGINE", None)
        if engine is not None:
            index: Index = engine(**options)
            return index
    raise UnknownEngineError(f"there is no engine {name!r}; choose one of {', '.join(sorted(engines()))}")
