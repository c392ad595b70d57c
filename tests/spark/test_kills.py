"""A driver killed with -9 at random points and started again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tocsin
from tests.spark.oracle import frame_of, numbered_events, seeded
from tocsin import spark as ts
from tocsin.spark.manifest import read_manifest
from tocsin.spark.segments import read_subscriptions

ROOT = Path(__file__).parents[2]
FILES, ROWS = 12, 40


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.stream_driver", str(folder)]
    with (folder / "driver.log").open("a") as log:
        return subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )


def wait_for(process: subprocess.Popen[str], word: str) -> bool:
    """Read what a driver says until the word; return whether it came."""
    assert process.stdout is not None
    return any(line.strip() == word for line in process.stdout)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the driver, its Java and its workers at once, as a lost machine would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def expected(folder: Path, events: pa.Table) -> list[tuple[int, int]]:
    """Return the pairs of every batch with the version of the index that it recorded."""
    (query,) = (folder / "index" / "streams").iterdir()
    found = []
    for record in query.iterdir():
        manifest = read_manifest(str(folder / "index"), int(record.read_text()))
        matcher = tocsin.Matcher(manifest.read_space())
        for segment in manifest.segments:
            matcher.subscribe_many(read_subscriptions(str(folder / "index"), segment))
        for batch in batch_files(folder, int(record.name)):
            rows = pq.read_table(batch, columns=["n"])["n"].to_pylist()
            table = events.take(pa.array(rows))
            pairs = matcher.match_batch(table)
            found += zip(table["n"].take(pairs["event"]).to_pylist(), pairs["subscription"].to_pylist(), strict=True)
    return sorted(found)


def batch_files(folder: Path, batch: int) -> list[Path]:
    """Return the files that the source's log gives to a batch; every tenth log holds those of all before it too."""
    logs = folder / "checkpoint" / "sources" / "0"
    log = logs / str(batch) if (logs / str(batch)).exists() else logs / f"{batch}.compact"
    entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    return [Path(entry["path"].removeprefix("file://")) for entry in entries if entry["batchId"] == batch]


def run_with_kills(spark: SparkSession, folder: Path, kills: int, seed: int) -> None:
    pick = random.Random(seed)
    generator = seeded("kills", seed)
    events = numbered_events(generator, FILES * ROWS)
    frame = frame_of(spark, events)
    (folder / "events").mkdir()
    for number in range(FILES):
        pq.write_table(events.slice(number * ROWS, ROWS), folder / "events" / f"{number:02}.parquet")
    rows = [(n, generator.expression().spark) for n in range(40)]
    index = str(folder / "index")
    ts.build_index(spark.createDataFrame(rows, "id bigint, expression string"), index, events_sample=frame)
    killed = 0
    while killed < kills:
        driver = start(folder)
        if not wait_for(driver, "started"):
            raise AssertionError((folder / "driver.log").read_text()[-3000:])
        time.sleep(pick.uniform(0, 6))  # a random point of the run, not a deadline
        if driver.poll() is not None:
            break
        kill(driver)
        killed += 1
        change = spark.createDataFrame(
            [(pick.randrange(40), generator.expression().spark)], "id bigint, expression string"
        )
        ts.update_index(change, index)
    driver = start(folder)
    assert wait_for(driver, "done"), (folder / "driver.log").read_text()[-3000:]
    driver.wait(timeout=120)
    found = spark.read.parquet(str(folder / "out")).select("n", "subscription").collect()
    pairs = sorted((row["n"], row["subscription"]) for row in found)
    wanted = expected(folder, events)
    assert len({n for n, _ in wanted}) > FILES * ROWS // 2
    assert pairs == wanted, f"seed {seed}: {len(pairs)} pairs, {len(wanted)} expected"
    assert killed


def test_two_kills_lose_nothing_and_double_nothing(spark: SparkSession, tmp_path: Path) -> None:
    run_with_kills(spark, tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_eighteen_kills_lose_nothing_and_double_nothing(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    run_with_kills(spark, tmp_path, 3, seed)
