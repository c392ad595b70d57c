"""Segments on disk: written once by a task, opened by workers, read back when they are merged.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.errors import SavedIndexError
from tocsin.matcher import Matcher, Problem
from tocsin.matcher.matcher import Missing
from tocsin.space import Space
from tocsin.spark.manifest import Segment
from tocsin.spark.summaries import write_summary

_FIRST = 2_000
"""Subscriptions added before a sample of events is shown to the index, so that the others are planned with it."""


class Written(NamedTuple):
    """What a task made of its subscriptions; ``name`` begins the names of all that it wrote."""

    name: str
    segment: Segment | None
    tested: tuple[str, ...]
    quarantine: str | None
    refused: int
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return self._asdict() | {"segment": asdict(self.segment) if self.segment else None}


def write_segment(
    path: str, table: pa.Table, space: Space, engine: str, sample: bytes | None = None, shard: int | None = None
) -> Written:
    """Index subscriptions (columns ``id`` and ``expression``) as a new segment; the bad ones go to a quarantine file.

    ``sample`` is an Arrow stream of events, from which the index learns what to expect. A segment of a ``shard`` gets a
    summary of what it can match.
    """
    name = uuid.uuid4().hex
    matcher = Matcher(space, engine)
    problems: list[Problem] = []
    first = table.slice(0, _FIRST) if sample is not None else table
    matcher.subscribe_many(first, problems=problems)
    if sample is not None:
        with pa.ipc.open_stream(sample) as reader:
            _show(matcher, reader.read_all())
        others: list[Problem] = []
        matcher.subscribe_many(table.slice(_FIRST), problems=others)
        problems += [problem._replace(row=problem.row + _FIRST) for problem in others]
    segment = None
    if len(matcher):
        folder = Path(path) / "segments" / name
        folder.mkdir(parents=True)
        rows = pa.array([problem.row for problem in problems], pa.int64())
        good = table.filter(pc.invert(pc.is_in(pa.array(range(len(table)), pa.int64()), rows))) if problems else table
        pq.write_table(good.select(["id", "expression"]), folder / "subscriptions.parquet")
        matcher.save(folder / "matcher")
        if shard is not None:
            write_summary(folder)
        segment = Segment(name, len(matcher), shard=shard or 0)
    tested = tuple(matcher.stats()["fields"])
    refused = _write_quarantine(path, name, table, problems) if problems else None
    reasons = tuple(f"id {problem.id!r}: {problem.error}" for problem in problems[:5])
    return Written(name, segment, tested, refused, len(problems), reasons)


def _show(matcher: Matcher, events: pa.Table) -> None:
    """Show a matcher the events of a sample, without those that do not fit."""
    bad: list[Problem] = []
    matcher.match_batch(events, missing="unspecified", problems=bad)
    fitting = np.setdiff1d(np.arange(len(events)), [problem.row for problem in bad])
    matcher.observe(events.take(pa.array(fitting)))


def _write_quarantine(path: str, name: str, table: pa.Table, problems: list[Problem]) -> str:
    folder = Path(path) / "quarantine"
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.array([problem.row for problem in problems], pa.int64())
    reasons = pa.array([str(problem.error) for problem in problems], pa.string())
    pq.write_table(
        table.select(["id", "expression"]).take(rows).append_column("reason", reasons), folder / f"{name}.parquet"
    )
    return f"{name}.parquet"


def read_subscriptions(path: str, segment: Segment) -> pa.Table:
    """Return the subscriptions of a segment that still count."""
    table = pq.read_table(_file(path, segment))
    dead = read_dead(path, segment)
    return table if dead is None else table.filter(pc.invert(pc.is_in(table["id"], dead)))


def read_dead(path: str, segment: Segment) -> pa.Array | None:
    """Return the ids of a segment that no longer count, or None."""
    if segment.dead is None:
        return None
    return pq.read_table(Path(path) / "dead" / segment.dead)["id"].combine_chunks()


def bury(path: str, segment: Segment, gone: pa.Array) -> Segment:
    """Return a segment without the ids that are gone."""
    ids = pq.read_table(_file(path, segment), columns=["id"])["id"]
    dead = ids.filter(pc.is_in(ids, gone)).combine_chunks()
    before = read_dead(path, segment)
    if before is not None:
        dead = pa.concat_arrays([before, dead]).unique()
    if len(dead) == segment.died:
        return segment
    folder = Path(path) / "dead"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{uuid.uuid4().hex}.parquet"
    pq.write_table(pa.table({"id": dead}), folder / name)
    return replace(segment, dead=name, died=len(dead))


def discard(path: str, names: list[str], whole: bool = False) -> None:
    """Remove what an abandoned build or change has written; all of the index, if there was none before."""
    if whole:
        shutil.rmtree(path, ignore_errors=True)
    for name in names:
        shutil.rmtree(Path(path) / "segments" / name, ignore_errors=True)
        (Path(path) / "quarantine" / f"{name}.parquet").unlink(missing_ok=True)


class Opened(NamedTuple):
    """A segment ready to match: its matcher, and the ids whose matches do not count."""

    name: str
    matcher: Matcher
    dead: pa.Array | None

    def match(self, batch: pa.RecordBatch, missing: Missing, problems: list[Problem]) -> pa.Table:
        """Return the matches of a batch: columns ``event`` and ``subscription``."""
        found = self.matcher.match_batch(batch, missing=missing, problems=problems)
        return found if self.dead is None else found.filter(pc.invert(pc.is_in(found["subscription"], self.dead)))

    def moved(self, old: pa.Table | None, new: pa.Table | None, missing: Missing) -> pa.Table:
        """Return what changes when events become others, as `Matcher.moved_batch` does."""
        found = self.matcher.moved_batch(old, new, missing=missing)
        return found if self.dead is None else found.filter(pc.invert(pc.is_in(found["subscription"], self.dead)))


def open_matcher(path: str, segment: Segment) -> Matcher:
    """Open the matcher of a segment: its arrays are mapped, so that the workers of a host share them, and verified by
    the first of them."""
    try:
        return Matcher.load(segment_folder(path, segment) / "matcher", verify="once")
    except OSError as error:
        raise SavedIndexError(f"the segment {segment.name} of {path} cannot be opened: {error}") from error


def segment_folder(path: str, segment: Segment) -> Path:
    """Return where a segment is."""
    return Path(path) / "segments" / segment.name


def _file(path: str, segment: Segment) -> Path:
    return segment_folder(path, segment) / "subscriptions.parquet"
