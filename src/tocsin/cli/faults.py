"""The second look: where exactly a text is bad that a fast reader has refused.

Each function returns a sentence with the line, or None when it finds nothing to say beyond what the reader
said.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

import pyarrow as pa

from tocsin.cli.json_rows import JsonRow, kind_of

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
    seen: dict[str, tuple[int, str]] = {}
    for row in rows:
        if row.value is None:
            return f"line {row.line}, column {row.column}: {row.reason}"
        for name, value in row.value.items():
            if name in types:
                if not _fits(value, types[name]):
                    return f"line {row.line}: {name!r} is {value!r}, where {types[name]} is expected"
                continue
            kind = kind_of(value)
            line, first = seen.setdefault(name, (row.line, kind)) if kind != "null" else (0, kind)
            if first != kind:
                return f"line {row.line}: {name!r} is {kind}, but on line {line} it is {first}; make them agree"
    return None


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
