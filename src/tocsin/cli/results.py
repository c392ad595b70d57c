"""Writing tables: to a file or standard output, in any format that is read, or drawn for people.

A file appears under its name only when it is complete: it is written beside that and renamed at the end.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich import box
from rich.console import Console
from rich.table import Table

from tocsin.cli.inputs import COMPRESSED, DELIMITERS, SUFFIXES, Format, ending_of, format_of
from tocsin.errors import FileError

Write = Callable[[pa.RecordBatch], None]
"""Takes the next rows of a result."""

ARROW_FILES = {".arrow", ".feather", ".ipc"}
"""Endings of files that hold Arrow's file form; its stream form ends in ``.arrows``, and is what goes down a pipe."""

DRAWN_ROWS = 100
"""Rows of a drawn table; what lies beyond is counted, and any other format has it all."""


@contextmanager
def open_result(path: str | None, format: Format | None, schema: pa.Schema) -> Iterator[Write]:
    """Open a destination for rows: a path, or standard output, drawn as a table unless a format is given."""
    chosen = format or (format_of(path) if path else None)
    if path is None and chosen is None:
        with _drawn(schema) as write:
            yield write
        return
    if chosen is None:
        raise FileError(f"cannot tell the format of {path}; end it in one of {', '.join(SUFFIXES)}, or say --to")
    writer = _arrow_file if chosen is Format.arrow and path and ending_of(path) in ARROW_FILES else _WRITERS[chosen]
    with _sink(path, chosen) as sink, writer(sink, schema, chosen) as write:
        yield write


def to_json(value: Any) -> str:
    """Return a value as one line of JSON; what JSON lacks (times, decimals, NaN) is written as text.

    >>> to_json({"price": float("nan"), "city": "Zürich"})
    '{"price": "NaN", "city": "Zürich"}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_without_nan(value), ensure_ascii=False, default=str)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return [_without_nan(part) for part in value] if isinstance(value, list) else value


@contextmanager
def _sink(path: str | None, format: Format) -> Iterator[IO[bytes]]:
    if path is None or path == "-":
        if format in (Format.parquet, Format.arrow) and sys.stdout.isatty():
            raise FileError(f"{format} is not for terminals; give --output FILE, or pipe it to a program")
        # A buffered writer of our own: with PYTHONUNBUFFERED, sys.stdout may write half and raise nothing.
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as sink:
            yield sink
        return
    target = Path(path)
    is_special = target.exists() and not target.is_file()
    part = target if is_special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise FileError(f"{path} is a directory; name a file in it")
        with part.open("wb") as sink, _compressed(sink, target.suffix.lower()) as through:
            yield through
        if part is not target:
            part.replace(target)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if part is not target:
            part.unlink(missing_ok=True)


@contextmanager
def _compressed(sink: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    """Compress what is written if the name of the file ends as a compressed one does."""
    if ending not in COMPRESSED:
        yield sink
        return
    with pa.CompressedOutputStream(sink, COMPRESSED[ending]) as stream:
        yield stream


@contextmanager
def _parquet(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    with pa.parquet.ParquetWriter(sink, schema) as writer:
        yield writer.write_batch


@contextmanager
def _arrow_file(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    """Write the file form, which is what readers expect of a file named so (Feather, Polars' `read_ipc`)."""
    with pa.ipc.new_file(sink, schema) as writer:
        yield writer.write_batch


@contextmanager
def _arrow(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    """Write the stream form, which can go down a pipe."""
    with pa.ipc.new_stream(sink, schema) as writer:
        yield writer.write_batch


@contextmanager
def _csv(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise FileError(f"{format} cannot hold the nested column {nested[0]!r}; choose parquet, arrow or jsonl")

    # Texts are quoted, so that an empty one and a missing one stay different.
    options = pa.csv.WriteOptions(delimiter=DELIMITERS[format])
    with pa.csv.CSVWriter(sink, schema, write_options=options) as writer:
        yield writer.write_batch


@contextmanager
def _json_lines(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    yield lambda batch: _write_text(sink, "".join(to_json(row) + "\n" for row in batch.to_pylist()))


@contextmanager
def _json_array(sink: IO[bytes], schema: pa.Schema, format: Format) -> Iterator[Write]:
    between = "[\n"

    def write(batch: pa.RecordBatch) -> None:
        nonlocal between
        for row in batch.to_pylist():
            _write_text(sink, between + to_json(row))
            between = ",\n"

    yield write
    _write_text(sink, "\n]\n" if between == ",\n" else "[]\n")


def _write_text(sink: IO[bytes], text: str) -> None:
    sink.write(text.encode())


_WRITERS = {
    Format.parquet: _parquet,
    Format.arrow: _arrow,
    Format.csv: _csv,
    Format.tsv: _csv,
    Format.jsonl: _json_lines,
    Format.json: _json_array,
}


@contextmanager
def _drawn(schema: pa.Schema) -> Iterator[Write]:
    """Gather the first rows, draw them at the end, and say on standard error how many there were."""
    shown: list[dict[str, Any]] = []
    count = 0

    def write(batch: pa.RecordBatch) -> None:
        nonlocal count
        count += batch.num_rows
        shown.extend(batch.slice(0, max(DRAWN_ROWS - len(shown), 0)).to_pylist())

    yield write
    draw(schema.names, [list(row.values()) for row in shown])
    if count > len(shown):
        said = f"{count:,} rows, {len(shown)} shown; --json or --output FILE gives them all"
        print(f"tocsin: {said}", file=sys.stderr)


def draw(names: list[str], rows: list[list[Any]]) -> None:
    """Draw a table on standard output: as wide as the terminal, or as wide as it needs without one."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, highlight=False, emoji=False).print(table)
