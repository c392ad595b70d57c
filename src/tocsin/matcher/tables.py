"""Tables at the border: anything Arrow-shaped comes in as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import EventError, MissingColumnError, SubscriptionError
from tocsin.index.blocks import ANSWERS
from tocsin.index.boxes import Int32s
from tocsin.language.arrays import number_array
from tocsin.space.space import nearest_of

if TYPE_CHECKING:
    from tocsin.matcher.subscriptions import Subscriptions

MANY = 16_384
"""So many matches of a batch are a chunk of the result: other batches would only be copied beside them."""

_NONE = np.empty(0, np.int32)


class Matches(NamedTuple):
    """The matches of a batch: its first row, the rows counted from there, the slots of the subscriptions."""

    start: int
    rows: npt.NDArray[Any]
    slots: Int32s


def batches_of(events: Any, rows: Callable[[int], int]) -> Iterator[pa.RecordBatch]:
    """Yield the events of anything Arrow-shaped in batches of as many of the rows left as are wanted at that moment."""
    if isinstance(events, pa.RecordBatch):
        events = pa.Table.from_batches([events])
    if not isinstance(events, pa.Table):
        try:
            events = _reader(events)
        except TypeError:
            raise EventError(
                f"events are a table (pyarrow, pandas, Polars, DuckDB, ...), not {type(events).__name__}; "
                "for dictionaries use match, or pyarrow.Table.from_pylist"
            ) from None
    for batch in events.to_batches() if isinstance(events, pa.Table) else events:
        start = 0
        while start < batch.num_rows:
            some = batch.slice(start, rows(batch.num_rows - start))
            start += some.num_rows
            yield some


def matches_of(found: Sequence[Matches | pa.Table], subscriptions: Subscriptions) -> pa.Table:
    """Return matches as callers know them; those that are a table already are chunks of it."""
    tables: list[pa.Table] = []
    for are_tables, pieces in groupby(found, lambda piece: isinstance(piece, pa.Table)):
        some = list(pieces)
        tables += some if are_tables else [_told(some, subscriptions)]
    if len(tables) > 1:
        return pa.concat_tables(tables)
    return tables[0] if tables else _told([], subscriptions)


def told_if_many(found: Matches, subscriptions: Subscriptions) -> Matches | pa.Table:
    """Return many matches as callers know them, while they are in the cache, and few as they are."""
    return _told([found], subscriptions) if len(found.slots) >= MANY and subscriptions.has_ids_at_hand else found


def _told(found: list[Matches], subscriptions: Subscriptions) -> pa.Table:
    rows = ANSWERS.taken(sum(len(batch.slots) for batch in found), np.int64)
    end = 0
    for start, some, _ in found:
        np.add(some, start, out=rows[end : end + len(some)], dtype=np.int64)
        end += len(some)
    slots = found[0].slots if len(found) == 1 else np.concatenate([_NONE, *(batch.slots for batch in found)])
    return pa.table({"event": number_array(rows), "subscription": subscriptions.ids_array(slots)})


def table_of(given: Any) -> pa.Table:
    """Return anything Arrow-shaped as a table; TypeError if it is not."""
    if isinstance(given, pa.Table):
        return given
    return pa.Table.from_batches([given]) if isinstance(given, pa.RecordBatch) else _reader(given).read_all()


def subscriptions_of(subscriptions: Any) -> tuple[pa.Array, pa.Array]:
    """Return the ids and expressions of a table of subscriptions."""
    try:
        subscriptions = table_of(subscriptions)
    except TypeError:
        raise SubscriptionError(
            "subscriptions are a table with columns id and expression (pyarrow, pandas, Polars, DuckDB, ...), "
            f"not {type(subscriptions).__name__}"
        ) from None
    for name in ("id", "expression"):
        if name not in subscriptions.column_names:
            advice = nearest_of(name, subscriptions.column_names)
            raise MissingColumnError(f"subscriptions need a column {name}; {advice}")
    ids, texts = (subscriptions[name].combine_chunks() for name in ("id", "expression"))
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if pa.types.is_null(texts.type):
        texts = texts.cast(pa.string())
    if not (
        pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or pa.types.is_string_view(texts.type)
    ):
        raise SubscriptionError(f"the column expression holds {texts.type}; text is expected")
    if pa.types.is_nested(ids.type):
        raise SubscriptionError(f"the column id holds {ids.type}; ids are single values")
    return ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids, texts


def _reader(table: Any) -> pa.RecordBatchReader:
    """Return anything Arrow-shaped as a stream of batches; TypeError if it is not, or a single column."""
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        if hasattr(table, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(table)]).to_reader()
    except pa.ArrowInvalid as error:
        raise TypeError(str(error)) from None
    raise TypeError


def told(error: EventError, row: int, number: int) -> EventError:
    """Return the error of a batch's row by the number that the row has among all events."""
    return type(error)(str(error).replace(f"row {row}", f"row {number}", 1))


def to_bytes(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return an Arrow array as the bytes of an Arrow stream, which keep its type."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"values": values})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return np.frombuffer(sink.getvalue(), np.uint8)


def from_bytes(data: npt.NDArray[np.uint8]) -> pa.Array:
    """Return the array that `to_bytes` wrote, without copying it; ValueError if it is damaged."""
    try:
        values = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch().column(0)
        values.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise ValueError(f"an Arrow array that is damaged: {error}") from None
    return values
