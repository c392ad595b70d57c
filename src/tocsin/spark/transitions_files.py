"""Files of a state: rows as Arrow that is mapped, under names that tell their checksums; texts; each written whole or
not at all.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa

from tocsin.errors import SavedIndexError
from tocsin.index.array_files import SMALL, write_durably
from tocsin.index.verified import verify_once
from tocsin.spark.sealed import check_sealed, reading, sealed_name, writing


def write_rows(folder: Path, stem: str, suffix: str, table: pa.Table) -> str:
    """Write a table and return the file's name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = write_rows(Path(folder), "0", "arrow", pa.table({"a": [1, 2]}))
    ...     open_rows(Path(folder) / name, 2)["a"].to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    contents = memoryview(sink.getvalue())
    name = sealed_name(stem, suffix, contents)
    _write(folder / name, contents)
    return name


def write_text(file: Path, text: str) -> None:
    """Write a text."""
    _write(file, text.encode())


def open_rows(file: Path, rows: int) -> pa.Table:
    """Return a table of so many rows, mapped from its file. A large file is verified when this user first opens it on
    this host, a small one always; SavedIndexError with its name if it is not what was written."""
    with reading(file):
        contents = pa.memory_map(str(file)).read_buffer()
        if len(contents) <= SMALL:
            check_sealed(file, memoryview(contents))
        else:
            with verify_once(file.name, [file]) as is_due:  # read, not mapped: a disk that fails is an error then
                check_sealed(file, file.read_bytes() if is_due else memoryview(contents), is_due)
    try:
        table = pa.ipc.open_file(pa.BufferReader(contents)).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise SavedIndexError(f"{file}: cannot be read: {error}") from None
    if len(table) != rows:
        raise SavedIndexError(f"{file}: {len(table)} rows instead of {rows}: another file than the state had")
    return table


def single(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without copying it if it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _write(file: Path, contents: bytes | memoryview) -> None:
    part = file.with_name(f".{uuid.uuid4().hex}.part")
    with writing(file):
        try:
            write_durably(part, contents)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
