"""Reading tables as Arrow batches: Parquet, CSV, JSON lines, a JSON array, Arrow; a path or standard input.

Every input becomes one buffer (a file is memory-mapped), so that one path serves pipes and files alike and a
failure can be traced to its line in a second look. Whatever goes wrong is a FileError that names the file and
the place.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tocsin.cli.faults import fault_in_csv, fault_in_json, fault_in_utf8
from tocsin.cli.json_rows import array_as_lines, json_rows
from tocsin.errors import FileColumnError, FileError, FileFormatError

BATCH_ROWS = 65_536
"""Rows a batch: large enough to amortise a call, small enough for a smooth progress bar."""


class Format(StrEnum):
    """The formats tables are read and written in."""

    parquet = "parquet"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    json = "json"
    arrow = "arrow"


SUFFIXES = {
    ".parquet": Format.parquet,
    ".pq": Format.parquet,
    ".csv": Format.csv,
    ".tsv": Format.tsv,
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".json": Format.json,
    ".arrow": Format.arrow,
    ".arrows": Format.arrow,
    ".feather": Format.arrow,
    ".ipc": Format.arrow,
}
"""Which file name endings mean which format."""

LONGEST_ROW = 1 << 24
"""The bytes that one JSON row may have."""

COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
"""Endings after the format's own that are decompressed on the way in."""

DELIMITERS = {Format.csv: ",", Format.tsv: "\t"}
"""What separates the cells of a line."""


@dataclass(frozen=True)
class Input:
    """A whole input in memory or mapped to it: its name for messages, its format, its bytes."""

    name: str
    format: Format
    data: pa.Buffer

    @classmethod
    def open(cls, path: str, format: Format | None = None) -> Input:
        """Open a path, or standard input for ``-``; its name, or else its first bytes, tell the format."""
        name = "standard input" if path == "-" else path
        data = _bytes_of(path)
        if not data.size or not data[: 1 << 20].to_pybytes().strip():
            raise FileError(f"{name} is empty; a table was expected")
        chosen = format or format_of(path) or _sniff(data)
        if chosen is None:
            raise FileError(f"cannot tell the format of {name}; say --format with one of {', '.join(Format)}")
        if chosen in (Format.csv, Format.tsv, Format.jsonl, Format.json):
            data = _as_utf8(name, data)
        if chosen is Format.json and data[:4096].to_pybytes().lstrip()[:1] != b"[":
            chosen = Format.jsonl
        return cls(name, chosen, data)


@dataclass(frozen=True)
class Batches:
    """A table that arrives batch by batch: where from, its schema, and its number of rows where known."""

    name: str
    schema: pa.Schema
    rows: int | None
    batches: Iterator[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches


def read_batches(source: Input, types: Mapping[str, pa.DataType] | None = None) -> Batches:
    """Read a table as Arrow batches.

    Parquet and Arrow are read batch by batch and keep their types. CSV and JSON carry none: `types` says
    those of the columns it names; the others are inferred over the whole input. JSON text stays text even
    where it looks like a time.
    """
    try:
        if source.format is Format.parquet:
            return _parquet_batches(source)
        if source.format is Format.arrow:
            return _arrow_batches(source)
        read = _csv_table if source.format in DELIMITERS else _json_table
        table = read(source, dict(types or {}))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _not_what_it_says(source, error) from error
    return Batches(source.name, table.schema, table.num_rows, iter(table.to_batches(BATCH_ROWS)))


def read_table(source: Input, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Read a whole table."""
    batches = read_batches(source, types)
    return pa.Table.from_batches(list(batches), batches.schema)


def require_columns(name: str, present: list[str], needed: list[str]) -> None:
    """Raise FileColumnError, naming what is there and what is nearest, unless every needed column is present.

    >>> require_columns("a.csv", ["id", "citty"], ["city"])
    Traceback (most recent call last):
    tocsin.errors.FileColumnError: a.csv has no column 'city' (did you mean 'citty'?); it has: id, citty
    """
    for column in needed:
        if column not in present:
            by_folded = {name.casefold(): name for name in present}
            near = difflib.get_close_matches(column.casefold(), by_folded, 1)
            hint = f" (did you mean {by_folded[near[0]]!r}?)" if near else ""
            raise FileColumnError(f"{name} has no column {column!r}{hint}; it has: {', '.join(present) or 'none'}")


def format_of(path: str) -> Format | None:
    """Return the format a path's ending means, a compression ending aside; None when it means none.

    >>> format_of("events.csv.gz"), format_of("events.dat")
    (<Format.csv: 'csv'>, None)
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _bytes_of(path: str) -> pa.Buffer:
    if path == "-":
        return pa.py_buffer(sys.stdin.buffer.read())
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(f"{path} is a directory; name one file in it")
        if file.suffix.lower() in COMPRESSED:
            with pa.input_stream(path, compression="detect") as stream:
                return pa.py_buffer(stream.read())
        if not file.is_file():  # a named pipe or a device cannot be mapped; a missing file fails here with its reason
            return pa.py_buffer(file.read_bytes())
        if file.stat().st_size == 0:
            return pa.py_buffer(b"")
        return pa.memory_map(path).read_buffer()
    except FileNotFoundError as error:
        near = difflib.get_close_matches(file.name, _siblings(file), 1)
        hint = f"; did you mean {file.with_name(near[0])}?" if near else ""
        raise FileError(f"{path} does not exist{hint}") from error
    except PermissionError as error:
        raise FileError(f"{path} may not be read: permission denied") from error
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {_first_line(error)}") from error


def _siblings(file: Path) -> list[str]:
    return [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []


def _sniff(data: pa.Buffer) -> Format | None:
    """Return the format that the first bytes show; CSV has no mark, so None may mean CSV."""
    start = data[:64].to_pybytes()
    if start.startswith(b"PAR1"):
        return Format.parquet
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format.arrow
    return {b"[": Format.json, b"{": Format.jsonl}.get(start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1])


def _as_utf8(name: str, data: pa.Buffer) -> pa.Buffer:
    start = data[:4].to_pybytes()
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileFormatError(f"{name} is UTF-16 text; save it as UTF-8")
    return data.slice(3) if start.startswith(b"\xef\xbb\xbf") else data


def _parquet_batches(source: Input) -> Batches:
    file = pa.parquet.ParquetFile(pa.BufferReader(source.data))
    return Batches(
        source.name,
        file.schema_arrow,
        file.metadata.num_rows,
        _guarded(source, file.iter_batches(BATCH_ROWS)),
    )


def _arrow_batches(source: Input) -> Batches:
    if source.data[:6].to_pybytes() == b"ARROW1":
        file = pa.ipc.open_file(source.data)
        found = (file.get_batch(number) for number in range(file.num_record_batches))
        return Batches(source.name, file.schema, None, _guarded(source, found))
    stream = pa.ipc.open_stream(source.data)
    return Batches(source.name, stream.schema, None, _guarded(source, iter(stream)))


def _guarded(source: Input, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass batches on, checked: a file from elsewhere may hold broken offsets or texts that are not UTF-8."""
    try:
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise _not_what_it_says(source, error) from error


def _csv_table(source: Input, types: dict[str, pa.DataType]) -> pa.Table:
    table = _read_csv(source, types)
    repeated = {name for name in table.column_names if table.column_names.count(name) > 1}
    if repeated:
        raise FileFormatError(f"{source.name}: line 1: the header names a column twice: {', '.join(sorted(repeated))}")
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise ValueError("not UTF-8")  # inference falls back to bytes; the second look finds the line
    # A time of day has no axis of its own: keep it as the text it was.
    times = {field.name: pa.string() for field in table.schema if pa.types.is_time(field.type)}
    return _read_csv(source, types | times) if times else table


def _read_csv(source: Input, types: dict[str, pa.DataType]) -> pa.Table:
    return pa.csv.read_csv(
        pa.BufferReader(source.data),
        parse_options=pa.csv.ParseOptions(delimiter=DELIMITERS[source.format], newlines_in_values=True),
        # An empty cell is missing, a quoted empty cell is an empty text, as Spark reads them.
        convert_options=pa.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _json_table(source: Input, types: dict[str, pa.DataType]) -> pa.Table:
    data = pa.py_buffer(array_as_lines(str(source.data, "utf-8"))) if source.format is Format.json else source.data
    if not data.size:
        return pa.table({})
    table = _read_json(data, types)
    texts = {field.name: _with_text_for_time(field.type) for field in table.schema if field.name not in types}
    if all(table.schema.field(name).type == type for name, type in texts.items()):
        return table
    return _read_json(data, texts | types)


def _read_json(data: pa.Buffer, types: dict[str, pa.DataType]) -> pa.Table:
    options = pa.json.ParseOptions(explicit_schema=pa.schema(list(types.items())) if types else None)
    block = pa.json.ReadOptions(block_size=LONGEST_ROW)
    table = pa.json.read_json(pa.BufferReader(data), read_options=block, parse_options=options)
    table.validate(full=True)  # the reader does not look whether texts are UTF-8
    return table


def _with_text_for_time(type: pa.DataType) -> pa.DataType:
    """Return an inferred type with text wherever a time was guessed, since the guess loses the zone."""
    if pa.types.is_timestamp(type):
        return pa.string()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_with_text_for_time(field.type)) for field in type.fields])
    if pa.types.is_list(type):
        return pa.list_(_with_text_for_time(type.value_type))
    return type


def _not_what_it_says(source: Input, error: Exception) -> FileError:
    """Say what is wrong with an input that its reader refused, with the line where there are lines."""
    if isinstance(error, FileError):
        return error
    seen = source.data[:4].to_pybytes()
    looks = _sniff(source.data)
    if source.format is Format.parquet and seen != b"PAR1":
        reason = f"it is not a Parquet file: it begins with {seen!r}, not b'PAR1'"
    elif source.format is Format.parquet:
        reason = f"the Parquet file is truncated or damaged: {_first_line(error)}"
    elif source.format is Format.arrow:
        reason = f"the Arrow file is truncated, damaged or not Arrow: {_first_line(error)}"
    else:
        reason = _fault_in_text(source, error) or _first_line(error)
    if looks is not None and looks is not source.format and {looks, source.format} != {Format.json, Format.jsonl}:
        reason += f" (it looks like {looks}: say --format {looks})"
    return FileFormatError(f"{source.name}: {reason}")


def _fault_in_text(source: Input, error: Exception) -> str | None:
    try:
        text = str(source.data, "utf-8")
    except UnicodeDecodeError as undecodable:
        return fault_in_utf8(undecodable)
    if source.format in DELIMITERS:
        return fault_in_csv(text, DELIMITERS[source.format], str(error))
    return fault_in_json(json_rows(text, source.format is Format.json))


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
