"""`tocsin stream` and `tocsin match --spark`, with the session of all tests; `tests/spark` runs them as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.conftest import PROGRAM, Tocsin

pytestmark = pytest.mark.xdist_group("spark")

OFFERS = '{"item": "lamp", "price": 30.0}\n{"item": "sofa", "price": 400.0}\n'
MORE = '{"item": "tent", "price": 90.0}\n'
SEARCHES = "id,expression\ncheap,price < 100\nlamps,item = 'lamp'\n"


def pairs(folder: Path) -> list[tuple[str, str]]:
    table = pq.read_table(folder, partitioning=None)
    return sorted(zip(table["item"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def test_a_stream_goes_on_where_it_was(tocsin_here: Tocsin, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "1.json").write_text(OFFERS)
    command = ["stream", f"{tmp_path}/offers", f"{tmp_path}/searches.csv", "--events-format", "json", "--cores", "2"]
    command += ["--output", f"{tmp_path}/out", "--checkpoint", f"{tmp_path}/state", "--json"]
    command += ["--records", f"{tmp_path}/records"]
    done = tocsin_here(*command, files={"searches.csv": SEARCHES})
    assert done.code == 0, done.err
    assert any(path.is_file() for path in (tmp_path / "records").rglob("*"))
    (step,) = (json.loads(line) for line in done.out.splitlines())
    assert (step["batch"], step["events"], step["matches"], step["refused"]) == (0, 2, 2, 0)
    assert pairs(tmp_path / "out") == [("lamp", "cheap"), ("lamp", "lamps")]
    (tmp_path / "offers" / "2.json").write_text(MORE)
    done = tocsin_here(*command)
    assert json.loads(done.out)["matches"] == 1
    assert pairs(tmp_path / "out") == [("lamp", "cheap"), ("lamp", "lamps"), ("tent", "cheap")]


def test_matching_on_spark_writes_a_table(tocsin_here: Tocsin, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    pq.write_table(pa.table({"item": ["lamp", "sofa"], "price": [30.0, 400.0]}), tmp_path / "offers" / "a.parquet")
    command = [
        "match",
        "--spark",
        f"{tmp_path}/offers",
        f"{tmp_path}/searches.csv",
        "--output",
        f"{tmp_path}/out.parquet",
    ]
    done = tocsin_here(*command, files={"searches.csv": SEARCHES})
    assert done.code == 0, done.err
    assert pairs(tmp_path / "out.parquet") == [("lamp", "cheap"), ("lamp", "lamps")]


@pytest.mark.slow
def test_an_interrupted_stream_ends_quietly_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "1.json").write_text(OFFERS)
    (tmp_path / "searches.csv").write_text(SEARCHES)
    command = [*PROGRAM, "stream", "offers", "searches.csv", "--events-format", "json", "--cores", "2"]
    command += ["--output", "out", "--checkpoint", "state", "--every", "1 second"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("batch 0: 2 events, 2 matches")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: Java and the workers get it too
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.endswith("tocsin: interrupted; the same command goes on where it was\n")
    assert "Traceback" not in said and "Exception" not in said and "ERROR" not in said


def test_what_cannot_be_streamed_is_told(tocsin_here: Tocsin, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "1.json").write_text(OFFERS)
    (tmp_path / "bad.csv").write_text("id,expr\ncheap,price < 100\n")
    after = ["--output", f"{tmp_path}/out", "--checkpoint", f"{tmp_path}/state", "--cores", "2"]
    cases = [
        ("nowhere", "searches.csv", "nowhere does not exist; or give the schema"),
        ("offers", "nothing.csv", "nothing.csv does not exist"),
        ("offers", "bad.csv", "subscriptions need a column expression; there is expr, id"),
    ]
    for events, subscriptions, message in cases:
        command = ["stream", f"{tmp_path}/{events}", f"{tmp_path}/{subscriptions}", "--events-format", "json", *after]
        done = tocsin_here(*command, files={"searches.csv": SEARCHES})
        assert done.code == 2 or "need a column" in message
        assert message in done.err and "Traceback" not in done.err
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    command = ["stream", f"{tmp_path}/offers", f"{tmp_path}/searches.csv", "--events-format", "json", "--cores", "2"]
    done = tocsin_here(*command, "--output", f"{tmp_path}/file/out", "--checkpoint", f"{tmp_path}/state")
    assert done.code == 2 and "the stream has failed: " in done.err and "Traceback" not in done.err
