"""Updates of publications put in order and applied: every state that each publication goes through in a batch.

A publication is one register a column, and one for whether it exists. An update sets some of them, a deletion sets all
to NULL, and a register keeps what was set by the highest order: an update that comes late sets what nothing newer has
set, and one that comes again sets nothing. So the last state does not depend on when rows arrive.

States are laid out in one sequence: for each publication first what is stored, then one state an update, by ascending
order. A column is not copied for that: each state says which row the column's value comes from.

This module must not import pyspark.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.spark.transitions_files import single
from tocsin.spark.transitions_state import EXISTS, HASH, KEY, ORDER, Found

NEVER = np.iinfo(np.int64).min
"""The order of what was never set; no update may have it."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Updates(NamedTuple):
    """Good updates of a bucket; ``row`` is where each was received. ``publication`` numbers the distinct ``keys``.

    ``columns`` are those of the publication but for its key.

    ``tie`` orders updates of one key and order, the same way whenever a batch is run. ``given`` says which columns an
    update sets (None: all) and ``cleared`` which of those it sets to NULL whatever the column holds.
    """

    row: Int64s
    publication: Int64s
    keys: pa.Array
    hashes: Int64s
    order: Int64s
    tie: Int64s
    deleted: Bools
    columns: dict[str, pa.Array]
    given: dict[str, Bools] | None
    cleared: dict[str, Bools]


class Source(NamedTuple):
    """Where the states of a column come from: a row of stored rows and updates together, or NULL where ``absent``."""

    values: pa.Array
    row: Int64s
    absent: Bools | None

    def at(self, states: Int64s) -> pa.Array:
        """Return the column's value in some states."""
        absent = None if self.absent is None else self.absent[states]
        return self.values.take(pa.array(self.row[states], mask=absent))


class History(NamedTuple):
    """The sequence of states. ``update`` is the row that made a state, -1 for what was stored.

    ``effective`` says which updates set anything; ``orders`` are those of the columns, where they differ from the
    publication's ``order``.
    """

    publication: Int64s
    update: Int64s
    exists: Bools
    order: Int64s
    effective: Bools
    columns: dict[str, Source]
    orders: dict[str, Int64s] | None


class _Sequence(NamedTuple):
    """The places of stored states and updates in the sequence, before anything is applied."""

    publication: Int64s
    update: Int64s
    is_stored: Bools
    tie_start: Int64s | None


def history(updates: Updates, found: Found) -> History:
    """Return the states that publications go through."""
    sequence = _sequence(updates)
    stored = _stored_columns(found)
    everything = np.ones(len(updates.publication), bool)
    before = _orders_before(stored, ORDER, found.place)
    order, from_state, effective = _apply(sequence, updates.order, everything, before)
    existed = np.zeros(len(found.place), bool)
    there = found.place >= 0
    if there.any():
        flags = stored[EXISTS].to_numpy(zero_copy_only=False)
        existed[there] = flags[found.place[there]]
    alive = np.where(sequence.is_stored, existed[sequence.publication], ~updates.deleted[sequence.update])
    columns: dict[str, Source] = {}
    orders: dict[str, Int64s] | None = None if updates.given is None else {}
    anything = effective.copy()
    for name, values in updates.columns.items():
        given = None if updates.given is None else updates.given.get(name)
        states = from_state
        if given is not None and orders is not None:
            before = _orders_before(stored, f"@{name}", found.place)
            orders[name], states, effective = _apply(sequence, updates.order, given | updates.deleted, before)
            anything |= effective
        nothing = updates.deleted | updates.cleared[name] if name in updates.cleared else updates.deleted
        columns[name] = _source(sequence, values, stored.get(f"={name}"), found.place, states, nothing)
    return History(sequence.publication, sequence.update, alive[from_state], order, anything, columns, orders)


def last_states(states: History) -> Int64s:
    """Return the last state of each publication that an update has changed, in the order of publications."""
    ends = np.flatnonzero(np.append(states.publication[1:] != states.publication[:-1], True))
    changed = np.zeros(len(ends), bool)
    changed[states.publication[states.effective]] = True
    return ends[changed]


def rows_of(updates: Updates, states: History) -> pa.Table | None:
    """Return the rows to store for publications that changed, None if none did."""
    last = last_states(states)
    if not len(last):
        return None
    publication = states.publication[last]
    columns: dict[str, pa.Array] = {
        HASH: pa.array(updates.hashes[publication]),
        KEY: updates.keys.take(pa.array(publication)),
        EXISTS: pa.array(states.exists[last]),
        ORDER: pa.array(states.order[last]),
    }
    columns |= {f"={name}": source.at(last) for name, source in states.columns.items()}
    columns |= {f"@{name}": pa.array(orders[last]) for name, orders in (states.orders or {}).items()}
    return pa.table(columns)


def _sequence(updates: Updates) -> _Sequence:
    count, keys = len(updates.publication), len(updates.keys)
    by_order = np.lexsort((updates.tie, updates.order, updates.publication))
    of_update = updates.publication[by_order]
    where = np.arange(count) + of_update + 1
    publication = np.repeat(np.arange(keys), np.bincount(updates.publication, minlength=keys) + 1)
    update = np.full(count + keys, -1, np.int64)
    update[where] = by_order
    order = updates.order[by_order]
    tied = np.flatnonzero((of_update[1:] == of_update[:-1]) & (order[1:] == order[:-1])) + 1
    tie_start = None
    if len(tied):
        first = np.arange(count)
        first[tied] = 0
        tie_start = np.zeros(count + keys, np.int64)
        tie_start[where] = where[np.maximum.accumulate(first)]
    return _Sequence(publication, update, update < 0, tie_start)


def _apply(sequence: _Sequence, order: Int64s, sets: Bools, before: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Return for a register in each state: its order, the state that it was set by, and whether that state set it."""
    places = np.arange(len(sequence.update))
    of_state = np.where(sequence.is_stored, before[sequence.publication], order[sequence.update])
    candidate = ~sequence.is_stored & sets[sequence.update]
    effective = candidate & (of_state > before[sequence.publication])
    if sequence.tie_start is not None:  # of updates of one order, the first that sets the register counts
        last = np.maximum.accumulate(np.where(candidate, places, -1))
        effective &= np.append(-1, last[:-1]) < sequence.tie_start
    states = np.maximum.accumulate(np.where(effective | sequence.is_stored, places, 0))
    return of_state[states], states, effective


def _source(
    sequence: _Sequence, values: pa.Array, stored: pa.Array | None, place: Int64s, states: Int64s, nothing: Bools
) -> Source:
    held = 0 if stored is None else len(stored)
    row = np.where(sequence.is_stored, place[sequence.publication], held + sequence.update)[states]
    absent = (row < 0) | (~sequence.is_stored & nothing[sequence.update])[states]
    if stored is not None:
        stored = stored if stored.type == values.type else stored.cast(values.type)
        values = pa.concat_arrays([stored, values])
    return Source(values, np.maximum(row, 0), absent if absent.any() else None)


def _stored_columns(found: Found) -> dict[str, pa.Array]:
    if not found.pieces:
        return {}
    table = pa.concat_tables(found.pieces, promote_options="default")
    return {name: single(table[name]) for name in table.column_names}


def _orders_before(stored: dict[str, pa.Array], name: str, place: Int64s) -> Int64s:
    before = np.full(len(place), NEVER)
    if name in stored:
        there = place >= 0
        before[there] = stored[name].to_numpy()[place[there]]
    return before
