"""What bulk operators are asked: pairs of events and constants, the constants prepared once each."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


class Prepared:
    """The constants of all calls of one family, prepared once each; grows at its end only.

    One thread adds while any number read: what was seen once stays where it is. ``memo`` is for whatever an operator
    derives from all of them, such as a tree; ``lock`` is to be held while that is brought up to date.

    >>> prepared = Prepared()
    >>> prepared.add(("[3, 4]",), (3.0, 4.0))
    0
    >>> prepared.array[0], prepared.matrix.tolist()
    ((3.0, 4.0), [[3.0, 4.0]])
    """

    def __init__(self) -> None:
        self.constants: list[tuple[Any, ...]] = []
        self.values: list[Any] = []
        self.memo: dict[str, Any] = {}
        self.lock = threading.RLock()
        self._array: npt.NDArray[np.object_] = np.empty(0, object)
        self._matrix: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def add(self, constants: tuple[Any, ...], value: Any) -> int:
        """Add prepared constants; return their number."""
        self.constants.append(constants)
        self.values.append(value)
        return len(self.values) - 1

    @property
    def array(self) -> npt.NDArray[np.object_]:
        """What was prepared, as an array of objects."""
        with self.lock:
            held, count = len(self._array), len(self.values)
            if held < count:
                grown = np.empty(count, object)
                grown[:held] = self._array
                for at in range(held, count):
                    grown[at] = self.values[at]
                self._array = grown
            return self._array

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """What was prepared, tuples of as many numbers each, as rows of numbers."""
        with self.lock:
            held, count = 0 if self._matrix is None else len(self._matrix), len(self.values)
            if self._matrix is None or held < count:
                fresh = np.array(self.values[held:count], np.float64)
                self._matrix = fresh if self._matrix is None else np.concatenate([self._matrix, fresh])
            return self._matrix


@dataclass(frozen=True)
class Asked:
    """What a bulk operator is asked: pairs of an event and a set of constants.

    ``columns`` are the values of the fields, one array each, of the events that are asked about and no others: of
    ``Number()`` an array of float64, of ``Number("int64")`` of int64, of all else of the objects that a scalar operator
    receives. There is no NULL among them, unless the operator takes them: then all arrays are of objects. Pair ``i`` is
    the event ``rows[i]`` of them with the constants ``which[i]`` of ``prepared``. The answer is an array with an entry
    for each pair: a truth (or int8, -1 for unknown) or, of an operator with an output, a number (NaN for none).
    """

    columns: tuple[npt.NDArray[Any], ...]
    prepared: Prepared
    rows: npt.NDArray[np.int64]
    which: npt.NDArray[np.int64]
