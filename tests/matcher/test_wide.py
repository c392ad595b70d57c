"""Wide expressions: exact, and their memory grows with their leaves, not with what their normal form would be."""

from __future__ import annotations

import random

import pyarrow as pa

import tocsin

SPACE = tocsin.Space({f"a{number}": tocsin.Number("int64") for number in range(31)})


def and_of_ors(source: random.Random, leaves: int) -> list[list[tuple[str, str, int]]]:
    clauses = []
    while leaves > 0:
        size = min(leaves, source.randint(1, 4))
        leaves -= size
        clauses.append(
            [(f"a{source.randrange(31)}", source.choice(["=", "<", ">"]), source.randrange(50)) for _ in range(size)]
        )
    return clauses


def text_of(clauses: list[list[tuple[str, str, int]]]) -> str:
    return " AND ".join(
        "(" + " OR ".join(f"{name} {sign} {value}" for name, sign, value in some) + ")" for some in clauses
    )


def holds(clauses: list[list[tuple[str, str, int]]], event: dict[str, int]) -> bool:
    compare = {"=": int.__eq__, "<": int.__lt__, ">": int.__gt__}
    return all(any(compare[sign](event[name], value) for name, sign, value in some) for some in clauses)


def test_wide_expressions_match_exactly() -> None:
    source = random.Random(7)
    wide = [and_of_ors(source, source.randint(10, 40)) for _ in range(200)]
    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": range(len(wide)), "expression": [text_of(clauses) for clauses in wide]}))
    found = 0
    for _ in range(200):
        event = {name: source.randrange(50) for name in SPACE}
        expected = [number for number, clauses in enumerate(wide) if holds(clauses, event)]
        assert sorted(matcher.match(event)) == expected
        found += len(expected)
    assert found > 20, "hardly anything matched: the test tests little"


def test_wide_expressions_match_many_events_as_they_match_each() -> None:
    """Many candidates are verified in another order than few, and once where boxes of one subscription share it."""
    source = random.Random(9)
    wide = [and_of_ors(source, source.randint(8, 20)) for _ in range(400)]
    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": range(len(wide)), "expression": [text_of(clauses) for clauses in wide]}))
    assert matcher.stats()["programs"]["count"] > 100 and matcher.stats()["index"]["boxes"] > 500
    events = [{name: source.randrange(50) for name in SPACE} for _ in range(600)]
    found = matcher.match_batch(pa.Table.from_pylist(events))
    pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    expected = [(row, id) for row, event in enumerate(events) for id in matcher.match(event)]
    assert sorted(pairs) == sorted(expected) and len(pairs) > 2_000


def test_memory_of_programs_grows_with_the_leaves() -> None:
    source = random.Random(8)
    bytes_a_leaf = []
    for leaves in (10, 20, 40):
        matcher = tocsin.Matcher(SPACE)
        texts = [text_of(and_of_ors(source, leaves)) for _ in range(200)]
        matcher.subscribe_many(pa.table({"id": range(200), "expression": texts}))
        bytes_a_leaf.append(matcher.stats()["bytes"]["programs"] / 200 / leaves)
    assert bytes_a_leaf[2] < 2 * bytes_a_leaf[0]
