"""Random spaces: many in one table, so that one job on Spark tries them all.

A space is a group of columns, or a struct that holds them, of random types: every scalar that has an axis, nested,
repeated, and repeated structs. Values are the nasty ones of `tests.oracle.expressions`; constants come from the same
pools.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from tests.oracle.expressions import DAYS, DOUBLES, INTEGERS, LONG_DECIMALS, MOMENTS, TEXTS, moment, number, quoted


class Scalar(NamedTuple):
    """A type with its values: as Spark and as Arrow write it, and how a constant is written."""

    ddl: str
    arrow: pa.DataType
    pool: list[Any]
    text: Callable[[Any], str]


class Leaf(NamedTuple):
    """A field that an expression may test."""

    path: str
    scalar: Scalar


def _number(value: Any) -> str:
    return number(value).spark


SCALARS = [
    Scalar("boolean", pa.bool_(), [True, False], lambda value: str(value).lower()),
    Scalar("tinyint", pa.int8(), [-128, -1, 0, 1, 3, 127], _number),
    Scalar("smallint", pa.int16(), [-32768, 0, 1, 3, 300, 32767], _number),
    Scalar("int", pa.int32(), [-(2**31), -1, 0, 1, 3, 2**31 - 1], _number),
    Scalar("bigint", pa.int64(), INTEGERS, _number),
    Scalar("float", pa.float32(), [0.0, -0.0, 0.5, 1.5, -3.0, float("inf"), float("nan")], _number),
    Scalar("double", pa.float64(), DOUBLES, _number),
    Scalar("decimal(5,2)", pa.decimal128(5, 2), [Decimal(text) for text in ("0.00", "-0.01", "999.99", "3.10")], str),
    Scalar("decimal(30,3)", pa.decimal128(30, 3), LONG_DECIMALS, str),
    Scalar("string", pa.string(), TEXTS, lambda value: quoted(value).spark),
    Scalar("date", pa.date32(), DAYS, lambda value: f"DATE '{value.isoformat()}'"),
    Scalar(
        "timestamp",
        pa.timestamp("us", "UTC"),
        [value.replace(tzinfo=UTC) for value in MOMENTS],
        lambda value: moment(value.replace(tzinfo=None), zoned=True).spark,
    ),
    Scalar("timestamp_ntz", pa.timestamp("us"), MOMENTS, lambda value: moment(value, zoned=False).spark),
]


class Field(NamedTuple):
    """A column or a field of a struct: its types, how a value is drawn, and what in it can be tested."""

    name: str
    ddl: str
    arrow: pa.DataType
    draw: Callable[[random.Random], Any]
    leaves: list[Leaf]


def scalar_field(name: str, source: random.Random) -> Field:
    scalar = source.choice(SCALARS)
    return Field(name, scalar.ddl, scalar.arrow, lambda draw: draw.choice(scalar.pool), [Leaf(name, scalar)])


def struct_field(name: str, fields: list[Field]) -> Field:
    leaves = [Leaf(f"{name}.{leaf.path}", leaf.scalar) for field in fields for leaf in field.leaves]
    ddl = f"struct<{', '.join(f'{field.name}: {field.ddl}' for field in fields)}>"
    arrow = pa.struct([pa.field(field.name, field.arrow) for field in fields])
    return Field(name, ddl, arrow, lambda draw: {field.name: drawn(field, draw) for field in fields}, leaves)


def repeated_field(name: str, of: Field) -> Field:
    def draw_list(draw: random.Random) -> list[Any]:
        return [drawn(of, draw) for _ in range(draw.randrange(4))]

    return Field(name, f"array<{of.ddl}>", pa.list_(pa.field("element", of.arrow)), draw_list, of.leaves)


def drawn(field: Field, draw: random.Random) -> Any:
    """Return a value of a field, now and then NULL."""
    return None if draw.random() < 0.15 else field.draw(draw)


def random_field(name: str, source: random.Random) -> Field:
    shape = source.random()
    if shape < 0.55:
        return scalar_field(name, source)
    if shape < 0.75:
        return repeated_field(name, scalar_field(name, source))
    inner = [scalar_field("x", source), scalar_field("y", source)]
    if shape < 0.9:
        return struct_field(name, [*inner[:1], repeated_field("y", inner[1])])
    return repeated_field(name, struct_field(name, inner))


class Spaces:
    """Some random spaces in one table of events; expressions each look at one of them."""

    def __init__(self, source: random.Random, count: int) -> None:
        self.random = source
        self.columns: list[Field] = []
        self.spaces: list[list[Leaf]] = []
        for space in range(count):
            fields = [random_field(f"s{space}_f{number}", source) for number in range(source.randint(2, 5))]
            grouped = [struct_field(f"s{space}", fields)] if source.random() < 0.4 else fields
            self.columns += grouped
            self.spaces.append([leaf for field in grouped for leaf in field.leaves])

    @property
    def ddl(self) -> str:
        return ", ".join(["n bigint", *(f"{field.name} {field.ddl}" for field in self.columns)])

    def events(self, rows: int) -> pa.Table:
        columns = {"n": pa.array(range(rows), pa.int64())}
        for field in self.columns:
            columns[field.name] = pa.array([drawn(field, self.random) for _ in range(rows)], field.arrow)
        return pa.table(columns)

    def expression(self, depth: int = 2) -> str:
        return self._tree(self.random.choice(self.spaces), depth)

    def _tree(self, leaves: list[Leaf], depth: int) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self._leaf(self.random.choice(leaves))
        parts = [self._tree(leaves, depth - 1) for _ in range(self.random.randint(2, 3))]
        whole = f" {self.random.choice(['AND', 'AND', 'OR'])} ".join(f"({part})" for part in parts)
        return f"NOT ({whole})" if self.random.random() < 0.2 else whole

    def _leaf(self, leaf: Leaf) -> str:
        path, scalar = leaf
        some = [scalar.text(self.random.choice(scalar.pool)) for _ in range(3)]
        forms = [f"{path} {sign} {some[0]}" for sign in ("=", "=", "<>", "<", "<=", ">", ">=")]
        forms += [f"{path} IN ({', '.join(some)})", f"{path} BETWEEN {some[0]} AND {some[1]}"]
        forms += [f"{path} IS NULL", f"{path} IS NOT NULL", f"{path} NOT IN ({some[0]}, {some[1]})"]
        if scalar.ddl == "string":
            forms += [f"{path} LIKE '{pattern}'" for pattern in ("a%", "%b", "%本%")]
        if scalar.ddl == "boolean":
            forms = [path, f"NOT {path}", f"{path} = true", f"{path} IS NULL", f"{path} <> false"]
        return self.random.choice(forms)


def seeded_spaces(*parts: object, count: int) -> Spaces:
    """Return spaces that these parts decide."""
    return Spaces(random.Random("/".join(map(str, parts))), count)
