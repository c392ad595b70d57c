"""No subscription that was accepted makes a match fail, and what is refused says where."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tocsin import Boolean, Matcher, Number, Repeated, Space, Text, Time, errors
from tocsin.language.patterns import MAX_PATTERN_BYTES, MAX_WILDCARDS

SPACE = Space(
    {
        "city": Text(),
        "tags": Repeated(Text()),
        "price": Number(),
        "whole": Number("int64"),
        "day": Time("date"),
        "sold": Boolean(),
    }
)


def refused(text: str) -> errors.ExpressionError:
    """Return why a text is refused: the same alone and in bulk."""
    matcher = Matcher(SPACE, "scan")
    with pytest.raises(errors.ExpressionError) as alone:
        matcher.subscribe("bad", text)
    with pytest.raises(errors.BadSubscriptionsError) as bulk:
        matcher.subscribe_many(pa.table({"id": ["good", "bad"], "expression": ["price < 5", text]}))
    ((row, _, error),) = bulk.value.problems
    assert (row, type(error), str(error)) == (1, type(alone.value), str(alone.value))
    return alone.value


@pytest.mark.parametrize("field", ["city", "tags"])
@pytest.mark.parametrize(
    "pattern",
    [
        "%" + "_x" * (MAX_WILDCARDS - 2) + "%",
        "x_" + "日" * ((MAX_PATTERN_BYTES - 2) // 3),
        "%" + "x" * 900_000 + "%",
        "x" * 900_000 + "%",
        "it''s" + "x" * 9_000,
    ],
    ids=["wildcards", "bytes", "contains", "starts", "quote"],
)
@pytest.mark.parametrize("like", ["LIKE", "ILIKE", "NOT LIKE"])
def test_a_pattern_that_was_accepted_can_be_matched(field: str, pattern: str, like: str) -> None:
    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("long", f"{field} {like} '{pattern}'")
    value = pattern.replace("''", "'").replace("%", "").replace("_", "y")
    event = {field: [value] if field == "tags" else value}
    assert matcher.match(event) == ([] if like == "NOT LIKE" else ["long"])
    assert matcher.match_batch(pa.table({field: [event[field]]})).num_rows == (like != "NOT LIKE")
    assert bool(matcher.explain(event, "long")) == (like != "NOT LIKE")


def test_what_no_match_could_compile_is_refused_with_the_figure() -> None:
    error = refused("price < 5 AND city LIKE '%" + "_x" * 100_000 + "%'")
    assert isinstance(error, errors.ExpressionLimitError) and error.column == 25
    assert "200,002 bytes; the limit is 10,000" in error.reason
    assert "2,001 wildcards; the limit is 2,000" in refused("city LIKE '" + "x_" * 2_001 + "'").reason
    assert "30,001 bytes; the limit is 30,000" in refused("city RLIKE '" + "x" * 30_001 + "'").reason
    assert "the limit is 1/16" in refused("city RLIKE '" + "(.{900}|a)" * 10 + "'").reason


@pytest.mark.parametrize(
    "pattern", [r"\Qopen(", "(?i)ab|c", ".{1000}", "(.{900}|a)" * 4, "(" * 500 + "a" + ")" * 500, ""]
)
def test_ordinary_regular_expressions_are_not_too_large(pattern: str) -> None:
    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("pattern", f"city RLIKE r'{pattern}'")
    assert matcher.match({"city": "xopen(ABc" + "a" * 1_000}) == ["pattern"]


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "constant", ["-9223372036854775808.0000000000000000000", "-9223372036854775807.5", "-9223372036854775808"]
)
def test_the_least_integer_beside_a_long_constant_can_be_matched(operator: str, constant: str) -> None:
    from decimal import Decimal

    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("least", f"whole {operator} {constant}")
    exact = Decimal(constant)
    for value in (-(2**63), -(2**63) + 1, 0):
        meant = {"=": value == exact, "<>": value != exact, "<": value < exact, "<=": value <= exact}
        meant |= {">": value > exact, ">=": value >= exact}
        assert matcher.match({"whole": value}) == (["least"] if meant[operator] else [])


PLACES = [
    ("price > 1 AND day = DATE '2026-02-30'", 26, "there is no day '2026-02-30'"),
    ("price > 1 AND day = 'tomorrow'", 21, "'tomorrow' is no date"),
    ("day IN ('2026-01-31', 'x')", 23, "'x' is no date"),
    ("day BETWEEN '2026-01-31' AND '2026-13-01'", 30, "there is no day '2026-13-01'"),
    ("city = NYC", 8, "write a text in quotes: 'NYC'"),
    ("price < ?", 9, "nothing fills in this ?"),
    ("sold IS 5", 6, "IS is followed by NULL, TRUE or FALSE"),
    ("sold AND :x > 3", 10, ":x is compared where nothing binds it"),
    ("(" * 201 + "sold" + ")" * 201, 201, "nests 201 parentheses; the limit is 200"),
    ("city = '('  AND " + "(" * 201 + "sold" + ")" * 201, 217, "nests 201 parentheses; the limit is 200"),
    ("city = '" + "x" * 1_000_000 + "'", 1_000_001, "the limit is 1,000,000"),
]


@pytest.mark.parametrize(("text", "column", "reason"), PLACES, ids=[text[:30] for text, _, _ in PLACES])
def test_the_place_of_what_is_refused_is_told_alone_and_in_bulk(text: str, column: int, reason: str) -> None:
    error = refused(text)
    assert reason in error.reason
    assert (error.line, error.column) == (1, column)
