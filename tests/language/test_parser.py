"""Every accepted form becomes the tree it says; every refusal names its place."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tocsin import errors
from tocsin.kernels.language import literals as shapes
from tocsin.language import parse, tree
from tocsin.language.literals import MAX_DEPTH, MAX_LENGTH

A, B = tree.Field(("a",)), tree.Field(("b",))
ONE, TWO, NONE = tree.Constant(1, "integer"), tree.Constant(2, "integer"), tree.Constant(None, "null")


def text(value: str) -> tree.Constant:
    return tree.Constant(value, "string")


def like(pattern: str, shape: int, escape: str = "\\", case_blind: bool = False, field: tree.Field = A) -> tree.Like:
    return tree.Like(field, text(pattern), shape, escape, case_blind)


ACCEPTED: list[tuple[str, tree.Expression]] = [
    # comparisons
    ("a = 1", tree.Comparison("=", A, ONE)),
    ("a == 1", tree.Comparison("=", A, ONE)),
    ("a <> 1", tree.Comparison("<>", A, ONE)),
    ("a != 1", tree.Comparison("<>", A, ONE)),
    ("a < 1", tree.Comparison("<", A, ONE)),
    ("a <= 1", tree.Comparison("<=", A, ONE)),
    ("a > 1", tree.Comparison(">", A, ONE)),
    ("a >= 1", tree.Comparison(">=", A, ONE)),
    ("a <=> 1", tree.Comparison("<=>", A, ONE)),
    ("a <=> NULL", tree.Comparison("<=>", A, NONE)),
    ("a = NULL", tree.Comparison("=", A, NONE)),
    ("a IS DISTINCT FROM 1", tree.Not(tree.Comparison("<=>", A, ONE))),
    ("a IS NOT DISTINCT FROM 1", tree.Comparison("<=>", A, ONE)),
    ("1 = a", tree.Comparison("=", A, ONE)),
    ("1 < a", tree.Comparison(">", A, ONE)),
    ("1 <= a", tree.Comparison(">=", A, ONE)),
    ("1 > a", tree.Comparison("<", A, ONE)),
    ("1 >= a", tree.Comparison("<=", A, ONE)),
    ("(a) = (1)", tree.Comparison("=", A, ONE)),
    # BETWEEN and IN
    ("a BETWEEN 1 AND 2", tree.Between(A, ONE, TWO)),
    ("a NOT BETWEEN 1 AND 2", tree.Not(tree.Between(A, ONE, TWO))),
    ("a BETWEEN NULL AND 2", tree.Between(A, NONE, TWO)),
    ("1 BETWEEN a AND b", tree.And((tree.Comparison("<=", A, ONE), tree.Comparison(">=", B, ONE)))),
    ("a IN (1)", tree.Membership(A, (ONE,))),
    ("a IN (1, 2, NULL)", tree.Membership(A, (ONE, TWO, NONE))),
    ("a NOT IN (1, 2)", tree.Not(tree.Membership(A, (ONE, TWO)))),
    ("1 IN (2, 1)", tree.Or((tree.Fixed(False), tree.Fixed(True)))),
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
    ("a NOT LIKE 'x%'", tree.Not(like("x%", shapes.STARTS))),
    ("a ILIKE 'x%'", like("x%", shapes.STARTS, case_blind=True)),
    ("a LIKE 'x!%' ESCAPE '!'", like("x!%", 0, "!")),
    ("a NOT LIKE 'x!%' ESCAPE '!'", tree.Not(like("x!%", 0, "!"))),
    ("a LIKE ANY ('x%', '%y')", tree.Or((like("x%", shapes.STARTS), like("%y", shapes.ENDS)))),
    ("a LIKE ALL ('x%', '%y')", tree.And((like("x%", shapes.STARTS), like("%y", shapes.ENDS)))),
    ("a NOT LIKE ANY ('x%', '%y')", tree.Or((tree.Not(like("x%", shapes.STARTS)), tree.Not(like("%y", shapes.ENDS))))),
    ("a NOT LIKE ALL ('x%', '%y')", tree.And((tree.Not(like("x%", shapes.STARTS)), tree.Not(like("%y", shapes.ENDS))))),
    ("a LIKE NULL", tree.Comparison("=", A, NONE)),
    ("a RLIKE 'x+'", tree.Matches(A, text("x+"))),
    ("a REGEXP 'x+'", tree.Matches(A, text("x+"))),
    ("regexp_like(a, 'x+')", tree.Matches(A, text("x+"))),
    ("regexp(a, 'x+')", tree.Matches(A, text("x+"))),
    ("regexp(a, NULL)", tree.Comparison("=", A, NONE)),
    ("startswith(a, 'x')", tree.Affix("startswith", A, text("x"))),
    ("endswith(a, 'x')", tree.Affix("endswith", A, text("x"))),
    ("contains(a, 'x')", tree.Affix("contains", A, text("x"))),
    ("contains(a, NULL)", tree.Comparison("=", A, NONE)),
    ("lower(a) = 'x'", tree.Comparison("=", tree.Field(("a",), "lower"), text("x"))),
    ("upper(a) LIKE 'X%'", like("X%", shapes.STARTS, field=tree.Field(("a",), "upper"))),
    ("array_contains(a, 1)", tree.Comparison("=", A, ONE)),
    ("in_network(a, '10.0.0.0/8')", tree.InNetwork(A, text("10.0.0.0/8"))),
    # NULL and truth
    ("a IS NULL", tree.IsNull(A)),
    ("a IS NOT NULL", tree.Not(tree.IsNull(A))),
    ("isnull(a)", tree.IsNull(A)),
    ("isnotnull(a)", tree.Not(tree.IsNull(A))),
    ("a IS TRUE", tree.IsTruth(A, True)),
    ("a IS NOT FALSE", tree.Not(tree.IsTruth(A, False))),
    ("a", tree.Truth(A)),
    ("NOT a", tree.Not(tree.Truth(A))),
    ("!a", tree.Not(tree.Truth(A))),
    ("a = TRUE", tree.Comparison("=", A, tree.Constant(True, "boolean"))),
    ("(a > 1) = TRUE", tree.Comparison(">", A, ONE)),
    ("(a > 1) <> TRUE", tree.Not(tree.Comparison(">", A, ONE))),
    ("TRUE", tree.Fixed(True)),
    ("FALSE", tree.Fixed(False)),
    ("NULL", tree.Fixed(None)),
    ("1 < 2", tree.Fixed(True)),
    ("1 = NULL", tree.Fixed(None)),
    ("NULL <=> NULL", tree.Fixed(True)),
    ("NULL IS NULL", tree.Fixed(True)),
    # logic
    ("a AND b", tree.And((tree.Truth(A), tree.Truth(B)))),
    ("a AND (b AND a)", tree.And((tree.Truth(A), tree.Truth(B), tree.Truth(A)))),
    ("a OR b AND a", tree.Or((tree.Truth(A), tree.And((tree.Truth(B), tree.Truth(A)))))),
    ("(a OR b) AND a", tree.And((tree.Or((tree.Truth(A), tree.Truth(B))), tree.Truth(A)))),
    ("NOT a = 1 AND b", tree.And((tree.Not(tree.Comparison("=", A, ONE)), tree.Truth(B)))),
    ("not (not a)", tree.Not(tree.Not(tree.Truth(A)))),
    # names
    ("a.b.c = 1", tree.Comparison("=", tree.Field(("a", "b", "c")), ONE)),
    ("a.b.c.d.e.f = 1", tree.Comparison("=", tree.Field(tuple("abcdef")), ONE)),
    ("`a b`.`c` = 1", tree.Comparison("=", tree.Field(("a b", "c")), ONE)),
    ("`a``b` = 1", tree.Comparison("=", tree.Field(("a`b",)), ONE)),
    ("`and` = 1", tree.Comparison("=", tree.Field(("and",)), ONE)),
    ("naïve = 1", tree.Comparison("=", tree.Field(("naïve",)), ONE)),
    (
        "a1 = 1 AND 1a = 1",
        tree.And((tree.Comparison("=", tree.Field(("a1",)), ONE), tree.Comparison("=", tree.Field(("1a",)), ONE))),
    ),
    ("a.`1` = 1", tree.Comparison("=", tree.Field(("a", "1")), ONE)),
    # constants
    ("a = 2.50", tree.Comparison("=", A, tree.Constant(Decimal("2.50"), "decimal"))),
    ("a = .5", tree.Comparison("=", A, tree.Constant(Decimal("0.5"), "decimal"))),
    ("a = 5.", tree.Comparison("=", A, tree.Constant(Decimal(5), "decimal"))),
    ("a = 25e-1", tree.Comparison("=", A, tree.Constant(2.5, "double"))),
    ("a = 2.5D", tree.Comparison("=", A, tree.Constant(2.5, "double"))),
    ("a = 0.1F", tree.Comparison("=", A, tree.Constant(0.10000000149011612, "double"))),
    ("a = 1L OR a = 1S OR a = 1Y", tree.Or((tree.Comparison("=", A, ONE),) * 3)),
    ("a = 1BD", tree.Comparison("=", A, tree.Constant(Decimal(1), "decimal"))),
    ("a = -1", tree.Comparison("=", A, tree.Constant(-1, "integer"))),
    ("a = - -1", tree.Comparison("=", A, ONE)),
    ("a = -9223372036854775808", tree.Comparison("=", A, tree.Constant(-(2**63), "integer"))),
    ("a = 12345678901234567890", tree.Comparison("=", A, tree.Constant(12345678901234567890, "integer"))),
    ("a = 1 + 2 * 3", tree.Comparison("=", A, tree.Constant(7, "integer"))),
    ("a = (1 + 2) * 3", tree.Comparison("=", A, tree.Constant(9, "integer"))),
    ('a = "x"', tree.Comparison("=", A, text("x"))),
    ("a < DATE '2020-02-29'", tree.Comparison("<", A, tree.Constant("2020-02-29", "date"))),
    ("a < TIMESTAMP '2020-02-29 12:00'", tree.Comparison("<", A, tree.Constant("2020-02-29 12:00", "timestamp"))),
    ("a < TIMESTAMP_NTZ '2020-02-29'", tree.Comparison("<", A, tree.Constant("2020-02-29", "timestamp_ntz"))),
    ("a < CAST('2020-02-29' AS DATE)", tree.Comparison("<", A, tree.Constant("2020-02-29", "date"))),
    ("a = CAST('2' AS BIGINT)", tree.Comparison("=", A, TWO)),
    ("a = CAST(2.675 AS DECIMAL(10, 2))", tree.Comparison("=", A, tree.Constant(Decimal("2.68"), "decimal"))),
    ("a = CAST(2.675 AS DECIMAL(5))", tree.Comparison("=", A, tree.Constant(Decimal(3), "decimal"))),
    ("a = CAST(2.5 AS DECIMAL)", tree.Comparison("=", A, tree.Constant(Decimal(3), "decimal"))),
    ("a = CAST(TRUE AS STRING)", tree.Comparison("=", A, text("true"))),
    # operators, parsed now and evaluated later
    ("is_a(a, 'computer')", tree.Call("is_a", (A, text("computer")))),
    ("near(a, 5, :d)", tree.Call("near", (A, tree.Constant(5, "integer"), tree.Variable("d")))),
    ("f()", tree.Call("f", ())),
    (
        "f(a, :d) AND :d < 3",
        tree.And(
            (
                tree.Call("f", (A, tree.Variable("d"))),
                tree.Constraint("<", tree.Variable("d"), tree.Constant(3, "integer")),
            )
        ),
    ),
    # blanks and comments
    ("  a\n=\t1  ", tree.Comparison("=", A, ONE)),
    ("a = 1 -- one", tree.Comparison("=", A, ONE)),
    ("a /* = 2 -- */ = 1", tree.Comparison("=", A, ONE)),
    ("-- one\na = 1", tree.Comparison("=", A, ONE)),
    ("/* one /* inside */ another */ a = 1", tree.Comparison("=", A, ONE)),
    ("a = 1 /* /* */ AND b = 2 -- */", tree.Comparison("=", A, ONE)),
    ("a = 1 -- carried over \\\n AND b = 2", tree.Comparison("=", A, ONE)),
    ("a = 1 -- ends here\r", tree.Comparison("=", A, ONE)),
    ("a = '-- no comment'", tree.Comparison("=", A, text("-- no comment"))),
    ("a = '/* nor */'", tree.Comparison("=", A, text("/* nor */"))),
]


@pytest.mark.parametrize(("written", "meant"), ACCEPTED, ids=[written for written, _ in ACCEPTED])
def test_an_accepted_form_becomes_its_tree(written: str, meant: tree.Expression) -> None:
    assert parse(written) == meant


@pytest.mark.parametrize("keyword", ["and", "AND", "And"])
def test_keywords_are_case_blind_and_names_keep_their_case(keyword: str) -> None:
    assert parse(f"A {keyword} b") == tree.And((tree.Truth(tree.Field(("A",))), tree.Truth(B)))


REFUSED: list[tuple[str, type[errors.ExpressionError], int, int, str]] = [
    ("", errors.ExpressionSyntaxError, 1, 1, "the expression is empty"),
    ("   ", errors.ExpressionSyntaxError, 1, 1, "the expression is empty"),
    ("a =", errors.ExpressionSyntaxError, 1, 3, "something is missing after this"),
    ("a AND", errors.ExpressionSyntaxError, 1, 3, "something is missing after this"),
    ("a = 1\n AND\n b =", errors.ExpressionSyntaxError, 3, 4, "something is missing after this"),
    ("((a = 3)", errors.ExpressionSyntaxError, 1, 1, "this parenthesis is never closed"),
    ("a = 3)", errors.ExpressionSyntaxError, 1, 6, "this parenthesis closes nothing"),
    ("é = 'é' AND b <", errors.ExpressionSyntaxError, 1, 15, "something is missing after this"),
    ("a = 'open", errors.ExpressionSyntaxError, 1, 5, "this string is never closed"),
    ("a = 1 /* /* open */", errors.ExpressionSyntaxError, 1, 7, "this comment is never closed"),
    ("a = 1 /* open", errors.ExpressionSyntaxError, 1, 7, "this comment is never closed"),
    ("a = 1 AND `open", errors.ExpressionSyntaxError, 1, 11, "this quoted name is never closed"),
    ("é\n\x01", errors.ExpressionSyntaxError, 2, 1, "control characters are not allowed"),
    ("`a\x06` = 1", errors.ExpressionSyntaxError, 1, 3, "control characters are not allowed"),
    ("a = '\ud800'", errors.ExpressionSyntaxError, 1, 6, "half of a surrogate pair"),
    ("a = 0.0.0", errors.ExpressionSyntaxError, 1, 8, "this cannot stand here"),
    ("a IN ()", errors.ExpressionSyntaxError, 1, 1, "IN needs at least one constant"),
    ("a LIKE ANY ()", errors.ExpressionSyntaxError, 1, 1, "at least one pattern"),
    ("a NOT ILIKE ALL ()", errors.ExpressionSyntaxError, 1, 1, "at least one pattern"),
    ("regexp_like(a, 'x', 'i')", errors.UnsupportedExpressionError, 1, 21, "and nothing more"),
    ("contains(a, 'x', 'y')", errors.UnsupportedExpressionError, 1, 18, "and nothing more"),
    ("array_contains(a, 1, 2)", errors.UnsupportedExpressionError, 1, 22, "and nothing more"),
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
    ("SELECT a", errors.ExpressionSyntaxError, 1, 1, "this cannot stand here"),
    ("a = 1 AND 5", errors.UnsupportedExpressionError, 1, 11, "a constant other than TRUE or FALSE is no condition"),
    ("(a > 1) IS NULL", errors.UnsupportedExpressionError, 1, 2, "a field is expected here"),
    ("a[0] = 1", errors.UnsupportedExpressionError, 1, 1, "only a field"),
    ("lower(upper(a)) = 'x'", errors.UnsupportedExpressionError, 1, 7, "a field is expected here"),
    ("a = 1 AND b = 1 / 0", errors.ExpressionError, 1, 15, "division by zero"),
    ("a = 9223372036854775807 + 1", errors.ExpressionError, 1, 5, "beyond 64 bits"),
    ("a = CAST('x' AS INT)", errors.ExpressionError, 1, 10, "'x' cannot be cast to INT"),
    ("a = 1 + 'x'", errors.ExpressionError, 1, 5, "arithmetic needs numbers"),
    ("b AND 'x' = 1", errors.TypeClashError, 1, 7, "a string cannot be compared with an integer"),
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
    "x = cost": """this is not supported in a subscription: a field is compared with constants only; \
write a text in quotes: 'cost' (line 1, column 5)
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
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == tree.Truth(A)
    with pytest.raises(errors.ExpressionLimitError, match="nests 201 parentheses; the limit is 200"):
        parse("(" * 201 + "a" + ")" * 201)


def test_a_text_is_as_long_as_documented_and_no_longer() -> None:
    frame = "a = ''"
    longest = f"a = '{'x' * (MAX_LENGTH - len(frame))}'"
    assert parse(longest) == tree.Comparison("=", A, text("x" * (MAX_LENGTH - len(frame))))
    with pytest.raises(errors.ExpressionLimitError, match="the limit is 1,000,000"):
        parse(longest + " ")
    with pytest.raises(errors.ExpressionLimitError, match="the limit is 1,000,000"):
        parse(f"a = '{'é' * 499_998}'")  # bytes count, not characters


def test_a_long_chain_needs_no_recursion() -> None:
    parsed = parse(" OR ".join(f"a = {number}" for number in range(3000)))
    assert isinstance(parsed, tree.Or)
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
