"""Files of a state: rows as Arrow that is mapped, texts; each written whole or not at all.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from tocsin.errors import SavedIndexError
from tocsin.spark.sealed import writing


def write_rows(file: Path, table: pa.Table) -> None:
    """Write a table.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(Path(folder) / "rows", pa.table({"a": [1, 2]}))
    ...     open_rows(Path(folder) / "rows", 2)["a"].to_pylist()
    [1, 2]
    """

    def fill(sink: BinaryIO) -> None:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    _write(file, fill)


def write_text(file: Path, text: str) -> None:
    """Write a text."""
    _write(file, lambda sink: sink.write(text.encode()))


def open_rows(file: Path, rows: int) -> pa.Table:
    """Return a table of so many rows, mapped from its file."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise SavedIndexError(f"the state {file} cannot be read: {error}") from None
    if len(table) != rows:
        raise SavedIndexError(f"the state {file} has {len(table)} rows instead of {rows}; it is damaged")
    return table


def single(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without copying it if it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _write(file: Path, fill: Callable[[BinaryIO], object]) -> None:
    part = file.with_name(f".{uuid.uuid4().hex}.part")
    with writing(file):
        try:
            with part.open("wb") as sink:
                fill(sink)
                sink.flush()
                os.fsync(sink.fileno())
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
