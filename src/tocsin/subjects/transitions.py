"""What a change brought about: pairs that have begun to match, and pairs that have ceased to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.arguments import expect_flag
from tocsin.errors import SubjectError
from tocsin.index.blocks import picked, spread
from tocsin.index.boxes import Int32s
from tocsin.index.marks import Marks
from tocsin.language.arrays import number_array
from tocsin.matcher.free import Free
from tocsin.matcher.moves import TRANSITIONS
from tocsin.operators.growing import Growing


class Names:
    """The keys of publications, or ids of subscriptions, each with a slot. A slot is not used again while transitions
    that name it are held by anyone. ``published`` if these are publications."""

    def __init__(self, *, published: bool = True) -> None:
        self.published = published
        self.slot_of: dict[Any, int] = {}
        self._ids = Growing(np.object_)
        self._whole = Growing(np.int64)
        self.all_whole = True
        self._free = Free()
        self._added, self._all = 0, (-1, pa.nulls(0))

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
        self._ids.put(slots, np.fromiter(ids, np.object_, len(ids)))
        self.slot_of.update(zip(ids, slots.tolist(), strict=True))
        if self.all_whole:
            self.all_whole = all(type(id) is int and -(2**63) <= id < 2**63 for id in ids)
            if self.all_whole:
                self._whole.put(slots, np.array(ids, np.int64))
        self._added += 1
        return slots

    def drop(self, ids: Iterable[Any], epoch: int) -> None:
        """Forget ids."""
        self._free.give(np.array([self.slot_of.pop(id) for id in ids], np.int32), epoch)

    def array(self, slots: Int32s, which: npt.NDArray[np.integer] | None = None) -> pa.Array:
        """Return the ids of slots, or of ``slots[which]``, which ascends, as an Arrow array."""
        if self.all_whole:
            whole = picked(self._whole.array, slots)
            return number_array(whole if which is None else spread(whole, which))
        if which is None and len(slots) > len(self._ids):  # then each id becomes Arrow once
            named = np.zeros(len(self._ids), bool)
            named[slots] = True
            slots, which = np.flatnonzero(named).astype(np.int32), picked(np.cumsum(named) - 1, slots)
        listed = self.listed(slots)
        large = any(type(id) is int and id >= 2**63 for id in listed)
        try:
            ids = pa.array(listed, pa.uint64()) if large else pa.array(listed)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SubjectError(f"these ids do not fit one Arrow column: {error}; use ids of one type") from None
        return ids if which is None else ids.take(number_array(which))

    def marked(self, marks: Marks) -> pa.Array:
        """Return the ids of the slots that are marked, which are all whole numbers."""
        return number_array(marks.written(self._whole.array))

    def dictionary(self) -> pa.Array:
        """Return the ids of all slots as an Arrow array, kept until there are new ones."""
        added, (known, ids) = self._added, self._all
        if known != added:  # another thread may be adding: what is read here is then not kept
            ids = self.array(np.arange(len(self._ids), dtype=np.int32))
            self._all = added, ids
        return ids

    def listed(self, slots: Int32s) -> list[Any]:
        """Return the ids of slots."""
        return list(self._ids.array[slots].tolist())


class Transitions:
    """Pairs of publication and subscription that began (``enter``) or ceased (``leave``) to match in one step.

    A large answer stays arrays, or bits: `to_arrow` makes a table of it, iteration makes tuples. Inside, a pair is the
    position of the one that changed and the slot of the other; ``names`` are those of the changed ones and of the
    others. What is told as `Marks` of slots has begun to match.

    >>> import tocsin
    >>> subjects = tocsin.Subjects(tocsin.Space({"x": tocsin.Number()}))
    >>> _ = subjects.subscribe("near", "x < 5")
    >>> list(subjects.publish("truck", {"x": 3}))
    [('enter', 'truck', 'near')]
    """

    __slots__ = ("__weakref__", "_changed", "_count", "_names", "_numbered", "_tables", "_told", "epoch")

    def __init__(
        self,
        names: tuple[Names, Names],
        changed: Int32s,
        told: tuple[npt.NDArray[np.integer], Int32s, npt.NDArray[np.int8]] | Marks,
        epoch: int,
        *,
        numbered: bool,
    ) -> None:
        self._names, self._changed = names, changed
        self._told, self._count = told, len(told if isinstance(told, Marks) else told[2])
        self._numbered = numbered
        self._tables: dict[bool, pa.Table] = {}
        self.epoch = epoch

    def __len__(self) -> int:
        return self._count

    @property
    def enters(self) -> int:
        """How many pairs began to match."""
        return self._count - self.leaves

    @property
    def leaves(self) -> int:
        """How many pairs ceased to match."""
        return 0 if isinstance(self._told, Marks) else int(np.count_nonzero(self._told[2]))

    def _pairs(self) -> tuple[npt.NDArray[np.integer], Int32s, npt.NDArray[np.int8]]:
        """Return (position, slot, 0 or 1) of every pair."""
        told = self._told
        if isinstance(told, Marks):
            self._told = told = (*told.pairs(), np.zeros(len(told), np.int8))
        return told

    def to_arrow(self, *, encoded: bool = False) -> pa.Table:
        """Return a table of ``publication``, ``subscription`` and ``transition``; after a batch also ``row``.

        ``encoded``: publications and subscriptions as dictionary columns, for which nothing is copied. A large answer
        costs by the memory it touches, and so takes a third of it.

        >>> import tocsin
        >>> subjects = tocsin.Subjects(tocsin.Space({"x": tocsin.Number()}))
        >>> _ = subjects.subscribe("near", "x < 5")
        >>> subjects.publish("truck", {"x": 3}).to_arrow(encoded=True)["subscription"].type
        DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
        """
        expect_flag(encoded, "encoded")
        if encoded not in self._tables:
            changed, others = self._names
            marks = None if encoded or not others.all_whole else self._told
            if isinstance(marks, Marks):
                position, kinds = marks.rows(), np.zeros(len(marks), np.int8)
                sides = [changed.array(self._changed, position), others.marked(marks)]
            else:
                positions, slots, kinds = self._pairs()
                position = positions.astype(np.int32, copy=False)
                sides = self._sides(position, slots, encoded)
            columns = {"row": number_array(position)} if self._numbered else {}
            columns |= dict(zip(("publication", "subscription"), self._in_order(sides), strict=True))
            columns["transition"] = pa.DictionaryArray.from_arrays(number_array(kinds), TRANSITIONS, safe=False)
            self._tables[encoded] = pa.table(columns)
        return self._tables[encoded]

    def _sides(self, position: Int32s, slots: Int32s, encoded: bool) -> list[pa.Array]:
        """Return the ids of the changed ones and of the others."""
        changed, others = self._names
        if not encoded:
            return [changed.array(self._changed, position), others.array(slots)]
        pairs = (position, changed.array(self._changed)), (slots, others.dictionary())
        return [pa.DictionaryArray.from_arrays(number_array(which), ids, safe=False) for which, ids in pairs]

    def __iter__(self) -> Iterator[tuple[str, Any, Any]]:
        position, slots, turns = self._pairs()
        kinds = ("enter" if kind == 0 else "leave" for kind in turns.tolist())
        changed, others = self._names
        mine = changed.listed(self._changed)
        sides = [[mine[place] for place in position.tolist()], others.listed(slots)]
        return zip(kinds, *self._in_order(sides), strict=True)

    def _in_order(self, sides: list[Any]) -> list[Any]:
        """Return what is of publications first, given what is of the changed ones first."""
        return sides if self._names[0].published else sides[::-1]

    def __repr__(self) -> str:
        return f"Transitions({self.enters:,} enter, {self.leaves:,} leave)"
