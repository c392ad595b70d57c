"""Who subscribed: ids, texts and which boxes are whose.

A subscription has a *slot*; its boxes have *numbers*, those of the index. Slots and numbers are reused, but only when
no reader can still hold an answer from before they were freed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import count
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import SubscriptionError
from tocsin.index.boxes import Int32s
from tocsin.operators.programs import Growing

_NO_NUMBER = -1


class Free:
    """Numbers to hand out: freed ones first, those that no reader can still see, then new ones."""

    def __init__(self) -> None:
        self._ready: list[int] = []
        self._limbo: list[tuple[int, Int32s]] = []
        self._next = 0

    def take(self, wanted: int, oldest_reader: int) -> Int32s:
        """Return so many numbers."""
        while self._limbo and self._limbo[0][0] < oldest_reader:
            self._ready += self._limbo.pop(0)[1].tolist()
        reused = self._ready[len(self._ready) - min(wanted, len(self._ready)) :]
        del self._ready[len(self._ready) - len(reused) :]
        fresh = np.arange(self._next, self._next + wanted - len(reused), dtype=np.int32)
        self._next += len(fresh)
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def give(self, numbers: Int32s, epoch: int) -> None:
        """Take numbers back."""
        if len(numbers):
            self._limbo.append((epoch, numbers))


class Subscriptions:
    """The subscriptions of a matcher. One writer at a time; readers register with `reading`."""

    def __init__(self) -> None:
        self._slot_of: dict[Any, int] = {}
        self._ids: list[Any] = []
        self._whole_ids = Growing(np.int64)
        self._whole = True
        self._id_type: pa.DataType | None = None
        self._cached: tuple[int, pa.Array] | None = None
        self._changes = 0
        self._text_chunk = Growing(np.int32)
        self._text_row = Growing(np.int32)
        self._chunks: list[pa.Array] = []
        self._first = Growing(np.int32)
        self._others: dict[int, Int32s] = {}
        self._owner = Growing(np.int32)
        self._program = Growing(np.int32)
        self._slots, self._numbers = Free(), Free()
        self._epoch = 0
        self._readers: dict[int, int] = {}
        self._tokens = count()
        self.has_programs = False
        self.has_several = False

    # Reading

    def reading(self) -> _Reading:
        """Return a context in which nothing that an answer may name is reused."""
        return _Reading(self)

    @property
    def owner(self) -> Int32s:
        """The slot of each box number."""
        return self._owner.array

    @property
    def program(self) -> Int32s:
        """The program of each box number, -1 where its box says all."""
        return self._program.array

    def ids_list(self, slots: Int32s) -> list[Any]:
        """Return the ids of slots."""
        ids = self._ids
        return [ids[slot] for slot in slots.tolist()]

    def ids_array(self, slots: Int32s) -> pa.Array:
        """Return the ids of slots as an Arrow array."""
        if self._whole and (self._id_type is None or pa.types.is_int64(self._id_type)):
            return pa.array(self._whole_ids.array[slots])
        try:
            if len(slots) * 4 < len(self._ids):
                return pa.array(self.ids_list(slots), self._id_type)
            cached = self._cached
            if cached is None or cached[0] != self._changes:
                self._cached = cached = self._changes, pa.array(self._ids, self._id_type)
            return cached[1].take(pa.array(slots))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SubscriptionError(f"these ids do not fit one Arrow column: {error}; use ids of one type") from None

    # Looking

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, id: object) -> bool:
        try:
            return id in self._slot_of
        except TypeError:
            raise SubscriptionError(f"an id is a hashable value such as text or a number, not {id!r}") from None

    def ids(self) -> Iterator[Any]:
        """Return all ids, in the order of their subscription."""
        return iter(list(self._slot_of))

    def slot(self, id: Hashable) -> int:
        """Return the slot of an id."""
        return self._slot_of[id]

    def text(self, id: Hashable) -> str:
        """Return the expression of an id."""
        slot = self._slot_of[id]
        chunk = self._chunks[self._text_chunk.array[slot]]
        text: str = chunk[int(self._text_row.array[slot])].as_py()
        return text

    def texts(self) -> pa.Array:
        """Return all expressions, in the order of `ids`."""
        return pa.array([self.text(id) for id in self._slot_of], pa.string())

    def without_box(self) -> list[Any]:
        """Return the ids that have no box."""
        first = self._first.array
        return [id for id, slot in self._slot_of.items() if first[slot] == _NO_NUMBER]

    def numbers_of(self, slots: Int32s) -> Int32s:
        """Return the box numbers of slots."""
        first = self._first.array[slots]
        others = [self._others[slot] for slot in slots.tolist() if slot in self._others] if self._others else []
        return np.concatenate([first[first != _NO_NUMBER], *others])

    @property
    def nbytes(self) -> int:
        """The memory of the arrays (ids and texts not counted)."""
        arrays = self._text_chunk, self._text_row, self._first, self._owner, self._program
        return sum(array.nbytes for array in arrays)

    # Changing

    def add(self, ids: Any, texts: pa.Array, counts: npt.NDArray[Any], programs: Int32s) -> tuple[Int32s, Int32s]:
        """Add or replace subscriptions with so many boxes each; return their box numbers, and those they replace."""
        known = ids.to_pylist() if isinstance(ids, pa.Array) else ids
        self._note_type(ids, known)
        old = [self._slot_of.get(id, -1) for id in known]
        slots = np.array(old, np.int32)
        new = np.flatnonzero(slots < 0)
        slots[new] = self._slots.take(len(new), self._oldest())
        replaced = self.numbers_of(slots[slots >= 0][np.array(old)[slots >= 0] >= 0]) if len(new) < len(old) else _NONE
        numbers = self._numbers.take(len(programs), self._oldest())
        _put(self._owner, numbers, np.repeat(slots, counts))
        _put(self._program, numbers, programs)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        first = np.full(len(slots), _NO_NUMBER, np.int32)
        first[counts > 0] = numbers[starts[counts > 0]]
        _put(self._first, slots, first)
        for row in np.flatnonzero(np.array(old) >= 0):
            self._others.pop(old[row], None)
        for row in np.flatnonzero(counts > 1):
            self._others[int(slots[row])] = numbers[starts[row] + 1 : starts[row] + counts[row]]
        self.has_several |= bool((counts > 1).any())
        self.has_programs |= bool((programs >= 0).any())
        self._put_ids(known, slots)
        _put(self._text_chunk, slots, np.full(len(slots), len(self._chunks), np.int32))
        _put(self._text_row, slots, np.arange(len(slots), dtype=np.int32))
        self._chunks.append(texts)
        self._slot_of.update(zip(known, slots.tolist(), strict=True))
        return numbers, replaced

    def remove(self, slots: Int32s) -> None:
        """Forget subscriptions whose boxes are out of the index."""
        self.release(self.numbers_of(slots))
        for slot in slots.tolist():
            del self._slot_of[self._ids[slot]]
            self._others.pop(slot, None)
        self._slots.give(slots, self._epoch - 1)
        self._changes += 1

    def release(self, numbers: Int32s) -> None:
        """Free box numbers that are out of the index."""
        self._numbers.give(numbers, self._epoch)
        self._epoch += 1

    def _put_ids(self, known: list[Any], slots: Int32s) -> None:
        grown = int(slots.max(initial=-1)) + 1 - len(self._ids)
        self._ids.extend([None] * max(0, grown))
        if grown == len(slots) and grown and slots[0] == len(self._ids) - grown:
            self._ids[slots[0] :] = known
        else:
            for id, slot in zip(known, slots.tolist(), strict=True):
                self._ids[slot] = id
        if self._whole:
            try:
                whole = np.array(known, np.int64)
                self._whole = all(type(id) is int for id in known)
            except (ValueError, TypeError, OverflowError):
                self._whole = False
            if self._whole:
                _put(self._whole_ids, slots, whole)
        self._changes += 1

    def _note_type(self, ids: Any, known: list[Any]) -> None:
        """Remember the Arrow type of ids, as long as all that come have it."""
        if isinstance(ids, pa.Array):
            kind = ids.type
            if not self._slot_of:
                self._id_type = kind
            elif kind != self._id_type:
                self._id_type = None

    def _oldest(self) -> int:
        return min(list(self._readers.values()), default=self._epoch)


class _Reading:
    """Registers a reader by the epoch it began in."""

    __slots__ = ("_subscriptions", "_token")

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._token = next(subscriptions._tokens)

    def __enter__(self) -> None:
        self._subscriptions._readers[self._token] = self._subscriptions._epoch

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._subscriptions._readers[self._token]


_NONE = np.empty(0, np.int32)


def _put(held: Growing, places: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Set values at places, growing the array to hold them. Places in use by readers are never among them."""
    missing = int(places.max(initial=-1)) + 1 - len(held)
    if missing > 0:
        held.extend(np.full(missing, -1, held.array.dtype))
    held.array[places] = values
