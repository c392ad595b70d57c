"""Reading tables as Arrow batches: Parquet, CSV, JSON lines, a JSON array, Arrow.

Whatever goes wrong is a FileError that names the file and the place.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tocsin.cli.faults import fault_in_csv, fault_in_json, fault_in_utf8, faults_in_json
from tocsin.cli.inputs import DELIMITERS, Format, Input, first_line, sniff
from tocsin.cli.json_rows import array_as_lines, json_rows
from tocsin.cli.nesting import deep_column, deep_json
from tocsin.errors import FileColumnError, FileError, FileFormatError

BATCH_ROWS = 65_536
"""Rows a batch: large enough to amortise a call, small enough for a smooth progress bar."""

LONGEST_ROW = 1 << 24
"""The bytes that one JSON row may have."""


@dataclass(frozen=True)
class Batches:
    """A table that arrives batch by batch: where from, its schema, and its number of rows where known.

    ``skipped`` are the rows that could not be read, with the line and the reason; an empty row stands for each.
    """

    name: str
    schema: pa.Schema
    rows: int | None
    batches: Iterator[pa.RecordBatch]
    skipped: Mapping[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches


def read_batches(source: Input, types: Mapping[str, pa.DataType] | None = None, *, skip_bad: bool = False) -> Batches:
    """Read a table as Arrow batches; with ``skip_bad``, JSON without the rows that are broken or of another type.

    Parquet and Arrow are read batch by batch and keep their types. CSV and JSON carry none: `types` says
    those of the columns it names; the others are inferred over the whole input. JSON text stays text even
    where it looks like a time.
    """
    try:
        if source.format in (Format.parquet, Format.arrow):
            found = (_parquet_batches if source.format is Format.parquet else _arrow_batches)(source)
            _refuse_deep(source, deep_column(found.schema))
            _decode_names(found.schema)
            return found
        skipped: dict[int, str] = {}
        if skip_bad and source.format not in DELIMITERS:
            source, skipped = _without_bad_rows(source, types or {})
        read = _csv_table if source.format in DELIMITERS else _json_table
        table = read(source, dict(types or {}))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _not_what_it_says(source, error, types) from error
    return Batches(source.name, table.schema, table.num_rows, iter(table.to_batches(BATCH_ROWS)), skipped)


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


def _without_bad_rows(source: Input, types: Mapping[str, pa.DataType]) -> tuple[Input, dict[int, str]]:
    """Return JSON lines with an empty row in place of each bad one, and what is wrong with those, by their number."""
    text = source.data.to_pybytes().decode("utf-8", "replace")
    rows = list(json_rows(text, source.format is Format.json))
    faults = faults_in_json(rows, types)
    skipped = {number: fault for number, fault in enumerate(faults) if fault is not None}
    if not skipped:
        return source, {}
    kept = ("{}" if number in skipped else json.dumps(row.value) for number, row in enumerate(rows))
    return replace(source, format=Format.jsonl, data=pa.py_buffer("\n".join(kept).encode())), skipped


def _refuse_deep(source: Input, fault: str | None) -> None:
    if fault is not None:
        raise FileFormatError(f"{source.name}: {fault}")


def _decode_names(fields: Iterable[pa.Field]) -> None:
    """Decode the name of every field, nested ones too: one that is not UTF-8 fails here, not later."""
    for each in fields:
        str(each.name)
        _decode_names(each.type.field(number) for number in range(each.type.num_fields))


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
    if not data.size or not data[: 1 << 20].to_pybytes().strip():
        return pa.table({})
    _refuse_deep(source, deep_json(data))
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


def _not_what_it_says(source: Input, error: Exception, types: Mapping[str, pa.DataType] | None = None) -> FileError:
    """Say what is wrong with an input that its reader refused, with the line where there are lines."""
    if isinstance(error, FileError):
        return error
    seen = source.data[:4].to_pybytes()
    looks = sniff(source.data)
    if source.format is Format.parquet and seen != b"PAR1":
        reason = f"it is not a Parquet file: it begins with {seen!r}, not b'PAR1'"
    elif source.format is Format.parquet:
        reason = f"the Parquet file is truncated or damaged: {first_line(error)}"
    elif source.format is Format.arrow:
        reason = f"the Arrow file is truncated, damaged or not Arrow: {first_line(error)}"
    else:
        reason = _fault_in_text(source, error, types or {}) or first_line(error)
    if looks is not None and looks is not source.format and {looks, source.format} != {Format.json, Format.jsonl}:
        reason += f" (it looks like {looks})"
    return FileFormatError(f"{source.name}: {reason}")


def _fault_in_text(source: Input, error: Exception, types: Mapping[str, pa.DataType]) -> str | None:
    try:
        text = str(source.data, "utf-8")
    except UnicodeDecodeError as undecodable:
        return fault_in_utf8(undecodable)
    if source.format in DELIMITERS:
        return fault_in_csv(text, DELIMITERS[source.format], str(error))
    return fault_in_json(json_rows(text, source.format is Format.json), types)
