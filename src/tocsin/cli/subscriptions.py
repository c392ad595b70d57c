"""Files of subscriptions: rows of an id and an expression, each with the line it stands on.

A row that cannot be read as such (broken JSON, a missing cell) is a fault and is reported with all the
others, so that one run shows everything there is to mend.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from tocsin.cli.faults import fault_in_utf8
from tocsin.cli.files import read_table, require_columns
from tocsin.cli.inputs import DELIMITERS, Format, Input
from tocsin.cli.json_rows import json_rows, kind_of
from tocsin.errors import FileFormatError

ID, EXPRESSION = "id", "expression"


class Fault(NamedTuple):
    """One bad row: its line (or row, in a file without lines), the column, the id if known, the reason."""

    line: int
    column: int | None
    id: Any
    reason: str


@dataclass(frozen=True)
class Subscriptions:
    """The good rows of a file as Arrow columns `id` and `expression`, their lines, and the faults of the
    others.

    ``place`` is the word for what ``lines`` count: ``line`` in text, ``row`` in Parquet and Arrow, both from
    1.
    """

    name: str
    place: str
    table: pa.Table
    lines: list[int] | range
    faults: list[Fault]


class _Row(NamedTuple):
    line: int
    id: Any
    expression: Any
    fault: str | None = None
    column: int | None = None


def read_subscriptions(source: Input, id: str = ID, expression: str = EXPRESSION) -> Subscriptions:
    """Read a file of subscriptions; `id` and `expression` name its columns.

    Ids from CSV are text, exactly as written; ids from JSON are texts or integers, all of one kind.
    """
    if source.format in (Format.parquet, Format.arrow):
        table = read_table(source)
        require_columns(source.name, table.column_names, [id, expression])
        chosen = pa.table({ID: table[id], EXPRESSION: table[expression]})
        return Subscriptions(source.name, "row", chosen, range(1, table.num_rows + 1), [])
    try:
        text = str(source.data, "utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{source.name}: {fault_in_utf8(error)}") from error
    rows = _csv_rows if source.format in DELIMITERS else _json_rows
    return _gathered(source.name, list(rows(source, text, id, expression)))


def _gathered(name: str, rows: list[_Row]) -> Subscriptions:
    kinds = {kind_of(row.id) for row in rows if row.fault is None}
    if len(kinds) > 1:
        first = next(row for row in rows if row.fault is None)
        rows = [_of_one_kind(row, first) for row in rows]
    good = [row for row in rows if row.fault is None]
    faults = [Fault(row.line, row.column, row.id, row.fault) for row in rows if row.fault is not None]
    texts = pa.array([row.expression for row in good], pa.string())
    ids = pa.array([row.id for row in good], None if good else pa.string())
    return Subscriptions(name, "line", pa.table({ID: ids, EXPRESSION: texts}), [row.line for row in good], faults)


def _of_one_kind(row: _Row, first: _Row) -> _Row:
    if row.fault is not None or kind_of(row.id) == kind_of(first.id):
        return row
    said = f"the id is {kind_of(row.id)}, but on line {first.line} it is {kind_of(first.id)}"
    return row._replace(fault=f"{said}; ids of one file are of one kind")


def _csv_rows(source: Input, text: str, id: str, expression: str) -> Iterator[_Row]:
    csv.field_size_limit(max(len(text), 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=DELIMITERS[source.format], strict=True)
    start, header = 1, None
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            if header is None:
                header = cells
                require_columns(source.name, header, [id, expression])
                at_id, at_expression = header.index(id), header.index(expression)
            elif len(cells) == len(header):
                yield _row(line, cells[at_id] or None, cells[at_expression] or None)
            elif cells:
                yield _Row(line, None, None, f"{len(cells)} cells, where the header has {len(header)}{_HINT}")
    except csv.Error as error:
        yield _Row(start, None, None, str(error))


_HINT = "; put an expression that has commas in double quotes"


def _json_rows(source: Input, text: str, id: str, expression: str) -> Iterator[_Row]:
    is_first = True
    for row in json_rows(text, source.format is Format.json):
        if row.value is None:
            yield _Row(row.line, None, None, row.reason, row.column)
            continue
        if is_first:  # a misspelt column is one error, not one a row
            require_columns(source.name, list(row.value), [id, expression])
            is_first = False
        yield _row(row.line, row.value.get(id), row.value.get(expression))


def _row(line: int, id: Any, expression: Any) -> _Row:
    """Return a row, with its fault when the id or the expression is missing or of a wrong kind."""
    fault = None
    if id is None:
        fault = "the id is missing"
    elif not isinstance(id, str | int) or isinstance(id, bool):
        fault = f"the id is {kind_of(id)}; a text or an integer is expected"
    elif isinstance(id, int) and not -(2**63) <= id < 2**63:
        fault = "the id is beyond 64-bit integers; write it as a text"
    elif expression is None:
        fault = "the expression is missing"
    elif not isinstance(expression, str):
        fault = f"the expression is {kind_of(expression)}; a text is expected"
    return _Row(line, id, expression, fault)
