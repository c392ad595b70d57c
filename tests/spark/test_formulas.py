"""Formulas of derived fields come to what Spark SQL computes, over odd values of every type, in one query."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin.errors import SpaceError
from tocsin.language.formulas import FUNCTIONS, fields_of, parse_formula
from tocsin.space.derived import compute

ZONE = "Europe/Paris"
INTS = [0, 1, -1, 7, -7, 2, 2**31 - 1, -(2**31), 2**40, 2**53 + 1, None]
DOUBLES = [0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 0.49999999999999994, 1e-5, 1e7, 123456789.125, 1e22, float("nan"), None]
WHOLES = ["0", "1.50", "-1.50", "0.01", "99999999.99", "-0.05", "3.00", "2.50", None]
LONGS = ["12345678901234567890.1234567890", "-0.0000000001", "7", "0", None]
TEXTS = ["", "ß", "ŉ", "İ", "ΑΣ", "ﬁ", " a ", "\ta", "😀e\u0301", "Straße", "2026-03-29 02:30:00", None]
TEXTS = [text for text in TEXTS if text is None or not text.startswith("2026")]
DATES = [date(2026, 3, 29), date(1969, 12, 31), date(2024, 2, 29), None]
TIMES = [datetime(2026, 3, 29, 0, 59, 59, 120000, UTC), datetime(2026, 3, 29, 1, 0, 0, 0, UTC), None]
TIMES += [datetime(1969, 12, 31, 23, 30, 0, 1, UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]
WALLS = [datetime(2026, 3, 29, 2, 30), datetime(1969, 12, 31, 23, 59, 59, 999999), None]
FLAGS = [True, False, None]
NUMBERS = ("i", "j", "d", "e", "p", "l")


def column(values: list[Any], kind: pa.DataType, start: int, rows: int) -> pa.Array:
    """Return values in turn, from one on, so that columns meet in many combinations."""
    return pa.array([values[(start + row) % len(values)] for row in range(rows)], kind)


def decimals(texts: list[str | None]) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in texts]


ROWS = 143
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS)),
        "i": column(INTS, pa.int64(), 0, ROWS),
        "j": column([3, -2, 1, 0, None, 5, -7], pa.int64(), 2, ROWS),
        "d": column(DOUBLES, pa.float64(), 0, ROWS),
        "e": column([0.1, -3.0, 0.0, 1.5, 1e-3, None], pa.float64(), 3, ROWS),
        "p": column(decimals(WHOLES), pa.decimal128(10, 2), 0, ROWS),
        "l": column(decimals(LONGS), pa.decimal128(38, 10), 1, ROWS),
        "s": column(TEXTS, pa.string(), 0, ROWS),
        "t": column(["x", "", "É", None, "-"], pa.string(), 1, ROWS),
        "day": column(DATES, pa.date32(), 0, ROWS),
        "seen": column(TIMES, pa.timestamp("us", "UTC"), 0, ROWS),
        "wall": column(WALLS, pa.timestamp("us"), 1, ROWS),
        "flag": column(FLAGS, pa.bool_(), 0, ROWS),
        "written": column(["2026-03-29 02:30:00", "2024-02-29", "2026-06-30 23:30:00Z", None], pa.string(), 0, ROWS),
    }
)

ONE = [f"{sign}{name}" for name in NUMBERS for sign in ("-", "abs ", "round ", "floor ", "ceil ")]
ONE = [text if text.startswith("-") else "{}({})".format(*text.split()) for text in ONE]
TWO = [
    f"{left} {sign} {right}"
    for sign in ("+", "-", "*", "/", "%", "div")
    for left, right in [
        ("i", "j"), ("i", "3"), ("d", "e"), ("d", "j"), ("p", "j"), ("p", "e"), ("p", "0.3"), ("p", "p"), ("l", "p"),
        ("i", "1.10"), ("7.5", "p"), ("100", "p"), ("-7", "2"), ("1.0", "0.1"), ("5.0", "3"), ("2.5e0", "i"),
    ]
    if sign != "div" or not {"d", "e", "2.5e0"} & {left, right}
]  # fmt: skip
OTHERS = [
    *(f"{name}({text})" for name in ("length", "lower", "upper", "trim") for text in ("s", "t", "i", "flag")),
    *(f"{name}({each})" for name in ("year", "month", "day", "hour", "minute") for each in ("day", "seen", "wall")),
    *(f"{name}(written)" for name in ("year", "month", "day", "hour", "minute")),
    "datediff(day, seen)", "datediff(seen, wall)", "datediff(written, day)", "dayofmonth(seen)",
    *(f"concat('ß', {each})" for each in ("i", "d", "p", "l", "s", "day", "seen", "wall", "flag", "1.10", "1e7")),
    "s || t || 'ü'", "upper('ß')", "lower(concat(s, 'ΑΣ'))", "concat(s)", "length(s || t) * 2 - 1", "char_length(s)",
    "coalesce(i, j, 0)", "coalesce(p, 0)", "coalesce(i, p)", "coalesce(i, e)", "coalesce(s, t, 'none')",
    "coalesce(l, p)", "concat('ß', 1.0)",
    "coalesce(flag, TRUE)", "coalesce(NULL, day)", "concat('', coalesce(p, 1))", "concat('', coalesce(l, i))",
    *(f"{name}({each})" for name in ("least", "greatest") for each in ("i, j", "d, e", "p, j", "d, i", "s, t")),
    "least(l, p, 2)", "greatest(l, p, 2)",
    *(f"{name}({each})" for name in ("least", "greatest") for each in ("day, day", "seen, seen", "p, e", "NULL, i")),
    "ceiling(p)", "round(p * 1.5)", "floor(l)", "abs(-1.5)", "(p + 1) * (p - 1)", "p / 3", "i / 3", "concat('', p / 7)",
    "year(seen) - 2000", "i % 2 + 0.5", "-(i + 1)", "p * p * p", "l * l", "l / p", "-9223372036854775808 % -1",
]  # fmt: skip
OVERFLOW = {"floor(d)", "ceil(d)", "l div p", "l * l"}
"""Formulas that overflow in some rows, which is an error for us and in Spark's ANSI mode."""

FORMULAS = [*ONE, *TWO, *OTHERS]
COLUMNS = {(name,): TABLE[name].combine_chunks() for name in TABLE.column_names}


def ours(formula: str, row: int | None = None) -> list[Any] | str:
    """Return what we compute, or that it is an error."""
    tree = parse_formula(formula)
    columns = {field.path: COLUMNS[field.path] for field in fields_of(tree)}
    if row is not None:
        columns = {path: each.slice(row, 1) for path, each in columns.items()}
    try:
        return list(compute(tree, columns, ROWS if row is None else 1, ZONE).to_pylist())
    except Exception as error:
        return type(error).__name__


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and one == other and str(one) == str(other)


def _divides(formula: str) -> bool:
    return any(sign in formula for sign in ("/", "%", "div"))


def test_every_formula_comes_to_what_spark_computes(spark: SparkSession) -> None:
    assert {name for name in FUNCTIONS if not any(f"{name}(" in each for each in FORMULAS)} <= {
        "now",
        "current_timestamp",
        "current_date",
    }
    settings = {
        "spark.sql.session.timeZone": ZONE,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name) for name in (*settings, "spark.sql.ansi.enabled")}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        walls = [None if each is None else str(each) for each in TABLE["wall"].to_pylist()]
        place = TABLE.schema.get_field_index("wall")
        frame = spark.createDataFrame(TABLE.set_column(place, "wall", pa.array(walls, pa.string())))
        frame.selectExpr("* EXCEPT (wall)", "CAST(wall AS TIMESTAMP_NTZ) AS wall").createOrReplaceTempView("formulas")
        theirs: dict[str, list[Any]] = {}
        for ansi in ("true", "false"):  # without it a division by zero is NULL, as it is for us
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            some = [each for each in FORMULAS if (each in OVERFLOW or _divides(each)) == (ansi == "false")]
            chosen = ", ".join(f"{each} AS f{number}" for number, each in enumerate(some))
            found = spark.sql(f"SELECT n, {chosen} FROM formulas ORDER BY n").toArrow()
            theirs |= {each: found[f"f{number}"].to_pylist() for number, each in enumerate(some)}
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    differing = []
    for formula in FORMULAS:
        together = ours(formula)
        for row, wanted in enumerate(theirs[formula]):
            alone = ours(formula, row) if isinstance(together, str) or row % 20 == 0 else [together[row]]
            refused = formula in OVERFLOW and alone == together == "ValueProblem"
            both = (alone, [together[row]] if isinstance(together, list) else alone)
            if not refused and not all(isinstance(each, list) and same(each[0], wanted) for each in both):
                differing.append((formula, row, both, wanted))
                break
    assert not differing, "\n".join(map(str, differing))


@pytest.mark.parametrize(
    ("formula", "kind", "message"),
    [
        ("d div 2", tocsin.Number(), "div takes whole numbers and decimals, not doubles"),
        ("s + 1", tocsin.Number(), r"\+ takes numbers, not string"),
        ("year(i)", tocsin.Number(), "year takes a time, not int64"),
        ("coalesce(s, 1)", tocsin.Text(), "coalesce takes values of one type, not string and int32"),
        ("i + 1", tocsin.Text(), "comes to int64, and the field holds string"),
        ("abs(CAST(d AS INT))", tocsin.Number(), "formula"),
        ("i + 1" + "0" * 40, tocsin.Number(), "more than 38 digits"),
    ],
)
def test_a_formula_of_wrong_types_is_refused_when_it_is_declared(formula: str, kind: Any, message: str) -> None:
    dimensions = {"i": tocsin.Number("int64"), "d": tocsin.Number(), "s": tocsin.Text()}
    with pytest.raises(SpaceError, match=message):
        tocsin.Space({**dimensions, "x": tocsin.Derived(formula, kind)})
