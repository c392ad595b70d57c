"""Every accepted form becomes the tree it says; every refusal names its place."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tocsin import errors
from tocsin.kernels.language import literals as shapes
from tocsin.language import parse
from tocsin.language.literals import MAX_DEPTH, MAX_LENGTH
from tocsin.language.tree import (
    Affix,
    And,
    Between,
    Call,
    Comparison,
    Constant,
    Constraint,
    Expression,
    Field,
    Fixed,
    InNetwork,
    IsNull,
    IsTruth,
    Like,
    Matches,
    Membership,
    Not,
    Or,
    Truth,
    Variable,
)

A, B = Field(("a",)), Field(("b",))
ONE, TWO, NONE = Constant(1, "integer"), Constant(2, "integer"), Constant(None, "null")


def text(value: str) -> Constant:
    return Constant(value, "string")


def like(pattern: str, shape: int, escape: str = "\\", case_blind: bool = False, field: Field = A) -> Like:
    return Like(field, text(pattern), shape, escape, case_blind)


ACCEPTED: list[tuple[str, Expression]] = [
    # comparisons
    ("a = 1", Comparison("=", A, ONE)),
    ("a == 1", Comparison("=", A, ONE)),
    ("a <> 1", Comparison("<>", A, ONE)),
    ("a != 1", Comparison("<>", A, ONE)),
    ("a < 1", Comparison("<", A, ONE)),
    ("a <= 1", Comparison("<=", A, ONE)),
    ("a > 1", Comparison(">", A, ONE)),
    ("a >= 1", Comparison(">=", A, ONE)),
    ("a <=> 1", Comparison("<=>", A, ONE)),
    ("a <=> NULL", Comparison("<=>", A, NONE)),
    ("a = NULL", Comparison("=", A, NONE)),
    ("a IS DISTINCT FROM 1", Not(Comparison("<=>", A, ONE))),
    ("a IS NOT DISTINCT FROM 1", Comparison("<=>", A, ONE)),
    ("1 = a", Comparison("=", A, ONE)),
    ("1 < a", Comparison(">", A, ONE)),
    ("1 <= a", Comparison(">=", A, ONE)),
    ("1 > a", Comparison("<", A, ONE)),
    ("1 >= a", Comparison("<=", A, ONE)),
    ("(a) = (1)", Comparison("=", A, ONE)),
    # BETWEEN and IN
    ("a BETWEEN 1 AND 2", Between(A, ONE, TWO)),
    ("a NOT BETWEEN 1 AND 2", Not(Between(A, ONE, TWO))),
    ("a BETWEEN NULL AND 2", Between(A, NONE, TWO)),
    ("1 BETWEEN a AND b", And((Comparison("<=", A, ONE), Comparison(">=", B, ONE)))),
    ("a IN (1)", Membership(A, (ONE,))),
    ("a IN (1, 2, NULL)", Membership(A, (ONE, TWO, NONE))),
    ("a NOT IN (1, 2)", Not(Membership(A, (ONE, TWO)))),
    ("1 IN (2, 1)", Or((Fixed(False), Fixed(True)))),
    # text
    ("a LIKE 'x'", like("x", shapes.PLAIN)),
    ("a LIKE 'x%'", like("x%", shapes.STARTS)),
    ("a LIKE '%'", like("%", shapes.STARTS)),
    ("a LIKE '%x'", like("%x", shapes.ENDS)),
    ("a LIKE '%x%'", like("%x%", shapes.CONTAINS)),
    ("a LIKE '%%'", like("%%", shapes.CONTAINS)),
    ("a LIKE 'x_'", like("x_", shapes.INTRICATE)),
    ("a LIKE 'x%y'", like("x%y", shapes.INTRICATE)),
    (r"a LIKE 'x\%'", like(r"x\%", shapes.INTRICATE)),
    ("a NOT LIKE 'x%'", Not(like("x%", shapes.STARTS))),
    ("a ILIKE 'x%'", like("x%", shapes.STARTS, case_blind=True)),
    ("a LIKE 'x!%' ESCAPE '!'", like("x!%", 0, "!")),
    ("a NOT LIKE 'x!%' ESCAPE '!'", Not(like("x!%", 0, "!"))),
    ("a LIKE ANY ('x%', '%y')", Or((like("x%", shapes.STARTS), like("%y", shapes.ENDS)))),
    ("a LIKE ALL ('x%', '%y')", And((like("x%", shapes.STARTS), like("%y", shapes.ENDS)))),
    ("a NOT LIKE ANY ('x%', '%y')", Or((Not(like("x%", shapes.STARTS)), Not(like("%y", shapes.ENDS))))),
    ("a NOT LIKE ALL ('x%', '%y')", And((Not(like("x%", shapes.STARTS)), Not(like("%y", shapes.ENDS))))),
    ("a LIKE NULL", Comparison("=", A, NONE)),
    ("a RLIKE 'x+'", Matches(A, text("x+"))),
    ("a REGEXP 'x+'", Matches(A, text("x+"))),
    ("regexp_like(a, 'x+')", Matches(A, text("x+"))),
    ("regexp(a, 'x+')", Matches(A, text("x+"))),
    ("regexp(a, NULL)", Comparison("=", A, NONE)),
    ("startswith(a, 'x')", Affix("startswith", A, text("x"))),
    ("endswith(a, 'x')", Affix("endswith", A, text("x"))),
    ("contains(a, 'x')", Affix("contains", A, text("x"))),
    ("contains(a, NULL)", Comparison("=", A, NONE)),
    ("lower(a) = 'x'", Comparison("=", Field(("a",), "lower"), text("x"))),
    ("upper(a) LIKE 'X%'", like("X%", shapes.STARTS, field=Field(("a",), "upper"))),
    ("array_contains(a, 1)", Comparison("=", A, ONE)),
    ("in_network(a, '10.0.0.0/8')", InNetwork(A, text("10.0.0.0/8"))),
    # NULL and truth
    ("a IS NULL", IsNull(A)),
    ("a IS NOT NULL", Not(IsNull(A))),
    ("isnull(a)", IsNull(A)),
    ("isnotnull(a)", Not(IsNull(A))),
    ("a IS TRUE", IsTruth(A, True)),
    ("a IS NOT FALSE", Not(IsTruth(A, False))),
    ("a", Truth(A)),
    ("NOT a", Not(Truth(A))),
    ("!a", Not(Truth(A))),
    ("a = TRUE", Comparison("=", A, Constant(True, "boolean"))),
    ("(a > 1) = TRUE", Comparison(">", A, ONE)),
    ("(a > 1) <> TRUE", Not(Comparison(">", A, ONE))),
    ("TRUE", Fixed(True)),
    ("FALSE", Fixed(False)),
    ("NULL", Fixed(None)),
    ("1 < 2", Fixed(True)),
    ("1 = NULL", Fixed(None)),
    ("NULL <=> NULL", Fixed(True)),
    ("NULL IS NULL", Fixed(True)),
    # logic
    ("a AND b", And((Truth(A), Truth(B)))),
    ("a AND (b AND a)", And((Truth(A), Truth(B), Truth(A)))),
    ("a OR b AND a", Or((Truth(A), And((Truth(B), Truth(A)))))),
    ("(a OR b) AND a", And((Or((Truth(A), Truth(B))), Truth(A)))),
    ("NOT a = 1 AND b", And((Not(Comparison("=", A, ONE)), Truth(B)))),
    ("not (not a)", Not(Not(Truth(A)))),
    # names
    ("a.b.c = 1", Comparison("=", Field(("a", "b", "c")), ONE)),
    ("a.b.c.d.e.f = 1", Comparison("=", Field(tuple("abcdef")), ONE)),
    ("`a b`.`c` = 1", Comparison("=", Field(("a b", "c")), ONE)),
    ("`a``b` = 1", Comparison("=", Field(("a`b",)), ONE)),
    ("`and` = 1", Comparison("=", Field(("and",)), ONE)),
    ("naïve = 1", Comparison("=", Field(("naïve",)), ONE)),
    ("a1 = 1 AND 1a = 1", And((Comparison("=", Field(("a1",)), ONE), Comparison("=", Field(("1a",)), ONE)))),
    ("a.1 = 1", Comparison("=", Field(("a", "1")), ONE)),
    # constants
    ("a = 2.50", Comparison("=", A, Constant(Decimal("2.50"), "decimal"))),
    ("a = .5", Comparison("=", A, Constant(Decimal("0.5"), "decimal"))),
    ("a = 5.", Comparison("=", A, Constant(Decimal(5), "decimal"))),
    ("a = 25e-1", Comparison("=", A, Constant(2.5, "double"))),
    ("a = 2.5D", Comparison("=", A, Constant(2.5, "double"))),
    ("a = 0.1F", Comparison("=", A, Constant(0.10000000149011612, "double"))),
    ("a = 1L OR a = 1S OR a = 1Y", Or((Comparison("=", A, ONE),) * 3)),
    ("a = 1BD", Comparison("=", A, Constant(Decimal(1), "decimal"))),
    ("a = -1", Comparison("=", A, Constant(-1, "integer"))),
    ("a = - -1", Comparison("=", A, ONE)),
    ("a = -9223372036854775808", Comparison("=", A, Constant(-(2**63), "integer"))),
    ("a = 12345678901234567890", Comparison("=", A, Constant(12345678901234567890, "integer"))),
    ("a = 1 + 2 * 3", Comparison("=", A, Constant(7, "integer"))),
    ("a = (1 + 2) * 3", Comparison("=", A, Constant(9, "integer"))),
    ('a = "x"', Comparison("=", A, text("x"))),
    ("a < DATE '2020-02-29'", Comparison("<", A, Constant("2020-02-29", "date"))),
    ("a < TIMESTAMP '2020-02-29 12:00'", Comparison("<", A, Constant("2020-02-29 12:00", "timestamp"))),
    ("a < TIMESTAMP_NTZ '2020-02-29'", Comparison("<", A, Constant("2020-02-29", "timestamp_ntz"))),
    ("a < CAST('2020-02-29' AS DATE)", Comparison("<", A, Constant("2020-02-29", "date"))),
    ("a = CAST('2' AS BIGINT)", Comparison("=", A, TWO)),
    ("a = CAST(2.675 AS DECIMAL(10, 2))", Comparison("=", A, Constant(Decimal("2.68"), "decimal"))),
    ("a = CAST(2.675 AS DECIMAL(5))", Comparison("=", A, Constant(Decimal(3), "decimal"))),
    ("a = CAST(2.5 AS DECIMAL)", Comparison("=", A, Constant(Decimal(3), "decimal"))),
    ("a = CAST(TRUE AS STRING)", Comparison("=", A, text("true"))),
    # operators, parsed now and evaluated later
    ("is_a(a, 'computer')", Call("is_a", (A, text("computer")))),
    ("near(a, 5, :d)", Call("near", (A, Constant(5, "integer"), Variable("d")))),
    ("f()", Call("f", ())),
    (
        "f(a, :d) AND :d < 3",
        And((Call("f", (A, Variable("d"))), Constraint("<", Variable("d"), Constant(3, "integer")))),
    ),
    # blanks and comments
    ("  a\n=\t1  ", Comparison("=", A, ONE)),
    ("a = 1 -- one", Comparison("=", A, ONE)),
    ("a /* = 2 -- */ = 1", Comparison("=", A, ONE)),
    ("-- one\na = 1", Comparison("=", A, ONE)),
    ("a = '-- no comment'", Comparison("=", A, text("-- no comment"))),
    ("a = '/* nor */'", Comparison("=", A, text("/* nor */"))),
    ("a = 1;", Comparison("=", A, ONE)),
]


@pytest.mark.parametrize(("written", "tree"), ACCEPTED, ids=[written for written, _ in ACCEPTED])
def test_an_accepted_form_becomes_its_tree(written: str, tree: Expression) -> None:
    assert parse(written) == tree


@pytest.mark.parametrize("keyword", ["and", "AND", "And"])
def test_keywords_are_case_blind_and_names_keep_their_case(keyword: str) -> None:
    assert parse(f"A {keyword} b") == And((Truth(Field(("A",))), Truth(B)))


REFUSED: list[tuple[str, type[errors.ExpressionError], int, int, str]] = [
    ("", errors.ExpressionSyntaxError, 1, 1, "the expression is empty"),
    ("   ", errors.ExpressionSyntaxError, 1, 1, "the expression is empty"),
    ("a =", errors.ExpressionSyntaxError, 1, 3, "something is missing after this"),
    ("a AND", errors.ExpressionSyntaxError, 1, 3, "something is missing after this"),
    ("a = 1\n AND\n b =", errors.ExpressionSyntaxError, 3, 4, "something is missing after this"),
    ("((a = 3)", errors.ExpressionSyntaxError, 1, 8, "expecting ) after this"),
    ("a = 3)", errors.ExpressionSyntaxError, 1, 6, "this cannot stand here"),
    ("é = 'é' AND b <", errors.ExpressionSyntaxError, 1, 15, "something is missing after this"),
    ("a = 'open", errors.ExpressionSyntaxError, 1, 5, "this string is never closed"),
    ("a = 1 /* open", errors.ExpressionSyntaxError, 1, 7, "this comment is never closed"),
    ("a = 1 AND `open", errors.ExpressionSyntaxError, 1, 11, "this quoted name is never closed"),
    ("é\n\x01", errors.ExpressionSyntaxError, 2, 1, "control characters are not allowed"),
    ("`a\x06` = 1", errors.ExpressionSyntaxError, 1, 3, "control characters are not allowed"),
    ("a = '\ud800'", errors.ExpressionSyntaxError, 1, 6, "half of a surrogate pair"),
    ("a = 0.0.0", errors.ExpressionSyntaxError, 1, 8, "this cannot stand here"),
    ("a IN ()", errors.ExpressionSyntaxError, 1, 1, "IN needs at least one constant"),
    ("a = b", errors.UnsupportedExpressionError, 1, 5, "a field is compared with constants only"),
    ("a + 1 > 3", errors.UnsupportedExpressionError, 1, 1, "a constant is expected here"),
    ("x AND length(a) > 3", errors.UnsupportedExpressionError, 1, 7, "only a field, or lower or upper of one"),
    ("a LIKE b", errors.UnsupportedExpressionError, 1, 8, "a constant is expected here"),
    ("a LIKE 5", errors.UnsupportedExpressionError, 1, 8, "a pattern is a string"),
    ("a LIKE 'x' ESCAPE 'ab'", errors.UnsupportedExpressionError, 1, 19, "ESCAPE takes one character"),
    ("startswith(a, 5)", errors.UnsupportedExpressionError, 1, 15, "this takes a string"),
    ("a IN (SELECT 1)", errors.UnsupportedExpressionError, 1, 1, "IN takes a list of constants"),
    ("a IN (b)", errors.UnsupportedExpressionError, 1, 7, "a constant is expected here"),
    ("a BETWEEN SYMMETRIC 3 AND 1", errors.UnsupportedExpressionError, 1, 1, "BETWEEN takes no SYMMETRIC"),
    ("CASE WHEN a THEN b END", errors.UnsupportedExpressionError, 1, 11, "write comparisons"),
    ("SELECT a", errors.UnsupportedExpressionError, 1, 8, "write comparisons"),
    ("a = 1 AND 5", errors.UnsupportedExpressionError, 1, 11, "a constant other than TRUE or FALSE is no condition"),
    ("(a > 1) IS NULL", errors.UnsupportedExpressionError, 1, 2, "a field is expected here"),
    ("a[0] = 1", errors.UnsupportedExpressionError, 1, 1, "only a field"),
    ("lower(upper(a)) = 'x'", errors.UnsupportedExpressionError, 1, 7, "a field is expected here"),
    ("a = 1 AND b = 1 / 0", errors.ExpressionError, 1, 15, "division by zero"),
    ("a = 9223372036854775807 + 1", errors.ExpressionError, 1, 5, "beyond 64 bits"),
    ("a = CAST('x' AS INT)", errors.ExpressionError, 1, 10, "'x' cannot be cast to INT"),
    ("a = 1 + 'x'", errors.ExpressionError, 1, 5, "arithmetic needs numbers"),
    ("b AND 'x' = 1", errors.TypeClashError, 1, 7, "a string cannot be compared with a integer"),
]


@pytest.mark.parametrize(
    ("written", "kind", "line", "column", "reason"), REFUSED, ids=[repr(written) for written, *_ in REFUSED]
)
def test_a_refusal_names_its_place_and_reason(
    written: str, kind: type[errors.ExpressionError], line: int, column: int, reason: str
) -> None:
    with pytest.raises(errors.ExpressionError) as caught:
        parse(written)
    assert type(caught.value) is kind
    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.column) == (line, column)


GOLDEN = {
    "price <= 400 AND city =": """something is missing after this (line 1, column 23)
  price <= 400 AND city =
                        ^""",
    "price <= 400\n  AND name = 'x": """this string is never closed (line 2, column 14)
    AND name = 'x
               ^""",
    "x = cost": """this is not supported in a subscription: a field is compared with constants only (line 1, column 5)
  x = cost
      ^""",
    "city = '" + "x" * 70 + "' AND price =": f"""something is missing after this (line 1, column 91)
  {"x" * 48}' AND price =
  {" " * 60}^""",
}


@pytest.mark.parametrize("written", GOLDEN, ids=["end", "second line", "two fields", "long line"])
def test_messages_read_as_they_should(written: str) -> None:
    with pytest.raises(errors.ExpressionError) as caught:
        parse(written)
    assert str(caught.value) == GOLDEN[written]


def test_parentheses_nest_as_deep_as_documented_and_no_deeper() -> None:
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == Truth(A)
    with pytest.raises(errors.ExpressionLimitError, match="nests 201 parentheses; the limit is 200"):
        parse("(" * 201 + "a" + ")" * 201)


def test_a_text_is_as_long_as_documented_and_no_longer() -> None:
    frame = "a = ''"
    longest = f"a = '{'x' * (MAX_LENGTH - len(frame))}'"
    assert parse(longest) == Comparison("=", A, text("x" * (MAX_LENGTH - len(frame))))
    with pytest.raises(errors.ExpressionLimitError, match="the limit is 1,000,000"):
        parse(longest + " ")
    with pytest.raises(errors.ExpressionLimitError, match="the limit is 1,000,000"):
        parse(f"a = '{'é' * 499_998}'")  # bytes count, not characters


def test_a_long_chain_needs_no_recursion() -> None:
    parsed = parse(" OR ".join(f"a = {number}" for number in range(3000)))
    assert isinstance(parsed, Or)
    assert [term.constant.value for term in parsed.terms] == list(range(3000))  # type: ignore[union-attr]


def test_positions_do_not_change_what_an_expression_is() -> None:
    assert parse("a   =    1") == parse("a=1")
    assert hash(parse("a   =    1")) == hash(parse("a=1"))
    assert parse("a = 1") != parse("a = 1.0") != parse("a = 1D")


@pytest.mark.parametrize(
    "text",
    [
        "/* ü日本 */ price < ",
        "-- é\n /* 🎉 */ price < ",
        "city = '日本' /* ü */ AND price < ",
        "`ä` = 1 /* ü */ AND x < ",
    ],
)
def test_a_place_behind_a_comment_is_counted_in_characters(text: str) -> None:
    with pytest.raises(errors.ExpressionSyntaxError) as caught:
        parse(text)
    lines = text.split("\n")
    assert (caught.value.line, caught.value.column) == (len(lines), lines[-1].rindex("<") + 1)


def test_a_template_read_again_gives_each_text_its_own_constants() -> None:
    texts = [f"a RLIKE 'x{n}+' AND NOT (b = {n} OR c LIKE '%{n}_y%')" for n in range(5)]
    first = [parse(text) for text in texts]
    assert [parse(text) for text in texts] == first
    assert len({*map(repr, first)}) == len(texts)
