"""Random events and expressions over every type, written once for Spark SQL (ours) and once for DuckDB.

The values are the nasty ones: NULL, NaN, -0.0, both infinities, 2**53 + 1, the ends of 64 bits, empty and non-ASCII
text, dates around the epoch, empty lists and lists with NULL inside. Constants are drawn from the same pools, so that
they meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

INTEGERS = [0, 1, -1, 2, 3, 5, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 10**6]
DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    2.5,
    5e-324,
    1.7976931348623157e308,
    float("inf"),
    float("-inf"),
    float("nan"),
]
DOUBLES += [9007199254740992.0, 9007199254740994.0, 9.223372036854775807e18, 3.0]
CENTS = [Decimal(text) for text in ("0.00", "0.01", "-0.01", "2.50", "99999999.99", "-99999999.99", "3.00", "0.10")]
LONG_DECIMALS = [
    Decimal(text) for text in ("0.000", "1.001", "-1.001", "123456789012345678901234.567", "3.000", "0.100")
]
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "ABC",
    "Abc",
    "b",
    "ba",
    "é",
    "éa",
    "z",
    "日本",
    "日本語",
    "😀",
    "a%b",
    "a_b",
    "it's",
]
TEXTS += ["a\\b", "tab\there", "line\nbreak", "\U0010ffff", "ab ", " ab", 'q"q', "a\0b"]
DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(2020, 2, 29), date(2026, 1, 1), date(1, 1, 1), date(9999, 12, 31)]
MOMENTS = [
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2020, 2, 29, 12),
    datetime(2026, 1, 1),
]
MOMENTS += [datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1900, 1, 1)]
PATTERNS = [
    "a%",
    "%a",
    "%b%",
    "a_",
    "_",
    "%",
    "",
    "a%c",
    "%a%b%",
    "ab",
    "日%",
    "%語",
    "a\\%b",
    "a\\_b",
    "__",
    "A%",
    "%É%",
]
REGEXES = ["^a", "b$", "a.c", "[ab]+", "", "^$", "日", "(?i)abc", "a|z", "\\\\d"]


@dataclass(frozen=True)
class Both:
    """One expression in both languages."""

    spark: str
    duckdb: str


def quoted(text: str) -> Both:
    """Return a string literal."""
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\0": "\\0"}
    spark = "'" + "".join(escapes.get(character, character) for character in text) + "'"
    plain = text.replace("'", "''")
    duckdb = "||".join(f"'{piece}'" for piece in plain.split("\0")).replace("||", "||chr(0)||")
    return Both(spark, f"({duckdb})")


def pattern(text: str) -> Both:
    """Return a LIKE pattern literal: Spark keeps the backslash of an escape."""
    spark = "'" + text.replace("'", "\\'") + "'"
    return Both(spark, "'" + text.replace("'", "''") + "'")


def number(value: int | float | Decimal) -> Both:
    """Return a numeric literal of the value's own type."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return Both(f"CAST('{value}' AS DOUBLE)", f"CAST('{value}' AS DOUBLE)")
        return Both(f"{value!r}D", f"CAST('{value!r}' AS DOUBLE)")
    return Both(str(value), f"CAST('{value}' AS HUGEINT)" if isinstance(value, int) else str(value))


def moment(value: datetime, zoned: bool) -> Both:
    """Return a timestamp literal."""
    kind = "TIMESTAMP" if zoned else "TIMESTAMP_NTZ"
    return Both(f"{kind} '{value}'", f"{'TIMESTAMPTZ' if zoned else 'TIMESTAMP'} '{value}{'+00' if zoned else ''}'")


class Generator:
    """Makes tables of events and expressions over them, from a seeded source."""

    def __init__(self, source: random.Random) -> None:
        self.random = source

    # Events

    SCHEMA = pa.schema(
        {
            "i": pa.int64(),
            "j": pa.int32(),
            "d": pa.float64(),
            "c": pa.decimal128(10, 2),
            "w": pa.decimal128(30, 3),
            "s": pa.string(),
            "u": pa.string(),
            "b": pa.bool_(),
            "t": pa.timestamp("us", tz="UTC"),
            "z": pa.timestamp("us"),
            "n": pa.date32(),
            "st": pa.struct({"x": pa.int64(), "y": pa.string()}),
            "tags": pa.list_(pa.string()),
            "nums": pa.list_(pa.int64()),
        }
    )

    def events(self, rows: int) -> pa.Table:
        """Return a table of events."""
        return pa.table(
            {name: [self._value(name) for _ in range(rows)] for name in self.SCHEMA.names}, schema=self.SCHEMA
        )

    def _value(self, name: str) -> Any:
        pick = self.random
        if pick.random() < 0.15:
            return None
        small = [pick.randint(-3, 8)]
        return {
            "i": lambda: pick.choice(INTEGERS + small * 4),
            "j": lambda: pick.choice([0, 1, -1, 2**31 - 1, -(2**31), *small * 3]),
            "d": lambda: pick.choice([*DOUBLES, pick.randint(-3, 8) / 2]),
            "c": lambda: pick.choice([*CENTS, Decimal(pick.randint(-300, 800)).scaleb(-2)]),
            "w": lambda: pick.choice(LONG_DECIMALS),
            "s": lambda: pick.choice(TEXTS),
            "u": lambda: pick.choice(TEXTS[:12]),
            "b": lambda: pick.random() < 0.5,
            "t": lambda: pick.choice(MOMENTS).replace(tzinfo=UTC),
            "z": lambda: pick.choice(MOMENTS),
            "n": lambda: pick.choice(DAYS),
            "st": lambda: {"x": self._value("i"), "y": self._value("s")},
            "tags": lambda: [self._value("s") for _ in range(pick.randint(0, 3))],
            "nums": lambda: [self._value("i") for _ in range(pick.randint(0, 3))],
        }[name]()

    # Expressions

    def expression(self, depth: int = 3) -> Both:
        """Return a random boolean expression."""
        roll = self.random.random()
        if depth == 0 or roll < 0.35:
            return self.leaf()
        if roll < 0.5:
            inner = self.expression(depth - 1)
            return Both(f"NOT ({inner.spark})", f"NOT ({inner.duckdb})")
        parts = [self.expression(depth - 1) for _ in range(self.random.randint(2, 3))]
        word = " AND " if roll < 0.77 else " OR "
        return Both(
            "(" + word.join(f"({part.spark})" for part in parts) + ")",
            "(" + word.join(f"({part.duckdb})" for part in parts) + ")",
        )

    def leaf(self) -> Both:
        """Return one predicate, sometimes over a repeated field."""
        makers: list[Callable[[], Both]] = [self._numeric] * 4 + [self._textual] * 4 + [self._timely] * 2
        makers += [self._truth, self._null, self._fixed, self._repeated, self._repeated]
        return self.random.choice(makers)()

    def _constant(self, name: str) -> Both:
        """Return a number to compare a numeric field with: of its own type, or of another."""
        pick = self.random
        pools: dict[str, list[Any]] = {
            "i": [
                *INTEGERS,
                Decimal("2.5"),
                Decimal("-0.5"),
                2.5,
                9007199254740992.0,
                1e300,
                -1e300,
                Decimal("3.0"),
                10**19,
            ],
            "j": [0, 1, 2, 5, -1, 2**31 - 1, 2**40, Decimal("2.5"), 2.5, -1e300],
            "d": [*DOUBLES, 3, 2**53 + 1, Decimal("0.1"), Decimal("2.5")],
            "c": [*CENTS, 3, Decimal("2.505"), Decimal("2.5"), 2.5, 10**9, -(10**9), 1e300, 0.1],
            "w": [*LONG_DECIMALS, 3, Decimal("1.0005"), 10**18, 2.5],
        }
        return number(pick.choice([*pools[name], pick.randint(-3, 8)]))

    def _compared(self, field: str, constant: Callable[[], Both]) -> Both:
        """Return a comparison, BETWEEN or IN of a field with constants."""
        pick = self.random
        roll = pick.random()
        if roll < 0.15:
            low, high = constant(), constant()
            word = pick.choice(["BETWEEN", "NOT BETWEEN"])
            # DuckDB brings all three to one type; Spark compares each side by itself, and so do the two comparisons
            duckdb = f"({field} >= {low.duckdb} AND {field} <= {high.duckdb})"
            spark = f"{field} {word} {low.spark} AND {high.spark}"
            return Both(spark, f"NOT {duckdb}" if word.startswith("NOT") else duckdb)
        if roll < 0.35:
            items = [constant() for _ in range(pick.randint(1, 4))]
            if pick.random() < 0.2:
                items.append(Both("NULL", "NULL"))
            word = pick.choice(["IN", "NOT IN"])
            spark, duckdb = (", ".join(getattr(item, side) for item in items) for side in ("spark", "duckdb"))
            return Both(f"{field} {word} ({spark})", f"{field} {word} ({duckdb})")
        operator = pick.choice(["=", "<>", "<", "<=", ">", ">=", "<=>", "=="])
        other = Both("NULL", "NULL") if pick.random() < 0.05 else constant()
        duck = {"<=>": "IS NOT DISTINCT FROM", "==": "="}.get(operator, operator)
        if pick.random() < 0.2 and operator in ("=", "<", "<=", ">", ">="):
            return Both(f"{other.spark} {operator} {field}", f"{other.duckdb} {duck} {field}")
        return Both(f"{field} {operator} {other.spark}", f"{field} {duck} {other.duckdb}")

    def _numeric(self) -> Both:
        name = self.random.choice("ijdcw")
        if name == "i" and self.random.random() < 0.2:
            return self._compared("st.x", lambda: self._constant("i"))
        return self._compared(name, lambda: self._constant(name))

    def _textual(self, field: str | None = None) -> Both:
        pick = self.random
        field = field or pick.choice(["s", "s", "u", "st.y", "lower(s)", "upper(u)"])
        roll = pick.random()
        if roll < 0.35:
            return self._compared(field, lambda: quoted(pick.choice(TEXTS)))
        if roll < 0.6:
            text = pattern(pick.choice(PATTERNS))
            word = pick.choice(["LIKE", "NOT LIKE", "LIKE", "ILIKE"])
            return Both(f"{field} {word} {text.spark}", f"{field} {word} {text.duckdb} ESCAPE '\\'")
        if roll < 0.7:
            text = pick.choice(REGEXES)
            return Both(f"{field} RLIKE '{text}'", f"regexp_matches({field}, '{text.replace(chr(92) * 2, chr(92))}')")
        name = pick.choice(["startswith", "endswith", "contains"])
        duck = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}[name]
        constant = quoted(pick.choice(TEXTS))
        return Both(f"{name}({field}, {constant.spark})", f"{duck}({field}, {constant.duckdb})")

    def _timely(self) -> Both:
        pick = self.random
        name = pick.choice("tzn")
        if name == "n":
            return self._compared(name, lambda: self._day(pick.choice(DAYS)))
        return self._compared(
            name, lambda: moment(pick.choice(MOMENTS) + timedelta(microseconds=pick.choice([0, 0, 1])), name == "t")
        )

    def _day(self, value: date) -> Both:
        written = self.random.choice([f"DATE '{value}'", f"'{value}'"])
        return Both(written, f"DATE '{value}'")

    def _truth(self) -> Both:
        text = self.random.choice(["b", "b = TRUE", "b = FALSE", "b IS TRUE", "b IS NOT FALSE", "b <> TRUE", "NOT b"])
        return Both(text, text)

    def _null(self) -> Both:
        name = self.random.choice([*(name for name in self.SCHEMA.names if name != "st"), "st.x"])
        word = self.random.choice(["IS NULL", "IS NOT NULL"])
        return Both(f"{name} {word}", f"{name} {word}")

    def _fixed(self) -> Both:
        text = self.random.choice(["TRUE", "FALSE", "1 < 2", "2 * 3 = 7", "NULL IS NULL"])
        return Both(text, text)

    def _repeated(self) -> Both:
        """Return a predicate of a repeated field: TRUE if it is for any element, as Spark's and SQL's EXISTS have
        it."""
        name = self.random.choice(["tags", "nums"])
        while True:
            inner = (
                self._textual("ELEMENT") if name == "tags" else self._compared("ELEMENT", lambda: self._constant("i"))
            )
            if "<=>" not in inner.spark and "NOT " not in inner.spark:
                break
        if "BETWEEN" in inner.spark and "ELEMENT BETWEEN" not in inner.spark:
            return self._repeated()
        test = inner.duckdb.replace("ELEMENT", "x")
        duckdb = (
            f"CASE WHEN {name} IS NULL THEN NULL WHEN len(list_filter({name}, lambda x: ({test}))) > 0 THEN TRUE "
            f"WHEN len(list_filter({name}, lambda x: (({test}) IS NULL))) > 0 THEN NULL ELSE FALSE END"
        )
        return Both(inner.spark.replace("ELEMENT", name), duckdb)
