"""Constants are computed with Spark's types; every expected value below was computed by Spark 4.3 in ANSI mode."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from tocsin.errors import ExpressionError
from tocsin.language import parse
from tocsin.language.arithmetic import compare, fold
from tocsin.language.tree import Comparison, Constant


def computed(text: str) -> Constant:
    tree = parse(f"a = {text}")
    assert isinstance(tree, Comparison) and isinstance(tree.constant, Constant)
    return tree.constant


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1 + 2", "integer", 3),
        ("7 div 2", "integer", 3),
        ("-7 div 2", "integer", -3),
        ("-7 % 3", "integer", -1),
        ("7 % -3", "integer", 1),
        ("1 / 4", "double", 0.25),
        ("6 / 3", "double", 2.0),
        ("1e0 + 0.1", "double", 1.1),
        ("2 * 1.50", "decimal", Decimal("3.00")),
        ("1.5 / 3", "decimal", Decimal("0.500000")),
        ("1.0 / 3", "decimal", Decimal("0.333333")),
        ("1 / 3.0", "decimal", Decimal("0.333333")),
        ("1.0 / 3.00001", "decimal", Decimal("0.33333222")),
        ("0.1 + 0.2", "decimal", Decimal("0.3")),
        ("1 + NULL", "null", None),
        ("-(2 - 5)", "integer", 3),
        ("CAST(2.7 AS INT)", "integer", 2),
        ("CAST(-2.7 AS INT)", "integer", -2),
        ("CAST('3' AS INT)", "integer", 3),
        ("CAST(2.675 AS DECIMAL(10, 2))", "decimal", Decimal("2.68")),
        ("CAST(0.1 AS FLOAT)", "double", 0.10000000149011612),
        ("CAST(1 AS DOUBLE) / 4", "double", 0.25),
        ("CAST(NULL AS INT)", "null", None),
        ("CAST('TRUE' AS BOOLEAN)", "boolean", True),
        ("CAST(TRUE AS STRING)", "string", "true"),
    ],
)
def test_constants_have_the_value_and_type_of_spark(text: str, kind: str, value: object) -> None:
    assert computed(text) == Constant(value, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "1 % 0",
        "1 div 0",
        "1.5 / 0",
        "1e0 % 0",
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "CAST('x' AS INT)",
        "CAST('maybe' AS BOOLEAN)",
        "CAST(12345 AS DECIMAL(4, 0))",
        "'a' + 1",
        "99999999999999999999999999999999999999.0 * 10",
    ],
)
def test_what_spark_refuses_in_ansi_mode_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        computed(text)


def test_arithmetic_with_dates_is_refused_although_spark_has_it() -> None:
    with pytest.raises(ExpressionError, match="arithmetic needs numbers"):
        computed("DATE '2020-01-01' + 1")


def test_infinity_and_nan_are_doubles() -> None:
    assert computed("CAST('inf' AS DOUBLE)").value == math.inf
    assert math.isnan(computed("CAST('NaN' AS DOUBLE)").value)  # type: ignore[arg-type]
    assert computed("-CAST('inf' AS DOUBLE)").value == -math.inf


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1 = 1.0", True),
        ("1 < 1.5", True),
        ("0.1 = 0.1D", True),
        ("9007199254740993 = 9007199254740992D", True),
        ("9007199254740993 = 9007199254740992", False),
        ("'Z' < 'a'", True),
        ("'a ' = 'a'", False),
        ("TRUE > FALSE", True),
        ("0.0D = -0.0D", True),
        ("CAST('nan' AS DOUBLE) = CAST('nan' AS DOUBLE)", True),
        ("CAST('nan' AS DOUBLE) > CAST('inf' AS DOUBLE)", True),
        ("NULL = NULL", None),
        ("NULL <=> NULL", True),
        ("1 <=> NULL", False),
        ("3 BETWEEN 1 AND 5", True),
        ("3 IN (1, NULL)", None),
        ("3 NOT IN (1, NULL)", None),
        ("3 IN (3, NULL)", True),
        ("3 BETWEEN NULL AND 2", False),
        ("3 BETWEEN NULL AND 5", None),
    ],
)
def test_comparisons_of_constants_are_settled_as_in_spark(text: str, truth: bool | None) -> None:
    from tests.oracle.three_valued import holds

    assert holds(parse(text), {}) is truth


def test_types_that_do_not_compare_are_told_apart() -> None:
    with pytest.raises(ValueError, match="a string cannot be compared with an integer"):
        compare("=", Constant("a", "string"), Constant(1, "integer"))
    with pytest.raises(ValueError, match="arithmetic needs numbers, not boolean and integer"):
        fold("+", Constant(True, "boolean"), Constant(1, "integer"), 0)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("DATE '2020-1-1' = DATE '2020-01-01'", True),
        ("DATE '2020-1-2' < DATE '2020-01-10'", True),
        ("DATE '2020-1-9' > DATE '2020-1-10'", False),
        ("DATE '2020' <=> DATE '2020-01-01'", True),
        ("TIMESTAMP '2020-01-01' = TIMESTAMP '2020-01-01 00:00:00'", True),
        ("TIMESTAMP '2020-01-01 9:00:00' < TIMESTAMP '2020-01-01 10:00:00'", True),
        ("TIMESTAMP '2020-01-01 00:00:00Z' = TIMESTAMP '2020-01-01 01:00:00+01:00'", True),
        ("TIMESTAMP_NTZ '2020-01-01' >= TIMESTAMP_NTZ '2020-01-01 00:00'", True),
    ],
)
def test_days_and_moments_compare_as_what_they_are_not_as_text(expression: str, holds: bool) -> None:
    assert parse(expression) == parse("TRUE" if holds else "FALSE")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("TIMESTAMP '2020-01-01 00:00:00Z' = TIMESTAMP '2020-01-01'", "only one has a zone; write it in both"),
        ("DATE 'soon' = DATE '2020-01-01'", "soon"),
    ],
)
def test_days_and_moments_that_cannot_be_compared_are_told(expression: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        parse(expression)


def test_a_cast_of_a_number_with_a_huge_exponent_is_refused_at_once() -> None:
    for text in ("a = CAST('1e999999999' AS INT)", "a = CAST('-1e999999999' AS BIGINT)"):
        with pytest.raises(ExpressionError, match="beyond 64 bits"):
            parse(text)
    with pytest.raises(ExpressionError, match="cannot be cast"):
        parse("a = CAST('1e999999999' AS DECIMAL(38, 0))")
    assert parse("a = CAST('1e-999999999' AS INT)") == parse("a = 0")
