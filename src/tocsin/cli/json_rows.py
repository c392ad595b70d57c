"""JSON text as rows with their places: one object a line, or one object an element of an array.

Nothing here raises for what a text contains: a row that is not a JSON object carries the reason instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLANK = re.compile(r"[ \t\r\n]*")
_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}


class JsonRow(NamedTuple):
    """One row: the line it starts on, and its object, or what is wrong with it and in which column."""

    line: int
    value: dict[str, Any] | None
    reason: str = ""
    column: int | None = None


class _BadJsonError(ValueError):
    """A text that is not JSON, or not what is wanted of it: the reason and the position."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason, self.position = reason, position


def json_rows(text: str, is_array: bool) -> Iterator[JsonRow]:
    r"""Yield the rows of a text in order; blank lines are none. A broken array ends with its fault.

    >>> list(json_rows('{"a": 1}\n\n{"a": }', is_array=False))[1]
    JsonRow(line=3, value=None, reason='expecting value', column=7)
    >>> [row.line for row in json_rows('[{},\n{}]', is_array=True)]
    [1, 2]
    """
    if is_array:
        yield from _rows_of_array(text)
        return
    for line, row in enumerate(text.split("\n"), 1):
        if not row.isspace() and row:
            try:
                start = _skip_blank(row, 0)
                value, end = _decode_object(row, start)
                if end < len(row):
                    raise _BadJsonError("there is more after the end of the object", end)
                yield JsonRow(line, value)
            except _BadJsonError as error:
                yield JsonRow(line, None, error.reason, error.position + 1)


def array_as_lines(text: str) -> bytes:
    r"""Return the elements of a JSON array of objects, one a line; ValueError when the text is not one.

    >>> array_as_lines('[{"a": 1}, {"a":\n2}]')
    b'{"a": 1}\n{"a": 2}'
    """
    # A line feed inside an element is blank space: JSON texts cannot hold one unescaped.
    return "\n".join(text[start:end].replace("\n", " ") for start, end, _ in _elements(text)).encode()


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words.

    >>> kind_of([1]), kind_of(None)
    ('an array', 'null')
    """
    return _KINDS.get(type(value), "null")


def _rows_of_array(text: str) -> Iterator[JsonRow]:
    line, counted = 1, 0
    try:
        for start, _, value in _elements(text):
            line, counted = line + text.count("\n", counted, start), start
            yield JsonRow(line, value)
    except _BadJsonError as error:
        line += text.count("\n", counted, error.position)
        yield JsonRow(line, None, error.reason, error.position - text.rfind("\n", 0, error.position))


def _elements(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield (start, end, object) for each element of a JSON array."""
    at = _skip_blank(text, 0)
    if text[at : at + 1] != "[":
        raise _BadJsonError("an array [ … ] is expected", at)
    at = _skip_blank(text, at + 1)
    closed = text[at : at + 1] == "]"
    while not closed:
        value, end = _decode_object(text, at)
        yield at, end, value
        if text[end : end + 1] not in (",", "]"):
            raise _BadJsonError("',' or ']' is expected after an element", end)
        closed = text[end] == "]"
        at = end if closed else _skip_blank(text, end + 1)
    rest = _skip_blank(text, at + 1)
    if rest < len(text):
        raise _BadJsonError("there is more after the end of the array", rest)


def _decode_object(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Return the object that starts at a position, and the position of what follows it."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise _BadJsonError(reason, error.pos) from None
    except RecursionError:
        raise _BadJsonError("it is nested too deeply", at) from None
    except ValueError as error:  # a key given twice, or a number of thousands of digits
        raise _BadJsonError(str(error), at) from None
    if not isinstance(value, dict):
        raise _BadJsonError(f"it is {kind_of(value)}, where an object {{ … }} is expected", at)
    return value, _skip_blank(text, end)


def _skip_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys)
