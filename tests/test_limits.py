"""Every limit in docs/limits.md holds at its figure and not one beyond, and says so."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tocsin import Boolean, Matcher, Number, Space, Text, TocsinError, errors
from tocsin.cli.files import read_table
from tocsin.cli.inputs import Format, Input

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
SPACE = Space({"a": Number(), "i": Number("int64"), "c": Text(), "b": Boolean()})


def rows() -> dict[str, tuple[str, str, str]]:
    """Return the rows of the table by what they limit: the figure, the error and where the constant is."""
    cells = [
        line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").split("\n") if line[:2] == "| "
    ]
    return {cell[0]: (cell[1], cell[2], cell[3].strip("`")) for cell in cells if cell[0] not in ("what",)}


def figure(what: str) -> int:
    """Return the value of the constant that a row names."""
    module, _, name = rows()[what][2].rpartition(".")
    return int(getattr(importlib.import_module(module), name))


def subscribed(text: str) -> None:
    """Subscribe to an expression, and match with it."""
    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("at", text)
    matcher.match({"a": 1.0, "i": 1, "c": "x", "b": True})


def wide(count: int) -> str:
    return " OR ".join(f"(a = {number} AND c = 'c{number}')" for number in range(count))


def read_nested(depth: int) -> None:
    """Read a row of JSON that nests so deep."""
    row = b'{"x": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    read_table(Input("rows.jsonl", Format.jsonl, pa.py_buffer(row)))


TRIES: dict[str, Callable[[int, int], None]] = {
    "length of an expression": lambda limit, more: subscribed(f"c = '{'x' * (limit + more - 6)}'"),
    "nesting of parentheses, NOTs and signs": lambda limit, more: subscribed(
        "(" * (limit // 2) + "NOT " * (limit // 2 + more) + "b" + ")" * (limit // 2)
    ),
    "operators in a row without AND, OR or comma (`1 + 1 + 1`, `a.b.c`)": lambda limit, more: subscribed(
        "a = 1" + " + 1" * (limit - 1 + more)
    ),
    "digits of an integer or decimal": lambda limit, more: subscribed("a < " + "9" * (limit + more)),
    "boxes of a subscription": lambda limit, more: subscribed(wide(limit + more)),
    "LIKE pattern with a wildcard inside": lambda limit, more: subscribed(f"c LIKE 'x_{'y' * (limit - 2 + more)}'"),
    "wildcards of a LIKE pattern": lambda limit, more: subscribed(f"c LIKE '{'x_' * (limit + more)}'"),
    "regular expression": lambda limit, more: subscribed(f"c RLIKE '{'x' * (limit + more)}'"),
    "nesting of a table's structs and lists (command line)": lambda limit, more: read_nested(limit + more),
    "compiled regular expression": lambda limit, more: subscribed(f"c RLIKE '{'(.{900}|a)' * (4 + more)}'"),
}
"""For each row, something that is as large as its limit, or larger by so much."""


def test_every_row_is_tried_and_every_try_has_a_row() -> None:
    assert TRIES.keys() == rows().keys()


@pytest.mark.parametrize("what", TRIES)
def test_the_page_tells_the_figure_of_the_constant(what: str) -> None:
    assert f"{figure(what):,}" in rows()[what][0]


@pytest.mark.parametrize("what", TRIES)
def test_the_limit_itself_is_accepted(what: str) -> None:
    TRIES[what](figure(what), 0)


@pytest.mark.parametrize("what", TRIES)
def test_one_beyond_the_limit_is_refused_as_the_page_says(what: str) -> None:
    kind, _, said = rows()[what][1].partition(": ")
    with pytest.raises(TocsinError) as caught:
        TRIES[what](figure(what), 1)
    assert type(caught.value) is getattr(errors, kind.strip("`"))
    assert said in re.sub(r"\s+", " ", str(caught.value))
    if isinstance(caught.value, errors.ExpressionError):
        assert (caught.value.line or 0) >= 1 <= (caught.value.column or 0)
