"""What sqlglot's parser lets pass and Spark's does not is refused with its place; words that Spark takes for names are
names."""

from __future__ import annotations

import re

import pytest
from sqlglot.dialects.spark import Spark

from tocsin import Matcher, Number, Space, errors
from tocsin.language import parse, tokens
from tocsin.language.literals import MAX_DEPTH

REFUSED = [
    ("a IN (1,)", 8, "a value is missing beside this comma"),
    ("a IN (,1)", 7, "a value is missing beside this comma"),
    ("a IN (1,,2)", 8, "a value is missing beside this comma"),
    ("a = 1,", 6, "a value is missing beside this comma"),
    ("a < 5;", 6, "leave this semicolon out"),
    ("a < 5; b = 2", 6, "leave this semicolon out"),
    (";", 1, "leave this semicolon out"),
    ("a < ?", 5, "nothing fills in this ?"),
    ("a BETWEEN 1 2", 13, "this cannot stand here"),
    ("a BETWEEN 1 OR b", 13, "BETWEEN takes two values"),
    ("(a BETWEEN 1)", 13, "BETWEEN takes two values"),
    ("a BETWEEN 1", 12, "BETWEEN takes two values"),
    ("a NOT IS NULL", 3, "cannot stand here"),
    ("a IS 5", 3, "IS is followed by NULL, TRUE or FALSE"),
    ("a IS + NULL", 3, "IS is followed by NULL, TRUE or FALSE"),
    ("a NOT NULL", 3, "write IS NULL"),
    ("IS NOT NULL", 4, "write IS NULL"),
    ("c.'x' = 1", 2, "a name is expected after this point"),
    ("a ISNULL", 3, "write IS NULL"),
    ("a NOTNULL", 3, "write IS NULL"),
    ("a ! IN (1)", 3, "cannot stand here"),
    ("a.5 = 1", 2, "a name is expected after this point"),
    ("a.(1, 2)", 2, "a name is expected after this point"),
    ("a = {1", 5, "cannot stand here"),
    ("a = INT 5", 9, "cannot stand here"),
    ("a = STRING 'x'", 12, "cannot stand here"),
    ("a LIKE ANY 'x'", 12, "cannot stand here"),
    ("a IN (+, 2)", 7, "something is missing after this"),
    ("a = 1 AND", 7, "something is missing after this"),
    ("a = 1 AND + NOT b", 11, "NOT cannot stand after a sign"),
    ("a = CAST('1' AS INT", 9, "this parenthesis is never closed"),
    ("a = 1 foo", 7, "cannot stand here"),
    ("a = 1 AS foo", 7, "cannot stand here"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_spark_does_not_parse_is_refused_where_it_stands(text: str, column: int, reason: str) -> None:
    with pytest.raises(errors.ExpressionSyntaxError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert caught.value.column == column


WORDS = sorted({key.lower() for key in Spark.Tokenizer.KEYWORDS if re.fullmatch(r"[A-Za-z_]+", key)})
FORMS = [
    "{} = 1", "1 < {}", "x = 1 AND {} = 1", "{} IN (1, 2)", "{} IS NULL", "{} NOT IN (1)", "{} BETWEEN 1 AND 2",
    "({}) = 1", "NOT {} = 1", "{} <=> 1", "{} != 1", "{}.b = 1", "x.{} = 1",
]  # fmt: skip


def test_every_word_but_the_constants_is_a_field_as_in_spark() -> None:
    names = [word for word in WORDS if word not in ("null", "true", "false", "not")]
    assert len(names) > 200
    wrong = [
        form.format(word)
        for word in names
        for form in FORMS
        if _parsed(form.format(word)) != _parsed(form.format(f"`{word}`"))
    ]
    assert wrong == []
    assert _parsed("not = 1") == _parsed("`not` = 1")


def _parsed(text: str) -> object:
    try:
        return parse(text)
    except errors.ExpressionError as error:
        return text, error.reason


def test_a_field_may_be_called_as_a_word_of_sql() -> None:
    matcher = Matcher(Space({"from": Number(), "and": Number(), "between": Number(), "case": Number()}), "scan")
    matcher.subscribe("all", "from = 1 AND and = 2 AND between BETWEEN 3 AND 4 AND case IS NULL")
    assert matcher.match({"from": 1, "and": 2, "between": 3}) == ["all"]
    assert matcher.match({"from": 1, "and": 3, "between": 3}) == []


NESTED = [
    "NOT (" * (MAX_DEPTH // 2) + "b" + ")" * (MAX_DEPTH // 2),
    "NOT " * MAX_DEPTH + "b",
    "a = " + "- " * MAX_DEPTH + "1",
]


@pytest.mark.parametrize("text", NESTED, ids=["both", "NOT", "sign"])
def test_prefixes_nest_as_deep_as_documented_and_no_deeper(text: str) -> None:
    parse(text)
    deeper = text.replace("b", "NOT b").replace("1", "- 1")
    with pytest.raises(errors.ExpressionLimitError, match=f"the limit is {MAX_DEPTH}") as caught:
        parse(deeper)
    assert caught.value.column is not None


def test_operators_in_a_row_are_as_many_as_documented_and_no_more() -> None:
    for before in ("", "b = 1 + 1 AND ", "b IN (1, 2) OR "):
        parse(before + "a = 1" + " + 1" * (tokens.MAX_CHAIN - 1))
    with pytest.raises(errors.ExpressionLimitError, match="the limit is 1,000") as caught:
        parse("a = 1" + " + 1" * tokens.MAX_CHAIN)
    assert caught.value.column is not None
    parse(" AND ".join(["a = 1 + 1"] * 3_000))
