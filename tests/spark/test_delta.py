"""Delta tables end to end: events of one, subscriptions that follow the change feed of another, matches to a third."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.maven import Artefact, fetched

ROOT = Path(__file__).parents[2]
SPARK, DELTA = "4.2.0", "4.4.0"
"""The newest release of Delta and the Spark that it is made for: with Spark 4.3 it writes tables but cannot read them,
since a constructor that it calls there is gone."""


@pytest.mark.slow
@pytest.mark.maven
def test_a_stream_from_delta_to_delta_follows_a_table_of_subscriptions(tmp_path: Path) -> None:
    minor = SPARK.rpartition(".")[0]
    names = (f"delta-spark_{minor}_2.13", "delta-storage")
    jars = ",".join(fetched(tmp_path / "maven", *(Artefact("io.delta", name, DELTA) for name in names)))
    place = tmp_path / "pyspark"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
    subprocess.run([*install, f"pyspark=={SPARK}"], check=True, timeout=900)
    paths = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    surroundings = os.environ | {"PYTHONPATH": paths, "SPARK_HOME": str(place / "pyspark")}
    command = [sys.executable, "-m", "tests.spark.delta_driver", str(tmp_path), jars]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert (answer["spark"], answer["first"], answer["second"]) == (SPARK, True, True)
    assert 0 < answer["pairs"][0] < answer["pairs"][1]
