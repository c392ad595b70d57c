"""Rows of updates as workers read them: keys, orders, deletions, which columns a row sets; and what is refused.

This module must not import pyspark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.space.axes import Axes
from tocsin.space.events import Encoder
from tocsin.space.intervals import MOST_ALTERNATIVES, exploded, holds_sets
from tocsin.spark.manifest import Manifest
from tocsin.spark.transitions_files import single
from tocsin.spark.transitions_history import NEVER, Updates

HASH, TIE, BUCKET = "__tocsin_hash", "__tocsin_tie", "__tocsin_bucket"
"""Columns that Spark adds to updates: a hash of the key, a hash of the row, and the bucket."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_checks: dict[str, Encoder] = {}
"""For a declared space, what reads every field: values that it refuses fit no dimension."""


class Refused(NamedTuple):
    """Rows that were not applied, and why."""

    rows: Int64s
    reasons: list[str]


@dataclass(frozen=True)
class Reading:
    """How the columns of updates are read; ``columns`` are all of them."""

    columns: tuple[str, ...]
    key: str
    order: str | None
    deleted: str | None
    clear: str | None
    partial: bool

    @property
    def published(self) -> list[str]:
        """The columns that make up a publication."""
        return [name for name in self.columns if name not in (self.deleted, self.clear)]

    def read(self, table: pa.Table, manifest: Manifest, batch: int) -> tuple[Updates | None, Refused | None]:
        """Return the updates that can be applied and those that cannot."""
        count = len(table)
        reasons: dict[int, str] = {}
        order = self._orders(table, batch, reasons)
        for row in np.flatnonzero(single(table[self.key].is_null()).to_numpy(zero_copy_only=False)).tolist():
            reasons[row] = f"the key {self.key} is NULL"
        deleted = _flags(table[self.deleted]) if self.deleted else np.zeros(count, bool)
        cleared = self._cleared(table, reasons)
        _check_values(table.select(self.published), ~deleted, manifest, reasons)
        if self.order is None:
            self._refuse_several(table, reasons)
        refused = Refused(np.array(sorted(reasons), np.int64), [reasons[row] for row in sorted(reasons)])
        good = np.setdiff1d(np.arange(count), refused.rows) if reasons else np.arange(count)
        if not len(good):
            return None, refused
        if reasons:
            chosen = pa.array(good)
            table, order, deleted = table.take(chosen), order[good], deleted[good]
            cleared = {name: flags[good] for name, flags in cleared.items()}
        return self._updates(table, order, deleted, cleared, good), refused if reasons else None

    def _updates(
        self, table: pa.Table, order: Int64s, deleted: Bools, cleared: dict[str, Bools], rows: Int64s
    ) -> Updates:
        keys = single(table[self.key]).dictionary_encode()
        publication = keys.indices.to_numpy().astype(np.int64)
        first = np.empty(len(keys.dictionary), np.int64)
        first[publication[::-1]] = np.arange(len(publication))[::-1]
        columns = {name: single(table[name]) for name in self.published if name != self.key}
        given = None
        if self.partial:
            given = {
                name: values.is_valid().to_numpy(zero_copy_only=False) | cleared.get(name, False)
                for name, values in columns.items()
                if name != self.order
            }
        return Updates(
            row=rows,
            publication=publication,
            keys=keys.dictionary,
            hashes=table[HASH].to_numpy()[first],
            order=order,
            tie=table[TIE].to_numpy() if self.order is not None else np.zeros(len(rows), np.int64),
            deleted=deleted,
            columns=columns,
            given=given,
            cleared=cleared,
        )

    def _orders(self, table: pa.Table, batch: int, reasons: dict[int, str]) -> Int64s:
        """Return the order of each row: the values of its column as whole numbers, or the number of the batch."""
        if self.order is None:
            return np.full(len(table), batch)
        values = single(table[self.order])
        if pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        order: Int64s = values.cast(pa.int64()).fill_null(NEVER).to_numpy()
        for row in np.flatnonzero(order == NEVER).tolist():
            what = "NULL" if values[row].as_py() is None else "the lowest number there is, which no update may have"
            reasons[row] = f"the order {self.order} is {what}"
        return order

    def _cleared(self, table: pa.Table, reasons: dict[int, str]) -> dict[str, Bools]:
        """Return for each column that some row sets to NULL by name, which rows do."""
        if self.clear is None:
            return {}
        lists = single(table[self.clear])
        owner, names = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists)
        known = [name for name in self.published if name not in (self.key, self.order)]
        cleared = {}
        for name in names.unique().to_pylist():
            those = owner[pc.equal(names, name).fill_null(False).to_numpy(zero_copy_only=False)]
            if name is None:
                those = owner[names.is_null().to_numpy(zero_copy_only=False)]
            if name in known:
                cleared[name] = np.zeros(len(table), bool)
                cleared[name][those] = True
                continue
            for row in those.tolist():
                reasons[row] = f"{self.clear} names {name!r}, which is no column to clear; there is {', '.join(known)}"
        return cleared

    def _refuse_several(self, table: pa.Table, reasons: dict[int, str]) -> None:
        """Refuse the rows of keys that come more than once where nothing says which row is the last."""
        codes = single(table[self.key]).dictionary_encode().indices
        counted = np.bincount(codes.drop_null().to_numpy(), minlength=1)
        several = (counted > 1)[codes.fill_null(0).to_numpy()]
        for row in np.flatnonzero(several).tolist():
            reasons.setdefault(
                row, f"a batch has several rows of this {self.key}, and no order says which is the last; name order=..."
            )


def _flags(column: pa.ChunkedArray) -> Bools:
    flags: Bools = single(column).fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _check_values(table: pa.Table, wanted: Bools, manifest: Manifest, reasons: dict[int, str]) -> None:
    """Refuse rows with a value that a declared space cannot read; an inferred one reads every value of its column."""
    if manifest.inferred:
        return
    name = repr(manifest.space)
    if name not in _checks:
        _checks.clear()
        space = manifest.read_space()
        _checks[name] = Encoder(Axes(space), list(space.paths()))
    checking = _checks[name]
    plain = checking.readings.plain()
    rows = np.flatnonzero(wanted)
    batch = _one_batch(table.take(pa.array(rows)))
    misfits = _bad_sets(batch, plain)
    reasons |= {int(rows[row]): reason for row, reason in misfits.items()}
    if misfits:
        kept = np.setdiff1d(np.arange(batch.num_rows), list(misfits))
        rows, batch = rows[kept], batch.take(pa.array(kept))
    batch, source = exploded(batch, plain)
    for at, error in checking.misfits(batch, missing="unspecified").items():
        row = at if source is None else source[at]
        reasons[int(rows[row])] = str(error).removeprefix(f"row {at}, ")


def _bad_sets(batch: pa.RecordBatch, plain: frozenset[str]) -> dict[int, str]:
    """Return the rows whose sets of values have no member, a member that is NULL, or together too many."""
    found: dict[int, str] = {}
    combinations = np.ones(batch.num_rows)
    for name in sorted(plain.intersection(batch.schema.names)):
        column = batch.column(batch.schema.get_field_index(name))
        if not holds_sets(column.type):
            continue
        sizes = pc.list_value_length(column).fill_null(1).to_numpy()
        combinations *= np.maximum(sizes, 1)
        absent = pc.list_parent_indices(column).to_numpy()[pc.list_flatten(column).is_null().to_numpy(False)]
        found |= dict.fromkeys(np.flatnonzero(sizes == 0).tolist(), f"field {name}: the set is empty; NULL is no value")
        found |= dict.fromkeys(absent.tolist(), f"field {name}: a member of the set is NULL")
    for row in np.flatnonzero(combinations > MOST_ALTERNATIVES).tolist():
        found[row] = f"the sets make {int(combinations[row]):,} combinations; the limit is {MOST_ALTERNATIVES:,}"
    return found


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
