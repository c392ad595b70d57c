"""Inputs that nobody should give: odd values, texts and settings, drawn from a seeded generator.

Each case is a call of something public; whatever it is given, it returns or raises TocsinError, TypeError or ValueError
of a wrong option.
"""

from __future__ import annotations

import datetime
import json
import math
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import tocsin

Case = Callable[[], Any]

NUMBERS: list[Any] = [
    0, 1, -1, 5, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**38, -(10**400), 0.0, -0.0, 0.5, 1e300, 5e-324,
    math.nan, math.inf, -math.inf, True, False, Decimal("1.50"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
    Decimal("1e999999"), Decimal("1e-999999"), Decimal("9" * 60), Fraction(1, 3), 1 + 2j, np.int64(7), np.float32(0.1),
    np.float64("nan"), np.uint64(2**64 - 1), np.bool_(True), np.int8(-5),
]  # fmt: skip
TEXTS: list[Any] = [
    "", "a", "NYC", "ß", "İ", "日本", "\ud800", "\x00", "a" * 5_000, "%", "_", "\\", "'", '"', "2026-02-30",
    "2026-01-31 12:00:00+99:00", "9999-12-31 23:59:59-18:00", "0001-01-01 00:00:00+18:00", "10.0.0.1", "::1",
    "2026-01-31", "10.0.0.0/33",
    "5 kg", "5 USD", "POINT (1 2)", "POINT EMPTY", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "(" * 300, "[1, 0]", "[1, NaN]",
    "٣", "1e5", "nan", "laptop", "computer", np.str_("x"), b"bytes", bytearray(b"x"),
]  # fmt: skip
TIMES: list[Any] = [
    datetime.date(2026, 1, 31), datetime.date.min, datetime.date.max, datetime.datetime(2026, 1, 31, 12),
    datetime.datetime.max, datetime.datetime.min.replace(tzinfo=datetime.UTC), datetime.time(12), datetime.timedelta(1),
    np.datetime64("2026-01-31"), np.datetime64("NaT"), uuid.UUID(int=5),
]  # fmt: skip
FIELDS = ["price", "whole", "long", "city", "tags", "day", "at", "sold", "ip", "kind", "weight", "seller.city", "size"]


def space(pick: random.Random, *, repeated: bool = True) -> tocsin.Space:
    """Return a space of every type of dimension; publications have no ``repeated`` ones."""
    lists = {"tags": tocsin.Repeated(tocsin.Text()), "sizes": tocsin.Repeated(tocsin.Number())} if repeated else {}
    return tocsin.Space(
        {
            **lists,
            "price": tocsin.Number(),
            "whole": tocsin.Number("int64"),
            "long": tocsin.Number("decimal(30, 5)"),
            "city": tocsin.Text(),
            "day": tocsin.Time("date"),
            "at": tocsin.Time(),
            "sold": tocsin.Boolean(),
            "ip": tocsin.Address(),
            "kind": tocsin.Concept({"product": ["computer", "phone"]}, unknown_values="text"),
            "seller": {"city": tocsin.Text(), "rank": tocsin.Number("int64")},
            "place": tocsin.Text(),
        },
        unspecified=pick.choice(["null", "null", "any"]),  # type: ignore[arg-type]
    )


def value(pick: random.Random, depth: int = 0, *, cycles: bool = True) -> Any:
    """Return any value at all: odd ones, lists and mappings of them, ranges and, with ``cycles``, those on which
    PyArrow crashes (see `table`)."""
    roll = pick.random()
    if roll < 0.3:
        return pick.choice(NUMBERS)
    if roll < 0.55:
        return pick.choice(TEXTS)
    if roll < 0.65:
        return pick.choice(TIMES if cycles else [each for each in TIMES if not isinstance(each, np.datetime64)])
    if roll < 0.7:
        return None
    if roll < 0.78 and depth < 4:
        return [value(pick, depth + 1, cycles=cycles) for _ in range(pick.randint(0, 3))]
    if roll < 0.84 and depth < 4:
        names = ["low", "high", "value", "unit", "city", 5]
        return {pick.choice(names): value(pick, depth + 1, cycles=cycles) for _ in range(2)}
    if roll < 0.9 and depth < 4:
        return value(pick, depth + 1, cycles=cycles), value(pick, depth + 1, cycles=cycles)
    if roll < 0.92:
        return pick.choice([_itself([]), _itself({}), nested(250)]) if cycles else nested(60)
    if roll < 0.94:
        return pick.choice([{"a", 5}, frozenset(), np.array([1.0, math.nan]), np.array("x"), object(), int, range(3)])
    return pick.choice(["NYC", 5, 2.5, True])


def _itself(held: Any) -> Any:
    """Return a list or mapping that holds itself."""
    held.append(held) if isinstance(held, list) else held.update({"city": held, "low": held})
    return held


def nested(depth: int) -> Any:
    """Return a value inside so many lists."""
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


def event(pick: random.Random, *, cycles: bool = True) -> Any:
    """Return an event of fields that exist, some that do not, and values of any kind."""
    if pick.random() < 0.02:
        return value(pick, cycles=cycles)
    found: dict[Any, Any] = {}
    for name in pick.sample(FIELDS, pick.randint(0, 4)):
        first, _, rest = name.partition(".")
        held = value(pick, cycles=cycles)
        found[first] = {rest: held} if rest and pick.random() < 0.8 else held
    return found


def constant(pick: random.Random) -> str:
    """Return the text of a constant of any kind, sometimes of none."""
    return pick.choice(
        [
            str(pick.choice(NUMBERS)),
            repr(pick.choice(TEXTS)),
            f"'{pick.choice(['NYC', '2026-01-31', '10.0.0.1', 'a%', '%a', '_', '5 kg', 'laptop', 'computer', ''])}'",
            "NULL", "TRUE", "DATE '2026-02-30'", "TIMESTAMP '2026-01-31 12:00:00'", "1e999999999", "1 / 0",
            "9" * pick.choice([5, 18, 19, 38, 39, 5_000]), "1e5BD", "-9223372036854775808", "2 * 3 % 2", "0.1F",
            "CAST('1e999999999' AS INT)", "CAST('1e999999999' AS DECIMAL(38, 0))",
            "quantity('5 kg')", "CAST(5 AS DECIMAL(3, 2))", "CAST('x' AS DATE)", "'\\U0010FFFF'", "r'\\d+'", ":v", "?",
        ]
    )  # fmt: skip


def predicate(pick: random.Random) -> str:
    """Return a predicate over a field, most of which are refused."""
    name = pick.choice([*FIELDS, "unknown", "`a b`", "from", "Price", "place"])
    sign = pick.choice(["=", "<>", "<", "<=", ">", ">=", "<=>", "!="])
    forms: list[Callable[[], str]] = [
        lambda: f"{name} {sign} {constant(pick)}",
        lambda: f"{name} IN ({', '.join(constant(pick) for _ in range(pick.randint(0, 3)))})",
        lambda: f"{name} BETWEEN {constant(pick)} AND {constant(pick)}",
        lambda: f"{name} LIKE {constant(pick)}",
        lambda: (
            f"{name} RLIKE {pick.choice([constant(pick), repr('a+'), repr('('), repr('(?i)x|y'), repr('.{1000}')])}"
        ),
        lambda: f"{name} IS {pick.choice(['NULL', 'NOT NULL', 'TRUE', 'NOT FALSE', '5'])}",
        lambda: f"{pick.choice(['lower', 'upper'])}({name}) {sign} {constant(pick)}",
        lambda: f"{pick.choice(['startswith', 'contains', 'endswith'])}({name}, {constant(pick)})",
        lambda: f"is_a({name}, {constant(pick)})",
        lambda: f"in_network({name}, {constant(pick)})",
        lambda: f"{pick.choice(['matches', 'mentions', 'similarity'])}({name}, {constant(pick)})",
        lambda: f"{pick.choice(['within', 'intersects'])}({name}, {constant(pick)})",
        lambda: f"nearby({name}, {constant(pick)}, {constant(pick)})",
        lambda: name,
    ]
    return pick.choice(forms)()


def expression(pick: random.Random) -> str:
    """Return an expression of a few predicates, some with a token too many or too few."""
    text = predicate(pick)
    for _ in range(pick.choice([0, 0, 1, 1, 2, 4])):
        text = pick.choice(["{} AND {}", "{} OR {}", "NOT ({}) AND {}", "({}) = TRUE OR {}"]).format(
            text, predicate(pick)
        )
    if pick.random() < 0.15:
        at = pick.randrange(len(text) + 1)
        text = (
            text[:at] + pick.choice(["", " ", "(", ")", ",", ";", "'", "--", "/*", "\x00", "\ud800"]) + text[at + 1 :]
        )
    return text


def table(pick: random.Random) -> Any:
    """Return something that may be a table of events, without what crashes PyArrow 26 when it infers a type: values
    that hold themselves, and ``[[1], np.datetime64("2026-01-31"), np.int8(5)]``."""
    rows = [event(pick, cycles=False) for _ in range(pick.randint(0, 3))]
    try:
        return pa.Table.from_pylist([row for row in rows if isinstance(row, dict)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError):
        return pick.choice([None, 5, [], {}, pa.table({}), pa.table({"city": pa.array([None, None])})])


def json_text(pick: random.Random) -> str:
    """Return a text that may be JSON."""
    held = pick.choice(
        ["{}", "[]", '[{"price": 5}]', '{"id": 1, "expression": "price > 5"}', "[" * 100_000, "9" * 5_000]
    )
    if pick.random() < 0.5:
        return held
    return json.dumps({"id": pick.choice([1, "a", None, [1]]), "expression": pick.choice(["price > 5", 5, None, "("])})
