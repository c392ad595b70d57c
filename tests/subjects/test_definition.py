"""A publication matches if some point of its region, made of values of each domain, makes the expression TRUE."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import Any

import pyarrow as pa
import pytest

from tocsin import (
    Address,
    Boolean,
    Concept,
    Derived,
    Interval,
    Matcher,
    Number,
    Region,
    Space,
    Subjects,
    Text,
    Time,
)
from tocsin.errors import BadSubscriptionsError, EventError, ExpressionError, RegionError, SubjectError
from tocsin.space import books
from tocsin.space.intervals import MOST_ALTERNATIVES

INT, TEXT, ADDRESS, LEAST = Number("int64"), Text(), Address(), -(2**63)
LONG = Number("decimal(30,2)")
TREE = Concept({"root": ["a", "b"]})


def matches(kind: Any, expression: str, value: Any = None, unspecified: str = "any") -> bool:
    space = Space({"v": kind, "w": INT}, unspecified=unspecified)  # type: ignore[arg-type]
    subjects = Subjects(space)
    subjects.subscribe("s", expression)
    said = {"w": 1} if value is None else {"w": 1, "v": value}
    found = bool(list(subjects.publish("p", said)))
    assert bool(subjects.matches()) == found
    later = Subjects(space)
    later.publish("p", said)
    assert bool(list(later.subscribe("s", expression))) == found, "the other order"
    return found


NEVER: list[tuple[Any, str]] = [
    (TEXT, "v < ''"),
    (Number("decimal(4,2)"), "v > 99.99"),
    (Number("decimal(4,2)"), "v < -99.99"),
    (TREE, "NOT is_a(v, 'root')"),
    (TREE, "v NOT IN ('root', 'a', 'b')"),
    (Boolean(), "v NOT IN (TRUE, FALSE)"),
    (ADDRESS, "v < '::'"),
    (ADDRESS, "v > 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'"),
    (ADDRESS, "v > '10.0.0.1' AND v < '10.0.0.2'"),
    (Number(), "v > double('NaN')"),
    (Number(), "v > double('Infinity') AND v < double('NaN')"),
    (LONG, "v > 9999999999999999999999999999.99"),
    (LONG, "v > 1.00 AND v < 1.01"),
    (INT, "v > 9223372036854775807"),
    (INT, "v < -9223372036854775808"),
    (INT, "v > -9223372036854775808 AND v < -9223372036854775807"),
    (Time("date"), "v > DATE '9999-12-31'"),
    (Time("timestamp"), "v < TIMESTAMP '0001-01-01 00:00:00'"),
    (TEXT, "lower(v) = 'A'"),
    (TEXT, "lower(v) > 'A' AND lower(v) < 'B'"),
    (TEXT, "v = 'a' AND upper(v) = 'B'"),
]


@pytest.mark.parametrize(("kind", "expression"), NEVER, ids=[text for _, text in NEVER])
def test_a_condition_that_no_value_meets_never_holds(kind: Any, expression: str) -> None:
    assert not matches(kind, expression)
    assert not matches(kind, f"({expression}) OR w = 2")


OF_EVENTS = [each for each in NEVER[:-1] if "NOT IN ('root'" not in each[1]]
"""A matcher's hierarchy may grow, so that what holds no concept yet is kept."""


@pytest.mark.parametrize(("kind", "expression"), OF_EVENTS, ids=[text for _, text in OF_EVENTS])
def test_an_event_without_the_field_does_not_meet_it_either(kind: Any, expression: str) -> None:
    matcher = Matcher(Space({"v": kind, "w": INT}, unspecified="any"))
    matcher.subscribe("s", expression)
    assert matcher.match({"w": 1}) == []


RANGES: list[tuple[Any, str, Any, bool]] = [
    (ADDRESS, "v = '10.0.0.9'", ("10.0.0.2", "10.0.0.10"), True),
    (ADDRESS, "v = '10.0.0.10'", (ip_address("10.0.0.2"), "10.0.0.9"), False),
    (ADDRESS, "v = '10.0.0.3'", Interval("10.0.0.2", "10.0.0.4", "neither"), True),
    (Time("timestamp"), "v = '2026-01-01 10:00:00'", ("2026-01-01 9:00:00", "2026-01-01 11:00:00"), True),
    (Time("timestamp"), "v = '2026-01-01 10:00:00'", (datetime(2026, 1, 1), "2026-01-01 11:00:00"), True),
    (Time("date"), "v = '2026-01-01'", (date(2025, 1, 1), "2026-01-01"), True),
    (TEXT, "upper(v) = 'A'", ("a", "a"), True),
    (TEXT, "v LIKE '%b'", ("a", "a"), False),
    (TEXT, "v LIKE '%b'", Interval("a", "a\0", "left"), False),
    (TEXT, "lower(v) = 'q'", ("a", "b"), False),
    (TEXT, "lower(v) = 'b'", ("B", "a"), True),
    (TEXT, "lower(v) = 'b' AND v > 'C'", ("B", "a"), False),
    (TEXT, "v LIKE '%c'", ("a", "ab"), True),
    (TEXT, "v LIKE '%c'", Interval("ab", "ab\0\0"), False),
    (TEXT, r"v LIKE 'a\%'", Interval("a%", "z", "right"), False),
    (TEXT, r"v LIKE 'a\%'", Interval("a%", "z", "left"), True),
    (TEXT, r"v NOT LIKE '\_%'", Interval("_", "_b", "left"), False),
    (TEXT, r"v LIKE '%\\\\'", Interval("a", "a\0\0"), False),
    (TEXT, r"v ILIKE 'A\_'", ("B", "a"), False),
    (TEXT, r"v ILIKE 'A\_'", ("B", "b"), True),
    (TEXT, "v LIKE 'a!_!!' ESCAPE '!'", Interval("a_!", None, "right"), False),
    (TEXT, "v IS NULL OR v < ''", (None, "b"), False),
    (TEXT, "v = 'b'", Interval("a", "b", "left"), False),
    (INT, "v > -9223372036854775808", LEAST, False),
    (INT, "v = -9223372036854775808", (LEAST + 1, 5), False),
    (INT, "v = -9223372036854775808", (LEAST, 5), True),
    (INT, "v <= -9223372036854775808", Interval(None, 0), True),
    (INT, "v > -9223372036854775808", (LEAST, LEAST), False),
    (INT, "v >= 3 AND v = -9223372036854775808", (LEAST, 5), False),
    (Number(), "v = double('NaN')", Interval(1.0, float("inf"), "both"), False),
    (Number(), "v = double('NaN')", Interval(float("inf"), None, "right"), True),
    (LONG, "v = 1.01", Interval(Decimal("1.00"), Decimal("1.02"), "neither"), True),
    (Text(synonyms={"US": "USA"}), "v = 'USA'", "US", True),
    (Text(synonyms={"US": "USA"}), "lower(v) = 'usa'", "US", True),
    (Text(synonyms={"US": "USA"}), "v = 'USA'", ("US", "US"), True),
]


@pytest.mark.parametrize("unspecified", ["null", "any"])
@pytest.mark.parametrize(("kind", "expression", "value", "wanted"), RANGES, ids=[f"{e[1]} {e[2]}" for e in RANGES])
def test_a_range_holds_the_values_between_its_bounds(
    kind: Any, expression: str, value: Any, wanted: bool, unspecified: str
) -> None:
    assert matches(kind, expression, value, unspecified) == wanted


EMPTY: list[tuple[Any, Any]] = [
    (ADDRESS, Interval("10.0.0.1", "10.0.0.2", "neither")),
    (LONG, Interval(Decimal("1.00"), Decimal("1.01"), "neither")),
    (TEXT, Interval("a", "a\0", "neither")),
    (TEXT, Interval(None, "", "left")),
    (Time("date"), Interval("2026-01-01", "2026-01-02", "neither")),
    (Boolean(), Interval(True, None, "right")),
    (INT, Interval(LEAST, LEAST + 1, "neither")),
]


@pytest.mark.parametrize(("kind", "value"), EMPTY, ids=[str(each) for _, each in EMPTY])
def test_an_interval_between_neighbours_is_seen_to_be_empty(kind: Any, value: Interval) -> None:
    subjects = Subjects(Space({"v": kind, "w": INT}))
    with pytest.raises(EventError, match="holds no value"):
        subjects.publish("p", {"v": value})
    ends = pa.array([{"low": value.low, "high": value.high, "closed": value.closed}])
    if not (pa.types.is_null(ends.type[0].type) or pa.types.is_null(ends.type[1].type)):
        with pytest.raises(EventError, match=r"row 0, field v: .* holds no value"):
            subjects.put_many(pa.table({"key": [1], "v": ends}))
    assert len(subjects) == 0


def test_a_range_up_to_the_empty_text_is_that_text() -> None:
    kind = pa.struct([("low", pa.string()), ("high", pa.string())])
    subjects = Subjects(Space({"v": TEXT}))
    for expression in ("contains(v, 'A')", "v LIKE '_%'", "v = ''"):
        subjects.subscribe(expression, expression)
    assert list(subjects.publish("p", {"v": Interval(None, "")})) == [("enter", "p", "v = ''")]
    assert list(subjects.publish("q", {"v": Interval(None, "\0", "left")})) == [("enter", "q", "v = ''")]
    ends = pa.array([{"low": None, "high": ""}], kind)
    assert list(subjects.put_many(pa.table({"key": ["r"], "v": ends}))) == [("enter", "r", "v = ''")]


def test_a_table_updates_a_publication_whose_filter_is_its_one_region() -> None:
    subjects = Subjects(Space({"v": INT}))
    subjects.subscribe("five", "v = 5")
    subjects.publish("p", regions={"a": {"v": 1}, "b": {"v": 2}}, filter="a")
    with pytest.raises(SubjectError, match="update it by itself"):
        subjects.put_many(pa.table({"key": ["p"], "v": [5]}))
    subjects.update("p", regions={"b": None})
    assert list(subjects.put_many(pa.table({"key": ["p"], "v": [5]}))) == [("enter", "p", "five")]


def test_a_table_reads_ranges_as_a_dictionary_does() -> None:
    kind = pa.struct([("low", pa.string()), ("high", pa.string()), ("closed", pa.null())])
    for low, high in [("a", "a"), ("a", "b"), (None, "b"), ("A", None)]:
        alike = []
        for way in ("dictionary", "table"):
            subjects = Subjects(Space({"v": TEXT}))
            for expression in ("lower(v) = 'a'", "v LIKE '%b'", "v >= 'b'", "v = 'a'"):
                subjects.subscribe(expression, expression)
            if way == "table":
                told = subjects.put_many(pa.table({"key": ["p"], "v": pa.array([{"low": low, "high": high}], kind)}))
            else:
                told = subjects.publish("p", {"v": Interval(low, high)})
            alike.append(sorted(told))
        assert alike[0] == alike[1]


def test_what_is_computed_from_points_is_computed_anew_by_every_update() -> None:
    dimensions = {"a": INT, "b": INT, "sum": Derived("a + b", INT), "t": TEXT, "size": Derived("length(t)", INT)}
    subjects = Subjects(Space(dimensions))
    subjects.subscribe("five", "sum = 5")
    subjects.subscribe("long", "size > 3")
    assert sorted(subjects.publish("p", {"a": 2, "b": 3, "t": "abcd"})) == [
        ("enter", "p", "five"),
        ("enter", "p", "long"),
    ]
    assert list(subjects.update("p", {"b": 4})) == [("leave", "p", "five")]
    assert list(subjects.put_many(pa.table({"key": ["p", "q"], "a": [1, 9], "b": [4, 9]}))) == [("enter", "p", "five")]
    assert list(subjects.update("p", {"a": (8, 9)})) == [], "of a range nothing is known: the sum spans its domain"
    with pytest.raises(RegionError, match="computed from other dimensions"):
        subjects.publish("r", {"sum": 5})


def test_a_region_stays_in_its_space() -> None:
    spaces = {"map": Space({"x": INT}), "shop": Space({"price": INT, "x": INT})}
    subjects = Subjects(spaces)
    subjects.subscribe("near", Region("x < 5"), space="map")
    assert list(subjects.put("p", {"x": 1}, space="map")) == [("enter", "p", "near")]
    assert list(subjects.put("p", {"x": 9}, space="map")) == [("leave", "p", "near")]
    with pytest.raises(RegionError, match="no dimension price"):
        subjects.update("p", {"price": 1})
    with pytest.raises(RegionError, match="lies in the space 'map'"):
        subjects.update("p", {"x": 1}, space="shop")
    with pytest.raises(RegionError, match="lies in the space map, and the table is of shop"):
        subjects.put_many(pa.table({"key": ["p"], "x": [1]}), space="shop")
    assert list(subjects.publish("q", Region({"x": 1}), space="shop")) == [], "not in the map"
    with pytest.raises(RegionError, match="and, beside it, in 'shop'"):
        subjects.publish("r", Region({"x": 1}, "map"), space="shop")
    assert list(subjects.delete("p")) == [] and subjects.matches() == set()


def test_a_region_that_never_matches_lends_its_filter_to_no_other() -> None:
    subjects = Subjects(Space({"x": INT}))
    subjects.publish("p", {"x": 9})
    told = subjects.subscribe("s", regions={"a": "x > 3 AND x < 4", "b": "x > 5"}, filter="a")
    assert list(told) == [] and list(subjects.update("p", {"x": 8})) == [] and subjects.matches() == set()
    assert list(subjects.change("s", filter="b")) == [("enter", "p", "s")]


def test_a_nested_update_keeps_what_it_does_not_name() -> None:
    subjects = Subjects(Space({"d.x": INT, "d.y": INT}))
    subjects.publish("p", {"d": {"x": 1, "y": 2}})
    subjects.update("p", {"d": {"x": 3}})
    assert list(subjects.subscribe("s", "d.x = 3 AND d.y = 2")) == [("enter", "p", "s")]
    subjects.subscribe("t", {"d": {"x": 3, "y": 2}})
    assert list(subjects.change("t", {"d": {"x": 4}})) == [("leave", "p", "t")]


def test_the_limit_on_combinations_of_sets_holds_for_updates() -> None:
    subjects = Subjects(Space({"x": INT, "y": INT}))
    subjects.publish("p", {"x": set(range(MOST_ALTERNATIVES)), "y": 1})
    with pytest.raises(EventError, match="2,048 combinations; the limit is 1,024"):
        subjects.update("p", {"y": {1, 2}})
    subjects.update("p", {"x": {1, 2}, "y": set(range(512))})
    assert len(list(subjects.subscribe("s", "x = 2 AND y = 511"))) == 1


def test_a_subscription_may_bring_a_text_axis_when_labels_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_END_STEP", 2**61)  # so that a hundred texts use up the room of a million
    subjects = Subjects(Space({"name": TEXT}))
    for number in range(100):
        subjects.publish(number, {"name": f"{number:03}a"})
    assert len(list(subjects.subscribe("s", "lower(name) > '0'"))) == 100
    assert len(list(subjects.subscribe("t", "upper(name) LIKE '%A'"))) == 100


def test_a_dictionary_that_holds_itself_is_refused() -> None:
    subjects = Subjects(Space({"d.x": INT, "y": INT}))
    itself: dict[str, Any] = {}
    itself |= {"d": itself, "e": itself}
    lists: list[Any] = []
    lists.append(lists)
    for region in (itself, {"y": lists}, {"d": {"x": itself}}):
        with pytest.raises((RegionError, EventError)):
            subjects.publish("p", region)
        with pytest.raises(RegionError):
            subjects.subscribe("s", region)
    assert len(subjects) == 0 and subjects.matches() == set()


def test_an_update_that_leaves_nothing_constrained_changes_nothing() -> None:
    subjects = Subjects(Space({"x": INT, "y": INT}, unspecified="any"))
    subjects.subscribe("s", "x < 5")
    subjects.publish("p", {"x": 1})
    with pytest.raises(RegionError, match="constrains none"):
        subjects.update("p", {"x": None})
    with pytest.raises(RegionError, match="row 0: a region constrains"):
        subjects.put_many(pa.table({"key": ["p"], "x": pa.array([None], pa.int64())}))
    assert subjects.matches() == {("p", "s")}
    assert list(subjects.update("p", {"x": None, "y": 3})) == [], "now x may be anything"
    assert list(subjects.subscribe("t", "x > 100")) == [("enter", "p", "t")]


def test_null_in_a_table_takes_a_value_away_beside_values() -> None:
    subjects = Subjects(Space({"x": INT, "y": INT}))
    subjects.subscribe("s", "y IS NULL")
    subjects.put_many(pa.table({"key": [1, 2], "x": [1, 2], "y": [1, 2]}))
    told = subjects.put_many(pa.table({"key": [1, 2], "x": [5, 6], "y": pa.array([None, 7], pa.int64())}))
    assert list(told) == [("enter", 1, "s")]
    assert list(subjects.subscribe("t", "x = 5 OR y = 7")) == [("enter", 1, "t"), ("enter", 2, "t")]


def test_a_pattern_in_an_audience_is_looked_at() -> None:
    subjects = Subjects(Space({"x": INT}), properties=Space({"team": TEXT}))
    subjects.subscribe("in", "x > 0", properties={"team": "north west"})
    subjects.subscribe("out", "x > 0", properties={"team": "south"})
    subjects.subscribe_many(pa.table({"id": ["none"], "expression": ["x > 0"]}))
    assert list(subjects.publish("p", {"x": 1}, audience="team LIKE '%h w%'")) == [("enter", "p", "in")]
    for audience in (5, "team LIKE '\ud800'"):
        with pytest.raises((SubjectError, ExpressionError)):
            subjects.publish("q", {"x": 1}, audience=audience)  # type: ignore[arg-type]
    assert len(subjects) == 1


def test_ids_of_64_bits_without_sign() -> None:
    subjects = Subjects(Space({"x": INT}))
    subjects.subscribe(2**63, "x < 5")
    assert list(subjects.publish(2**64 - 1, {"x": 1})) == [("enter", 2**64 - 1, 2**63)]
    told = subjects.put_many(pa.table({"key": pa.array([2**63 + 1], pa.uint64()), "x": [1]})).to_arrow().to_pylist()
    assert told == [{"row": 0, "publication": 2**63 + 1, "subscription": 2**63, "transition": "enter"}]
    assert subjects.publish(7, {"x": 1}).to_arrow()["subscription"].to_pylist() == [2**63]


@pytest.mark.parametrize("ids", [["a", "a"], ["a", None], ["a", "known"]])
def test_many_subscriptions_with_an_id_twice_null_or_known_are_refused_together(ids: list[Any]) -> None:
    subjects = Subjects(Space({"x": INT}))
    subjects.subscribe("known", "x > 3")
    subjects.publish("p", {"x": 1})
    with pytest.raises(BadSubscriptionsError, match="row 1"):
        subjects.subscribe_many(pa.table({"id": pa.array(ids, pa.string()), "expression": ["x < 5", "x < 6"]}))
    assert subjects.matches() == set()
    told = subjects.subscribe_many(pa.table({"id": ["a", "b"], "expression": ["x < 5", "x < 6"]}))
    assert sorted(told) == [("enter", "p", "a"), ("enter", "p", "b")]


def test_what_holds_no_concept_yet_does_once_the_hierarchy_has_grown() -> None:
    for unspecified in ("null", "any"):
        matcher = Matcher(Space({"v": Concept({"a": ["b"]}), "w": INT}, unspecified=unspecified))  # type: ignore[arg-type]
        matcher.subscribe("others", "v NOT IN ('a', 'b')")
        matcher.subscribe("outside", "NOT is_a(v, 'a')")
        assert matcher.match({"v": "b"}) == []
        matcher.grow("v", {"b": ["c"]})
        assert matcher.match({"v": "c"}) == ["others"]
