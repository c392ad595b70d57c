"""The values of events that operators read: of a batch, or of one dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.language.tree import Field
from tocsin.space.events import Encoded, value_at

Path = tuple[str, ...]


class Events:
    """The events of one encoded batch, their fields read when they are needed.

    >>> from tocsin import Number, Space
    >>> from tocsin.space.axes import Axes
    >>> from tocsin.space.events import Encoder
    >>> encoded = Encoder(Axes(Space({"a": Number()}))).one({"a": 5, "picture": b"..."})
    >>> Events(encoded).values(("picture",), np.array([0]))
    [b'...']
    """

    def __init__(self, encoded: Encoded) -> None:
        self._source = [encoded.source] if isinstance(encoded.source, Mapping) else encoded.source
        self._ranged = encoded.ranged
        self.count = encoded.count
        self._columns: dict[Path, Any] = {}
        self._lists: dict[Path, dict[int, Any]] = {}

    def values(self, path: Path, rows: npt.NDArray[Any]) -> list[Any]:
        """Return the values of a field for some rows; None where it is missing or a range."""
        if isinstance(self._source, list):
            values = [value_at(self._source[row], path) for row in rows.tolist()]
        else:
            column = self._column(path)
            values = [None] * len(rows) if column is None else list(column.take(pa.array(rows)).to_pylist())
        if path in self._ranged:  # an operator is not asked about a range
            values = [None if self._ranged[path][row] else value for row, value in zip(rows, values, strict=True)]
        return values

    def value(self, path: Path, row: int) -> Any:
        """Return the value of a field for one row, remembered."""
        held = self._lists.setdefault(path, {})
        if row not in held:
            held[row] = self.values(path, np.array([row]))[0]
        return held[row]

    def array(self, path: Path, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of a field for some rows as an array: numbers as doubles, NULL as NaN, others objects."""
        if not isinstance(self._source, list) and path not in self._ranged:
            column = self._column(path)
            if column is not None and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
                taken = column.take(pa.array(rows)).cast(pa.float64(), safe=False)
                found: npt.NDArray[Any] = np.asarray(pc.fill_null(taken, float("nan")))
                return found
        values = self.values(path, rows)
        if values and all(isinstance(value, (int, float)) or value is None for value in values):
            return np.array([np.nan if value is None else float(value) for value in values])
        held = np.empty(len(values), object)
        for at, value in enumerate(values):
            held[at] = value
        return held

    def fields(self, row: int) -> Any:
        """Return how constraints read the fields of one row."""
        return lambda field: self.value(field.path, row) if isinstance(field, Field) else None

    def _column(self, path: Path) -> Any:
        if path not in self._columns:
            batch: Any = self._source
            at = batch.schema.get_field_index(path[0])
            column = batch.column(at) if at >= 0 else None
            for name in path[1:]:
                if column is None or not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
                    column = None
                    break
                column = pc.struct_field(column, [column.type.get_field_index(name)])
            if column is not None and pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            self._columns[path] = column
        return self._columns[path]
