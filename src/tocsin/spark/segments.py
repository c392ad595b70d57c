"""Segments on disk: written once by a task, opened by workers, read back when they are merged.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import SavedIndexError
from tocsin.index.saved import build_of
from tocsin.matcher import Matcher, Problem
from tocsin.matcher.matcher import Missing
from tocsin.space import Space
from tocsin.spark.manifest import Segment
from tocsin.spark.sealed import read_table, write_table, writing
from tocsin.spark.summaries import write_summary

_FIRST = 2_000
"""Subscriptions added before a sample of events is shown to the index, so that the others are planned with it."""


class Written(NamedTuple):
    """What a task made of its subscriptions."""

    segment: Segment | None
    tested: tuple[str, ...]
    operands: tuple[str, ...]
    quarantine: str | None
    refused: int
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return self._asdict() | {"segment": asdict(self.segment) if self.segment else None}


def write_segment(
    path: str,
    table: pa.Table,
    space: Space,
    engine: str,
    sample: bytes | None = None,
    shard: int | None = None,
    prefix: str = "",
) -> Written:
    """Index subscriptions (columns ``id`` and ``expression``) as a new segment; the bad ones go to a quarantine file.

    ``sample`` is an Arrow stream of events, from which the index learns what to expect. A segment of a ``shard`` gets a
    summary of what it can match. All that is written has a name that begins with ``prefix``; where writing fails,
    nothing is left behind.
    """
    name = prefix + uuid.uuid4().hex
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
    account = matcher.stats()
    tested, operands = tuple(account["fields"]), tuple(account["operators"]["fields"])
    reasons = tuple(f"id {problem.id!r}: {problem.error}" for problem in problems[:5])
    try:
        segment = _write(path, name, matcher, _without(table, problems), shard) if len(matcher) else None
        refused = _write_quarantine(path, name, table, problems) if problems else None
    except BaseException:
        discard(path, name)
        raise
    return Written(segment, tested, operands, refused, len(problems), reasons)


def _without(table: pa.Table, problems: list[Problem]) -> pa.Table:
    """Return subscriptions without the bad ones."""
    rows = pa.array([problem.row for problem in problems], pa.int64())
    good = table.filter(pc.invert(pc.is_in(pa.array(range(len(table)), pa.int64()), rows))) if problems else table
    return good.select(["id", "expression"])


def _write(path: str, name: str, matcher: Matcher, good: pa.Table, shard: int | None) -> Segment:
    folder = Path(path) / "segments" / name
    with writing(folder):
        folder.mkdir(parents=True)
        matcher.save(folder / "matcher")
    return Segment(
        name,
        len(matcher),
        table=write_table(folder, "subscriptions", good),
        build=build_of(folder / "matcher"),
        summary=write_summary(folder) if shard is not None else None,
        shard=shard or 0,
    )


def _show(matcher: Matcher, events: pa.Table) -> None:
    """Show a matcher the events of a sample, without those that do not fit."""
    bad: list[Problem] = []
    matcher.match_batch(events, missing="unspecified", problems=bad)
    fitting = np.setdiff1d(np.arange(len(events)), [problem.row for problem in bad])
    matcher.observe(events.take(pa.array(fitting)))


def _write_quarantine(path: str, name: str, table: pa.Table, problems: list[Problem]) -> str:
    rows = pa.array([problem.row for problem in problems], pa.int64())
    reasons = pa.array([str(problem.error) for problem in problems], pa.string())
    refused = table.select(["id", "expression"]).take(rows).append_column("reason", reasons)
    return write_table(Path(path) / "quarantine", name, refused)


def read_subscriptions(path: str, segment: Segment) -> pa.Table:
    """Return the subscriptions of a segment that still count."""
    table = read_table(_file(path, segment))
    dead = read_dead(path, segment)
    return table if dead is None else table.filter(pc.invert(pc.is_in(table["id"], dead)))


def read_dead(path: str, segment: Segment) -> pa.Array | None:
    """Return the ids of a segment that no longer count, or None."""
    if segment.dead is None:
        return None
    return read_table(Path(path) / "dead" / segment.dead)["id"].combine_chunks()


def bury(path: str, segment: Segment, gone: pa.Array, prefix: str = "") -> Segment:
    """Return a segment without the ids that are gone; the name of a file written for that begins with ``prefix``."""
    ids = read_table(_file(path, segment), columns=["id"])["id"]
    dead = ids.filter(pc.is_in(ids, gone)).combine_chunks()
    before = read_dead(path, segment)
    if before is not None:
        dead = pa.concat_arrays([before, dead]).unique()
    if len(dead) == segment.died:
        return segment
    name = write_table(Path(path) / "dead", prefix + uuid.uuid4().hex, pa.table({"id": dead}))
    return replace(segment, dead=name, died=len(dead))


def discard(path: str, prefix: str, whole: bool = False) -> None:
    """Remove what an abandoned build or change has written under names that begin with a prefix; the directory too, if
    the ``whole`` index was new and nothing else is in it."""
    folders = [Path(path) / name for name in ("segments", "dead", "quarantine")]
    for folder in folders:
        for entry in folder.glob(f"{prefix}*"):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    for folder in (*folders, Path(path)) if whole else ():
        with suppress(OSError):
            folder.rmdir()


class Opened(NamedTuple):
    """A segment ready to match: its matcher and the identity of that, and the ids whose matches do not count."""

    build: str
    matcher: Matcher
    dead: pa.Array | None

    def match(self, batch: pa.RecordBatch, missing: Missing, problems: list[Problem]) -> pa.Table:
        """Return the matches of a batch: columns ``event`` and ``subscription``."""
        with _counting(self.matcher):
            found = self.matcher.match_batch(batch, missing=missing, problems=problems)
        return found if self.dead is None else found.filter(pc.invert(pc.is_in(found["subscription"], self.dead)))

    def moved(self, old: pa.Table | None, new: pa.Table | None, missing: Missing) -> pa.Table:
        """Return what changes when events become others, as `Matcher.moved_batch` does."""
        with _counting(self.matcher):
            found = self.matcher.moved_batch(old, new, missing=missing)
        return found if self.dead is None else found.filter(pc.invert(pc.is_in(found["subscription"], self.dead)))


_failed = 0


def failed_calls() -> int:
    """Return how many calls of operators have failed in this process while segments were asked; a worker runs one task
    at a time."""
    return _failed


@contextmanager
def _counting(matcher: Matcher) -> Iterator[None]:
    """Count the calls that fail meanwhile."""
    global _failed
    before = _failures_of(matcher)
    yield
    _failed += _failures_of(matcher) - before


def _failures_of(matcher: Matcher) -> int:
    return sum(sum(account["failures"].values()) for account in matcher._deciding.learned().values())


def open_matcher(path: str, segment: Segment) -> Matcher:
    """Open the matcher of a segment: its arrays are mapped, so that the workers of a host share them, and verified by
    the first of them."""
    folder = segment_folder(path, segment) / "matcher"
    if build_of(folder) != segment.build:
        raise SavedIndexError(f"{folder}: another matcher than the index was built with; restore it or build anew")
    try:
        return Matcher.load(folder, verify="once")
    except OSError as error:
        raise SavedIndexError(f"{folder}: cannot be opened: {error}") from None


def segment_folder(path: str, segment: Segment) -> Path:
    """Return where a segment is."""
    return Path(path) / "segments" / segment.name


def _file(path: str, segment: Segment) -> Path:
    return segment_folder(path, segment) / segment.table
