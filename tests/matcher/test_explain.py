"""Explanations say which clause decides, with its value and its bound, the nearest miss first."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tocsin import Address, Boolean, Matcher, Number, Repeated, Space, Text, Time, errors, operator

SPACE = Space(
    {
        "price": Number(),
        "stock": Number("int64"),
        "city": Text(),
        "sold": Boolean(),
        "tags": Repeated(Text()),
        "sizes": Repeated(Number("int64")),
        "day": Time("date"),
        "ip": Address(),
        "seller": {"name": Text()},
    }
)


def explained(expression: str, event: dict[str, Any], space: Space = SPACE) -> str:
    matcher = Matcher(space, engine="scan")
    matcher.subscribe("s", expression)
    found = matcher.explain(event, "s")
    assert found.matches == bool(found) == (matcher.match(event) == ["s"])
    return str(found)


@pytest.mark.parametrize(
    ("expression", "event", "text"),
    [
        ("price <= 400", {"price": 350}, "s matches\n  ✓ price <= 400    price is 350"),
        ("price <= 400", {"price": 500}, "s does not match\n  ✗ price <= 400    price is 500, above 400 by 100"),
        ("price > 400", {"price": 400}, "s does not match\n  ✗ price > 400    price is 400, equal to 400"),
        ("price <= 400", {}, "s does not match\n  ? price <= 400    price is not given"),
        ("price IS NULL", {"price": 1}, "s does not match\n  ✗ price IS NULL    price is 1"),
        ("price IS NULL", {}, "s matches\n  ✓ price IS NULL    price is NULL"),
        ("city = 'NYC'", {"city": "LA"}, "s does not match\n  ✗ city = 'NYC'    city is 'LA'"),
        ("NOT (city = 'NYC')", {"city": "LA"}, "s matches\n  ✓ NOT city = 'NYC'    city is 'LA'"),
        ("NOT (city = 'NYC')", {}, "s does not match\n  ? NOT city = 'NYC'    city is not given"),
        ("city RLIKE '^N'", {"city": "LA"}, "s does not match\n  ✗ city RLIKE '^N'    city is 'LA'"),
        ("seller.name = 'x'", {"seller": {"name": "x"}}, "s matches\n  ✓ seller.name = 'x'    seller.name is 'x'"),
        ("tags = 'red'", {"tags": ["blue", "b"]}, "s does not match\n  ✗ tags = 'red'    tags is ['blue', 'b']"),
        ("tags = 'red'", {"tags": ["blue", "red"]}, "s matches\n  ✓ tags = 'red'    tags is ['blue', 'red']"),
        ("day = '2021'", {"day": date(2021, 1, 1)}, "s matches\n  ✓ day = '2021'    day is datetime.date(2021, 1, 1)"),
        ("FALSE", {}, "s does not match\n  ✗ FALSE"),
    ],
)  # fmt: skip
def test_an_explanation_reads_as_it_should(expression: str, event: dict[str, Any], text: str) -> None:
    assert explained(expression, event) == text


def test_the_nearest_miss_comes_first_and_what_holds_is_left_out() -> None:
    text = explained(
        "price <= 100 AND stock >= 10 AND city = 'NYC' AND NOT sold AND stock < 1000",
        {"price": 500, "stock": 9, "city": "LA", "sold": False},
    )
    assert [line.split("    ")[0].strip() for line in text.splitlines()[1:]] == [
        "✗ stock >= 10",
        "✗ price <= 100",
        "✗ city = 'NYC'",
    ]


def test_alternatives_are_shown_below_their_or() -> None:
    text = explained("(price < 10 OR stock > 5) AND city = 'NYC'", {"price": 11, "stock": 1, "city": "NYC"})
    assert text.splitlines() == [
        "s does not match",
        "  ✗ price < 10 OR stock > 5",
        "    ✗ price < 10    price is 11, above 10 by 1",
        "    ✗ stock > 5    stock is 1, below 5 by 4",
    ]


def test_json_has_the_same_content() -> None:
    matcher = Matcher(SPACE, engine="scan")
    matcher.subscribe("s", "price < 10")
    assert matcher.explain({"price": 11}, "s").to_json() == {
        "id": "s",
        "matches": False,
        "clauses": [{"text": "price < 10", "holds": False, "why": "price is 11, above 10 by 1", "parts": []}],
    }


def test_an_event_that_does_not_fit_or_an_unknown_id_is_told() -> None:
    matcher = Matcher(SPACE, engine="scan")
    matcher.subscribe("s", "price < 10")
    with pytest.raises(errors.EventError, match="field price: 'x' is not a number"):
        matcher.explain({"price": "x"}, "s")
    with pytest.raises(errors.UnknownSubscriptionError):
        matcher.explain({"price": 1}, "t")


def test_the_least_integer_is_told_from_the_next() -> None:
    text = explained("stock <> -9223372036854775807", {"stock": -(2**63)})
    assert text.startswith("s matches")


def test_a_field_that_spans_its_domain_explains_as_it_matches() -> None:
    space = Space({"price": Number(), "city": Text()}, unspecified="any")
    assert explained("price < 10 AND city LIKE '%a%b'", {}, space).startswith("s matches")
    assert explained("price IS NULL", {}, space).startswith("s does not match")


def test_tests_of_a_field_that_spans_its_domain_are_explained_together() -> None:
    space = Space({"city": Text()}, unspecified="any")
    expression = "city >= 'bb' AND (city = 'aa' OR upper(city) = '{}')"
    assert explained(expression.format("AB"), {}, space).startswith("s does not match")
    assert explained(expression.format("BB"), {}, space).startswith("s matches")


@pytest.mark.parametrize(
    ("expression", "event", "text"),
    [
        ("stock <> 3", {"stock": {3, 5}}, "s matches\n  ✓ stock <> 3    stock is 5"),
        ("sold", {"sold": {True, False}}, "s matches\n  ✓ sold    sold is True"),
        ("city LIKE '%a%'", {"city": {"NYC", "Oslo", "Paris"}}, "s matches\n  ✓ city LIKE '%a%'    city is 'Paris'"),
        (
            "stock < 10",
            {"stock": {90, 12, 50}},
            "s does not match\n  ✗ stock < 10    stock is 12, above 10 by 2",
        ),
    ],
)
def test_of_a_set_the_member_that_matches_or_comes_nearest_is_explained(
    expression: str, event: dict[str, Any], text: str
) -> None:
    assert explained(expression, event) == text


def test_what_the_operators_of_others_raise_does_not_keep_a_range_from_being_explained() -> None:
    @operator(on_failure="error")
    def broken(stock: int) -> bool:
        raise ValueError(stock)

    matcher = Matcher(SPACE, engine="scan", operators=[broken])
    matcher.subscribe("s", "price > 3")
    matcher.subscribe("other", "broken(stock)")
    assert matcher.explain({"price": (2, 4), "stock": 1}, "s").matches


@pytest.mark.parametrize(("event", "why"), [({"stock": 5}, "stock is 5"), ({}, "stock is not given")])
def test_a_comparison_with_null_is_unknown(event: dict[str, Any], why: str) -> None:
    assert explained("stock > NULL", event) == f"s does not match\n  ? stock > NULL    {why}"
    assert explained("NOT stock > NULL", event).startswith("s does not match")


def test_a_constant_that_was_never_read_is_unknown() -> None:
    shown = explained("day <> '2026-02-30' AND city LIKE NULL", {"day": date(2026, 1, 31), "city": "NYC"})
    assert "? day <> '2026-02-30'    there is no" in shown
