"""Ids: which values they may be, and how they come back."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Matcher, Number, Space, Text, errors

SPACE = Space({"price": Number("int64"), "city": Text()})


def matcher_of(space: Space | dict[str, Any], *expressions: str, engine: str = "scan") -> Matcher:
    """Return a matcher with these expressions, the number of each its id."""
    matcher = Matcher(space if isinstance(space, Space) else Space(space), engine=engine)
    for number, expression in enumerate(expressions):
        matcher.subscribe(number, expression)
    return matcher


@pytest.mark.parametrize(
    "id",
    ["a", "", "日本", 1, -(2**63), 2.5, True, b"bytes", Decimal("1.50"), date(2020, 1, 1), datetime(2020, 1, 1),
     datetime(2020, 1, 1, tzinfo=UTC), timedelta(seconds=1), uuid.UUID(int=5), 2**63 - 1],
    ids=repr,
)  # fmt: skip
def test_an_id_of_any_scalar_type_comes_back_as_it_was(id: Any) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe(id, "price = 1")
    assert matcher.match({"price": 1}) == [id]
    assert matcher.match_batch(pa.table({"price": [1], "city": ["x"]}))["subscription"].to_pylist() == [id]
    assert id in matcher and list(matcher) == [id] and matcher[id] == "price = 1"
    matcher.unsubscribe(id)
    assert matcher.match({"price": 1}) == [] and id not in matcher


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([1, 2], pa.int8()),
        pa.array([1, 2], pa.uint64()),
        pa.array([1.5, 2.5], pa.float32()),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([b"a", b"b"], pa.binary(1)),
        pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(10, 2)),
        pa.array([date(2020, 1, 1), date(2020, 1, 2)]),
        pa.array([1, 2], pa.timestamp("ms", "UTC")),
        pa.array([True, False]),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_an_arrow_type_come_back_in_that_type(ids: pa.Array) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": ids, "expression": ["price = 1", "price >= 1"]}))
    found = matcher.match_batch(pa.table({"price": [1]}))["subscription"].combine_chunks()
    plain = ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids
    assert found.type == plain.type
    assert sorted(found.to_pylist()) == sorted(plain.to_pylist())


@pytest.mark.parametrize("id", [[1], {}, {1}, (1, 2), frozenset({1}), object(), 1j], ids=lambda id: type(id).__name__)
def test_an_id_that_is_no_single_value_is_refused(id: Any) -> None:
    matcher = Matcher(SPACE)
    with pytest.raises(errors.SubscriptionError, match=r"an id is a single value \(boolean, integer, .*\), not "):
        matcher.subscribe(id, "price = 1")
    assert len(matcher) == 0


@pytest.mark.parametrize("id", [float("nan"), np.float64("nan"), Decimal("NaN")], ids=repr)
def test_an_id_that_equals_nothing_is_refused(id: Any) -> None:
    matcher = Matcher(SPACE)
    with pytest.raises(errors.SubscriptionError, match="would never be found again"):
        matcher.subscribe(id, "price = 1")
    problems: list[Any] = []
    table = pa.table({"id": [1.5, float("nan")], "expression": ["price = 1", "price = 1"]})
    assert matcher.subscribe_many(table, problems=problems) == 1
    assert [problem.row for problem in problems] == [1] and "NaN" in str(problems[0].error)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", 1),
        ("a", b"a"),
        (1, 1.5),
        (1, True),
        (1, Decimal(1)),
        (date(2020, 1, 1), datetime(2020, 1, 1)),
        (datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)),
    ],
    ids=repr,
)
def test_ids_of_two_kinds_are_refused_when_they_come(first: Any, second: Any) -> None:
    for one, other in ((first, second), (second, first)):
        matcher = Matcher(SPACE)
        matcher.subscribe(one, "price = 1")
        with pytest.raises(errors.SubscriptionError, match="all ids of a matcher are of one kind"):
            matcher.subscribe(other, "price >= 1")
        with pytest.raises(errors.SubscriptionError, match="all ids of a matcher are of one kind"):
            matcher.subscribe_many(pa.table({"id": [other], "expression": ["price >= 1"]}))
        assert matcher.match_batch(pa.table({"price": [1]}))["subscription"].to_pylist() == [one]
        matcher.unsubscribe(one)
        matcher.subscribe(other, "price = 1")
        assert matcher.match({"price": 1}) == [other]


def test_ids_of_another_kind_are_refused_after_a_load(tmp_path: Path) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": ["a", "b"], "expression": ["price = 1", "price = 2"]}))
    matcher.save(tmp_path / "saved")
    opened = Matcher.load(tmp_path / "saved")
    with pytest.raises(errors.SubscriptionError, match=r"there are ids like 'a' \(text\), and 7 is integer"):
        opened.subscribe(7, "price = 1")


@pytest.mark.parametrize("id", [2**64, -(2**63) - 1])
def test_an_integer_that_no_column_holds_is_refused(id: int) -> None:
    with pytest.raises(errors.SubscriptionError, match="at most 64 bits"):
        Matcher(SPACE).subscribe(id, "price = 1")


def test_unsigned_integers_come_in_columns() -> None:
    matcher = Matcher(SPACE)
    with pytest.raises(errors.SubscriptionError, match="as a column of uint64"):
        matcher.subscribe(2**63, "price = 1")
    ids = pa.array([2**63, 2**64 - 1], pa.uint64())
    matcher.subscribe_many(pa.table({"id": ids, "expression": ["price = 1", "price = 1"]}))
    assert sorted(matcher.match_batch(pa.table({"price": [1]}))["subscription"].to_pylist()) == [2**63, 2**64 - 1]
    with pytest.raises(errors.SubscriptionError, match="all ids of a matcher are of one kind"):
        matcher.subscribe(1, "price = 1")


def test_text_that_is_none_is_refused() -> None:
    with pytest.raises(errors.SubscriptionError, match="not valid text"):
        Matcher(SPACE).subscribe("\ud800", "price = 1")


def test_a_numpy_scalar_is_the_value_that_it_holds() -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe(np.int64(5), "price = 1")
    matcher.subscribe(6, "price = 1")
    assert matcher.match({"price": 1}) == [5, 6] and type(matcher.match({"price": 1})[0]) is int
    with pytest.raises(errors.DuplicateSubscriptionError):
        matcher.subscribe(np.int32(6), "price = 1")


def test_a_wider_id_after_narrow_ones_widens_the_column() -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": pa.array([1], pa.int32()), "expression": ["price = 1"]}))
    matcher.subscribe(2**40, "price = 1")
    assert matcher.match_batch(pa.table({"price": [1]}))["subscription"].to_pylist() == [1, 2**40]


@pytest.mark.parametrize(
    "id",
    [Decimal("Infinity"), Decimal("1e500"), Decimal("1e-77"), Decimal("1." + "1" * 76), 10**5000],
    ids=lambda id: f"{type(id).__name__}",
)
def test_an_id_that_no_column_holds_is_refused_when_it_is_given(id: Any) -> None:
    matcher = matcher_of(SPACE, "price = 1")
    with pytest.raises(errors.SubscriptionError):
        matcher.subscribe(id, "price = 1")
    with pytest.raises(errors.SubscriptionError):
        matcher.unsubscribe(id)
    with pytest.raises(errors.SubscriptionError):
        matcher.explain({"price": 1}, id)
    assert matcher.match({"price": 1}) == [0]


@pytest.mark.parametrize("column", [pa.array([1]), pa.chunked_array([[1]])], ids=lambda c: str(type(c)))
def test_a_single_column_is_no_table(column: Any) -> None:
    matcher = matcher_of(SPACE, "price = 1")
    with pytest.raises(errors.EventError, match="events are a table"):
        matcher.match_batch(column)
    with pytest.raises(errors.SubscriptionError, match="subscriptions are a table"):
        matcher.subscribe_many(column)


@pytest.mark.parametrize("ids", ["ab", b"ab", 3, None], ids=repr)
def test_unsubscribing_many_takes_several_ids(ids: Any) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe("a", "price = 1")
    matcher.subscribe("b", "price = 1")
    with pytest.raises(errors.SubscriptionError, match="takes several ids"):
        matcher.unsubscribe_many(ids)
    assert matcher.match({"price": 1}) == ["a", "b"]


WIDE, FINE = Decimal("9" * 60), Decimal("0." + "1" * 60)


def column_of(*ids: Decimal) -> pa.Table:
    kind = pa.decimal256(76, max(-int(id.as_tuple().exponent) for id in ids))
    return pa.table({"id": pa.array(ids, kind), "expression": ["price = 1"] * len(ids)})


def test_decimal_ids_that_do_not_fit_one_column_together_are_refused_when_given(tmp_path: Path) -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe(WIDE, "price = 1")
    with pytest.raises(errors.SubscriptionError, match=r"the id Decimal\('0\.1+'\) does not fit one column"):
        matcher.subscribe(FINE, "price = 1")
    with pytest.raises(errors.SubscriptionError, match="does not fit one column"):
        matcher.subscribe_many(column_of(FINE))
    matcher.save(tmp_path)
    with pytest.raises(errors.SubscriptionError, match="does not fit one column"):
        Matcher.load(tmp_path).subscribe(FINE, "price = 1")
    assert matcher.match_batch(pa.table({"price": [1]}))["subscription"].to_pylist() == [WIDE]


def test_decimal_ids_need_room_only_beside_those_that_are_there() -> None:
    matcher = Matcher(SPACE)
    matcher.subscribe(WIDE, "price = 1")
    matcher.unsubscribe(WIDE)
    matcher.subscribe_many(column_of(FINE, Decimal("1.5")))
    matcher.subscribe(Decimal("9" * 15), "price = 1")
    found = matcher.match_batch(pa.table({"price": [1]}))["subscription"].to_pylist()
    assert found == [FINE, Decimal("1.5"), Decimal("9" * 15)] == matcher.match({"price": 1})
    with pytest.raises(errors.SubscriptionError, match="does not fit one column"):
        matcher.subscribe(Decimal("9" * 17), "price = 1")
