"""Every limit in docs/limits.md holds at its figure and not one beyond, and says so."""

from __future__ import annotations

import importlib
import re
import tempfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tocsin import (
    Boolean,
    Concept,
    Derived,
    Matcher,
    Number,
    Repeated,
    Space,
    Subjects,
    Text,
    TocsinError,
    errors,
    operator,
)
from tocsin.cli.files import read_table
from tocsin.cli.inputs import Format, Input
from tocsin.operators.operator import Operator
from tocsin.operators.shapes import read_shape

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
SPACE = Space({"a": Number(), "i": Number("int64"), "c": Text(), "b": Boolean()})


def table(heading: str) -> dict[str, tuple[str, str, str]]:
    """Return the rows of the table that begins so by what they limit: the figure, what is said and the constant."""
    _, _, below = PAGE.read_text(encoding="utf-8").partition(heading)
    cells = [line.strip("| \n").split(" | ") for line in below.split("\n\n")[0].split("\n") if line[:2] == "| "]
    return {cell[0]: (cell[1], cell[2], cell[3].strip("`")) for cell in cells}


ROWS = table("| what | limit | error | where |")
BOUNDS = table("| what | bound | beyond it | where |")


def figure(what: str) -> int:
    """Return the value of the constant that a row names."""
    module, _, name = (ROWS | BOUNDS)[what][2].rpartition(".")
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


def calls(name: str, count: int) -> Operator:
    """Return an operator that binds so many numbers, and whose failure is an error."""

    def run(a: float) -> list[int]:
        return list(range(count))

    return operator(run, name=name, reads=["a"], outputs=["n"], on_failure="error")


def bound(count: int) -> None:
    """Match an event for which one conjunction takes so many combinations."""
    matcher = Matcher(SPACE, "scan", operators=[calls("f", count)])
    matcher.subscribe("s", "f(:n) AND :n < 0")
    matcher.match({"a": 1.0})


def alternatives(left: int, right: int) -> None:
    """Subscribe to the negation of two ORs, of so many terms each, around variables."""
    ors = [" OR ".join(f"(f(:n) AND :n > {number})" for number in range(count)) for count in (left, right)]
    matcher = Matcher(SPACE, "scan", operators=[calls("f", 1)])
    matcher.subscribe("s", f"NOT (({ors[0]}) AND ({ors[1]}))")
    matcher.match({"a": 1.0})


def in_mappings(held: Any, depth: int) -> Any:
    return reduce(lambda inner, _: {"d": inner}, range(depth), held)


def in_lists(held: Any, depth: int) -> Any:
    return reduce(lambda inner, _: [inner], range(depth), held)


def nested_dimensions(depth: int) -> None:
    """Declare and infer a dimension so deep, and publish a region and match an event that give it."""
    space, event = Space(in_mappings({"x": Text()}, depth)), in_mappings({"x": "a"}, depth)
    assert list(Space.infer([event])) == list(space)
    name = ".".join("d" * depth) + ".x"
    matcher, subjects = Matcher(space, "scan"), Subjects(space, engine="scan")
    matcher.subscribe("s", f"{name} = 'a'")
    subjects.subscribe("s", f"{name} = 'a'")
    assert matcher.match(event) == ["s"] and len(subjects.publish("p", event)) == 1


def nested_lists(depth: int) -> None:
    matcher = Matcher(Space({"s": {"t": Repeated(Text())}}), "scan")
    matcher.subscribe("s", "s.t = 'x'")
    assert matcher.match({"s": in_lists({"t": "x"}, depth)}) == ["s"]


def quantity(text: str) -> None:
    """Match an event that has this quantity."""
    matcher = Matcher(Space({"w": Number(unit="kg")}), "scan")
    matcher.subscribe("s", "w < 9")
    assert matcher.match({"w": text}) == ["s"]


def derived(numeral: str) -> None:
    """Match an event with a dimension derived by a formula that has this constant."""
    matcher = Matcher(Space({"a": Number(), "d": Derived(f"a + {numeral}", Number())}), "scan")
    matcher.subscribe("s", "d > 0")
    assert matcher.match({"a": 1.0}) == ["s"]


def tree(source: Any) -> None:
    Space({"k": Concept(source)})


def sets(count: int) -> None:
    """Match an event, and publish a region, that has a set of so many values."""
    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("s", "i = 0")
    assert matcher.match({"i": set(range(count))}) == ["s"]
    Subjects(SPACE, engine="scan").publish("p", {"i": set(range(count))})


def shape(text: str) -> None:
    assert read_shape(text).is_valid


def filtered(*sizes: int) -> None:
    """Subscribe with groups of so many regions, of each of which one must match."""
    groups = [[f"r{group}_{number}" for number in range(size)] for group, size in enumerate(sizes)]
    names = [name for group in groups for name in group]
    chosen = " AND ".join(f"({' OR '.join(group)})" for group in groups)
    Subjects(SPACE, engine="scan").subscribe("s", regions=dict.fromkeys(names, "a > 1"), filter=chosen)


def with_regions(count: int) -> None:
    Subjects(SPACE, engine="scan").publish("p", regions={f"r{number}": {"a": number} for number in range(count)})


def named(count: int) -> None:
    """Give a region so many names; that most of them name nothing is found out later."""
    try:
        Subjects(SPACE, engine="scan").publish("p", dict.fromkeys(map("n{}".format, range(count)), 1))
    except errors.RegionError as error:
        if "there is no dimension n0" not in str(error):
            raise


def noted(size: int) -> None:
    """Save a matcher with a note of so many bytes as JSON."""
    with tempfile.TemporaryDirectory() as directory:
        Matcher(SPACE, "scan").save(Path(directory) / "saved", note="x" * (size - 2))


def declared(**settings: Any) -> None:
    operator(lambda a: True, name="f", reads=["a"], **settings)


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
    "conjunctions that ORs around variables of operators come to, under NOT": lambda limit, more: alternatives(
        *((25, 41) if more else (32, limit // 32))
    ),
    "digits of a constant in the formula of a derived dimension": lambda limit, more: derived("9" * (limit + more)),
    "nesting of dimensions, of the events that they are inferred from, and of regions": lambda limit, more: (
        nested_dimensions(limit + more)
    ),
    "lists of trees in lists": lambda limit, more: tree(in_lists({"a": ["b"]}, limit + more)),
    "lists in lists of an event": lambda limit, more: nested_lists(limit + more),
    "combinations that the sets of an event or region make": lambda limit, more: sets(limit + more),
    "text of a quantity": lambda limit, more: quantity(f"5{' ' * (limit - 3 + more)}kg"),
    "name of a unit": lambda limit, more: quantity(f"5 kg{'*g/g' * (limit // 4 - 1)}*{' ' * more}1"),
    "digits of a power in a unit": lambda limit, more: quantity("5 kg*g**{0}/g**{0}".format("9" * (limit + more))),
    "digits before the point, or zeros behind it, of a quantity": lambda limit, more: quantity(f"1e-{limit + more} kg"),
    "text of a shape (WKT, GeoJSON)": lambda limit, more: shape(f"POINT (1 2{' ' * (limit - 11 + more)})"),
    "nesting of a shape": lambda limit, more: shape(
        "GEOMETRYCOLLECTION (" * (limit - 1 + more) + "POINT (1 2)" + ")" * (limit - 1 + more)
    ),
    "combinations of bindings tried for one conjunction and event": lambda limit, more: bound(limit + more),
    "`retries` of an operator": lambda limit, more: declared(retries=limit + more),
    "`remember` of an operator": lambda limit, more: declared(remember=limit + more),
    "`limit` of an operator": lambda limit, more: declared(limit=limit + more),
    "names in a region": lambda limit, more: named(limit + more),
    "regions of a publication or subscription": lambda limit, more: with_regions(limit + more),
    "alternatives of a filter": lambda limit, more: filtered(*((5, 5, 41) if more else (8, 8, limit // 64))),
    "integer id given alone; a column of uint64 holds greater ones": lambda limit, more: Matcher(
        SPACE, "scan"
    ).subscribe(limit + more, "b"),
    "note of a saved matcher": lambda limit, more: noted(limit + more),
}
"""For each row, something that is as large as its limit, or larger by so much."""


def test_every_row_is_tried_and_every_try_has_a_row() -> None:
    assert TRIES.keys() == ROWS.keys()


@pytest.mark.parametrize("what", ROWS | BOUNDS)
def test_the_page_tells_the_figure_of_the_constant(what: str) -> None:
    assert f"{figure(what):,}" in (ROWS | BOUNDS)[what][0]


@pytest.mark.parametrize("what", TRIES)
def test_the_limit_itself_is_accepted(what: str) -> None:
    TRIES[what](figure(what), 0)


@pytest.mark.parametrize("what", TRIES)
def test_one_beyond_the_limit_is_refused_as_the_page_says(what: str) -> None:
    kind, _, said = ROWS[what][1].partition(": ")
    with pytest.raises(TocsinError) as caught:
        TRIES[what](figure(what), 1)
    assert type(caught.value) is getattr(errors, kind.strip("`"))
    assert said in re.sub(r"\s+", " ", str(caught.value))
    if isinstance(caught.value, errors.ExpressionError):
        assert (caught.value.line or 0) >= 1 <= (caught.value.column or 0)
