"""How deep tables nest: Arrow's reader of JSON ends the process on a text that nests tens of thousands deep, so that is
looked at first."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

MAX_NESTING = 100
"""How deep structs and lists of a table may nest, whichever its format."""

_CHUNK = 1 << 24
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def deep_json(data: pa.Buffer) -> str | None:
    r"""Say on which line of JSON lines a value nests too deeply; None if there is none.

    >>> deep_json(pa.py_buffer(b'{"a": 1}\n{"a": ' + b"[" * 200 + b"]" * 200 + b"}"))
    'line 2: it is nested 201 deep; the limit is 100'
    """
    start, line = 0, 1
    while start < data.size:
        end = _line_end(data, min(start + _CHUNK, data.size))
        some = np.frombuffer(data, np.uint8, end - start, start)
        ends = np.append(np.flatnonzero(some == 10), len(some))
        opening = np.flatnonzero((some == 91) | (some == 123))
        counts = np.diff(np.searchsorted(opening, ends), prepend=0)
        for found in np.flatnonzero(counts > MAX_NESTING).tolist():
            first = int(ends[found - 1]) if found else 0
            depth = _depth(some[first : int(ends[found])].tobytes())
            if depth > MAX_NESTING:
                return f"line {line + found}: it is nested {depth:,} deep; the limit is {MAX_NESTING}"
        start, line = end, line + len(ends) - 1
    return None


def deep_column(schema: pa.Schema) -> str | None:
    """Say which column of a table nests too deeply; None if there is none.

    >>> deep_column(pa.schema({"a": pa.list_(pa.int64())}))
    """
    for field in schema:
        level, depth = [field.type], 0
        while level:
            level = [kind.field(at).type for kind in level for at in range(kind.num_fields)]
            depth += bool(level)
            if depth > MAX_NESTING:
                return f"the column {field.name!r} is nested deeper than {MAX_NESTING}, which is the limit"
    return None


def _line_end(data: pa.Buffer, at: int) -> int:
    """Return the end of the line that a position is in."""
    while at < data.size:
        found = data[at : at + _CHUNK].to_pybytes().find(b"\n")
        if found >= 0:
            return int(at + found + 1)
        at = min(at + _CHUNK, data.size)
    return int(data.size)


def _depth(row: bytes) -> int:
    """Return how deep the arrays and objects of a row nest, those signs in texts not counted."""
    deepest = depth = 0
    for found in _TOKEN.finditer(row):
        depth += 1 if found[0] in b"[{" else -1 if found[0] in b"]}" else 0
        deepest = max(deepest, depth)
    return deepest
