"""Repeated and nested fields: any element satisfies, in tables and in dictionaries alike."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Address, Boolean, Matcher, Number, Repeated, Space, Text, Time, errors

SPACE = Space({"price": Number("int64"), "city": Text()})


def matcher_of(space: Space | dict[str, Any], *expressions: str, engine: str = "scan") -> Matcher:
    """Return a matcher with these expressions, the number of each its id."""
    matcher = Matcher(space if isinstance(space, Space) else Space(space), engine=engine)
    for number, expression in enumerate(expressions):
        matcher.subscribe(number, expression)
    return matcher


REPEATED = {
    "tags": Repeated(Text()),
    "nums": Repeated(Number("int64")),
    "seller": {"city": Text(), "rating": Number()},
    "items": {"sku": Repeated(Text()), "size": Repeated(Number("int64"))},
    "ok": Boolean(),
}
REPEATED_TEXTS = (
    "tags = 'red'",
    "tags = 'red' AND tags = 'blue'",
    "NOT (tags = 'red')",
    "tags IS NULL",
    "tags IS NOT NULL",
    "tags LIKE '%e%'",
    "NOT tags LIKE '%e%'",
    "nums BETWEEN 3 AND 5",
    "nums > 3 AND nums < 2",
    "nums IN (1, 2) OR tags = 'x'",
    "array_contains(nums, 9)",
    "seller.city = 'NYC' AND seller.rating >= 4.5",
    "items.sku = 'b' AND items.size = 1",
    "NOT (items.size = 1)",
    "items.sku RLIKE '^a'",
    "ok AND tags = 'red'",
    "tags > 'm' AND nums > 3 AND items.size > 1",
    "lower(tags) = 'red'",
)


def event(tags: Any, nums: Any, seller: Any, items: Any, ok: Any) -> dict[str, Any]:
    """Return an event; a seller is (city, rating), an item (sku, size)."""
    return {
        "tags": tags,
        "nums": nums,
        "seller": seller and {"city": seller[0], "rating": seller[1]},
        "items": items and [item and {"sku": item[0], "size": item[1]} for item in items],
        "ok": ok,
    }


REPEATED_EVENTS = [
    event(["red"], [1, 9], ("NYC", 5.0), [("a", 1)], True),
    event(["red", "blue"], [4], ("NYC", None), [], False),
    event([], None, None, None, None),
    event(None, [], (None, 4.5), [("a", 2), ("b", 3)], True),
    event(["blue", None], [None, 5], ("LA", 4.0), [("b", 2), ("c", 1)], True),
    event(["Red", "x"], [2], None, [(None, None)], False),
    event(["zz", "q"], [4, 0], None, [None, ("a", 7)], True),
]
REPEATED_MATCHES = [
    [0, 4, 5, 8, 9, 10, 11, 14, 15],
    [0, 1, 4, 5, 7, 13],
    [2, 4, 6],
    [3, 13, 14],
    [4, 5, 7, 12],
    [2, 4, 5, 9, 17],
    [2, 4, 6, 7, 8, 14, 16],
]


def events_schema() -> pa.Schema:
    item = pa.struct({"sku": pa.string(), "size": pa.int64()})
    return pa.schema(
        {
            "tags": pa.list_(pa.string()),
            "nums": pa.list_(pa.int64()),
            "seller": pa.struct({"city": pa.string(), "rating": pa.float64()}),
            "items": pa.list_(item),
            "ok": pa.bool_(),
        }
    )


def expected_of_repeated(row: int) -> list[int]:
    found = set(REPEATED_MATCHES[row])
    if REPEATED_EVENTS[row]["tags"] in (["red"], ["red", "blue"]):
        found.add(17)
    return sorted(found)


@pytest.mark.parametrize("engine", ["scan", "adaptive", "counting"])
def test_repeated_and_nested_fields_match_as_any_element(engine: str) -> None:
    matcher = matcher_of(REPEATED, *REPEATED_TEXTS, engine=engine)
    table = pa.Table.from_pylist(REPEATED_EVENTS, schema=events_schema())
    found: list[list[int]] = [[] for _ in REPEATED_EVENTS]
    for pair in matcher.match_batch(table).to_pylist():
        found[pair["event"]].append(pair["subscription"])
    assert [sorted(each) for each in found] == [expected_of_repeated(row) for row in range(len(REPEATED_EVENTS))]


@pytest.mark.parametrize("row", range(len(REPEATED_EVENTS)))
def test_a_dictionary_matches_as_its_row_does(row: int) -> None:
    matcher = matcher_of(REPEATED, *REPEATED_TEXTS)
    assert sorted(matcher.match(REPEATED_EVENTS[row])) == expected_of_repeated(row)


@pytest.mark.parametrize("kind", [pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_(pa.int32())], ids=str)
def test_lists_of_any_arrow_kind_are_repeated_fields(kind: pa.DataType) -> None:
    table = pa.table({"r": pa.array([[1, 2], None, [None, 3], [0, -1]], kind)})
    matcher = matcher_of({"r": Repeated(Number("int64"))}, "r > 0", "r IS NULL", "NOT (r > 0)")
    for events in (table, pa.concat_tables([table.slice(0, 2), table.slice(2)])):
        pairs = [(pair["event"], pair["subscription"]) for pair in matcher.match_batch(events).to_pylist()]
        assert pairs == [(0, 0), (1, 1), (2, 0), (3, 2)]
    assert matcher.match_batch(table.slice(2))["event"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("kind", "values", "expression"),
    [
        (Address(), ["10.0.0.1", "::1"], "in_network(r, '10.0.0.0/8')"),
        pytest.param(Address(), [ip_address("10.0.0.1")], "r = '10.0.0.1'"),
        pytest.param(Number("decimal(38, 0)"), [10**30, 1], "r > 5"),
        pytest.param(Number("decimal(38, 3)"), [10, Decimal("2.5"), 3.5], "r = 2.5"),
        (Number(), [1, 2.5], "r = 2.5"),
        pytest.param(Time(), [datetime(2020, 1, 1, tzinfo=UTC), "2021-01-01"], "r > '2020-06-01'"),
        (Time("date"), [date(2020, 1, 1)], "r = '2020-01-01'"),
        (Boolean(), [True, None], "r"),
    ],
    ids=str,
)
def test_repeated_values_of_every_type_match_in_dictionaries(kind: Any, values: list[Any], expression: str) -> None:
    matcher = matcher_of({"r": Repeated(kind)}, expression)
    assert matcher.match({"r": values}) == [0]
    assert matcher.match({"r": []}) == []
    assert matcher.match({"r": values[-1]}) in ([0], []), "a single value counts as one element"


def test_a_column_of_lists_for_a_single_value_is_told() -> None:
    with pytest.raises(errors.EventError, match="declare it as Repeated"):
        matcher_of(SPACE, "price = 1").match_batch(pa.table({"price": [[1]]}))


@pytest.mark.parametrize(
    "given",
    [("a", "b", "c"), ("b",), ["b"], {"b", "c"}, np.array(["a", "b"]), np.array("b"), "b"],
    ids=["tuple", "tuple of one", "list of one", "set", "array", "array without dimensions", "text"],
)
def test_a_repeated_field_is_present_however_its_elements_are_given(given: Any) -> None:
    matcher = matcher_of({"r": Repeated(Text())}, "r = 'b'", "r IS NOT NULL")
    assert matcher.match({"r": given}) == [0, 1]
    assert matcher.explain({"r": given}, 0).matches


@pytest.mark.parametrize("empty", [(), [], set(), np.array([])], ids=repr)
def test_an_empty_repeated_field_is_not_null(empty: Any) -> None:
    matcher = matcher_of({"r": Repeated(Text())}, "r = 'b'", "r IS NOT NULL")
    assert matcher.match({"r": empty}) == [1]


@pytest.mark.parametrize(
    "given",
    [np.datetime64(1, "ns"), np.timedelta64(1, "ns"), np.array([1, 2]), np.array([[1]]), np.array(["a"])],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["double", "int64", "decimal(5, 2)"])
def test_moments_durations_and_arrays_are_no_numbers(kind: Any, given: Any) -> None:
    matcher = matcher_of({"n": Number(kind)}, "n > 0")
    with pytest.raises(errors.EventError, match="is not a"):
        matcher.match({"n": given})


@pytest.mark.parametrize(
    "tags",
    [[["a"]], [["b"], ["a"]], [["b"], []], [[]], [], None, [None], [[None]], [["b"], None], [["bc", "a"], ["d"]]],
    ids=repr,
)
def test_a_list_in_a_list_counts_as_its_elements(tags: Any) -> None:
    matcher = matcher_of(
        {"tags": Repeated(Text())},
        "tags = 'a'",
        "tags IS NULL",
        "tags IS NOT NULL",
        "tags LIKE '%c%'",
        "NOT tags = 'b'",
    )
    table = pa.table({"tags": pa.array([tags], pa.list_(pa.list_(pa.string())))})
    assert matcher.match({"tags": tags}) == matcher.match_batch(table)["subscription"].to_pylist()


@pytest.mark.parametrize("names", [None, [], [None], ["a"], ["b"]], ids=repr)
def test_a_list_below_a_list_of_structs_is_null_in_a_table_as_in_a_dictionary(names: Any) -> None:
    matcher = matcher_of(
        {"items": {"name": Repeated(Text())}}, "items.name = 'a'", "NOT items.name = 'b'", "items.name IS NULL"
    )
    items = [{"name": names}, {"name": ["c"]}]
    table = pa.table({"items": pa.array([items], pa.list_(pa.struct({"name": pa.list_(pa.string())})))})
    assert matcher.match({"items": items}) == matcher.match_batch(table)["subscription"].to_pylist()


def test_lists_in_lists_are_inferred_as_their_elements() -> None:
    assert Space.infer([{"tags": [["a"], ["b"]]}]) == Space({"tags": Repeated(Text())})


def test_a_list_that_holds_itself_is_refused() -> None:
    tags: list[Any] = ["a"]
    tags.append(tags)
    with pytest.raises(errors.EventError, match="lists stand in more than 16 others"):
        matcher_of({"tags": Repeated(Text())}, "tags = 'a'").match({"tags": tags})
