"""The values of events that operators receive: of a batch, or of one dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int64s
from tocsin.language.tree import Field, Transform
from tocsin.space.codes import ValueProblem
from tocsin.space.columns import Column
from tocsin.space.events import Encoded
from tocsin.space.operands import RANGE, Misfit, Operands

Path = tuple[str, ...]


class Input(NamedTuple):
    """A field that an operator receives, and whether its text is changed to lower or upper case on the way."""

    path: Path
    transform: Transform = ""


class Events:
    """The events of one encoded batch, their fields read when they are needed. Where one dictionary has sets, its rows
    are the ``alternatives``, one for each combination of their members.

    >>> from tocsin import Number, Space
    >>> from tocsin.space.axes import Axes
    >>> from tocsin.space.events import Encoder
    >>> encoder = Encoder(Axes(Space({"a": Number()})))
    >>> events = Events(encoder.one({"a": 5, "picture": b"..."}), encoder.operands)
    >>> events.values(Input(("a",)), np.array([0])), events.values(Input(("picture",)), np.array([0]))
    ([5.0], [b'...'])
    """

    def __init__(self, encoded: Encoded, operands: Operands) -> None:
        self._source: Any = encoded.source
        self._ranged: Mapping[Path, npt.NDArray[np.bool_]] = encoded.ranged
        self.alternatives = 1
        if isinstance(encoded.source, Mapping):
            self._source = operands.alternatives(encoded.source)
            self.alternatives = len(self._source)
            if self.alternatives > 1:
                self._ranged = {path: np.repeat(spans, self.alternatives) for path, spans in encoded.ranged.items()}
        self._operands = operands
        self._columns: dict[Path, Column | None] = {}
        self._unreadable: set[Path] = set()
        self._held: dict[tuple[Path, int], Any] = {}

    def values(self, given: Input, rows: Int64s) -> list[Any]:
        """Return the values of a field for some rows: None where it is NULL, or a `Misfit`."""
        if isinstance(self._source, list):
            return [self._of(row, given) for row in rows.tolist()]
        column = self._column(given.path)
        if given.path in self._unreadable:
            values = [self._alone(given, row) for row in rows.tolist()]
        else:
            values = self._operands.values(column, *given, rows)
        ranged = self._ranged.get(given.path)
        if ranged is not None:  # an operator is not asked about a range
            values = [RANGE if ranged[row] else value for row, value in zip(rows.tolist(), values, strict=True)]
        return values

    def _of(self, row: int, given: Input) -> Any:
        ranged = self._ranged.get(given.path)
        return self._operands.value(self._source[row], *given) if ranged is None or not ranged[row] else RANGE

    def array(self, given: Input, rows: Int64s, takes_null: bool) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the values of a field for some rows as an array, and which of them are there to be asked about:
        neither NULL, unless those are taken, nor a misfit. The array has those alone."""
        if not isinstance(self._source, list) and given.path not in self._ranged and not given.transform:
            column = self._column(given.path)
            found = None if column is None or takes_null else self._operands.numbers(column, given.path, rows)
            if found is not None:
                return found, np.ones(len(rows), bool)
        values = self.values(given, rows)
        there = [type(value) is not Misfit and (takes_null or value is not None) for value in values]
        kept = [value for value, is_there in zip(values, there, strict=True) if is_there]
        return self._operands.array(kept, given.path, takes_null), np.array(there, bool)

    def fields(self, row: int) -> Callable[[Any], Any]:
        """Return how constraints read the fields of one row."""
        return lambda field: self._value(field.path, row) if isinstance(field, Field) else None

    def _value(self, path: Path, row: int) -> Any:
        """Return the value of a field for one row, remembered; None for a misfit."""
        if (path, row) not in self._held:
            (value,) = self.values(Input(path), np.array([row]))
            self._held[path, row] = None if type(value) is Misfit else value
        return self._held[path, row]

    def _column(self, path: Path) -> Column | None:
        """Return the column of a field; of one that cannot be read because of some rows, None."""
        if path not in self._columns:
            self._columns[path] = None
            try:
                self._columns[path] = self._operands.column(self._source, path)
            except ValueProblem:
                self._unreadable.add(path)
        return self._columns[path]

    def _alone(self, given: Input, row: int) -> Any:
        """Return the value of one row of a field that cannot be read for all rows at once."""
        try:
            column = self._operands.column(self._source.slice(row, 1), given.path)
        except ValueProblem as problem:
            return Misfit(f"field {'.'.join(given.path)}: {problem.reason}")
        return self._operands.values(column, *given, np.zeros(1, np.int64))[0]
