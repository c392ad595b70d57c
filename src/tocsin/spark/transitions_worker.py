"""What runs inside Python workers for `transitions`: the updates of a bucket in, its transitions out.

Functions here are pickled by name: workers need Tocsin installed, of the same version as the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tocsin.errors import SavedIndexError, SparkError
from tocsin.matcher.matcher import Missing
from tocsin.operators.operator import Operator
from tocsin.operators.registry import provide
from tocsin.spark.manifest import Pin, read_manifest
from tocsin.spark.records import batch_before, version_of_batch
from tocsin.spark.segments import failed_calls
from tocsin.spark.transitions_history import History, Source, Updates, history, rows_of
from tocsin.spark.transitions_input import BUCKET, HASH, Reading
from tocsin.spark.transitions_pairs import Turns, change_of, turns_of_subscriptions, turns_of_updates
from tocsin.spark.transitions_state import KEY, Bucket, Found
from tocsin.spark.workers import FAILED, REASON, opened

TRANSITION, BATCH = "transition", "batch"
IGNORED = "__tocsin_ignored"
"""The column that counts updates which changed nothing; in one row a bucket, which is no transition."""

_OUT_ROWS = 16_384

Batches = Iterator[pa.RecordBatch]
Columns = dict[str, pa.Array]


class Place(NamedTuple):
    """Which batch of which stream a task is of, and its bucket; without a bucket nothing is stored."""

    batch: int
    bucket: Bucket | None
    version: Pin


@dataclass(frozen=True)
class Stepping:
    """A function for `mapInArrow`: updates of a bucket in; the updates' columns and what each transition adds out.

    ``build`` is the identity of the index. Without a ``version`` it is that which the batch of the running stream uses.
    Without a ``query`` it is the running stream's. Without a ``state`` publications are not stored.
    """

    reading: Reading
    index: str
    build: str
    version: Pin | None
    id_type: Any
    id_arrow: pa.DataType
    missing: Missing
    column: str
    state: str | None = None
    buckets: int = 1
    query: str | None = None
    batch: int | None = None
    operators: tuple[Operator, ...] = ()
    called: str = ""
    records: str | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Bring the bucket from the state before this batch to the state after it."""
        provide(self.operators)
        failed = failed_calls()
        held = list(batches)
        table = pa.Table.from_batches(held) if held else None
        place = self._place(table)
        if table is not None and table[HASH].null_count:  # the row that has every bucket run, see `transitions`
            table = table.filter(table[HASH].is_valid())
        bucket = place.bucket
        version = self.index, *place.version
        stored = bucket.before(place.batch) if bucket else None
        if bucket and stored is None:
            self._check_not_lost(place.batch, bucket)
        parts: list[pa.Table] = []
        if bucket and stored and stored.subscriptions != version:
            change = change_of(stored.subscriptions, version, self.called)
            key, wanted = self.reading.key, change.wanted
            publications = bucket.candidates(stored, key, wanted) if wanted else bucket.all_rows(stored)
            if publications is not None and len(publications):
                turns = turns_of_subscriptions(publications, key, change, self.missing, self.id_arrow)
                parts.append(self._of_subscriptions(publications, turns, place.batch))
        rows = None
        if table is not None and len(table):
            manifest = read_manifest(*version)
            updates, refused = self.reading.read(table, manifest, place.batch)
            if refused is not None:
                parts.append(self._refused(table, *refused))
            if updates is not None:
                found = bucket.find(stored, updates.hashes, updates.keys) if bucket else _nothing(updates)
                states = history(updates, found)
                rows = rows_of(updates, states) if bucket else None
                states.columns[self.reading.key] = Source(updates.keys, states.publication, None)
                segments = opened(self.index, place.version, self.id_type, called=self.called)
                turns = turns_of_updates(states, segments, self.missing, self.id_arrow)
                parts.append(self._of_updates(table, updates, states, turns, place.batch))
                parts.append(self._ignored(int(np.count_nonzero(~states.effective & (states.update >= 0))), table))
        failed = failed_calls() - failed
        if failed and table is not None:
            parts.append(self._failed(failed, table))
        if bucket:
            bucket.commit(place.batch, stored, version, rows, forget=self.reading.order is None)
        for part in parts:
            yield from part.combine_chunks().to_batches(max_chunksize=_OUT_ROWS)

    def _place(self, table: pa.Table | None) -> Place:
        if self.state is None:
            assert self.version is not None  # a batch has a version
            return Place(0, None, self.version)
        task = TaskContext.get()
        query = self.query or (task.getLocalProperty("sql.streaming.queryId") if task else None)
        running = task.getLocalProperty("streaming.sql.batchId") if task and self.batch is None else None
        if not query or (self.batch is None and running is None):
            raise SparkError("these transitions were made for a stream, but no batch of a stream is running")
        batch = self.batch if running is None else int(running)
        assert batch is not None
        number = task.partitionId() if task else 0
        if number >= self.buckets or (table is not None and not pc.all(pc.equal(table[BUCKET], number)).as_py()):
            raise SparkError(f"the task of bucket {number} has rows of others; is this a Spark that moves partitions?")
        version = self.version or version_of_batch(self.index, self.build, query, batch, self.records)
        return Place(batch, Bucket(Path(self.state) / query / f"{number:04}"), version)

    def _check_not_lost(self, batch: int, bucket: Bucket) -> None:
        """Raise if a batch has run and nothing of it is stored: to begin anew would tell of every pair again."""
        if self.version is not None:
            return
        last = batch_before(self.index, self.build, bucket.folder.parent.name, batch, self.records)
        if last is not None:
            raise SavedIndexError(
                f"batch {last} of this stream has run, but {bucket.folder.parent} holds nothing of it; give the state "
                "that belongs to the checkpoint, or start again with a new state and checkpoint"
            )

    def _of_updates(self, table: pa.Table, updates: Updates, states: History, turns: Turns, batch: int) -> pa.Table:
        """Return transitions with the publication as the update left it, or as it was before its deletion."""
        made_by = updates.row[states.update[turns.row]]
        shown = np.where(states.exists[turns.row], turns.row, turns.row - 1)
        columns = {name: source.at(shown) for name, source in states.columns.items()}
        if self.reading.order is not None:
            columns[self.reading.order] = table[self.reading.order].take(pa.array(made_by))
        return self._out(columns, turns, batch)

    def _of_subscriptions(self, publications: pa.Table, turns: Turns, batch: int) -> pa.Table:
        rows = pa.array(turns.row)
        names = [name for name in publications.column_names if name.startswith("=")]
        columns = {name[1:]: publications[name].take(rows) for name in names}
        columns[self.reading.key] = publications[KEY].take(rows)
        if self.reading.order is not None:  # no update is the cause
            columns[self.reading.order] = pa.nulls(len(rows), publications[f"={self.reading.order}"].type)
        return self._out(columns, turns, batch)

    def _out(self, columns: Columns, turns: Turns, batch: int) -> pa.Table:
        count = len(turns.row)
        nothing = {self.reading.deleted: pa.bool_(), self.reading.clear: pa.list_(pa.string())}
        given = [columns[name] if name in columns else pa.nulls(count, nothing[name]) for name in self.reading.columns]
        kinds = pa.DictionaryArray.from_arrays(pa.array(turns.entered.astype(np.int8)), ["leave", "enter"])
        added = [
            turns.subscription,
            kinds.dictionary_decode(),
            pa.array(np.full(count, batch)),
            pa.nulls(count, pa.string()),
            pa.nulls(count, pa.int64()),
        ]
        return pa.table([*given, *added], [*self.reading.columns, *self._added()])

    def _refused(self, table: pa.Table, rows: npt.NDArray[np.int64], reasons: list[str]) -> pa.Table:
        count = len(rows)
        given = [table[name].take(pa.array(rows)) for name in self.reading.columns]
        return self._others(given, pa.array(reasons, pa.string()), pa.nulls(count, pa.int64()))

    def _ignored(self, count: int, table: pa.Table) -> pa.Table:
        given = [pa.nulls(1, table[name].type) for name in self.reading.columns]
        return self._others(given, pa.nulls(1, pa.string()), pa.array([count], pa.int64()))

    def _failed(self, count: int, table: pa.Table) -> pa.Table:
        given = [pa.nulls(1, table[name].type) for name in self.reading.columns]
        return self._others(given, pa.array([f"{FAILED}{count}"], pa.string()), pa.nulls(1, pa.int64()))

    def _others(self, given: list[pa.Array], reasons: pa.Array, ignored: pa.Array) -> pa.Table:
        count = len(reasons)
        added = [pa.nulls(count, self.id_arrow), pa.nulls(count, pa.string()), pa.nulls(count, pa.int64())]
        return pa.table([*given, *added, reasons, ignored], [*self.reading.columns, *self._added()])

    def _added(self) -> list[str]:
        return [self.column, TRANSITION, BATCH, REASON, IGNORED]


def _nothing(updates: Updates) -> Found:
    return Found([], np.full(len(updates.keys), -1, np.int64))
