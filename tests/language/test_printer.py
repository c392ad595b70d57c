"""What is printed parses back to the same tree."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from tests.oracle.trees import trees

from tocsin.language import parse, to_text
from tocsin.language.printer import constant_text
from tocsin.language.tree import Comparison, Constant, Expression, Field, Slot


@settings(max_examples=600, deadline=None)
@given(trees)
def test_a_printed_tree_parses_back_to_itself(tree: Expression) -> None:
    assert parse(to_text(tree)) == tree


@settings(max_examples=200, deadline=None)
@given(trees)
def test_printing_what_was_parsed_changes_nothing(tree: Expression) -> None:
    text = to_text(tree)
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("a=1 and(b=2 or c=3)", "a = 1 AND (b = 2 OR c = 3)"),
        ("a=1 or b=2 and c=3", "a = 1 OR b = 2 AND c = 3"),
        ("(a=1 or b=2)and not(c=3 and d=4)", "(a = 1 OR b = 2) AND NOT (c = 3 AND d = 4)"),
        ("not not a", "NOT NOT a"),
        ("5 > a", "a < 5"),
        ("a NOT IN (1,2)", "NOT a IN (1, 2)"),
        ("a NOT BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"),
        ("a IS NOT NULL", "NOT a IS NULL"),
        ("a != 'x'", "a <> 'x'"),
        ("a like 'b%' escape '!'", "a LIKE 'b%' ESCAPE '!'"),
        ("A ILIKE '%b'", "A ILIKE '%b'"),
        ("regexp_like(a, 'b+')", "a RLIKE 'b+'"),
        ("a = 2 * 3", "a = 6"),
        ("a = 1.50", "a = 1.50"),
        ("a = 15e-1", "a = 1.5D"),
        ("a = 3BD", "a = 3BD"),
        ("a = CAST('nan' AS DOUBLE)", "a = CAST('nan' AS DOUBLE)"),
        ("t < DATE'2020-02-29'", "t < DATE '2020-02-29'"),
        ("t < CAST('2020-02-29' AS TIMESTAMP)", "t < TIMESTAMP '2020-02-29'"),
        ('`select`.`a b` = "q"', "`select`.`a b` = 'q'"),
        ("s = 'it''s'", "s = 'it\\'s'"),
        ("s LIKE 'a\\%b'", "s LIKE 'a\\%b'"),
        ("upper(s) = 'A'", "upper(s) = 'A'"),
        ("TRUE OR NULL", "TRUE OR NULL"),
        ("near(a, 5, :x) AND :x > 2", "near(a, 5, :x) AND :x > 2"),
    ],
)
def test_the_form_of_the_house(written: str, printed: str) -> None:
    assert to_text(parse(written)) == printed
    assert parse(printed) == parse(written) or "nan" in printed


def test_a_name_with_a_backtick_is_quoted_so_that_it_parses() -> None:
    tree = Comparison("=", Field(("a`b",)), Constant(1, "integer"))
    assert parse(to_text(tree)) == tree


def test_a_constant_that_is_computed_once_prints_as_one_predicate() -> None:
    assert parse(to_text(parse("1 IN (1)"))) == parse("1 IN (1)")
    assert parse(to_text(parse("1 IN (2, 3)"))) == parse("1 IN (2, 3)")


def test_a_slot_prints_as_a_question_mark() -> None:
    assert constant_text(Slot(0, "integer")) == "?"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (float("inf"), "double", "CAST('inf' AS DOUBLE)"),
        (-0.0, "double", "-0.0D"),
        (5e-324, "double", "5e-324D"),
        (Decimal("1E+3"), "decimal", "1000BD"),
        (Decimal("0.10"), "decimal", "0.10"),
        (-(2**63), "integer", "-9223372036854775808"),
        (True, "boolean", "TRUE"),
        (None, "null", "NULL"),
        ("a\\b\n'c'\0", "string", "'a\\\\b\\n\\'c\\'\\0'"),
    ],
)
def test_constants_print_as_literals_of_their_type(value: object, kind: str, text: str) -> None:
    assert constant_text(Constant(value, kind)) == text  # type: ignore[arg-type]
