"""A space with a dimension of every type, and random subscriptions and events over it: what saving must keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tocsin
from tests.oracle.expressions import (
    CENTS,
    DAYS,
    DOUBLES,
    INTEGERS,
    LONG_DECIMALS,
    MOMENTS,
    PATTERNS,
    TEXTS,
    moment,
    number,
    pattern,
    quoted,
)
from tocsin import Address, Boolean, Concept, Derived, Number, Repeated, Space, Text, Time

TREE = {"thing": {"computer": ["laptop", "desktop"], "vehicle": {"car": ["van"], "bike": []}}, "place": ["city", "sea"]}
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.255.255.255", "::", "::1", "2001:db8::1", "192.168.0.1", "::ffff:10.0.0.1"]
NETWORKS = ["10.0.0.0/8", "::/0", "2001:db8::/32", "192.168.0.0/16", "10.0.0.1/32"]
COUNTRIES = ["US", "USA", "United States", "UK", "Britain", "", "é"]
MASSES = ["1 kg", "1000 g", "0.5 kg", "2 kg", "3000 g"]
FIT = [value for value in INTEGERS if abs(value) < 2**31]


@tocsin.operator(version="1")
def long_name(name: str, least: int) -> bool:
    return len(name) >= least


@tocsin.operator(outputs=["length"])
def length_of(name: str) -> int:
    return len(name)


OPERATORS = (long_name, length_of)


def space(unspecified: Any = "null") -> Space:
    return Space(
        {
            "double": Number(),
            "whole": Number("int64"),
            "cents": Number("decimal(10, 2)"),
            "long": Number("decimal(30, 3)"),
            "mass": Number(unit="kg"),
            "exact": Number("decimal(24, 3)", unit="kg"),
            "flag": Boolean(),
            "name": Text(),
            "country": Text(synonyms={"US": "United States", "USA": "United States", "UK": "Britain"}),
            "at": Time(),
            "local": Time("timestamp_ntz"),
            "day": Time("date"),
            "ip": Address(),
            "kind": Concept(TREE, synonyms={"notebook": "laptop"}, unknown_terms="text", unknown_values="text"),
            "tags": Repeated(Text()),
            "counts": Repeated(Number("int64")),
            "kinds": Repeated(Concept(TREE, unknown_terms="text", unknown_values="text")),
            "seller": {"city": Text(), "rank": Number("int64")},
            "email": Text(),
            "phone": Text(),
            "twice": Derived("whole * 2", Number("int64")),
        },
        attributes={"contact": ["email", "phone"]},
        synonyms={"place": "seller.city"},
        unspecified=unspecified,
    )


CONCEPTS = ["thing", "computer", "laptop", "notebook", "vehicle", "car", "van", "bike", "city", "sea", "stone", ""]

_POOLS: dict[str, tuple[list[Any], Callable[[Any], str]]] = {
    "double": (DOUBLES, lambda value: number(value).spark),
    "whole": (INTEGERS, lambda value: number(value).spark),
    "cents": (CENTS, str),
    "long": (LONG_DECIMALS, str),
    "mass": (MASSES, lambda value: f"quantity('{value}')"),
    "exact": (MASSES, lambda value: f"quantity('{value}')"),
    "name": (TEXTS, lambda value: quoted(value).spark),
    "country": (COUNTRIES, lambda value: quoted(value).spark),
    "at": (MOMENTS, lambda value: moment(value, zoned=True).spark),
    "local": (MOMENTS, lambda value: moment(value, zoned=False).spark),
    "day": (DAYS, lambda value: f"DATE '{value.isoformat()}'"),
    "tags": (TEXTS, lambda value: quoted(value).spark),
    "counts": (INTEGERS, lambda value: number(value).spark),
    "seller.city": (TEXTS, lambda value: quoted(value).spark),
    "seller.rank": (INTEGERS, lambda value: number(value).spark),
    "contact": (TEXTS, lambda value: quoted(value).spark),
    "email": (TEXTS, lambda value: quoted(value).spark),
    "twice": (FIT, lambda value: number(value).spark),
}


def leaf(source: random.Random, operators: bool) -> str:
    shape = source.random()
    if shape < 0.1:
        return source.choice(["flag", "NOT flag", "flag IS NULL", "tags IS NULL", "kinds IS NOT NULL", "flag = TRUE"])
    if shape < 0.2:
        field, word = source.choice(["kind", "kinds"]), quoted(source.choice(CONCEPTS)).spark
        return source.choice([f"is_a({field}, {word})", f"NOT is_a({field}, {word})", f"{field} = {word}"])
    if shape < 0.26:
        return source.choice(
            [f"in_network(ip, '{source.choice(NETWORKS)}')", "ip IS NULL"]
            + [f"ip {sign} '{source.choice(ADDRESSES)}'" for sign in ("=", "<", ">=")]
        )
    if shape < 0.34:
        field = source.choice(["name", "tags", "seller.city", "email"])
        return f"{field} {source.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} {pattern(source.choice(PATTERNS)).spark}"
    if operators and shape < 0.4:
        return source.choice([f"long_name(name, {source.randrange(5)})", "length_of(name, :n) AND :n > 1"])
    field = source.choice(list(_POOLS))
    pool, written = _POOLS[field]
    some = [written(source.choice(pool)) for _ in range(3)]
    return source.choice(
        [f"{field} {sign} {some[0]}" for sign in ("=", "=", "<>", "<", "<=", ">", ">=")]
        + [f"{field} IN ({', '.join(some)})", f"{field} BETWEEN {some[0]} AND {some[1]}"]
        + [f"{field} IS NULL", f"{field} IS NOT NULL", f"{field} NOT IN ({some[0]}, {some[1]})"]
    )


def expression(source: random.Random, depth: int = 2, operators: bool = True) -> str:
    if depth == 0 or source.random() < 0.3:
        return leaf(source, operators)
    parts = [expression(source, depth - 1, operators) for _ in range(source.randint(2, 3))]
    return f" {source.choice(['AND', 'AND', 'OR'])} ".join(f"({part})" for part in parts)


def event(source: random.Random) -> dict[str, Any]:
    def some(pool: list[Any]) -> Any:
        return None if source.random() < 0.1 else source.choice(pool)

    def several(pool: list[Any]) -> Any:
        return some([[some(pool) for _ in range(source.randrange(3))]])

    drawn = {
        "double": some(DOUBLES),
        "whole": some(FIT),
        "cents": some(CENTS),
        "long": some(LONG_DECIMALS),
        "mass": some(MASSES),
        "exact": some(MASSES),
        "flag": some([True, False]),
        "name": some(TEXTS),
        "country": some(COUNTRIES),
        "at": some(MOMENTS),
        "local": some(MOMENTS),
        "day": some(DAYS),
        "ip": some(ADDRESSES),
        "kind": some(CONCEPTS),
        "tags": several(TEXTS),
        "counts": several(INTEGERS),
        "kinds": several(CONCEPTS),
        "seller": some([{"city": some(TEXTS), "rank": some(INTEGERS)}]),
        "email": some(TEXTS),
        "phone": some(TEXTS),
    }
    return {name: value for name, value in drawn.items() if source.random() < 0.8}
