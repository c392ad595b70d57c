"""Bad input is a documented error with its place and a way out; it changes nothing, and never crashes or hangs."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Boolean, Matcher, Number, Repeated, Space, Text, Time, TocsinError, errors
from tocsin.language import parse

SPACE = Space(
    {"price": Number("int64"), "city": Text(), "sold": Boolean(), "day": Time("date"), "tags": Repeated(Text())}
)


def loaded() -> Matcher:
    matcher = Matcher(SPACE)
    matcher.subscribe("kept", "price < 10 AND city = 'NYC'")
    return matcher


def check_unchanged(matcher: Matcher) -> None:
    assert list(matcher) == ["kept"] and matcher["kept"] == "price < 10 AND city = 'NYC'"
    assert matcher.match({"price": 5, "city": "NYC"}) == ["kept"]
    assert matcher.match({"price": 50, "city": "NYC"}) == []


EXPRESSIONS: list[tuple[str, type[TocsinError], str]] = [
    ("price <", errors.ExpressionSyntaxError, "something is missing after this (line 1, column 7)"),
    ("price < 5 AND\n city = = 'x'", errors.ExpressionSyntaxError, "(line 2, column 9)"),
    ("(" * 10_000 + "sold" + ")" * 10_000, errors.ExpressionLimitError, "nests 10,000 parentheses; the limit is 200"),
    ("(" * 10_000, errors.ExpressionLimitError, "nests 10,000 parentheses"),
    ("NOT " * 10_000 + "sold", errors.ExpressionLimitError, "nests too deeply"),
    ("[" * 10_000, errors.ExpressionLimitError, "nests too deeply"),
    ("city = '" + "x" * 1_000_000 + "'", errors.ExpressionLimitError, "bytes; the limit is 1,000,000"),
    ("prize < 5", errors.UnknownFieldError, "there is no field 'prize'; did you mean price? (line 1, column 1)"),
    ("price < 5 AND town = 'x'", errors.UnknownFieldError, "there is city, day, price, sold, tags (line 1, column 15)"),
    ("price = 'x'", errors.TypeClashError, "price is number and cannot be compared with a string; compare it with"),
    (
        "city = 5",
        errors.TypeClashError,
        "city is text and cannot be compared with an integer; write the constant in quotes",
    ),
    ("sold = 1", errors.TypeClashError, "sold is boolean and cannot be compared with an integer; compare it with TRUE"),
    ("price", errors.TypeClashError, "price is number, not boolean"),
    ("price LIKE '5%'", errors.TypeClashError, "LIKE takes text, and price is number"),
    ("lower(price) = 'x'", errors.TypeClashError, "lower takes text, and price is number"),
    ("in_network(city, '10.0.0.0/8')", errors.TypeClashError, "in_network takes an address, and city is text"),
    ("day < 'tomorrow'", errors.TypeClashError, "'tomorrow' is no date or timestamp; write it like '2026-01-31'"),
    ("price < 1" + "0" * 50, errors.ExpressionError, "a number has at most 38 digits"),
    ("price < 1" + "0" * 5000, errors.ExpressionError, "a number has at most 38 digits"),
    ("price < 1e999999999BD", errors.ExpressionError, "a number has at most 38 digits"),
    ("'x' = 1", errors.TypeClashError, "a string cannot be compared with an integer"),
    ("price < 1 / 0", errors.ExpressionError, "division by zero"),
    ("city RLIKE '('", errors.UnsupportedExpressionError, "the regular expression is refused"),
    ("city RLIKE '(?=a)'", errors.UnsupportedExpressionError, "no look-around"),
    ("city LIKE 'a\\\\b'", errors.UnsupportedExpressionError, "stands only before %, _ or itself"),
    ("tags <=> 'x'", errors.UnsupportedExpressionError, "<=> and IS TRUE do not apply"),
    ("is_a(city, 'town')", errors.TypeClashError, "is_a takes a concept, and city is text"),
    ("near(city, 5)", errors.NotEnabledError, "there is no operator near"),
    (":v > 3", errors.UnsupportedExpressionError, ":v is compared where nothing binds it"),
    (
        " OR ".join(f"(price = {n} AND city = 'c{n}')" for n in range(1025)),
        errors.ExpressionLimitError,
        "needs 1,025 boxes and the limit is 1,024",
    ),
    ("city = '\ud800'", errors.ExpressionError, ""),
    ("price = 1\x00", errors.ExpressionSyntaxError, "control characters"),
    ("is_a(MAP(price > 1))", errors.ExpressionSyntaxError, "this is not Spark SQL"),
    ("price = 11eBD", errors.ExpressionSyntaxError, "this is not Spark SQL"),
    (":v > city.5D", errors.ExpressionSyntaxError, "a name is expected after this point"),
]


@pytest.mark.parametrize(("text", "kind", "reason"), EXPRESSIONS, ids=[ascii(text[:30]) for text, _, _ in EXPRESSIONS])
def test_a_bad_expression_is_told_and_changes_nothing(text: str, kind: type[TocsinError], reason: str) -> None:
    matcher = loaded()
    with pytest.raises(kind) as caught:
        matcher.subscribe("bad", text)
    assert type(caught.value) is kind
    assert reason in str(caught.value)
    check_unchanged(matcher)
    with pytest.raises(kind):
        matcher.subscribe("kept", text, duplicates="replace")
    check_unchanged(matcher)


def test_all_bad_expressions_of_a_table_are_told_at_once_and_none_is_applied() -> None:
    matcher = loaded()
    texts = [text for text, _, _ in EXPRESSIONS if "\ud800" not in text]
    table = pa.table({"id": [f"bad{row}" for row in range(len(texts))] + ["good"], "expression": [*texts, "price = 1"]})
    with pytest.raises(errors.BadSubscriptionsError) as caught:
        matcher.subscribe_many(table)
    kinds = [kind for text, kind, _ in EXPRESSIONS if "\ud800" not in text]
    assert [(row, type(error)) for row, _, error in caught.value.problems] == list(enumerate(kinds))
    check_unchanged(matcher)


def test_every_place_that_is_known_is_told_in_bulk_as_alone() -> None:
    matcher = loaded()
    texts = ["city = 'x' AND prize < 5", "city = 'yy' AND prize < 7", "price = 1 AND\n city = 5"]
    with pytest.raises(errors.BadSubscriptionsError) as caught:
        matcher.subscribe_many(pa.table({"id": ["a", "b", "c"], "expression": texts}))
    places = [(error.line, error.column) for _, _, error in caught.value.problems]  # type: ignore[attr-defined]
    assert places == [(1, 16), (1, 17), (2, 9)]


EVENTS: list[tuple[Any, str]] = [
    ({"price": "5"}, "field price: '5' is not a whole number"),
    ({"price": 2**63}, "field price: 9223372036854775808 is beyond 64 bits"),
    ({"price": float("nan")}, "field price: nan is not a whole number"),
    ({"price": 1.5}, "field price: 1.5 is not a whole number"),
    ({"city": 5}, "field city: 5 is not text"),
    ({"city": "\ud800"}, "is not valid text"),
    ([], "an event is a dictionary"),
    (None, "an event is a dictionary"),
]


@pytest.mark.parametrize(("event", "reason"), EVENTS, ids=[ascii(event) for event, _ in EVENTS])
def test_a_bad_event_is_told(event: Any, reason: str) -> None:
    matcher = loaded()
    with pytest.raises(errors.EventError) as caught:
        matcher.match(event)
    assert reason in str(caught.value)
    check_unchanged(matcher)


def test_a_bad_table_is_told() -> None:
    matcher = loaded()
    for table, kind in (
        (pa.table({"price": [1]}), errors.MissingColumnError),
        (pa.table({"price": ["x"], "city": ["y"]}), errors.EventError),
        (pa.table({"price": [1], "city": [2]}), errors.EventError),
        (
            pa.table({"price": [2**63], "city": ["x"]}, schema=pa.schema({"price": pa.uint64(), "city": pa.string()})),
            errors.EventError,
        ),
        ("no table", errors.EventError),
    ):
        with pytest.raises(kind):
            matcher.match_batch(table)
    check_unchanged(matcher)


def test_wide_and_long_expressions_within_the_limits_are_accepted_in_time() -> None:
    matcher = loaded()
    matcher.subscribe("wide", f"price IN ({', '.join(map(str, range(0, 20_000, 2)))})")
    matcher.subscribe("many", " OR ".join(f"city = 'c{number}'" for number in range(5000)))
    matcher.subscribe("deep", "(" * 200 + "sold" + ")" * 200)
    assert matcher.match({"price": 4, "city": "c7", "sold": True}) == ["wide", "many", "deep"]


# Fuzzing

SEED = int(os.environ.get("TOCSIN_SEED", "20261115"))
FUZZED = int(os.environ.get("TOCSIN_FUZZ", "200000"))
VALID = [
    "price <= 400 AND city IN ('NYC', 'LA') AND NOT (sold OR day IS NULL)",
    "city LIKE 'a\\%b%' ESCAPE '\\\\' OR city ILIKE '%É%'",
    "day BETWEEN DATE '2020-01-01' AND CAST('2021-01-01' AS DATE)",
    "tags = 'x' AND startswith(city, \"q\") AND lower(city) RLIKE '^a+$'",
    "price = -1.5e3 + 2 * (3 - 4) / 5 % 6 OR price <=> NULL -- end",
    "`a b`.c.d <> 12BD /* note */ AND near(city, 5L, :v) AND :v > 2.5D",
    "is_a(city, 'x') AND (price > 1) = TRUE AND city NOT LIKE ALL ('a', '%b')",
]
TOKENS = [
    "AND", "OR", "NOT", "(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "::", "=", "==", "<>", "!=", "<", "<=", ">",
    ">=", "<=>", "+", "-", "*", "/", "%", "||", "->", "=>", "?", "@", "#", "~", "^", "&", "|", "!", "`a`", "'x'",
    "\"y\"", "1", "2.5", "1e5", "1e", "0x1F", "5L", "7BD", ".5", "5.", "price", "city", "sold", "day", "tags",
    "unknown", "NULL", "TRUE", "FALSE", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "IS", "ANY", "ALL", "SOME",
    "ESCAPE", "CAST", "AS", "DATE", "TIMESTAMP", "INTERVAL", "CASE", "WHEN", "THEN", "ELSE", "END", "SELECT", "FROM",
    "WHERE", "EXISTS", "DISTINCT", "lower(", "upper(", "contains(", "f(", "DECIMAL(3,2)", "INT", "STRING", "ARRAY<",
    "MAP", "STRUCT", "/*", "*/", "--", "\n", "'", "\"", "`", "\\", "\u00e9", "\u65e5", "\ud83d\ude00", "\u0000",
    "\u0001", "\u007f", "\u2028", "\ufeff",
]  # fmt: skip


def fuzzed(pick: random.Random) -> str:
    """Return a text that may be anything: a valid one changed, tokens in any order, or characters in any order."""
    roll = pick.random()
    if roll < 0.5:
        text = pick.choice(VALID)
        for _ in range(pick.randint(1, 6)):
            start = pick.randrange(len(text) + 1)
            end = min(len(text), start + pick.choice([0, 0, 1, 1, 2, 5, 20]))
            put = pick.choice(["", pick.choice(TOKENS), text[start:end] * 2, chr(pick.randrange(1, 0xD800))])
            text = text[:start] + put + text[end:]
        return text
    if roll < 0.85:
        return pick.choice([" ", "", " "]).join(pick.choice(TOKENS) for _ in range(pick.randint(1, 25)))
    return "".join(
        chr(pick.choice([pick.randrange(128), pick.randrange(0x110000)])) for _ in range(pick.randint(0, 40))
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_nothing_but_our_errors_comes_out_of_the_parser(part: int) -> None:
    print(f"seed {SEED}, part {part}: {FUZZED // 4} texts")
    pick = random.Random(f"{SEED}/{part}")
    slowest = (0.0, "")
    accepted = 0
    for number in range(FUZZED // 4):
        text = fuzzed(pick)
        begun = time.perf_counter()
        try:
            parse(text)
            accepted += 1
        except TocsinError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {SEED}, part {part}, text {number}: {text!r} raised {error!r}") from error
        slowest = max(slowest, (time.perf_counter() - begun, text))
    print(f"{accepted} accepted; the slowest took {slowest[0]:.2f} s: {slowest[1]!r}")
    assert accepted, "some of the texts are valid"


@pytest.mark.slow
def test_nothing_but_our_errors_comes_out_of_a_bulk_load() -> None:
    pick = random.Random(f"{SEED}/bulk")
    matcher = loaded()
    for start in range(0, 20_000, 500):
        texts = [fuzzed(pick).encode("utf-8", "ignore").decode() for _ in range(500)]
        problems: list[Any] = []
        ids = [str(id) for id in range(start, start + 500)]
        matcher.subscribe_many(pa.table({"id": ids, "expression": texts}), problems=problems)
        assert all(isinstance(problem.error, TocsinError) for problem in problems)
        for problem in problems[::50]:
            with pytest.raises(type(problem.error)):
                matcher.subscribe("again", texts[problem.row])
    assert "kept" in matcher.match({"price": 5, "city": "NYC"})


@pytest.mark.parametrize(
    "call",
    [
        lambda matcher, table: matcher.subscribe("a", "x = 1", duplicates="keep"),
        lambda matcher, table: matcher.subscribe_many(table, duplicates="keep"),
        lambda matcher, table: matcher.match_batch(table, missing="foo"),
        lambda matcher, table: matcher.match({}, unknown="foo"),
        lambda matcher, table: Matcher(matcher.space, threads=0),
        lambda matcher, table: Matcher.load("nowhere", verify="often"),
    ],
)
def test_an_option_that_does_not_exist_is_told_with_those_that_do(call: Any) -> None:
    matcher = Matcher(Space({"x": Number("int64")}))
    with pytest.raises(errors.OptionError, match=r" is .*, not ") as caught:
        call(matcher, pa.table({"id": ["a"], "expression": ["x = 1"]}))
    assert isinstance(caught.value, TocsinError) and isinstance(caught.value, ValueError)
