"""The second look: where exactly a text is bad that a fast reader has refused.

Each function returns a sentence with the line, or None when it finds nothing to say beyond what the reader
said.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tocsin.cli.json_rows import JsonRow, kind_of
from tocsin.cli.nesting import MAX_NESTING

_BAD_CELL = re.compile(r"In CSV column #(\d+): .* error to (\w+).*: invalid value '(.*)'", re.DOTALL)


def fault_in_utf8(error: UnicodeDecodeError) -> str:
    r"""Say on which line a text stops being UTF-8.

    >>> try:
    ...     b"one\ntw\xff".decode()
    ... except UnicodeDecodeError as error:
    ...     print(fault_in_utf8(error))
    line 2, byte 3: 0xff is not UTF-8; save the file as UTF-8
    """
    before = error.object[: error.start]
    line, byte = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
    return f"line {line}, byte {byte}: 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"


def fault_in_csv(text: str, delimiter: str, message: str) -> str | None:
    r"""Find the line with too few or too many cells, or the cell that a reader's message complains of.

    >>> fault_in_csv("a,b\n1,2\n3\n", ",", "")
    'line 3: 1 cells, where the header has 2'
    """
    found = _BAD_CELL.search(message)
    column, wanted, value = (int(found[1]), found[2], found[3]) if found else (-1, "", "")
    start = 1
    header: list[str] = []
    csv.field_size_limit(max(len(text), 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            header = header or cells
            if cells and len(cells) != len(header):
                return f"line {line}: {len(cells)} cells, where the header has {len(header)}"
            if 0 <= column < len(cells) and cells[column] == value and line > 1:
                return f"line {line}, column {header[column]!r}: {value!r} is no {wanted}"
    except csv.Error as error:
        return f"line {start}: {error}"
    return None


def fault_in_json(rows: Iterable[JsonRow], types: Mapping[str, pa.DataType]) -> str | None:
    """Find the row that is not an object, or a value that is not of its declared type or of the kind it had before.

    >>> rows = [JsonRow(1, {"a": 1}), JsonRow(2, {"a": "x"})]
    >>> fault_in_json(rows, {})
    "line 2: 'a' is a text, but on line 1 it is a number; make them agree"
    >>> fault_in_json(rows, {"a": pa.int64()})
    "line 2: 'a' is 'x', where int64 is expected"
    """
    return next((fault for fault in faults_in_json(rows, types) if fault is not None), None)


def faults_in_json(rows: Iterable[JsonRow], types: Mapping[str, pa.DataType]) -> Iterator[str | None]:
    """Yield for each row what is wrong with it, None where nothing is; a bad row does not count for those after it.

    >>> rows = [JsonRow(1, {"a": 1}), JsonRow(2, {"a": "x"}), JsonRow(3, {"a": 3})]
    >>> [fault is None for fault in faults_in_json(rows, {})]
    [True, False, True]
    """
    seen: dict[str, tuple[int, str]] = {}
    for row in rows:
        if row.value is None:
            yield f"line {row.line}, column {row.column}: {row.reason}"
            continue
        kinds: dict[str, tuple[int, str]] = {}
        fault = _deep_fault(row)
        for name, value in row.value.items():
            if fault is not None:
                break
            if name in types:
                if not _fits(value, types[name]):
                    fault = f"line {row.line}: {name!r} is {value!r}, where {types[name]} is expected"
            elif value is not None:
                line, first = seen.get(name, (row.line, kind_of(value)))
                if first != kind_of(value):
                    said = f"but on line {line} it is {first}; make them agree"
                    fault = f"line {row.line}: {name!r} is {kind_of(value)}, {said}"
                kinds[name] = row.line, first
        if fault is None:
            seen = {**kinds, **seen} if kinds.keys() - seen.keys() else seen
        yield fault


def _deep_fault(row: JsonRow) -> str | None:
    """Say that a row nests too deeply."""
    level, depth = [row.value], 1
    while level := [part for each in level for part in _parts(each)]:
        depth += 1
        if depth > MAX_NESTING:
            return f"line {row.line}: it is nested deeper than {MAX_NESTING}, which is the limit"
    return None


def _parts(value: object) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inner if isinstance(part, (dict, list))]


def _fits(value: object, wanted: pa.DataType) -> bool:
    if isinstance(value, float) and pa.types.is_integer(wanted):
        return False
    if isinstance(value, float) and pa.types.is_decimal(wanted):
        value = Decimal(repr(value))
    try:
        pa.scalar(value, wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
