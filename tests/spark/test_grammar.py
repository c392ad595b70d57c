"""What is accepted as an expression is what Spark's own parser accepts."""

from __future__ import annotations

import random

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from tocsin.errors import ExpressionError
from tocsin.language import parse

SEED, COUNT = "grammar", 400
WHOLE = [
    "a = 1", "a < 5 AND b > 2", "NOT ( a = 1 OR b <> 2 )", "a IN ( 1 , 2 )", "a NOT IN ( 1 )", "a BETWEEN 1 AND 2",
    "a NOT BETWEEN 1 AND 2 OR b IS NULL", "c LIKE 'x%'", "c NOT LIKE 'x' ESCAPE '!'", "c RLIKE 'x+'", "a IS NOT NULL",
    "s . t = 'x'", "`a b` = 1", "lower ( c ) = 'x'", "a <=> NULL", "a = -1.5e3", "a = 1 + 2 * 3", "b = TRUE",
    "d >= DATE '2026-01-31'", "startswith ( c , 'x' )",
]  # fmt: skip
PIECES = [
    "(", ")", ",", "AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "ESCAPE", "=", "<", "<=>", "-", "+", "*",
    "1", "'x'", "a", "b.c", ";", "TRUE", "CASE", "--", "/*", ".", "!", "::",
]  # fmt: skip


def mutated(pick: random.Random) -> str:
    """Return an expression with one or two tokens dropped, added, replaced or exchanged."""
    tokens = pick.choice(WHOLE).split()
    for _ in range(pick.choice([1, 1, 2])):
        at, other = pick.randrange(len(tokens)), pick.randrange(len(tokens))
        how = pick.choice(["drop", "add", "replace", "exchange"])
        if how == "exchange":
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at : at + (how != "add")] = [] if how == "drop" and len(tokens) > 1 else [pick.choice(PIECES)]
    return " ".join(tokens)


def is_accepted(text: str) -> bool:
    try:
        parse(text)
    except ExpressionError:
        return False
    return True


def test_what_is_accepted_is_an_expression_of_spark(spark: SparkSession) -> None:
    """Spark takes more, such as ``a AS b`` and functions that subscriptions do not have: that is not compared."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined]
    pick = random.Random(SEED)
    texts = [mutated(pick) for _ in range(COUNT)] + WHOLE
    accepted = [text for text in texts if is_accepted(text)]
    assert COUNT / 20 < len(accepted) < COUNT and set(WHOLE) <= set(accepted)
    refused = []
    for text in accepted:
        try:
            parser.parseExpression(text)
        except ParseException:
            refused.append(text)
    assert refused == []
