"""What the language says with operators, and what it refuses, with the place."""

from __future__ import annotations

from typing import Any

import pytest

import tocsin
from tocsin.errors import (
    ExpressionError,
    NotEnabledError,
    OperatorError,
    TocsinError,
    UnknownFieldError,
    UnsupportedExpressionError,
)
from tocsin.language import parse, to_text

SPACE = tocsin.Space({"x": tocsin.Number(), "text": tocsin.Text(), "when": tocsin.Time()})


@tocsin.operator(reads=["x"], outputs={"n": float})
def twice(x: float) -> float:
    """Bind the double of x."""
    return 2 * x


@tocsin.operator
def longer(text: str, least: int) -> bool:
    """Say whether a text has at least so many characters."""
    return len(text) >= least


def matcher(**settings: Any) -> tocsin.Matcher:
    return tocsin.Matcher(SPACE, operators=[twice, longer], **settings)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("thrice(:n)", NotEnabledError, "there is no operator thrice; did you mean twice?"),
        ("twice(:n, :m)", UnsupportedExpressionError, "twice takes 1 arguments, not 2: twice(:n)"),
        ("longer(:t, 5)", UnsupportedExpressionError, ":t stands where longer takes a value"),
        ("twice(x)", UnsupportedExpressionError, "x stands where twice returns something"),
        ("longer(txt, 5)", UnknownFieldError, "there is no field 'txt'"),
        ("longer(text, 5) AND :n > 3", UnsupportedExpressionError, ":n is compared where nothing binds it"),
        ("NOT twice(:n) AND :n > 3", UnsupportedExpressionError, ":n is compared where nothing binds it"),
        ("twice(:n) OR :n > 3", UnsupportedExpressionError, ":n is compared where nothing binds it"),
        ("twice(:n) AND :n > DATE '2020-01-01'", UnsupportedExpressionError, "a variable is not compared with a date"),
        ("twice(:n) AND :n LIKE 'a%'", UnsupportedExpressionError, "a variable is compared by"),
        ("NOT (twice(:n) AND x > 3)", UnsupportedExpressionError, "write this outside it"),
        ("within(x, x, 'POLYGON')", UnsupportedExpressionError, "within: this is no geometry"),
        ("matches(text, '(')", UnsupportedExpressionError, "the pattern is refused"),
        ("mentions(text, '!')", UnsupportedExpressionError, "a keyword is a text with at least one word"),
    ],
)
def test_what_is_refused_is_told(text: str, kind: type[TocsinError], reason: str) -> None:
    held = matcher()
    with pytest.raises(ExpressionError) as caught:
        held.subscribe("bad", text)
    assert type(caught.value) is kind
    assert reason in str(caught.value)
    assert len(held) == 0


@pytest.mark.parametrize(
    "text",
    [
        "twice(:n) AND :n > 2 * (:n - 1)",
        "twice(:n) AND :n BETWEEN 1 AND 3",
        "twice(:n) AND :n IN (1, 2) AND NOT :n = x",
        "twice(:n) AND :n IS NULL",
        "NOT (twice(:n) AND :n > 3) OR longer(text, 5)",
    ],
)
def test_what_is_printed_parses_back(text: str) -> None:
    assert to_text(parse(to_text(parse(text)))) == to_text(parse(text))


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("twice(:n) AND :n > x + 1", {"x": 2}, True),
        ("twice(:n) AND :n > x + 1", {"x": 1}, False),
        ("twice(:n) AND :n % 3 = 1", {"x": 2}, True),
        ("twice(:n) AND :n / 0 > 1", {"x": 2}, False),
        ("twice(:n) AND 10 div 3 < :n", {"x": 2}, True),
        ("twice(4)", {"x": 2}, True),
        ("twice(5)", {"x": 2}, False),
        ("twice()", {"x": 2}, True),
        ("twice(:n) AND :n <=> NULL", {"x": 2}, False),
        ("twice(:n) AND :n > 3", {}, False),
        ("NOT twice(:n)", {}, False),
        ("NOT (twice(:n) AND :n > 5)", {"x": 2}, True),
        ("NOT (twice(:n) AND :n > 3)", {"x": 2}, False),
        ("NOT (NOT (twice(:n) AND :n > 3))", {"x": 2}, True),
        ("longer(text, 3) OR x > 1", {"text": "ab", "x": 2}, True),
        ("longer(text, 3) = TRUE", {"text": "abc"}, True),
    ],
)
def test_meaning(text: str, event: dict[str, Any], expected: bool) -> None:
    held = matcher()
    try:
        held.subscribe("a", text)
    except UnsupportedExpressionError:
        assert "= TRUE" in text
        return
    assert (held.match(event) == ["a"]) == expected
    assert bool(held.explain(event, "a")) == expected


def test_calls_of_one_operator_with_different_variables_are_one_call() -> None:
    held = matcher()
    for number in range(50):
        held.subscribe(number, f"twice(:v{number}) AND :v{number} > {number}")
    assert sorted(held.match({"x": 10})) == list(range(20))
    used = held.stats()["operators"]
    assert (used["calls"], used["used"]["twice"]["evaluated"]) == (1, 1)


def test_the_index_prunes_before_operators_run() -> None:
    held = matcher()
    held.subscribe("a", "x > 100 AND longer(text, 3)")
    held.subscribe("b", "x < 0 OR longer(text, 5)")
    assert held.match({"x": -1, "text": "long enough"}) == ["b"]
    assert held.stats()["operators"]["used"].get("longer", {"evaluated": 0})["evaluated"] == 0


def test_subscriptions_with_operators_come_and_go() -> None:
    held = matcher()
    for round_ in range(3):
        for number in range(40):
            held.subscribe(number, f"longer(text, {number + round_})", duplicates="replace")
        held.unsubscribe_many(range(10))
        held._make_room()
        assert sorted(held.match({"text": "a" * 20})) == list(range(10, 21 - round_))
        for number in range(10):
            held.subscribe(number, "FALSE")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"name": "count"}, "SQL has a function or a word count"),
        ({"form": "wide"}, "form is 'scalar', 'vector' or 'bulk'"),
        ({"on_failure": "ignore"}, "on_failure is 'false' or 'error'"),
        ({"limit": 0}, "limit is a number of seconds above 0"),
        ({"reads": ["y"]}, "its first parameters must be y"),
    ],
)
def test_a_wrong_declaration_is_told(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        tocsin.operator(lambda x: True, **{"name": "fine", **settings})


def test_orders_that_are_not_there_and_things_that_are_no_operators_are_refused() -> None:
    with pytest.raises(OperatorError, match="order is one of naive, sequential, sub-order, adaptive"):
        matcher(order="best")
    with pytest.raises(OperatorError, match="is no operator; decorate the function"):
        tocsin.Matcher(SPACE, operators=[len])  # type: ignore[list-item]
