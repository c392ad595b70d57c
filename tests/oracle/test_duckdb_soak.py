"""The oracle for longer: fresh seeds, printed, over all spaces and engines."""

from __future__ import annotations

import os
import random
import secrets

import duckdb
import pyarrow as pa
import pytest

import tocsin
from tests.oracle.expressions import Generator
from tests.oracle.test_duckdb import duckdb_answers, our_answers

CASES = int(os.environ.get("TOCSIN_SOAK", "60000"))
EXPRESSIONS, ROWS, PARTS = 100, 200, 4
ENGINES = ("adaptive", "adaptive", "counting", "propagation", "static", "dynamic", "scan")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_long_run_of_expressions_keeps_the_events_that_duckdb_keeps(part: int) -> None:
    seed = int(os.environ.get("TOCSIN_SEED") or secrets.randbelow(2**32))
    spaces = -(-CASES // PARTS // EXPRESSIONS)
    print(f"seed {seed}, part {part}: {spaces * EXPRESSIONS} expressions over {ROWS} events each")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET threads = 1")
    for number in range(spaces):
        generator = Generator(random.Random(f"{seed}/{part}/{number}"))
        events = generator.events(ROWS)
        expressions = [generator.expression(depth=number % 5 + 1) for _ in range(EXPRESSIONS)]
        texts = [expression.spark for expression in expressions]
        matcher = tocsin.Matcher(tocsin.Space.from_arrow(events.schema), engine=ENGINES[number % len(ENGINES)])
        matcher.subscribe_many(pa.table({"id": range(EXPRESSIONS), "expression": texts}))
        expected = duckdb_answers(connection, events, expressions)
        for id, (ours, theirs) in enumerate(zip(our_answers(matcher, events, EXPRESSIONS), expected, strict=True)):
            assert ours == theirs, (
                f"seed {seed}, part {part}, space {number}, engine {matcher.engine}: {texts[id]}\n"
                f"as {expressions[id].duckdb}\nrows {sorted(ours ^ theirs)[:5]}, "
                f"such as {events.slice(min(ours ^ theirs), 1).to_pylist()[0]}"
            )
