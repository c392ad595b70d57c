"""Concepts, attribute trees, synonyms, units and derived fields on Spark: the rows that the library gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin import spark as ts
from tocsin.errors import MissingColumnError

SPACE = tocsin.Space(
    {
        "target": tocsin.Concept({"product": {"computer": {"portable": ["laptop"]}, "gift": ["laptop", "book"]}}),
        "price": tocsin.Number(unit="USD", unit_field="currency"),
        "size": tocsin.Number(unit="GB"),
        "email": tocsin.Text(),
        "cellphone": tocsin.Text(),
        "country": tocsin.Text(synonyms={"US": "United States"}),
        "made": tocsin.Number("int64"),
        "age": tocsin.Derived("2026 - made", tocsin.Number("int64")),
    },
    attributes={"contact": ["email", "cellphone"]},
    synonyms={"tel": "cellphone"},
    units=tocsin.Units(rates=tocsin.Rates("USD", [("EUR", "1.08")])),
)
EXPRESSIONS = [
    "is_a(target, 'computer') AND price <= 400",
    "NOT is_a(target, 'gift')",
    "contact LIKE '%x%'",
    "country = 'US'",
    "age >= 10",
    "size >= quantity('40 GB') AND price < quantity('360 EUR')",
    "is_a(target, 'typo')",
]
EVENTS = [
    (0, "laptop", 350.0, "EUR", "2 TB", None, "x1", "US", 2010),
    (1, "portable", 390.0, "EUR", "30 GB", "ax", None, "United States", 2020),
    (2, "book", 1.0, None, None, None, None, "FR", None),
    (3, "bok", 1.0, None, None, None, None, "FR", None),
    (4, "laptop", 1.0, "kg", None, None, None, "FR", None),
]
SCHEMA = """n int, target string, price double, currency string, size string, email string, tel string, country string,
made int"""


def test_meaning_travels_with_the_index(spark: SparkSession, tmp_path: Path) -> None:
    events = spark.createDataFrame(EVENTS, SCHEMA)
    subscriptions = spark.createDataFrame(list(enumerate(EXPRESSIONS)), "id int, expression string")
    path = str(tmp_path / "index")
    with pytest.warns(ts.TocsinWarning, match="'typo' is no concept of the tree"):
        ts.build_index(subscriptions, path, space=SPACE)
    quarantine = ts.Quarantine()
    found = {(row["n"], row["subscription"]) for row in ts.match(events, path, quarantine=quarantine).collect()}
    assert sorted(row["n"] for row in quarantine.events.collect()) == [3, 4]
    matcher = tocsin.Matcher(SPACE)
    for number, expression in enumerate(EXPRESSIONS[:-1]):
        matcher.subscribe(number, expression)
    names = SCHEMA.replace(",", "").split()[0::2]
    rows = [dict(zip(names, event, strict=True)) for event in EVENTS]
    assert found == {(row["n"], number) for row in rows[:3] for number in matcher.match(row)}
    assert {number for _, number in found} == {0, 1, 2, 3, 4, 5}


def test_a_table_without_any_field_of_a_family_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    subscriptions = spark.createDataFrame([(1, "contact = 'x' OR age > 3")], "id int, expression string")
    path = str(tmp_path / "index")
    ts.build_index(subscriptions, path, space=SPACE)
    found = ts.match(spark.createDataFrame([("x", 2020)], "tel string, made int"), path)
    assert [row["subscription"] for row in found.collect()] == [1]
    with pytest.raises(MissingColumnError, match="contact"):
        ts.match(spark.createDataFrame([("x", 2020)], "fax string, made int"), path)
