"""`tocsin stream` end to end against a real Kafka: killed, started again, and equal to the library."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import tocsin
from tests.spark.kafka import Kafka, running
from tests.spark.maven import Artefact, first_fetched

pytestmark = [pytest.mark.slow, pytest.mark.maven]

SCHEMA = "n bigint, item string, price double, tags array<string>"
TOCSIN = [sys.executable, "-c", "from tocsin.cli import main; main()"]
SPACE = tocsin.Space(
    {
        "n": tocsin.Number("int64"),
        "item": tocsin.Text(),
        "price": tocsin.Number(),
        "tags": tocsin.Repeated(tocsin.Text()),
    }
)
SEARCHES = {
    "cheap": "price < 100",
    "lamps": "item = 'lamp' AND tags = 'red'",
    "rest": "item NOT IN ('lamp', 'sofa') OR price IS NULL",
    "some": "n BETWEEN 100 AND 420 AND tags = 'old'",
}


def connector(version: str, tokens: str, clients: str, pool: str) -> list[Artefact]:
    """Return Spark's connector and what it needs beside Spark."""
    return [
        Artefact("org.apache.spark", "spark-sql-kafka-0-10_2.13", version),
        Artefact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", tokens),
        Artefact("org.apache.kafka", "kafka-clients", clients),
        Artefact("org.apache.commons", "commons-pool2", pool),
    ]


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the connector of this Spark; where it is not published (yet), the newest that works with it."""
    ours = connector(pyspark.__version__, pyspark.__version__, "3.9.2", "2.13.1")
    before = connector("4.2.0", "4.0.0", "3.9.2", "2.13.1")
    return ",".join(first_fetched(tmp_path_factory.mktemp("connector"), ours, before))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def offers(first: int, count: int) -> list[dict[str, Any]]:
    draw = random.Random(first)
    return [
        {
            "n": first + number,
            "item": draw.choice(["lamp", "sofa", "tent", None]),
            "price": draw.choice([None, 5.0, 99.5, 100.0, 400.0]),
            "tags": draw.choice([None, [], ["red"], ["old", "red"], ["blue"]]),
        }
        for number in range(count)
    ]


def expected(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    matcher = tocsin.Matcher(SPACE)
    for id, text in SEARCHES.items():
        matcher.subscribe(id, text)
    return sorted((event["n"], id) for event in events for id in matcher.match(event))


def command(kafka: Kafka, jars: str, folder: Path, *more: str) -> list[str]:
    pq.write_table(pa.table({"id": list(SEARCHES), "expression": list(SEARCHES.values())}), folder / "searches.parquet")
    source = ["stream", "offers", f"{folder}/searches.parquet", "--events-format", "kafka", "--servers", kafka.servers]
    return [*TOCSIN, *source, "--schema", SCHEMA, "--cores", "2", "--jars", jars, *more]


def written(folder: Path) -> list[tuple[int, str]]:
    """Return what the sink's own log says was written: a file that a killed batch left is not in it."""
    import json

    rows: list[tuple[int, str]] = []
    for log in sorted((folder / "_spark_metadata").glob("[0-9]*")):
        for line in log.read_text().splitlines()[1:]:
            table = pq.read_table(json.loads(line)["path"].removeprefix("file://"), partitioning=None)
            rows += zip(table["n"].to_pylist(), table["subscription"].to_pylist(), strict=True)
    return sorted(rows)


def test_a_killed_stream_from_kafka_ends_with_the_library_s_pairs(kafka: Kafka, jars: str, tmp_path: Path) -> None:
    events = offers(0, 300)
    kafka.send("offers", events)
    out, state = tmp_path / "out", tmp_path / "state"
    sink = ["--output", str(out), "--checkpoint", str(state)]
    with (tmp_path / "log").open("w") as log:
        forever = subprocess.Popen(
            command(kafka, jars, tmp_path, *sink, "--every", "500 milliseconds"),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while not list(out.glob("_spark_metadata/0")):  # until the first batch is committed
        assert forever.poll() is None, (tmp_path / "log").read_text()[-3000:]
        time.sleep(0.2)
    more = offers(300, 300)
    kafka.send("offers", more)
    os.killpg(forever.pid, signal.SIGKILL)
    forever.wait()
    for last in ([], offers(600, 100)):
        if last:
            kafka.send("offers", last)
        done = subprocess.run(command(kafka, jars, tmp_path, *sink), capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-3000:]
        events = events + (last or more)
        assert written(out) == expected(events)


def test_matches_go_to_a_topic(kafka: Kafka, jars: str, tmp_path: Path) -> None:
    sink = ["--output", "matches", "--to", "kafka", "--checkpoint", str(tmp_path / "state")]
    done = subprocess.run(command(kafka, jars, tmp_path, *sink), capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    found = sorted((match["n"], match["subscription"]) for match in kafka.received("matches"))
    assert found == expected([*offers(0, 300), *offers(300, 300), *offers(600, 100)])
