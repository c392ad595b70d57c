"""Files of a stored index that are damaged or gone: SavedIndexError with the file's name, never another answer."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tocsin
from tests.spark.test_streaming import run
from tocsin import spark as ts
from tocsin.errors import FileError, SavedIndexError
from tocsin.spark import workers
from tocsin.spark.changes import apply_changes
from tocsin.spark.manifest import Manifest, Pin, commit, read_manifest
from tocsin.spark.records import version_of_batch
from tocsin.spark.segments import read_subscriptions, write_segment

SEED = int(os.environ.get("TOCSIN_SEED", "4"))
SPACE = tocsin.Space({"n": tocsin.Number("int64"), "s": tocsin.Text()})
EVENTS = pa.record_batch({"n": pa.array(range(60), pa.int64()), "s": [f"s{n % 7}" for n in range(60)]})


def table(*rows: tuple[int, str | None]) -> pa.Table:
    kinds = (pa.int64(), pa.string())
    return pa.table(
        [pa.array(side, kind) for side, kind in zip(zip(*rows, strict=True), kinds, strict=True)], ["id", "expression"]
    )


def build(path: str) -> None:
    """Write an index with two shards, a change, subscriptions that are gone, and some that were refused."""
    rows = [(n, f"n < {n} AND s = 's{n % 7}'" if n % 2 else f"n > {n}") for n in range(300)]
    tree = {"axis": [["s"], None], "cut": None, "low": {"shards": [0]}, "high": {"shards": [1]}}
    parts = [
        write_segment(path, table(*(row for row in rows if row[0] % 2 != shard)), SPACE, "adaptive", shard=shard)
        for shard in (0, 1)
    ]
    segments = tuple(part.segment for part in parts if part.segment)
    commit(path, Manifest(1, SPACE.to_json(), False, "long", "adaptive", segments, shards=2, tree=tree))
    apply_changes(path, read_manifest(path), table((5, None), (6, None), (900, "n = 3"), (901, "bad <")), False, {})


def answers(path: str) -> object:
    """Return all that the index tells, by the way of the workers, with nothing remembered."""
    workers._versions.clear()
    workers._routers.clear()
    manifest = read_manifest(path)
    version = workers.Version(path, manifest.build, manifest.pin, "long")
    matching = workers.Matching(version, pa.int64(), "subscription", False, "error")
    pairs = set()
    for shard in (0, 1):
        found = matching.found(EVENTS, version.opened(shard))
        pairs |= set(zip(found.rows.tolist(), found.ids.to_pylist(), strict=True))
    routes = workers.router_of(path, manifest.pin).route(EVENTS, "error")
    tables = [read_subscriptions(path, segment) for segment in manifest.segments]
    held = sorted((row["id"], row["expression"]) for each in tables for row in each.to_pylist())
    return pairs, routes.rows.tolist(), routes.shards.tolist(), held


def damage(pick: random.Random, file: Path) -> None:
    contents = bytearray(file.read_bytes())
    place = pick.randrange(len(contents))
    kind = pick.choice(["flip", "cut", "zero", "remove"])
    if kind == "remove":
        file.unlink()
        return
    if kind == "flip":
        contents[place] ^= 1 << pick.randrange(8)
    elif kind == "cut":
        del contents[place:]
    else:
        contents[place : place + 64] = bytes(len(contents[place : place + 64]))
    file.write_bytes(contents)


def check(folder: Path, tries: int) -> None:
    sound = folder / "sound"
    build(str(sound))
    expected = answers(str(sound))
    files = sorted(file.relative_to(sound) for file in sound.rglob("*") if file.is_file())
    assert len({file.parts[0] for file in files}) == 4
    refused = 0
    for number in range(tries):
        pick = random.Random(f"damage {SEED} {number}")
        hurt, file = folder / "hurt", files[number % len(files)]
        shutil.copytree(sound, hurt)
        damage(pick, hurt / file)
        try:
            assert answers(str(hurt)) == expected, f"seed {SEED}, try {number}: {file}"
        except SavedIndexError as error:
            refused += 1
            named = file.name if file.suffix == ".json" or "matcher" not in file.parts else "matcher"
            assert named in str(error), f"seed {SEED}, try {number}: {file}: {error}"
        shutil.rmtree(hurt)
    assert refused > tries // 2


def test_damage_is_told_with_the_file(tmp_path: Path) -> None:
    check(tmp_path, 60)


@pytest.mark.slow
def test_damage_at_many_places_is_told_with_the_file(tmp_path: Path) -> None:
    check(tmp_path, 5_000)


def test_a_current_version_that_is_gone_is_not_the_one_before(tmp_path: Path) -> None:
    build(str(tmp_path))
    (tmp_path / "versions" / "00000002.json").unlink()
    with pytest.raises(SavedIndexError, match=r"00000002\.json: missing"):
        read_manifest(str(tmp_path))
    assert read_manifest(str(tmp_path), 1).version == 1


FULL = """
import resource, sys
import pyarrow as pa
from tests.spark.test_damage import SPACE, table
from tocsin.spark.segments import write_segment
rows = table(*((n, f"n = {n} AND s = 'x{n}'") for n in range(20_000)))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    write_segment(sys.argv[1], rows, SPACE, "adaptive", prefix="some-")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_disk_that_is_full_is_told_with_its_path_and_space_and_nothing_stays(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE is not None
    said = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    start = f"FileError {tmp_path}/segments/some-"
    assert said.stdout.startswith(start) and "cannot be written: File too large" in said.stdout, said
    assert "bytes are free there" in said.stdout
    assert not [file for file in tmp_path.rglob("*") if file.is_file()] and not list(tmp_path.glob("segments/*"))


def test_a_stream_on_an_index_that_cannot_be_written_keeps_its_records_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "index")
    build(path)
    (tmp_path / "index" / "streams").write_text("in the way")  # as good as read-only, for whoever runs the tests
    frame = spark.createDataFrame(pa.Table.from_batches([EVENTS])).coalesce(1)
    frame.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "events"))
    with pytest.raises(PySparkException, match=r"FileError: .*cannot be written: .*; pass records='...', a directory"):
        run(ts.match(stream, path), tmp_path / "first")
    records = tmp_path / "records"
    run(ts.match(stream, path, records=records), tmp_path)
    assert spark.read.parquet(str(tmp_path / "out")).count() == ts.match(frame, path).count() > 0
    manifest = read_manifest(path)
    (query,) = (records / manifest.build).iterdir()
    assert version_of_batch(path, manifest.build, query.name, 0, str(records)) == manifest.pin


def test_a_record_names_one_version_and_no_other(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    build(path)
    manifest = read_manifest(path)
    version_of_batch(path, manifest.build, "q", 3)
    (tmp_path / "index" / "streams" / "q" / "3").write_text(f"1 {manifest.identity}")
    assert version_of_batch(path, manifest.build, "q", 3) == Pin(1, manifest.identity)
    with pytest.raises(SavedIndexError, match="was replaced"):
        read_manifest(path, 1, manifest.identity)
    with pytest.raises(FileError, match="cannot be written"):
        version_of_batch(path, manifest.build, "q", 4, "/proc/none")
    (tmp_path / "index" / "streams" / "q" / "3").write_text("nothing of ours")
    with pytest.raises(SavedIndexError, match="/streams/q/3: cannot be read: "):
        version_of_batch(path, manifest.build, "q", 3)


def test_errors_of_workers_end_with_our_sentence_and_have_no_frames(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    build(path)
    matched = ts.match(spark.createDataFrame(pa.Table.from_batches([EVENTS])), path)
    (summary,) = list(tmp_path.glob("index/segments/*/summary.*"))[:1]
    summary.write_bytes(b"x" + summary.read_bytes()[1:])
    with pytest.raises(PySparkException) as raised:
        matched.collect()
    lines = [line for line in str(raised.value).splitlines() if line.strip()]
    assert lines[-1].startswith(f"tocsin.errors.SavedIndexError: {summary}: damaged"), lines
    assert not [line for line in lines if 'File "' in line]
