"""The golden matcher: a small one in the saved form of today, kept in the repository.

`python -m tests.saved.golden` writes it anew, which only a change of the format needs: whoever raises a version in
`tocsin.index.saved` or `tocsin.matcher.saved`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import tocsin
from tocsin import Address, Boolean, Concept, Matcher, Number, Repeated, Space, Text, Time

GOLDEN = Path(__file__).parent / "golden"
NOTE = {"sequence": 41, "written by": "tests/saved/golden.py"}


@tocsin.operator(version="1")
def long_name(name: str, least: int) -> bool:
    return len(name) >= least


SUBSCRIPTIONS = {
    "cheap": "price <= 400 AND city = 'NYC'",
    "cheap again": "price <= 400 AND city = 'NYC'",
    "dear": "price > 1000.5 OR amount > 9007199254740992",
    "cents": "cents BETWEEN 0.10 AND 2.50",
    "long": "long = 123456789012345678901234.567 OR long < -1.001",
    "computer": "is_a(kind, 'computer') AND NOT is_a(kind, 'laptop')",
    "stone": "kind = 'stone'",
    "late": "at >= TIMESTAMP '2026-01-01 00:00:00' AND day <> DATE '2026-01-01'",
    "network": "in_network(ip, '10.0.0.0/8') AND flag",
    "tags": "tags = 'new' AND tags NOT LIKE '%old%'",
    "pattern": "city LIKE '%本%' OR upper(city) = 'ABC'",
    "folded": "city ILIKE 'straße%'",
    "called": "long_name(city, 5) AND price IS NOT NULL",
    "never": "amount > 3 AND amount < 4",
    "null": "city IS NULL AND price <> 0",
    **{f"filling {at}": f"amount = {at} AND price < {at * 40} AND city IN ('NYC', 'c{at % 7}')" for at in range(20)},
}

EVENTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"price": 350, "city": "NYC", "amount": 9}, ["cheap", "cheap again", "filling 9"]),
    ({"price": 1000.75}, ["dear", "null"]),
    ({"amount": 9007199254740993, "city": "日本語", "cents": Decimal("2.50")}, ["cents", "dear", "pattern"]),
    ({"long": Decimal("123456789012345678901234.567"), "city": "abc"}, ["long", "pattern"]),
    ({"long": Decimal("123456789012345678901234.568"), "city": "STRASSE"}, []),
    ({"kind": "desktop", "city": "Straße 1", "price": float("nan")}, ["called", "computer", "dear", "folded"]),
    ({"kind": "notebook"}, []),
    ({"kind": "stone", "ip": "10.1.2.3", "flag": True}, ["network", "stone"]),
    ({"at": datetime(2026, 1, 1, tzinfo=UTC), "day": date(2026, 1, 2), "tags": ["new", None]}, ["late"]),
    ({"tags": ["new", "newer"], "price": -0.0}, ["tags"]),
    ({}, []),
]


def golden() -> Matcher:
    tree = {"thing": {"computer": ["laptop", "desktop"]}}
    space = Space(
        {
            "price": Number(),
            "amount": Number("int64"),
            "cents": Number("decimal(10, 2)"),
            "long": Number("decimal(30, 3)"),
            "city": Text(),
            "kind": Concept(tree, synonyms={"notebook": "laptop"}, unknown_terms="text", unknown_values="text"),
            "at": Time(),
            "day": Time("date"),
            "ip": Address(),
            "flag": Boolean(),
            "tags": Repeated(Text()),
        }
    )
    matcher = Matcher(space, operators=[long_name])
    for id, text in SUBSCRIPTIONS.items():
        matcher.subscribe(id, text)
    matcher.subscribe("gone", "amount = 7")
    matcher.unsubscribe("gone")
    return matcher


if __name__ == "__main__":
    golden().save(GOLDEN, note=NOTE)
