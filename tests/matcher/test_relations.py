"""Covering over expressions: an event satisfies a root if and only if it satisfies something in the root's tree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tocsin import Concept, Matcher, Number, Space, Text
from tocsin.bench import alerts, searches
from tocsin.covering import RelationGraph, StrictPoset, forest
from tocsin.matcher.relations import redundancy_of, relation_graph


def check(space: Space, table: pa.Table, events: pa.Table) -> None:
    matcher = Matcher(space, "scan")
    matcher.subscribe_many(table)
    graph = relation_graph(matcher)
    root_of = {owner: tree.owners[0] for tree in forest(graph) for _, one in tree.walk() for owner in one.owners}
    pairs = matcher.match_batch(events)
    found = set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))
    assert found and all((event, root_of[id]) in found for event, id in found)
    assert 0 < redundancy_of(graph).roots < len(matcher)


def test_roots_of_saved_searches_match_whatever_is_below_them() -> None:
    random = np.random.default_rng(1)
    check(searches.SPACE, searches.searches(700, random), searches.offers(400, random))


def test_roots_of_alerts_of_mixed_types_match_whatever_is_below_them() -> None:
    check(alerts.SPACE, alerts.alerts(1_500), alerts.sightings(400))


def test_types_and_rests_cover_each_other_where_they_must() -> None:
    tree = {"vehicle": {"car": ["coupe", "estate"], "bicycle": []}}
    space = Space({"kind": Concept(tree), "name": Text(), "price": Number(), "stock": Number("int64")})
    matcher = Matcher(space)
    covered = {
        "is_a(kind, 'vehicle')": "is_a(kind, 'coupe') AND price > 3",
        "name LIKE 'ab%'": "name = 'abc'",
        "price <> 5": "price IN (1, 2, 7.5)",
        "stock > 3": "stock >= 4 AND price > 1",
        "price < 1": "price < 0 AND name LIKE '%x%'",
        "name LIKE '%x%' AND stock < 9": "stock < 2 AND name LIKE '%x%'",
        "price < -5 OR stock < -5": "price < -6 OR (stock < -7 AND name = 'q')",
        "name IS NULL": "name IS NULL AND price IS NULL",
    }
    for wide, narrow in covered.items():
        matcher.subscribe(wide, wide)
        matcher.subscribe(narrow, narrow)
    graph = relation_graph(matcher, StrictPoset("scan"))
    for wide, narrow in covered.items():
        assert graph.node(wide) in graph._ancestors(graph.node(narrow)), (wide, narrow)
        assert graph.node(narrow) not in graph._ancestors(graph.node(wide))


def test_different_rests_do_not_cover_each_other() -> None:
    matcher = Matcher(Space({"name": Text(), "price": Number()}))
    matcher.subscribe("x", "name LIKE '%x%' AND price > 1")
    matcher.subscribe("y", "name LIKE '%y%' AND price > 2")
    matcher.subscribe("none", "price > 3 AND price < 1")
    graph = relation_graph(matcher, RelationGraph())
    assert len(graph.roots()) == 2 and len(graph.never()) == 1
