"""`scan`: containment without index, the covering paper's naive algorithm (section V-C)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tocsin.index.blocks import longer
from tocsin.index.boxes import Int32s
from tocsin.index.containment.held import Asked
from tocsin.kernels.containment.boxes import Line, Question, append_to_line, remove_from_line, scan_rows


class Scan(Asked):
    """No index: one box after another is looked at until k are found. What the others are measured against.

    >>> from tocsin.index.boxes import Boxes
    >>> index = Scan()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{}]))
    >>> index.contain(Boxes.of([{0: [(1, 2)]}]), k=1)
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "scan"

    def __init__(self) -> None:
        super().__init__()
        self._line = Line(np.empty(64, np.int32), np.empty(64, np.int32))

    def _added(self, slots: Int32s) -> None:
        if len(self._number_of) > len(self._line.place_of):
            room = len(self._number_of)
            self._line = Line(longer(self._line.slots, room, 0), longer(self._line.place_of, room, 0))
        append_to_line(self._line, self._live - len(slots), slots)

    def _removing(self, slots: Int32s) -> None:
        remove_from_line(self._line, self._live, slots)

    def _asked(self, question: Question) -> Any:
        return scan_rows(self._rows, self._line, self._live, question, self.tally)

    def _structure(self) -> tuple[Any, ...]:
        return self._line


CONTAINMENT = Scan
