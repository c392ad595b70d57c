"""The surface of the matcher: ids, duplicates, bulk loads, removal, tables from everywhere, repeated fields."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tocsin
from tocsin import Address, Matcher, Number, Problem, Repeated, Space, Text, Time, errors

SPACE = Space({"price": Number("int64"), "city": Text()})


def matcher_of(space: Space | dict[str, Any], *expressions: str, engine: str = "scan") -> Matcher:
    """Return a matcher with these expressions, the number of each its id."""
    matcher = Matcher(space if isinstance(space, Space) else Space(space), engine=engine)
    for number, expression in enumerate(expressions):
        matcher.subscribe(number, expression)
    return matcher


# Duplicates, bulk loads, removal


def test_a_duplicate_is_refused_and_the_first_one_stays() -> None:
    matcher = matcher_of(SPACE, "price = 1")
    with pytest.raises(
        errors.DuplicateSubscriptionError, match="there is a subscription 0 already; pass duplicates='replace'"
    ):
        matcher.subscribe(0, "price = 2")
    assert matcher[0] == "price = 1" and matcher.match({"price": 1}) == [0]


def test_a_duplicate_replaces_by_choice() -> None:
    matcher = matcher_of(SPACE, "price = 1 OR city = 'x'")
    matcher.subscribe(0, "price = 2", duplicates="replace")
    assert (matcher.match({"price": 1, "city": "x"}), matcher.match({"price": 2}), len(matcher)) == ([], [0], 1)
    matcher.subscribe_many(pa.table({"id": [0, 1], "expression": ["price = 3", "price = 3"]}), duplicates="replace")
    assert (matcher.match({"price": 2}), matcher.match({"price": 3}), len(matcher)) == ([], [0, 1], 2)
    with pytest.raises(errors.ExpressionError):
        matcher.subscribe(0, "price = ", duplicates="replace")
    assert matcher[0] == "price = 3" and matcher.match({"price": 3}) == [0, 1]
    with pytest.raises(ValueError, match="duplicates is 'error' or 'replace'"):
        matcher.subscribe(0, "price = 1", duplicates="ignore")  # type: ignore[arg-type]


BULK = pa.table(
    {
        "id": ["a", "b", "a", None, "c", "d", "kept", "e"],
        "expression": [
            "price = 1",
            "prize = 1",
            "price = 2",
            "price = 3",
            None,
            "price = 'x'",
            "price = 4",
            "price = 5",
        ],
    }
)


def test_a_bulk_load_with_bad_rows_names_them_all_and_adds_none() -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe("kept", "city = 'NYC'")
    with pytest.raises(errors.BadSubscriptionsError) as caught:
        matcher.subscribe_many(BULK)
    assert [(row, id, type(error)) for row, id, error in caught.value.problems] == [
        (1, "b", errors.UnknownFieldError),
        (2, "a", errors.DuplicateSubscriptionError),
        (3, None, errors.SubscriptionError),
        (4, "c", errors.ExpressionError),
        (5, "d", errors.TypeClashError),
        (6, "kept", errors.DuplicateSubscriptionError),
    ]
    assert "6 of the subscriptions are bad; none was added" in str(caught.value)
    assert list(matcher) == ["kept"] and matcher.match({"price": 1, "city": "NYC"}) == ["kept"]


def test_a_bulk_load_puts_bad_rows_aside_by_choice() -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe("kept", "city = 'NYC'")
    problems: list[Problem] = []
    assert matcher.subscribe_many(BULK, problems=problems) == 2
    assert [problem.row for problem in problems] == [1, 2, 3, 4, 5, 6]
    assert list(matcher) == ["kept", "a", "e"]
    assert matcher.match({"price": 1}) == ["a"] and matcher.match({"price": 5}) == ["e"]


def test_many_bad_rows_of_one_template_are_all_told() -> None:
    matcher = Matcher(Space({"t": Time()}))
    count = 1500
    texts = [f"t > 'garbage{number}'" if number % 3 else f"t > '2020-01-{number % 28 + 1}'" for number in range(count)]
    problems: list[Problem] = []
    added = matcher.subscribe_many(pa.table({"id": range(count), "expression": texts}), problems=problems)
    assert added == len(matcher) == 500
    assert [problem.row for problem in problems] == [number for number in range(count) if number % 3]
    assert all(isinstance(problem.error, errors.TypeClashError) for problem in problems)


def test_a_table_of_subscriptions_needs_its_columns() -> None:
    matcher = Matcher(SPACE)
    with pytest.raises(
        errors.MissingColumnError, match="subscriptions need a column expression; did you mean expresion"
    ):
        matcher.subscribe_many(pa.table({"id": [1], "expresion": ["price = 1"]}))
    with pytest.raises(errors.SubscriptionError, match="the column expression holds int64"):
        matcher.subscribe_many(pa.table({"id": [1], "expression": [1]}))
    with pytest.raises(errors.SubscriptionError, match="ids are single values"):
        matcher.subscribe_many(pa.table({"id": [[1]], "expression": ["price = 1"]}))
    with pytest.raises(errors.SubscriptionError, match="not list"):
        matcher.subscribe_many([("a", "price = 1")])
    assert (
        matcher.subscribe_many(pa.table({"id": pa.array([], pa.int64()), "expression": pa.array([], pa.string())})) == 0
    )


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_subscriptions_come_from_any_table(make: Any) -> None:
    matcher = Matcher(SPACE)
    assert matcher.subscribe_many(make({"id": ["a", "b"], "expression": ["price = 1", "price = 2"]})) == 2
    assert matcher.match({"price": 2}) == ["b"]


def test_removal_is_of_all_or_none() -> None:
    matcher = matcher_of(SPACE, *["price = 1"] * 5)
    with pytest.raises(errors.UnknownSubscriptionError, match="there is no subscription 7"):
        matcher.unsubscribe_many([1, 7])
    assert len(matcher) == 5
    matcher.unsubscribe_many([1, 3, 3])
    matcher.unsubscribe_many(pa.array([0]))
    assert matcher.match({"price": 1}) == [2, 4] == list(matcher)
    with pytest.raises(errors.UnknownSubscriptionError):
        matcher.unsubscribe(1)
    matcher.subscribe(1, "price = 2")
    assert matcher.match({"price": 2}) == [1]


@pytest.mark.parametrize(
    "expression",
    ["FALSE", "NULL", "price = NULL", "(price = NULL) AND (city = NULL)", "price > 3 AND price < 4",
     "price IN (1) AND price = 2", "price IS NULL AND price = 1",
     "city LIKE 'a%' AND city LIKE 'b%'", "price > 9223372036854775807"],
)  # fmt: skip
def test_a_subscription_that_contradicts_itself_can_never_match(expression: str) -> None:
    matcher = matcher_of(SPACE, expression, "price = 1")
    assert matcher.never() == [0]
    assert matcher.match({"price": 1, "city": ""}) == [1]
    matcher.unsubscribe(0)
    assert matcher.never() == []


# Events


ROWS = {"price": [1, 2, None, 5], "city": ["NYC", "LA", "NYC", None]}
EXPRESSIONS = ("price = 1", "city = 'NYC'", "price IS NULL", "city LIKE '%A%'", "city RLIKE '^[NL]'", "price IN (2, 5)")


@pytest.mark.parametrize("engine", ["scan", "adaptive"])
@pytest.mark.parametrize(
    "table",
    [
        pa.table(ROWS),
        pa.table(ROWS).to_batches()[0],
        pa.table(ROWS).to_reader(),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).with_columns(pl.col("city").cast(pl.Categorical)),
        pd.DataFrame(ROWS).astype({"price": "Int64"}),
        duckdb.sql("SELECT * FROM (VALUES (1, 'NYC'), (2, 'LA'), (NULL, 'NYC'), (5, NULL)) events(price, city)"),
    ],
    ids=["table", "batch", "reader", "polars", "polars categorical", "pandas", "duckdb"],
)
def test_events_come_from_any_table(table: Any, engine: str) -> None:
    if isinstance(table, pa.RecordBatchReader):
        table = pa.table(ROWS).to_reader()  # a reader is read once
    found = matcher_of(SPACE, *EXPRESSIONS, engine=engine).match_batch(table)
    assert found.column_names == ["event", "subscription"]
    assert sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == [
        (0, 0), (0, 1), (0, 4), (1, 3), (1, 4), (1, 5), (2, 1), (2, 2), (2, 4), (3, 5)
    ]  # fmt: skip


def test_rows_are_numbered_through_all_chunks() -> None:
    matcher = matcher_of(SPACE, "price = 7")
    chunks = pa.chunked_array([pa.array(range(10)), pa.array([], pa.int64()), pa.array([7] * 20_000)])
    found = matcher.match_batch(pa.table({"price": chunks}))
    assert found["event"].to_pylist() == [7, *range(10, 20_010)]


def test_events_that_are_no_table_are_refused() -> None:
    with pytest.raises(errors.EventError, match="for dictionaries use match"):
        Matcher(SPACE).match_batch([{"price": 1}])
    with pytest.raises(errors.EventError, match="an event is a dictionary"):
        matcher_of(SPACE, "price = 1").match([("price", 1)])  # type: ignore[arg-type]


def test_a_missing_column_is_an_error_or_left_out_by_choice() -> None:
    matcher = matcher_of(SPACE, "price = 1", "city IS NULL")
    with pytest.raises(errors.MissingColumnError, match=r"no column city.*missing='unspecified'"):
        matcher.match_batch(pa.table({"price": [1]}))
    assert matcher.match_batch(pa.table({"price": [1]}), missing="unspecified")["subscription"].to_pylist() == [0, 1]
    assert matcher.match({"price": 1}) == [0, 1]
    assert matcher.match({"price": 1, "colour": "red"}) == [0, 1], "fields the space does not have are not looked at"


def test_rows_that_do_not_fit_are_an_error_or_put_aside_by_choice() -> None:
    matcher = matcher_of({"price": Number("int64")}, "price > 0", engine="adaptive")
    table = pa.table({"price": [1.0, 2.5, 3.0, None, float("nan"), 1e300, 4.0]})
    with pytest.raises(errors.EventError, match=r"row 1, field price: 2\.5 is not a whole number"):
        matcher.match_batch(table)
    problems: list[Problem] = []
    assert matcher.match_batch(table, problems=problems)["event"].to_pylist() == [0, 2, 6]
    assert [(problem.row, type(problem.error)) for problem in problems] == [
        (row, errors.EventError) for row in (1, 4, 5)
    ]
    assert "row 4" in str(problems[1].error)


def test_rows_put_aside_are_numbered_through_all_batches() -> None:
    matcher = matcher_of({"price": Number("int64")}, "price > 0")
    problems: list[Problem] = []
    prices = [1.5 if row % 5000 == 4999 else 1.0 for row in range(20_000)]
    found = matcher.match_batch(pa.table({"price": prices}), problems=problems)
    assert [problem.row for problem in problems] == [4999, 9999, 14999, 19999]
    assert len(found) == 19_996 and 4999 not in found["event"].to_pylist()


def test_a_column_that_does_not_fit_at_all_puts_every_row_aside() -> None:
    matcher = matcher_of({"price": Number("int64")}, "price > 0")
    problems: list[Problem] = []
    assert len(matcher.match_batch(pa.table({"price": ["one", None, "two"]}), problems=problems)) == 0
    assert [problem.row for problem in problems] == [0, 1, 2]


# Unspecified dimensions


def test_a_dimension_left_out_is_null_or_any_as_the_space_says() -> None:
    dimensions = {"x": Number("int64"), "s": Text(), "r": Repeated(Number("int64"))}
    texts = (
        "x = 1",
        "x <> 1",
        "x IS NULL",
        "x IS NOT NULL",
        "s LIKE 'a%b%c'",
        "NOT s LIKE 'a%b%c'",
        "r = 1",
        "NOT (r = 1)",
        "r IS NULL",
    )
    null, unbound = (matcher_of(Space(dimensions, unspecified=kind), *texts) for kind in ("null", "any"))  # type: ignore[arg-type]
    assert null.match({}) == [2, 8]
    assert unbound.match({}) == [0, 1, 3, 4, 5, 6, 7]
    given = {"x": 1, "s": "abc", "r": [2]}
    assert null.match(given) == unbound.match(given) == [0, 3, 4, 7]


def test_a_dimension_that_spans_its_domain_has_one_value_at_a_time() -> None:
    """No x makes this true when y, z and w are 0, however much of it is verified rather than indexed."""
    space = Space({name: Number("int64") for name in "xyzw"}, unspecified="any")
    matcher = matcher_of(space, "(x = 1 OR y = 9) AND (x = 1 OR z = 9) AND (x = 2 OR w = 9)")
    assert matcher.match({"y": 0, "z": 0, "w": 0}) == []
    assert matcher.match({"y": 0, "z": 0, "w": 9}) == [0]


# Types at the border


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (Number("int64"), pa.array([1, 2]).dictionary_encode()),
        (Number(), pa.array([1.0, 2.0], pa.float16())),
        (Number("decimal(20, 0)"), pa.array([1, 2**64 - 1], pa.uint64())),
        (Text(), pa.array(["1", "2"], pa.string_view())),
        (Text(), pa.array(["1", "2"]).dictionary_encode()),
        (Address(), pa.array(["0.0.0.1", "0.0.0.2"]).dictionary_encode()),
        (Address(), pa.array(["0.0.0.1", "0.0.0.2"], pa.string_view())),
        (Time("date"), pa.array(["2020-01-01", "2020-01-02"])),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_columns_of_related_types_are_read(kind: Any, column: pa.Array) -> None:
    expressions = ["x IS NOT NULL"] + (
        ["x RLIKE '1'", "x LIKE '%1%'", "lower(x) = '1'"] if isinstance(kind, Text) else []
    )
    pairs = matcher_of({"x": kind}, *expressions).match_batch(pa.table({"x": column}))
    assert pairs["event"].to_pylist() == [0] * len(expressions) + [1]


@pytest.mark.parametrize("engine", ["adaptive", "scan", "counting", "propagation", "static", "dynamic"])
def test_every_engine_gives_the_same_answers(engine: str) -> None:
    texts = [f"price > {number % 17} AND city IN ('c{number % 5}', 'c{number % 3}')" for number in range(300)]
    events = [{"price": number % 23, "city": f"c{number % 6}"} for number in range(100)]
    expected = matcher_of(SPACE, *texts, engine="scan")
    matcher = matcher_of(SPACE, *texts, engine=engine)
    for event in events:
        assert sorted(matcher.match(event)) == sorted(expected.match(event))


def test_an_unknown_engine_or_space_is_told() -> None:
    with pytest.raises(errors.UnknownEngineError):
        Matcher(SPACE, engine="quantum")
    with pytest.raises(TypeError, match="made with Space"):
        Matcher({"price": Number()})  # type: ignore[arg-type]


def test_stats_say_what_is_held() -> None:
    matcher = matcher_of(SPACE, "price = 1", "city LIKE '%x'", "city RLIKE 'a'")
    stats = matcher.stats()
    assert stats["subscriptions"] == 3 and stats["engine"] == "scan"
    assert set(stats["axes"]) == {"price", "city reversed", "city"} and stats["fields"] == ["city", "price"]
    assert stats["programs"] == {"count": 1, "atoms": 1}
    assert tocsin.__version__


@pytest.mark.parametrize("rows", [4, 10_000])
def test_the_least_of_64_bit_integers_is_a_number_in_batches_of_any_size(rows: int) -> None:
    matcher = matcher_of(Space({"x": Number("int64"), "y": Number("int64")}), "x < 0", "x IS NULL", "y <= 5")
    events = pa.table({"x": [-(2**63), 2**63 - 1, 0, -1] * (rows // 4), "y": pa.array([None, 5, 6, 7] * (rows // 4))})
    found = matcher.match_batch(events).to_pydict()
    pairs = zip(found["event"], found["subscription"], strict=True)
    assert sorted(pairs) == [(4 * turn + row, id) for turn in range(rows // 4) for row, id in ((0, 0), (1, 2), (3, 0))]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x IN (-9223372036854775808, 5)", [0]),
        ("x IN (-9223372036854775807, NULL)", [1]),
        ("x NOT IN (-9223372036854775808, 5)", [1, 2]),
        ("x NOT IN (-9223372036854775807, 5)", [0, 2]),
        ("x NOT IN (-9223372036854775808, NULL)", []),
        ("x BETWEEN -9223372036854775808 AND -9223372036854775807", [0, 1]),
        ("NOT (x BETWEEN -9223372036854775807 AND 0)", [0]),
        ("x <= -9223372036854775808", [0]),
        ("x > -9223372036854775808", [1, 2]),
        ("x <> -9223372036854775808", [1, 2]),
    ],
)
def test_the_least_whole_number_is_told_from_its_neighbour(expression: str, expected: list[int]) -> None:
    matcher = Matcher(Space({"x": Number("int64")}))
    matcher.subscribe("s", expression)
    values = [-(2**63), -(2**63) + 1, 0, None]
    assert [row for row, value in enumerate(values) if matcher.match({"x": value})] == expected
    assert matcher.match_batch(pa.table({"x": pa.array(values, pa.int64())}))["event"].to_pylist() == expected
