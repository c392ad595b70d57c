"""What runs inside Python workers: an index opened once a process, batches of events in, batches of matches out.

Functions here are pickled by name: workers need Tocsin installed, of the same version as the driver.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from tocsin.errors import SavedIndexError
from tocsin.matcher import Matcher, Problem
from tocsin.matcher.matcher import Missing
from tocsin.operators.operator import Operator
from tocsin.operators.registry import provide
from tocsin.spark.manifest import Pin, read_manifest
from tocsin.spark.records import version_of_batch
from tocsin.spark.segments import Opened, failed_calls, open_matcher, read_dead, segment_folder
from tocsin.spark.summaries import Router, read_summary

REASON = "__tocsin_reason"
"""The column that says why an event was refused; NULL in a row that is a match."""

FAILED = "\0failed calls of operators: "
"""How the reason begins in a row that is no refused event: one a task, which says how many calls failed there."""

_KEPT = 2
_versions: dict[tuple[str, str, str, int | None], list[Opened]] = {}
"""The versions (of an index of shards: the shards) that this process has open, the last used last, by the path, the
identity of the version and that of the operators: another index at the same path has versions of the same numbers, and
another call may bring other operators of the same names. A worker runs one task at a time."""

_routers: dict[tuple[str, str], Router] = {}

Batches = Iterator[pa.RecordBatch]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Version:
    """Which version of an index a task uses: one that is ``fixed``, or that of the running batch of a stream.

    ``build`` is the identity of the index that this was made for, ``called`` that of the call which gave the operators.
    ``records`` is where the versions that batches of a stream use are recorded, if not in the index.
    """

    path: str
    build: str
    fixed: Pin | None
    id_type: Any
    operators: tuple[Operator, ...] = ()
    called: str = ""
    records: str | None = None

    def pin(self) -> Pin:
        """Return its number and identity."""
        if self.fixed is not None:
            return self.fixed
        task = TaskContext.get()
        query = task and task.getLocalProperty("sql.streaming.queryId")
        batch = task and task.getLocalProperty("streaming.sql.batchId")
        if not query or not batch:
            raise SavedIndexError("this match was made for a stream, but no batch of a stream is running")
        return version_of_batch(self.path, self.build, query, int(batch), self.records)

    def opened(self, shard: int | None = None) -> list[Opened]:
        """Return its open segments; of an index of shards, those of one."""
        provide(self.operators)
        return opened(self.path, self.pin(), self.id_type, shard, self.called)


class Found(NamedTuple):
    """The pairs of some events: rows and ids; and the rows that were refused, with the reason."""

    rows: Rows
    ids: pa.Array
    bad: dict[int, str]


@dataclass(frozen=True)
class Matching:
    """A function for `mapInArrow`: events in; the event's columns, the ids that match and the reason of refusal out."""

    version: Version
    id_arrow: pa.DataType
    column: str
    as_array: bool
    missing: Missing

    def __call__(self, batches: Batches) -> Batches:
        """Match batch after batch."""
        segments: list[Opened] | None = None
        failed, last = failed_calls(), None
        for batch in batches:
            if segments is None:
                segments = self.version.opened()
            if batch.num_rows:
                last = batch
                yield from self.answers(batch, self.found(batch, segments))
        yield from self.failures(last, failed_calls() - failed)

    def failures(self, batch: pa.RecordBatch | None, failed: int) -> Batches:
        """Yield a row that says how many calls of operators have failed, if any; its columns are those of an event."""
        if batch is not None and failed:
            yield self.refused(batch.slice(0, 1), pa.array([f"{FAILED}{failed}"], pa.string()))

    def found(self, batch: pa.RecordBatch, segments: list[Opened]) -> Found:
        """Return what the segments find in a batch."""
        problems: list[Problem] = []
        tables = [segment.match(batch, self.missing, problems) for segment in segments]
        bad = {problem.row: reason_of(str(problem.error), problem.row) for problem in problems}
        return without_bad(*self._joined(tables), bad)

    def answers(self, batch: pa.RecordBatch, found: Found) -> Batches:
        """Yield the rows of what was found."""
        rows, ids, bad = found
        if self.as_array:
            yield self._with_arrays(batch, rows, ids, bad)
            return
        if len(rows):
            yield self._out(batch.take(pa.array(rows)), ids, pa.nulls(len(rows), pa.string()))
        if bad:
            yield self.refused(batch.take(pa.array(list(bad), pa.int64())), pa.array(list(bad.values()), pa.string()))

    def refused(self, events: pa.RecordBatch, reasons: pa.Array) -> pa.RecordBatch:
        """Return refused events as rows of the result."""
        kind = pa.list_(self.id_arrow) if self.as_array else self.id_arrow
        return self._out(events, pa.nulls(len(reasons), kind), reasons)

    def _joined(self, found: list[pa.Table]) -> tuple[Rows, pa.Array]:
        """Return the pairs of all segments as event rows and ids."""
        if not found:
            return np.empty(0, np.int64), pa.nulls(0, self.id_arrow)
        rows = np.concatenate([np.asarray(table["event"]) for table in found])
        ids = pa.chunked_array(
            [chunk for table in found for chunk in table["subscription"].cast(self.id_arrow).chunks], self.id_arrow
        )
        return rows, cast(pa.Array, ids.combine_chunks())

    def _with_arrays(self, batch: pa.RecordBatch, rows: Rows, ids: pa.Array, bad: dict[int, str]) -> pa.RecordBatch:
        offsets = np.zeros(batch.num_rows + 1, np.int32)
        np.cumsum(np.bincount(rows, minlength=batch.num_rows), out=offsets[1:])
        values = ids.take(pa.array(np.argsort(rows, kind="stable")))
        reasons = pa.array([bad.get(row) for row in range(batch.num_rows)], pa.string())
        return self._out(batch, pa.ListArray.from_arrays(pa.array(offsets), values), reasons)

    def _out(self, batch: pa.RecordBatch, ids: pa.Array, reasons: pa.Array) -> pa.RecordBatch:
        names = [*batch.schema.names, self.column, REASON]
        return pa.RecordBatch.from_arrays([*batch.columns, ids, reasons], names)


def without_bad(rows: Rows, ids: pa.Array, bad: dict[int, str]) -> Found:
    """Return what several segments or shards have found, without the events that one of them refused: another, which
    does not look at the bad field or ask the operator that failed, has matched them."""
    if bad:
        kept = ~np.isin(rows, list(bad))
        rows, ids = rows[kept], ids.filter(pa.array(kept))
    return Found(rows, ids, bad)


def opened(path: str, version: Pin, id_type: Any, shard: int | None = None, called: str = "") -> list[Opened]:
    """Return the open segments of a version, or of one shard of it; they stay open in this process for the tasks to
    come."""
    key = path, version.identity, called, shard
    if key in _versions:
        _versions[key] = _versions.pop(key)
        return _versions[key]
    manifest = read_manifest(path, *version)
    if manifest.id_type != id_type:
        raise SavedIndexError(
            f"version {version.version} of {path} has ids of type {manifest.id_type}, but this match was made for "
            f"{id_type}; start it again"
        )
    held = _held(path, called)
    segments = [
        Opened(segment.build, held.get(segment.build) or open_matcher(path, segment), read_dead(path, segment))
        for segment in manifest.segments
        if segment.alive and shard in (None, segment.shard)
    ]
    while len(_versions) >= _KEPT:
        del _versions[next(iter(_versions))]
    _versions[key] = segments
    _settle_in()
    return segments


def _settle_in() -> None:
    """Let the collector of garbage pass over all that is loaded by now.

    Spark has it run after every task, and to look through the modules of Numba and Arrow takes a worker longer than to
    match ten thousand events: 90 ms against 1 ms. Matchers go when nothing refers to them, without a collector.
    """
    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()


def _held(path: str, called: str) -> dict[str, Matcher]:
    """Return the matchers of a path that are open with these operators, by their builds: versions share most of their
    segments."""
    return {
        segment.build: segment.matcher
        for (other, _, theirs, _), segments in _versions.items()
        if (other, theirs) == (path, called)
        for segment in segments
    }


def router_of(path: str, version: Pin) -> Router:
    """Return the router of a version of an index of shards; it stays in this process for the tasks to come."""
    key = path, version.identity
    if key not in _routers:
        manifest = read_manifest(path, *version)
        alive = [segment for segment in manifest.segments if segment.alive]
        summaries = [
            (segment.shard, read_summary(segment_folder(path, segment) / str(segment.summary))) for segment in alive
        ]
        while len(_routers) >= _KEPT:
            del _routers[next(iter(_routers))]
        _routers[key] = Router(manifest.read_space(), summaries)
    return _routers[key]


def reason_of(message: str, row: int) -> str:
    """Return why an event was refused, without its place in a batch that nobody sees.

    >>> reason_of("row 7, field a: bad", 7)
    'field a: bad'
    """
    return message.removeprefix(f"row {row}, ")
