"""`tocsin stream` and `tocsin match --spark`, as processes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.cli.conftest import Tocsin

OFFERS = '{"item": "lamp", "price": 30.0}\n{"item": "sofa", "price": 400.0}\n'
MORE = '{"item": "tent", "price": 90.0}\n'
SEARCHES = "id,expression\ncheap,price < 100\nlamps,item = 'lamp'\n"


def pairs(folder: Path) -> list[tuple[str, str]]:
    table = pq.read_table(folder, partitioning=None)
    return sorted(zip(table["item"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def test_a_stream_goes_on_where_it_was(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "1.json").write_text(OFFERS)
    command = ["stream", "offers", "searches.csv", "--events-format", "json", "--output", "out", "--cores", "2"]
    command += ["--checkpoint", "state", "--json"]
    done = tocsin(*command, files={"searches.csv": SEARCHES})
    assert done.code == 0, done.err
    (step,) = (json.loads(line) for line in done.out.splitlines())
    assert (step["batch"], step["events"], step["matches"], step["refused"]) == (0, 2, 2, 0)
    assert pairs(tmp_path / "out") == [("lamp", "cheap"), ("lamp", "lamps")]
    (tmp_path / "offers" / "2.json").write_text(MORE)
    done = tocsin(*command)
    assert json.loads(done.out)["matches"] == 1
    assert pairs(tmp_path / "out") == [("lamp", "cheap"), ("lamp", "lamps"), ("tent", "cheap")]


def test_matching_on_spark_writes_a_table(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    pq.write_table(pa.table({"item": ["lamp", "sofa"], "price": [30.0, 400.0]}), tmp_path / "offers" / "a.parquet")
    command = ["match", "--spark", "offers", "searches.csv", "--output", "out.parquet"]
    done = tocsin(*command, files={"searches.csv": SEARCHES})
    assert done.code == 0, done.err
    assert pairs(tmp_path / "out.parquet") == [("lamp", "cheap"), ("lamp", "lamps")]
