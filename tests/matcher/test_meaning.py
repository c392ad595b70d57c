"""Attribute trees, synonyms and derived fields held against the definition; the counterexamples to the printed
algorithm; what explanations say of meaning."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tests.space.hierarchies import is_a, parents
from tocsin.errors import ArgumentTypeError, EventError, MissingColumnError, SpaceError
from tocsin.index import engines
from tocsin.language.printer import constant_text, field_text
from tocsin.language.tree import Constant, Field

ENGINES = list(engines())
VALUES = {"top": [], "a": ["top"], "b": ["top"], "aa": ["a"], "ab": ["a", "b"]}


def quoted(value: str) -> str:
    return constant_text(Constant(value, "string"))


@settings(max_examples=50, deadline=None)
@given(parents(most=7), st.sampled_from(ENGINES), st.data())
def test_some_pair_at_or_below_the_attribute_has_a_value_at_or_below_the_concept(
    attributes: dict[str, list[str]], engine: str, data: st.DataObject
) -> None:
    """The definition of record, over random attribute trees, multi-valued attributes, synonyms and negation."""
    attributes = {name.replace(".", "_"): [each.replace(".", "_") for each in up] for name, up in attributes.items()}
    names = list(attributes)
    inner = {each for above in attributes.values() for each in above}
    several = {name for name in names if data.draw(st.booleans())}
    concept = tocsin.Concept(tocsin.Hierarchy.of(VALUES, {"another a": "a"}))
    kinds = {name: tocsin.Repeated(concept) if name in several else concept for name in names}
    tree = tocsin.Hierarchy.of(attributes)
    space = tocsin.Space(kinds, attributes=tree, synonyms={"alias": names[-1]})
    matcher = tocsin.Matcher(space, engine)
    tests: list[tuple[str, list[tuple[str, str, bool]]]] = []
    for number in range(data.draw(st.integers(1, 5))):
        parts = data.draw(
            st.lists(
                st.tuples(st.sampled_from(names), st.sampled_from(list(VALUES)), st.booleans()), min_size=1, max_size=3
            )
        )
        text = " AND ".join(
            f"{'NOT ' if negated else ''}is_a({field_text(Field((name,)))}, {quoted(value)})"
            for name, value, negated in parts
        )
        tests.append((text, parts))
        matcher.subscribe(number, text)
    events = []
    for _ in range(data.draw(st.integers(1, 4))):
        event: dict[str, Any] = {}
        for name in names:
            held = data.draw(st.none() | st.lists(st.sampled_from([*VALUES, "another a"]), max_size=2))
            if held is not None:
                event[name] = held if name in several else held[0] if held else None
        events.append(event)

    def holds(event: dict[str, Any], name: str, value: str, negated: bool) -> bool:
        below = [each for each in names if is_a(attributes, each, name)]
        there = [event[each] for each in below if event.get(each) is not None]
        words = [word for held in there for word in (held if isinstance(held, list) else [held])]
        met = [is_a(VALUES, "a" if word == "another a" else word, value) for word in words]
        return bool(there) and not any(met) if negated else any(met)

    table = pa.table(
        {
            name: pa.array(
                [event.get(name) for event in events], pa.list_(pa.string()) if name in several else pa.string()
            )
            for name in names
        }
    )
    renamed = table.rename_columns([*names[:-1], "alias"])
    for events_ in (table, renamed):
        found = matcher.match_batch(events_)
        pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
        wanted = {
            (row, number)
            for row, event in enumerate(events)
            for number, (_, parts) in enumerate(tests)
            if all(holds(event, *part) for part in parts)
        }
        assert pairs == wanted
    for row, event in enumerate(events):
        assert set(matcher.match(event)) == {number for at, number in wanted if at == row}
    assert inner == {name for name in inner if space.family((name,)) != ((name,),)}
    assert tocsin.Space.from_json(json.loads(json.dumps(space.to_json()))) == space


@pytest.fixture(params=ENGINES)
def shop(request: pytest.FixtureRequest) -> tocsin.Matcher:
    space = tocsin.Space(
        {
            "target": tocsin.Concept({"product": {"computer": ["laptop", "desktop"], "phone": None}}),
            "colour": tocsin.Concept({"any": ["red", "blue"]}),
            "email": tocsin.Text(),
            "cellphone": tocsin.Text(),
            "price": tocsin.Number("int64"),
        },
        attributes={"contact": ["email", "cellphone"]},
    )
    return tocsin.Matcher(space, request.param)


def test_counterexample_1_two_siblings_in_one_event(shop: tocsin.Matcher) -> None:
    shop.subscribe("mail", "email = 'x'")
    shop.subscribe("phone", "cellphone = 'y'")
    assert sorted(shop.match({"email": "x", "cellphone": "y"})) == ["mail", "phone"]


def test_counterexample_2_two_constraints_under_one_root(shop: tocsin.Matcher) -> None:
    shop.subscribe("both", "email = 'x' AND cellphone = 'y'")
    shop.subscribe("twice", "contact = 'x' AND contact = 'y'")
    assert shop.match({"email": "y", "cellphone": "x"}) == ["twice"]
    assert sorted(shop.match({"email": "x", "cellphone": "y"})) == ["both", "twice"]
    assert shop.match({"email": "x"}) == []


def test_counterexample_3_a_missing_attribute_does_not_satisfy(shop: tocsin.Matcher) -> None:
    shop.subscribe("blue laptop", "is_a(target, 'computer') AND is_a(colour, 'any')")
    assert shop.match({"target": "laptop"}) == []
    assert shop.match({"target": "laptop", "colour": "red"}) == ["blue laptop"]


def test_counterexample_4_intervals_that_end_or_begin_in_the_cell_of_the_value(shop: tocsin.Matcher) -> None:
    for low in range(0, 100, 7):
        for high in range(low, 100, 9):
            shop.subscribe(f"{low} {high}", f"price BETWEEN {low} AND {high}")
    for value in (0, 13, 49, 50, 63, 64, 99):
        inside = [(low, high) for low in range(0, 100, 7) for high in range(low, 100, 9) if low <= value <= high]
        assert sorted(shop.match({"price": value})) == sorted(f"{low} {high}" for low, high in inside)


def test_counterexample_5_values_outside_of_every_interval(shop: tocsin.Matcher) -> None:
    shop.subscribe("low", "price <= 100")
    shop.subscribe("high", "price >= 10")
    assert shop.match({"price": 2**62}) == ["high"] and shop.match({"price": -(2**62)}) == ["low"]


def test_counterexample_6_intervals_whose_lower_end_is_not_zero(shop: tocsin.Matcher) -> None:
    shop.subscribe("far", "price BETWEEN 1000000 AND 1000010")
    shop.subscribe("negative", "price BETWEEN -30 AND -20")
    assert shop.match({"price": 1000005}) == ["far"] and shop.match({"price": -25}) == ["negative"]
    assert shop.match({"price": 5}) == []


def test_the_example_of_the_paper(tmp_path: Path) -> None:
    space = tocsin.Space(
        {
            "target": tocsin.Concept({"product": {"computer": ["Desktop PC"]}}, synonyms={"台式机": "Desktop PC"}),
            "price": {"value": tocsin.Number(unit="USD", unit_field="price.currency")},
            "size": tocsin.Number(unit="GB"),
            "seller": {"country": tocsin.Text(synonyms={"US": "United States"})},
        },
        units=tocsin.Units(names={"G": "GB"}),
    )
    matcher = tocsin.Matcher(space)
    matcher.subscribe("wanted", "is_a(target, 'computer') AND price.value <= 500 AND size >= quantity('0.04 TB')")
    matcher.subscribe("country", "seller.country = 'United States'")
    event = {
        "target": "台式机",
        "price": {"value": 450, "currency": "units:$"},
        "size": "40 units:G",
        "seller": {"country": "US"},
    }
    matcher.save(tmp_path)
    for each in (matcher, tocsin.Matcher.load(tmp_path)):
        assert sorted(each.match(event)) == ["country", "wanted"]
        assert len(each.match_batch(pa.Table.from_pylist([event]))) == 2
    assert space.domain("target") == "product" and space.root("target") == "target"


def test_explanations_show_the_way_and_the_conversion() -> None:
    space = tocsin.Space(
        {
            "target": tocsin.Concept(
                {"product": {"computer": {"portable": ["laptop"]}}}, synonyms={"notebook": "laptop"}
            ),
            "price": tocsin.Number(unit="USD"),
        },
        units=tocsin.Units(rates=tocsin.Rates("USD", [("EUR", "1.08")])),
    )
    matcher = tocsin.Matcher(space)
    matcher.subscribe("cheap", "is_a(target, 'computer') AND price <= 400")
    matcher.subscribe("dear", "price > quantity('400 EUR')")
    told = str(matcher.explain({"target": "laptop", "price": "350 EUR"}, "cheap"))
    assert "laptop → portable → computer" in told and "350 EUR = 378 USD" in told
    told = str(matcher.explain({"target": "notebook", "price": {"value": 380, "unit": "EUR"}}, "cheap"))
    assert "price is 380 EUR = 410.4 USD, above 400 by 10.4" in told
    told = str(matcher.explain({"target": "product", "price": 1}, "cheap"))
    assert "✗ is_a(target, 'computer')    target is product" in told
    told = str(matcher.explain({"price": "350 EUR"}, "dear"))
    assert "price is 350 EUR = 378 USD, below 400 EUR = 432 USD by 54" in told


FORMULAS = {
    "a + b * 2": "int64",
    "a - b": "int64",
    "a / b": "double",
    "a % b": "int64",
    "abs(a) + length(t)": "int64",
    "upper(t) || '!'": "text",
    "coalesce(a, 7)": "int64",
    "greatest(a, b)": "int64",
    "year(d) - a": "int64",
    "month(d) + day(d)": "int64",
    "floor(f) + ceil(f)": "int64",
}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-1000, 1000),
            st.none() | st.integers(-5, 5),
            st.none() | st.text("abüz ", max_size=4),  # DuckDB knows no capital of ß, Spark SS
            st.none() | st.dates(min_value=datetime(1900, 1, 1).date()),
            st.none() | st.floats(-100, 100),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_formulas_come_to_what_duckdb_says(rows: list[tuple[Any, ...]]) -> None:
    kinds = {"int64": tocsin.Number("int64"), "double": tocsin.Number(), "text": tocsin.Text()}
    space = tocsin.Space(
        {
            "a": tocsin.Number("int64"),
            "b": tocsin.Number("int64"),
            "t": tocsin.Text(),
            "d": tocsin.Time("date"),
            "f": tocsin.Number(),
            **{f"x{at}": tocsin.Derived(formula, kinds[kind]) for at, (formula, kind) in enumerate(FORMULAS.items())},
        }
    )
    types = [pa.int64(), pa.int64(), pa.string(), pa.date32(), pa.float64()]
    columns = zip(*rows, strict=True)
    table = pa.table(
        {name: pa.array(list(each), kind) for name, each, kind in zip("abtdf", columns, types, strict=True)}
    )
    matcher = tocsin.Matcher(space)
    answers: list[set[str]] = [set() for _ in rows]
    table_ = table  # noqa: F841 - DuckDB finds it by its name
    for at, formula in enumerate(FORMULAS):
        asked = formula.replace(" b", " nullif(b, 0)") if " / " in formula or " % " in formula else formula
        wanted = [row[0] for row in duckdb.sql(f"SELECT {asked} FROM table_").fetchall()]
        for row, each in enumerate(wanted):
            kind = "double" if isinstance(each, float) else "string" if isinstance(each, str) else "integer"
            text = "IS NULL" if each is None else f"= {constant_text(Constant(each, kind))}"  # type: ignore[arg-type]
            matcher.subscribe(f"{formula} {text}", f"x{at} {text}", duplicates="replace")
            answers[row].add(f"{formula} {text}")
    found = matcher.match_batch(table)
    pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == {(row, answer) for row, some in enumerate(answers) for answer in some}
    assert [set(matcher.match(event)) for event in table.to_pylist()] == answers


def test_derived_fields_know_the_present_and_each_other() -> None:
    space = tocsin.Space(
        {
            "graduation_year": tocsin.Number("int64"),
            "experience": tocsin.Derived("year(now()) - graduation_year", tocsin.Number("int64")),
            "seen": tocsin.Time(),
            "senior": tocsin.Derived("experience div 10", tocsin.Number("int64")),
            "hour": tocsin.Derived("hour(seen)", tocsin.Number("int64")),
        },
        timezone="Asia/Tokyo",
    )
    matcher = tocsin.Matcher(tocsin.Space.from_json(json.loads(json.dumps(space.to_json()))))
    matcher.subscribe("experienced", "experience >= 10")
    matcher.subscribe("senior", "senior >= 2")
    matcher.subscribe("morning", "hour = 9")
    year = datetime.now(UTC).year
    assert matcher.match({"graduation_year": year - 15}) == ["experienced"]
    assert matcher.match({"graduation_year": year - 25, "seen": "2026-01-01 00:30:00Z"}) == [
        "experienced",
        "senior",
        "morning",
    ]
    assert matcher.match({}) == []
    with pytest.raises(EventError, match="field experience: the formula cannot be computed: overflow"):
        matcher.match({"graduation_year": -(2**63)})
    problems: list[tocsin.Problem] = []
    table = pa.table({"graduation_year": [year - 15, -(2**63), year - 5], "seen": pa.nulls(3, pa.string())})
    found = matcher.match_batch(table, problems=problems)
    assert found["event"].to_pylist() == [0] and [problem.row for problem in problems] == [1]


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"x": tocsin.Derived("y + 1", tocsin.Number())}, {}, "x: there is no field 'y'"),
    ({"x": tocsin.Derived("x + 1", tocsin.Number())}, {}, "x is derived from itself, through x"),
    ({"a": tocsin.Number(), "x": tocsin.Derived("sin(a)", tocsin.Number())}, {}, "calls sin; a formula has"),
    ({"a": tocsin.Number(), "x": tocsin.Derived("a +", tocsin.Number())}, {}, "is no Spark SQL"),
    ({"a": tocsin.Number(), "x": tocsin.Derived("least(a)", tocsin.Number())}, {}, "takes 2 or more arguments, not 1"),
    ({"a": tocsin.Repeated(tocsin.Number()), "x": tocsin.Derived("a", tocsin.Number())}, {}, "a has several values"),
    ({"a": tocsin.Text()}, {"attributes": {"top": ["a", "b"]}}, "the attribute tree names 'b', which is no dimension"),
    (
        {"a": tocsin.Text(), "b": tocsin.Number()},
        {"attributes": {"top": ["a", "b"]}},
        "is below top and holds",
    ),
    ({"a": tocsin.Text()}, {"synonyms": {"x": "b"}}, "the synonym 'x' is for 'b', which is no dimension"),
    ({"a": tocsin.Text(), "b": tocsin.Text()}, {"synonyms": {"a": "b"}}, "'a' of 'b' is a dimension itself"),
    ({"a": tocsin.Text()}, {"synonyms": {"x": "y", "y": "a"}}, "itself a synonym of 'a'"),
    ({"a": tocsin.Text(), "b": tocsin.Text()}, {"attributes": {"a": {"b": "a"}}}, "in a circle"),
]


@pytest.mark.parametrize(("kinds", "settings_", "message"), BAD)
def test_a_bad_space_is_refused(kinds: dict[str, Any], settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        tocsin.Space(kinds, **settings_)
    assert message in str(caught.value)


def test_clashing_synonyms_of_texts_are_refused() -> None:
    with pytest.raises(SpaceError, match="which is itself a synonym of"):
        tocsin.Text(synonyms={"a": "b", "b": "c"})
    with pytest.raises(ArgumentTypeError, match="synonyms is a mapping of words"):
        tocsin.Text(synonyms={"a": 5})


def test_a_field_under_two_names_says_one_thing() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"price": tocsin.Number()}, synonyms={"prix": "price", "Preis": "price"}))
    matcher.subscribe("low", "prix < 5")
    assert matcher.match({"Preis": 3}) == matcher.match({"Preis": 3, "price": 3}) == ["low"]
    with pytest.raises(EventError, match="price says 3 and prix, which means the same, 4"):
        matcher.match({"price": 3, "prix": 4})
    problems: list[tocsin.Problem] = []
    table = pa.table({"price": [1.0, 2.0, None], "prix": [1.0, 3.0, 4.0]})
    assert matcher.match_batch(table, problems=problems)["event"].to_pylist() == [0, 2]
    assert [problem.row for problem in problems] == [1]


def test_synonyms_of_texts_hold_in_events_and_constants() -> None:
    kind = tocsin.Text(synonyms={"US": "United States", "USA": "United States"})
    matcher = tocsin.Matcher(tocsin.Space({"c": kind, "cs": tocsin.Repeated(kind)}))
    matcher.subscribe("equal", "c = 'US'")
    matcher.subscribe("like", "c LIKE '%ited%'")
    matcher.subscribe("in", "cs IN ('USA', 'France')")
    assert matcher.match({"c": "USA", "cs": ["US"]}) == ["equal", "like", "in"]
    found = matcher.match_batch(pa.table({"c": ["US", "United States", "usa", None], "cs": [["x"], ["US"], [], None]}))
    assert sorted(found["event"].to_pylist()) == [0, 0, 1, 1, 1]


def rows_of(matcher: tocsin.Matcher, table: pa.Table, **options: Any) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in range(table.num_rows)]
    for pair in matcher.match_batch(table, **options).to_pylist():
        found[pair["event"]].append(pair["subscription"])
    return found


def test_a_derived_field_below_an_attribute_counts_as_its_value() -> None:
    kinds = {"net": tocsin.Number(), "gross": tocsin.Derived("net * 1.5", tocsin.Number()), "fee": tocsin.Number()}
    matcher = tocsin.Matcher(tocsin.Space(kinds, attributes={"amount": ["gross", "fee"]}))
    matcher.subscribe("3", "amount = 3")
    assert matcher.match({"net": 2}) == ["3"] == matcher.match({"fee": 3}) and matcher.match({"gross": 3}) == []
    table = pa.table({"net": [2, 7, None], "gross": [0.0, 3.0, 3.0], "fee": [None, None, 3.0]})
    assert rows_of(matcher, table) == [["3"], [], ["3"]]


def test_a_formula_without_one_of_its_columns_reads_null_there() -> None:
    kinds = {
        "a": tocsin.Number("int64"),
        "b": tocsin.Number("int64"),
        "c": tocsin.Derived("coalesce(a, 0) + b", tocsin.Number("int64")),
    }
    matcher = tocsin.Matcher(tocsin.Space(kinds))
    matcher.subscribe("5", "c = 5")
    assert matcher.match({"b": 5}) == ["5"]
    assert rows_of(matcher, pa.table({"b": [5, 6]}), missing="unspecified") == [["5"], []]
    with pytest.raises(MissingColumnError, match="the events have no column a, which the formula of c needs"):
        matcher.match_batch(pa.table({"b": [5, 6]}))


@pytest.mark.parametrize(
    ("formula", "kind", "event", "value"),
    [
        ("a * 1.5", tocsin.Number("decimal(10, 3)"), {"a": Decimal("1.25")}, "1.875"),
        ("a + b", tocsin.Number("decimal(10, 2)"), {"a": Decimal("0.10"), "b": 2}, "2.1"),
        ("a / b", tocsin.Number(), {"a": Decimal(1), "b": 3}, "3.3333333333333e-1"),
        ("d % 2", tocsin.Number(), {"d": 3}, "1"),
        ("d / 2", tocsin.Number(), {"d": 3}, "1.5"),
        ("coalesce(d, 0.5)", tocsin.Number(), {"d": 3}, "3"),
        ("floor(d)", tocsin.Number("int64"), {"d": 3}, "3"),
        ("length(t)", tocsin.Number("int64"), {"t": "US"}, "13"),
        ("length(k)", tocsin.Number("int64"), {"k": "notebook"}, "6"),
        ("u * 2", tocsin.Number(), {"u": "2 TB"}, "4000"),
    ],
)
def test_a_formula_computes_with_what_its_fields_hold(
    formula: str, kind: Any, event: dict[str, Any], value: str
) -> None:
    dimensions = {
        "a": tocsin.Number("decimal(10, 2)"),
        "b": tocsin.Number("int64"),
        "d": tocsin.Number(),
        "t": tocsin.Text(synonyms={"US": "United States"}),
        "k": tocsin.Concept({"computer": ["laptop"]}, synonyms={"notebook": "laptop"}),
        "u": tocsin.Number(unit="GB"),
        "x": tocsin.Derived(formula, kind),
    }
    matcher = tocsin.Matcher(tocsin.Space(dimensions))
    matcher.subscribe("x", f"x >= {value} AND x < 0.34" if "e-1" in value else f"x = {value}")
    whole = {name: event.get(name) for name in dimensions if name != "x"}
    assert matcher.match(event) == ["x"] == matcher.match(whole)
    table = pa.table({name: pa.array([given]) for name, given in whole.items()})
    assert rows_of(matcher, table) == [["x"]]
