"""Containment: which boxes lie around a box, and which inside it; what is asked of every containment index.

| paper (covering) | here |
|---|---|
| `cov_k`, section II | `contain`, with `k` |
| reduction to points, section IV-A | `kernels/containment/boxes.py`: `coordinate` |
| the naive algorithm, section V-C | `scan.py` |
| k-d tree, section IV-C | `kd.py` |
| space filling curve, section IV-D | `zcurve.py` |

Departures: any mixture of axes, not only numbers; several intervals on an axis; axes left open; `contained`, the
reverse question. Corners tell of the hulls of boxes, so what they leave is tested interval by interval.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tocsin.errors import UnknownEngineError
from tocsin.index.boxes import Boxes, Int32s, Pairs

MODULES = {"scan": "scan", "kd": "kd", "zcurve": "zcurve", "adaptive": "grouped"}
"""Where each containment index is; its module names it ``CONTAINMENT``."""


class Containment(Protocol):
    """Boxes under numbers chosen by the caller, and which of them contain which.

    One thread changes it at a time; any number may ask beside it.
    """

    name: ClassVar[str]

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes; a number already present raises BoxNumberError, a box out of form BoxError, and nothing is
        added."""

    def remove(self, numbers: Int32s) -> None:
        """Forget boxes; an unknown number raises BoxNumberError and nothing is removed."""

    def contain(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Return for each of these boxes up to k of the boxes held that contain it, itself among them if it is held."""

    def contained(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Return for each of these boxes up to k of the boxes held that lie inside it."""

    def boxes(self, numbers: Int32s) -> Boxes:
        """Return the boxes of numbers, without intervals of all codes; an unknown number raises BoxNumberError."""

    def stats(self) -> Mapping[str, Any]:
        """Say what is held and what questions have cost: nodes ``visited`` and boxes ``compared``."""

    def __len__(self) -> int:
        """Return the number of boxes held."""


def create_containment(name: str, **options: Any) -> Containment:
    """Return an empty containment index: ``scan``, ``kd``, ``zcurve`` or ``adaptive``.

    >>> import numpy as np
    >>> index = create_containment("kd")
    >>> index.insert(np.array([1, 2], np.int32), Boxes.of([{0: [(0, 9)]}, {0: [(4, 5)], 1: [(7, 7)]}]))
    >>> index.contain(Boxes.of([{0: [(5, 5)], 1: [(7, 7)]}])).numbers.tolist()
    [2, 1]
    >>> index.contained(Boxes.of([{0: [(0, 5)]}])).numbers.tolist()
    [2]
    """
    if name not in MODULES:
        raise UnknownEngineError(f"there is no containment index {name!r}; choose one of {', '.join(MODULES)}")
    index: Containment = importlib.import_module(f"{__package__}.{MODULES[name]}").CONTAINMENT(**options)
    return index
