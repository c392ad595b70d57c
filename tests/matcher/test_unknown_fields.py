"""Fields that the space does not have, values where a mapping belongs, and JSON that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Matcher, Number, Repeated, Space, Text, errors

SPACE = Space(
    {"price": Number("int64"), "seller": {"city": Text()}, "items": {"sku": Repeated(Text())}},
    synonyms={"cost": "price"},
)


def loaded() -> Matcher:
    matcher = Matcher(SPACE, "scan")
    matcher.subscribe("all", "price > 3 OR seller.city = 'NYC' OR items.sku = 'a'")
    return matcher


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"Price": 5}, "the space has no field Price; did you mean price?"),
    ({"seller.city": "NYC"}, "write it nested: {'seller': {'city': ...}}"),
    ({"price": 5, "seller": {"City": "NYC"}}, "the space has no field seller.City; did you mean seller.city?"),
    ({"items": [{"sku": "a"}, {"size": 5}]}, "the space has no field items.size"),
]


@pytest.mark.parametrize(("event", "reason"), UNKNOWN, ids=[str(event) for event, _ in UNKNOWN])
def test_an_unknown_field_is_ignored_or_told_in_a_dictionary_and_in_a_table(event: dict[str, Any], reason: str) -> None:
    matcher, table = loaded(), pa.Table.from_pylist([event])
    matcher.match(event)
    matcher.match_batch(table, missing="unspecified")
    for call in (
        lambda: matcher.match(event, unknown="error"),
        lambda: matcher.match_batch(table, missing="unspecified", unknown="error"),
    ):
        with pytest.raises(errors.EventError) as caught:
            call()
        assert reason in str(caught.value)


def test_known_fields_and_synonyms_are_no_error() -> None:
    matcher = loaded()
    event = {"cost": 5, "seller": {"city": None}, "items": [{"sku": "a"}]}
    assert matcher.match(event, unknown="error") == ["all"]
    assert matcher.match_batch(pa.Table.from_pylist([event]), unknown="error", missing="unspecified").num_rows == 1
    with pytest.raises(ValueError, match="unknown is 'ignore' or 'error'"):
        matcher.match(event, unknown="drop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown is 'ignore' or 'error'"):
        matcher.match_batch(pa.table({"price": [5]}), unknown="drop")  # type: ignore[arg-type]


def test_a_plain_value_where_a_mapping_belongs_is_told_in_a_dictionary_and_in_a_table() -> None:
    matcher = loaded()
    with pytest.raises(errors.EventError, match="field seller: 'oops' is no mapping; one with city is expected"):
        matcher.match({"seller": "oops"})
    with pytest.raises(errors.EventError, match="field items: 5 is no mapping; one with sku is expected"):
        matcher.match({"items": [{"sku": "a"}, 5]})
    with pytest.raises(errors.EventError, match="the column seller holds string; a struct with city is expected"):
        matcher.match_batch(pa.table({"price": [5], "seller": ["oops"], "items": [[{"sku": "a"}]]}))
    assert matcher.match({"price": 5, "seller": None, "items": None}) == ["all"]
    table = pa.table({"price": [5], "seller": pa.nulls(1), "items": pa.nulls(1)})
    assert matcher.match_batch(table).num_rows == 1


def test_json_that_is_none_is_told(tmp_path: Path) -> None:
    matcher = loaded()
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    for source in (
        "[" * 100_000,
        '{"price": ' + "9" * 5_000 + "}",
        tmp_path,
        tmp_path / "bytes.json",
        tmp_path / "none",
        5,
    ):
        with pytest.raises(errors.EventError):
            matcher.match_json(source)  # type: ignore[arg-type]
        with pytest.raises(errors.SubscriptionError):
            matcher.subscribe_json(source)  # type: ignore[arg-type]
    for row in ('{"id": [1], "expression": "price > 5"}', '{"id": "\\ud800", "expression": "price > 5"}'):
        with pytest.raises(errors.SubscriptionError):
            matcher.subscribe_json(row)


@pytest.mark.parametrize("id", [None, float("nan")])
def test_an_id_is_refused_alone_and_in_bulk_with_one_sentence(id: Any) -> None:
    matcher = loaded()
    with pytest.raises(errors.SubscriptionError) as alone:
        matcher.subscribe(id, "price > 5")
    with pytest.raises(errors.BadSubscriptionsError) as bulk:
        Matcher(SPACE).subscribe_many(pa.table({"id": pa.array([id], pa.float64()), "expression": ["price > 5"]}))
    ((_, _, error),) = bulk.value.problems
    assert (type(error), str(error)) == (type(alone.value), str(alone.value))
