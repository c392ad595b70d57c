"""Which pairs of publication and subscription begin or cease to match: by updates, and by changes of subscriptions.

This module must not import pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import SavedIndexError
from tocsin.matcher import Matcher
from tocsin.matcher.matcher import Missing
from tocsin.spark.manifest import Manifest, Segment, read_manifest
from tocsin.spark.segments import Opened, open_matcher, read_dead, read_subscriptions
from tocsin.spark.transitions_history import History
from tocsin.spark.transitions_index import Wanted, wanted_of
from tocsin.spark.transitions_state import KEY

SMALL_CHANGE = 20_000
"""Changed subscriptions are indexed by themselves up to so many; beyond, whole segments are asked and the rest left."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Version = tuple[str, int, str]
"""An index: its path, and the number and identity of a version."""

_changes: dict[tuple[Version, Version, str], Change] = {}
"""The last change of subscriptions that this process has opened, and the call whose operators it has."""


class Turns(NamedTuple):
    """Transitions: the row (of states, or of stored publications), the subscription's id, and whether it entered."""

    row: Int64s
    subscription: pa.Array
    entered: Bools


class Change(NamedTuple):
    """What differs between two versions of subscriptions, and where that lies, if it is known."""

    removed: list[Opened]
    added: list[Opened]
    wanted: Wanted | None


def turns_of_updates(states: History, segments: Sequence[Opened], missing: Missing, id_type: pa.DataType) -> Turns:
    """Return the transitions that updates cause; their row is the state that the update made."""
    made = np.flatnonzero(states.effective)
    before, after = states.exists[made - 1], states.exists[made]
    rows, ids, entered = [np.empty(0, np.int64)], [pa.nulls(0, id_type)], [np.empty(0, bool)]
    for was, now in ((True, True), (False, True), (True, False)):
        some = made[(before == was) & (after == now)]
        if not len(some):
            continue
        old = _columns(states, some - 1) if was else None
        new = _columns(states, some) if now else None
        for segment in segments:
            found = segment.moved(old, new, missing)
            rows.append(some[found["event"].to_numpy()])
            ids += found["subscription"].cast(id_type).chunks
            entered += [
                pc.equal(chunk.dictionary_decode(), "enter").to_numpy(zero_copy_only=False)
                for chunk in found["transition"].chunks
            ]
    row, kind = np.concatenate(rows), np.concatenate(entered)
    in_order = np.argsort(row, kind="stable")
    return Turns(row[in_order], pa.concat_arrays(ids).take(pa.array(in_order)), kind[in_order])


def turns_of_subscriptions(stored: pa.Table, key: str, change: Change, missing: Missing, id_type: pa.DataType) -> Turns:
    """Return the transitions that a change of subscriptions causes; their row is that of the stored publication."""
    names = [name for name in stored.column_names if name.startswith("=")]
    table = stored.select([*names, KEY]).rename_columns([*(name[1:] for name in names), key])
    old_rows, old_ids = _pairs(table, change.removed, missing, id_type)
    new_rows, new_ids = _pairs(table, change.added, missing, id_type)
    encoded = pa.concat_arrays([old_ids, new_ids]).dictionary_encode()
    kinds = max(1, len(encoded.dictionary))
    pairs = np.concatenate([old_rows, new_rows]) * kinds + encoded.indices.to_numpy()
    old, new = pairs[: len(old_rows)], pairs[len(old_rows) :]
    left, entered = np.setdiff1d(old, new), np.setdiff1d(new, old)
    row, code = np.divmod(np.concatenate([left, entered]), kinds)
    kind = np.arange(len(row)) >= len(left)
    return Turns(row, encoded.dictionary.take(pa.array(code)), kind)


def change_of(old: Version, new: Version, called: str = "") -> Change:
    """Return what differs between two versions; it stays open in this process for the buckets to come."""
    key = old, new, called
    if key not in _changes:
        try:
            manifests = read_manifest(*old), read_manifest(*new)
        except SavedIndexError as error:
            raise SavedIndexError(
                f"the stored publications were last matched with version {old[1]} of {old[0]}: {error}; "
                "give that index, or start again with a new state and checkpoint"
            ) from None
        _changes.clear()
        _changes[key] = _difference(old[0], manifests[0], new[0], manifests[1])
    return _changes[key]


def _difference(old_path: str, old: Manifest, new_path: str, new: Manifest) -> Change:
    same = set(old.segments) & set(new.segments) if old_path == new_path and old.space == new.space else set()
    before, after = ([segment for segment in each.segments if segment not in same] for each in (old, new))
    gone, come = _alive(old_path, before), _alive(new_path, after)
    if gone is not None and come is not None and old.space == new.space and gone.schema.equals(come.schema):
        keys = ["id", "expression"]
        gone, come = gone.join(come, keys, join_type="left anti"), come.join(gone, keys, join_type="left anti")
    removed, added = _opened(old_path, old, before, gone), _opened(new_path, new, after, come)
    small = old.space == new.space and all(len(each or ()) <= SMALL_CHANGE for each in (gone, come))
    return Change(removed, added, wanted_of(each.matcher for each in (*removed, *added)) if small else None)


def _alive(path: str, segments: list[Segment]) -> pa.Table | None:
    tables = [read_subscriptions(path, segment) for segment in segments]
    return pa.concat_tables(tables) if tables else None


def _opened(path: str, manifest: Manifest, segments: list[Segment], changed: pa.Table | None) -> list[Opened]:
    """Return what to ask for the matches of changed subscriptions alone."""
    if changed is None or not len(changed):
        return []
    if len(changed) <= SMALL_CHANGE:
        matcher = Matcher(manifest.read_space(), manifest.engine)
        matcher.subscribe_many(changed, problems=[])
        return [Opened("", matcher, None)]
    found = []
    for segment in segments:
        ids = read_subscriptions(path, segment)["id"].combine_chunks()
        others = ids.filter(pc.invert(pc.is_in(ids, changed["id"].combine_chunks())))
        dead = read_dead(path, segment)
        found.append(
            Opened(
                segment.build,
                open_matcher(path, segment),
                others if dead is None else pa.concat_arrays([dead, others]),
            )
        )
    return found


def _columns(states: History, some: Int64s) -> pa.Table:
    """Return the publications' columns in some states."""
    return pa.table({name: source.at(some) for name, source in states.columns.items()})


def _pairs(
    table: pa.Table, segments: Sequence[Opened], missing: Missing, id_type: pa.DataType
) -> tuple[Int64s, pa.Array]:
    """Return the pairs of row and id that match."""
    rows, ids = [np.empty(0, np.int64)], [pa.nulls(0, id_type)]
    for segment in segments if len(table) else ():
        found = segment.moved(None, table, missing)
        rows.append(found["event"].to_numpy())
        ids += found["subscription"].cast(id_type).chunks
    return np.concatenate(rows), pa.concat_arrays(ids)
