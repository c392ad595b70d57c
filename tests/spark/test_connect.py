"""Over Spark Connect, which shares no process with a classic session."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import tocsin
from tests.spark.oracle import numbered_events, seeded
from tests.spark.transitions_oracle import Oracle, random_rows, rules

ROOT = Path(__file__).parents[2]


def test_batch_index_and_stream_over_connect_give_the_library_s_pairs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.over_connect", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    generator = seeded("connect")
    events = numbered_events(generator, 100)
    matcher = tocsin.Matcher(tocsin.Space.from_arrow(events.schema))
    matcher.subscribe_many(
        pa.table({"id": range(100), "expression": [generator.expression().spark for _ in range(100)]})
    )
    found = matcher.match_batch(events)
    expected = sorted(
        [n, id] for n, id in zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)
    )
    assert answer["session"] == "pyspark.sql.connect.session"
    assert answer["pairs"] == expected
    assert answer["refused"] == [100]
    assert answer["counts"] == {"matches": len(expected), "refused": 0, "failed": 0}
    assert answer["arrays"] == expected
    assert answer["stream"] == expected
    check_turns(answer)


def check_turns(answer: dict[str, list[list[object]]]) -> None:
    """Hold the transitions against the definition."""
    pick = random.Random("connect")
    rows = random_rows(pick, 20, late=False, ties=False)
    held, changes = ({number: rules(pick) for number in range(6)} for _ in range(2))
    oracle = Oracle(True)
    oracle.subscribe(dict(held))
    assert answer["batch_turns"] == sorted(map(list, oracle.batch(rows)), key=lambda turn: str(tuple(turn)))
    oracle = Oracle(True)
    oracle.subscribe(dict(held))
    found = [*oracle.batch(rows[:10]), *oracle.subscribe(dict(changes)), *oracle.batch(rows[10:])]
    assert answer["stream_turns"] == sorted(map(list, found), key=lambda turn: str(tuple(turn)))
