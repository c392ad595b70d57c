"""What a change brought about: pairs that have begun to match, and pairs that have ceased to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import SubjectError
from tocsin.index.boxes import Int32s, Int64s
from tocsin.matcher.free import Free
from tocsin.matcher.moves import TRANSITIONS
from tocsin.operators.growing import Growing


class Names:
    """The keys of publications, or ids of subscriptions, each with a slot. A slot is not used again while transitions
    that name it have not been read."""

    def __init__(self) -> None:
        self.slot_of: dict[Any, int] = {}
        self._ids: list[Any] = []
        self._whole = Growing(np.int64)
        self._all_whole = True
        self._free = Free()

    def __len__(self) -> int:
        return len(self.slot_of)

    @property
    def room(self) -> int:
        """One more than the highest slot handed out."""
        return len(self._ids)

    def add(self, ids: list[Any], unread: Iterable[Transitions]) -> Int32s:
        """Return new slots for new ids."""
        oldest = min((each.epoch for each in unread), default=np.iinfo(np.int64).max)
        slots = self._free.take(len(ids), oldest)
        self._ids.extend([None] * (int(slots.max(initial=-1)) + 1 - len(self._ids)))
        for id, slot in zip(ids, slots.tolist(), strict=True):
            self._ids[slot] = id
            self.slot_of[id] = slot
        if self._all_whole:
            self._all_whole = all(type(id) is int and -(2**63) <= id < 2**63 for id in ids)
            if self._all_whole:
                self._whole.put(slots, np.array(ids, np.int64))
        return slots

    def drop(self, ids: Iterable[Any], epoch: int) -> None:
        """Forget ids."""
        self._free.give(np.array([self.slot_of.pop(id) for id in ids], np.int32), epoch)

    def array(self, slots: Int32s) -> pa.Array:
        """Return the ids of slots as an Arrow array."""
        if self._all_whole:
            return pa.array(self._whole.array[slots])
        try:
            return pa.array(self.listed(slots))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SubjectError(f"these ids do not fit one Arrow column: {error}; use ids of one type") from None

    def listed(self, slots: Int32s) -> list[Any]:
        """Return the ids of slots."""
        ids = self._ids
        return [ids[slot] for slot in slots.tolist()]


class Transitions:
    """Pairs of publication and subscription that began (``enter``) or ceased (``leave``) to match in one step.

    A large answer stays arrays: `to_arrow` makes a table of it, iteration makes tuples.

    >>> import tocsin
    >>> subjects = tocsin.Subjects(tocsin.Space({"x": tocsin.Number()}))
    >>> _ = subjects.subscribe("near", "x < 5")
    >>> list(subjects.publish("truck", {"x": 3}))
    [('enter', 'truck', 'near')]
    """

    __slots__ = ("__weakref__", "_kinds", "_publications", "_rows", "_subscriptions", "_table", "epoch")

    def __init__(
        self,
        names: tuple[Names, Names],
        slots: tuple[Int32s, Int32s],
        kinds: npt.NDArray[np.int8],
        epoch: int,
        rows: Int64s | None = None,
    ) -> None:
        self._publications, self._subscriptions = zip(names, slots, strict=True)
        self._kinds = kinds
        self._rows = rows
        self._table: pa.Table | None = None
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._kinds)

    @property
    def enters(self) -> int:
        """How many pairs began to match."""
        return int((self._kinds == 0).sum())

    @property
    def leaves(self) -> int:
        """How many pairs ceased to match."""
        return int((self._kinds == 1).sum())

    def to_arrow(self) -> pa.Table:
        """Return a table of ``publication``, ``subscription`` and ``transition``; after a batch also ``row``."""
        if self._table is None:
            kinds = pa.DictionaryArray.from_arrays(pa.array(self._kinds), TRANSITIONS)
            columns = {} if self._rows is None else {"row": pa.array(self._rows)}
            columns |= {
                "publication": self._publications[0].array(self._publications[1]),
                "subscription": self._subscriptions[0].array(self._subscriptions[1]),
                "transition": kinds,
            }
            self._table = pa.table(columns)
            self.epoch = np.iinfo(np.int64).max
        return self._table

    def __iter__(self) -> Iterator[tuple[str, Any, Any]]:
        kinds = ("enter" if kind == 0 else "leave" for kind in self._kinds.tolist())
        sides = (names.listed(slots) for names, slots in (self._publications, self._subscriptions))
        return zip(kinds, *sides, strict=True)

    def __repr__(self) -> str:
        return f"Transitions({self.enters:,} enter, {self.leaves:,} leave)"
