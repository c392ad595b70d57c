"""The oracle nobody here wrote: `match_batch` keeps exactly the events that DuckDB's WHERE keeps."""

from __future__ import annotations

import os
import random

import duckdb
import pyarrow as pa
import pytest

import tocsin
from tests.oracle.expressions import Both, Generator

SEED = int(os.environ.get("TOCSIN_SEED", "20261115"))
SPACES, EXPRESSIONS, ROWS = 100, 50, 200


def duckdb_answers(connection: duckdb.DuckDBPyConnection, events: pa.Table, expressions: list[Both]) -> list[set[int]]:
    connection.register("events", events)
    columns = ", ".join(f"({expression.duckdb}) AS e{number}" for number, expression in enumerate(expressions))
    answers = connection.sql(f"SELECT {columns} FROM events").to_arrow_table()
    return [{row for row, kept in enumerate(column.to_pylist()) if kept} for column in answers.columns]


def our_answers(matcher: tocsin.Matcher, events: pa.Table, count: int) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(count)]
    pairs = matcher.match_batch(events)
    for event, subscription in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
        assert event not in found[subscription], "a pair was given twice"
        found[subscription].add(event)
    return found


@pytest.mark.parametrize("part", range(4))
def test_every_expression_keeps_the_events_that_duckdb_keeps(part: int) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    print(f"seed {SEED}, part {part}: {SPACES * EXPRESSIONS} expressions over {ROWS} events each")
    for number in range(SPACES):
        generator = Generator(random.Random(f"{SEED}/{part}/{number}"))
        events = generator.events(ROWS)
        expressions = [generator.expression() for _ in range(EXPRESSIONS)]
        engine = "scan" if number % 10 == 0 else "adaptive"
        matcher = tocsin.Matcher(tocsin.Space.from_arrow(events.schema), engine=engine)
        texts = [expression.spark for expression in expressions]
        if number % 2:
            matcher.subscribe_many(pa.table({"id": range(EXPRESSIONS), "expression": texts}))
        else:
            for id, text in enumerate(texts):
                matcher.subscribe(id, text)
        expected = duckdb_answers(connection, events, expressions)
        for id, (ours, theirs) in enumerate(zip(our_answers(matcher, events, EXPRESSIONS), expected, strict=True)):
            assert ours == theirs, (
                f"seed {SEED}, part {part}, space {number}: {texts[id]}\n"
                f"as {expressions[id].duckdb}\n"
                + "\n".join(str(events.slice(row, 1).to_pylist()[0]) for row in sorted(ours ^ theirs)[:2])
                + f"\nkept by {'us' if ours - theirs else 'DuckDB'} only: {sorted(ours ^ theirs)[:5]}"
            )
