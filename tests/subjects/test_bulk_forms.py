"""Tables of subscriptions and publications: ids twice, NULL or known, NULLs beside values, patterns in an audience."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Number, Region, Space, Subjects, Text, Time, TocsinError, Units


def subjects() -> Subjects:
    made = Subjects(Space({"x": Number("int64"), "name": Text(), "seen": Time()}), properties=Space({"team": Text()}))
    made.subscribe("known", "x > 5")
    made.publish("p", {"x": 9, "name": "ann"})
    return made


@pytest.mark.parametrize("ids", [["a", "b", "a"], ["a", None], ["a", "known"]], ids=["twice", "NULL", "known"])
def test_a_table_of_subscriptions_with_a_bad_id_adds_none(ids: list[Any]) -> None:
    held = subjects()
    before = held.matches()
    with pytest.raises(TocsinError):
        held.subscribe_many(pa.table({"id": pa.array(ids, pa.string()), "expression": ["x > 1"] * len(ids)}))
    assert held.matches() == before
    assert list(held.subscribe("a", "x > 1")) == [("enter", "p", "a")]


@pytest.mark.parametrize(
    ("team", "meets"), [("night shift", True), ("nightly", True), ("day", False), (None, False)], ids=str
)
def test_a_pattern_in_an_audience_is_asked_of_properties(team: str | None, meets: bool) -> None:
    held = subjects()
    held.update("p", audience="team LIKE '%ight%'")
    told = list(held.subscribe("s", "x > 1", properties={"team": team} if team else None))
    assert told == ([("enter", "p", "s")] if meets else [])


def test_null_beside_values_in_a_table_makes_only_that_dimension_absent() -> None:
    held = subjects()
    held.subscribe("nameless", "name IS NULL")
    table = pa.table({"key": ["p", "q", "r"], "x": pa.array([None, 7, 1], pa.int64()), "name": ["bob", None, "cy"]})
    told = held.put_many(table).to_arrow().to_pylist()
    found = [(each["row"], each["transition"], each["publication"], each["subscription"]) for each in told]
    expected = [(0, "leave", "p", "known"), (1, "enter", "q", "known"), (1, "enter", "q", "nameless")]
    assert sorted(found) == expected


def test_null_in_a_table_is_any_value_where_what_is_left_out_is() -> None:
    held = Subjects(Space({"x": Number("int64"), "y": Number("int64")}, unspecified="any"))
    held.subscribe("s", "x > 5")
    told = held.put_many(pa.table({"key": ["p", "q", "r"], "x": pa.array([None, 7, 1], pa.int64()), "y": [1, 1, 1]}))
    assert list(told) == [("enter", "p", "s"), ("enter", "q", "s")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_timestamps_written_as_any_text_type_are_moments(kind: Any) -> None:
    held = subjects()
    held.subscribe("late", "seen >= TIMESTAMP '2026-07-01 00:00:00Z'")
    times = pa.array(["2026-07-01T02:00:00+02:00", None, "2026-06-30 23:59:59.999999Z"], kind)
    told = held.put_many(pa.table({"key": ["a", "b", "c"], "x": [1, 1, 1], "seen": times})).to_arrow()
    assert told["publication"].to_pylist() == ["a"]
    held.put_many(pa.table({"key": ["c"], "seen": pa.array(["2026-07-02"], kind)}))
    assert ("c", "late") in held.matches()
    assert list(held.update("c", {"seen": datetime(2026, 6, 1, tzinfo=UTC)})) == [("leave", "c", "late")]


def test_a_region_in_a_space_given_beside_it_stays_there() -> None:
    held = Subjects({"map": Space({"x": Number()}), "shop": Space({"x": Number(), "price": Number()})})
    held.subscribe("s", Region("x < 5", "shop"))
    assert list(held.publish("p", {"x": 1}, space="map")) == []
    assert list(held.update("p", {"x": 2})) == []


@pytest.mark.parametrize(
    ("unit", "money"), [("USD", True), ("XYZ", True), ("GiB", False), ("BTU", False), ("EUR", True)]
)
def test_three_capitals_are_money_unless_a_unit_has_them(unit: str, money: bool) -> None:
    assert Units().is_currency(unit) is money


def test_texts_in_another_case_may_come_when_the_labels_of_other_texts_have_run_out() -> None:
    def crowded(count: int) -> Subjects:
        """Hold subscriptions each of whose texts lies between the two before it."""
        held = Subjects(Space({"t": Text(), "d": Text()}), engine="scan")
        held.publish("p", {"t": "m"})
        for number in range(count):
            held.subscribe(number, f"t > 'k{('01' * number)[:number]}1'")
        return held

    held = crowded(0)
    begun, count = held._planes[0].axes, 0
    while held._planes[0].axes is begun:  # until all labels are spread anew
        held.subscribe(count, f"t > 'k{('01' * count)[:count]}1'")
        count += 1
    held = crowded(count - 1)
    text = f"k{('01' * (count - 1))[: count - 1]}1"
    told = held.subscribe("last", f"(lower(d) = 'x' OR d IS NULL) AND t > '{text}'")
    assert list(told) == [("enter", "p", "last")]
    assert held.update("p", {"t": "k0"}).leaves == count
    assert held.update("p", {"t": "l", "d": "X"}).enters == count


@pytest.mark.parametrize("engine", ["adaptive", "scan", "bounds"])
def test_every_engine_takes_many_subscriptions_at_once(engine: str) -> None:
    held = Subjects(Space({"x": Number("int64")}), engine=engine)
    held.publish("p", {"x": 3})
    texts = [f"x < {number}" for number in range(1_024)]
    told = held.subscribe_many(pa.table({"id": range(1_024), "expression": texts}))
    assert told.enters == 1_020
    assert held.update("p", {"x": 1_020}).leaves == 1_017
