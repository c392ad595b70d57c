"""Containment beside an engine that keeps its boxes otherwise: made at the first question, then kept up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tocsin.index.boxes import Boxes, Int32s

if TYPE_CHECKING:  # imported at the first question
    from tocsin.index.containment.grouped import Grouped


class Containing:
    """A `Grouped` of an engine's boxes, from the first time it is asked for.

    The engine says after each change what came and went. A change that it has made but not said yet when the first
    question is asked is found among its contents, and not made twice.

    >>> boxes = np.array([3], np.int32), Boxes.of([{0: [(1, 5)]}])
    >>> beside = Containing(lambda: boxes)
    >>> beside.index().contain(Boxes.of([{0: [(2, 2)]}])).numbers.tolist()
    [3]
    """

    def __init__(self, contents: Callable[[], tuple[Int32s, Boxes]]) -> None:
        self._contents = contents
        self._changing = threading.Lock()
        self._made: Grouped | None = None

    def index(self) -> Grouped:
        """Return the index of all boxes."""
        with self._changing:
            if self._made is None:
                from tocsin.index.containment.grouped import Grouped

                made = Grouped()
                made.insert(*self._contents())
                self._made = made
            return self._made

    def inserted(self, numbers: Int32s, boxes: Boxes) -> None:
        """Take note of boxes that the engine has now."""
        if self._made is not None:
            with self._changing:
                new = ~self._made.holds(numbers)
                self._made.insert(numbers[new], boxes if new.all() else boxes.take(np.flatnonzero(new)))

    def removed(self, numbers: Int32s) -> None:
        """Take note of boxes that the engine no longer has."""
        if self._made is not None:
            with self._changing:
                self._made.remove(numbers[self._made.holds(numbers)])

    @property
    def nbytes(self) -> int:
        """The bytes held."""
        return int(self._made.stats()["bytes"]) if self._made is not None else 0
