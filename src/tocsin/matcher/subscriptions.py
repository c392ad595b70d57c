"""Who subscribed: ids, texts and which boxes are whose.

A subscription has a *slot*; its boxes have *numbers*, those of the index. Slots and numbers are reused, but only when
no reader can still hold an answer from before they were freed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from itertools import count, takewhile
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import SubscriptionError
from tocsin.index.blocks import picked
from tocsin.index.boxes import Int32s
from tocsin.kernels.picking import mark_absent
from tocsin.language.arrays import number_array, text_array
from tocsin.matcher.free import Free
from tocsin.matcher.soundness import check_subscriptions
from tocsin.matcher.tables import from_bytes, to_bytes
from tocsin.matcher.texts import KeptTexts
from tocsin.matcher.views import Dying, View
from tocsin.operators.growing import Growing, Mostly

_NO_NUMBER = -1
_MANY = 4_096
_FEW_HIDDEN = 8
"""Boxes that a reader must not see are looked up one by one where there are so many times as many matches."""

_NONE = np.empty(0, np.int32)
_ID_TYPES = {str: pa.string(), int: pa.int64()}


class Subscriptions:
    """The subscriptions of a matcher. One writer at a time; readers register with `reading`."""

    def __init__(self) -> None:
        self._slot_of: dict[Any, int] = {}
        self._ids = Growing(np.object_)  # and no list: the garbage collector would look at each of millions
        self._whole_ids = Growing(np.int64)
        self._whole = True
        self._id_type: pa.DataType | None = None
        self.decimal_digits: tuple[int, int] | None = (
            None  # the most before and behind the point, where ids are decimals
        )
        self._cached: tuple[int, pa.Array] | None = None
        self._changes = 0
        self._texts = KeptTexts()
        self._undo: list[tuple[int, int, Int32s, str]] = []
        self._first = Growing(np.int32)
        self._others: dict[int, Int32s] = {}
        self._owner = Growing(np.int32)
        self._program: Growing = Mostly(np.int32)
        self._condition: Growing = Mostly(np.int32)
        self._slots, self._numbers = Free(), Free()
        self._born = Growing(np.int32)
        self._newborn: list[tuple[int, Int32s]] = []
        self._dying: list[Dying] = []
        self._epoch = 0
        self._view = View(0, _NONE)
        self._readers: dict[int, int] = {}
        self._tokens = count()
        self._saved_ids: pa.Array | None = None
        self._count = 0
        self._adding = False
        self.has_programs = self.has_conditions = self.has_several = False
        self._apart = False

    # Reading

    def reading(self) -> _Reading:
        """Return a context in which nothing that an answer may name is reused."""
        return _Reading(self)

    @property
    def dying(self) -> int:
        """How many boxes are dead but still in the index."""
        return len(self._view.dying)

    def view(self) -> View:
        """Return what a reader that begins now may see. It is taken before events are encoded."""
        return self._view

    def visible(self, view: View, numbers: Int32s) -> npt.NDArray[np.bool_] | None:
        """Return which boxes the view shows: those born by then and not replaced by then. None means all of them."""
        if self._epoch == view.epoch and not len(view.dying) and not self._adding:
            return None
        hidden = [view.dying, *(some for born, some in self._newborn.copy() if born > view.epoch)]
        if sum(map(len, hidden)) * _FEW_HIDDEN <= len(numbers):
            kept = np.empty(len(numbers), np.bool_)
            return kept if mark_absent(numbers, np.sort(np.concatenate(hidden)), kept) else None
        shown: npt.NDArray[np.bool_] = self._born.array[numbers] <= view.epoch
        if len(view.dying):
            places = np.searchsorted(view.dying, numbers)
            shown &= view.dying[np.minimum(places, len(view.dying) - 1)] != numbers
        return shown

    @property
    def owner(self) -> Int32s:
        """The slot of each box number."""
        return self._owner.array

    def owners_of(self, numbers: Int32s) -> Int32s:
        """Return the slots of box numbers; the numbers themselves as long as all boxes are numbered as their slots."""
        return picked(self._owner.array, numbers) if self._apart else numbers

    @property
    def program(self) -> Int32s:
        """The program of each box number, -1 where its box says all."""
        return self._program.array

    @property
    def condition(self) -> Int32s:
        """What operators must decide of each box number, -1 where there is nothing."""
        return self._condition.array

    def ids_list(self, slots: Int32s) -> list[Any]:
        """Return the ids of slots."""
        saved = self._saved_ids
        if saved is not None:
            return list(saved.take(number_array(slots)).to_pylist())
        return list(self._ids.array[slots].tolist())

    @property
    def has_ids_at_hand(self) -> bool:
        """Whether ids are an array of one type: then those of some matches cost no more each than those of all."""
        return self._saved_ids is not None or self._has_whole_ids

    @property
    def _has_whole_ids(self) -> bool:
        return self._whole and (self._id_type is None or pa.types.is_int64(self._id_type))

    def ids_array(self, slots: Int32s) -> pa.Array:
        """Return the ids of slots as an Arrow array."""
        saved = self._saved_ids
        if saved is not None:
            return saved.take(number_array(slots))
        if self._has_whole_ids:
            return number_array(picked(self._whole_ids.array, slots))
        if len(slots) * 4 >= len(self._ids):
            cached = self._cached
            if cached is None or cached[0] != self._changes:
                # a freed slot may hold an id of another type
                with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                    self._cached = cached = self._changes, pa.array(self._ids.array, self._id_type)
            if cached is not None and cached[0] == self._changes:
                return cached[1].take(number_array(slots))
        try:
            ids = self.ids_list(slots)
            return text_array(ids) if _are_few_texts(ids, self._id_type) else pa.array(ids, self._id_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise SubscriptionError(f"these ids do not fit one Arrow column: {error}; use ids of one type") from None

    # Looking

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id: object) -> bool:
        try:
            return id in self._known()
        except TypeError:
            raise SubscriptionError(f"an id is a hashable value such as text or a number, not {id!r}") from None

    def ids(self) -> Iterator[Any]:
        """Return all ids, in the order of their subscription."""
        return iter(list(self._known()))

    def any_id(self) -> Any:
        """Return one of the ids, None if there is none."""
        return next(iter(self._known()), None)

    def slot(self, id: Hashable) -> int:
        """Return the slot of an id."""
        return self._known()[id]

    def slots_of(self, ids: list[Any]) -> dict[Any, int | None]:
        """Return the slot of each id, None where it is unknown."""
        known = self._known()
        try:
            return {id: known.get(id) for id in ids}
        except TypeError:
            raise SubscriptionError("an id is a hashable value such as text or a number") from None

    def text(self, id: Hashable) -> str:
        """Return the expression of an id."""
        return self._texts.at(self._known()[id])

    def text_at(self, slot: int) -> str:
        """Return the expression of a slot; KeyError or IndexError if it has just been removed."""
        return self._texts.at(slot)

    def all_texts(self) -> tuple[list[Any], pa.Array]:
        """Return all ids and their expressions."""
        held = self._known()
        return list(held), self._texts.every(np.fromiter(held.values(), np.int64, len(held)))

    def without_box(self) -> list[Any]:
        """Return the ids that have no box."""
        first = self._first.array
        return [id for id, slot in self._known().items() if first[slot] == _NO_NUMBER]

    def numbers_of(self, slots: Int32s) -> Int32s:
        """Return the box numbers of slots."""
        first = self._first.array[slots]
        others = [self._others[slot] for slot in slots.tolist() if slot in self._others] if self._others else []
        return np.concatenate([first[first != _NO_NUMBER], *others])

    @property
    def nbytes(self) -> int:
        """The memory of the arrays (ids and texts not counted)."""
        arrays = self._texts, self._first, self._owner, self._born, self._program, self._condition
        return sum(array.nbytes for array in arrays)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays, slots renumbered to be without gaps."""
        slot_of = self._known()
        slots = np.fromiter(slot_of.values(), np.int64, len(slot_of))
        place = np.full(int(slots.max(initial=-1)) + 1, -1, np.int32)
        place[slots] = np.arange(len(slots), dtype=np.int32)
        ids = self.ids_array(slots.astype(np.int32))
        others = [self._others.get(slot, _NONE) for slot in slots.tolist()] if self._others else []
        owner = self._owner.array
        owned = (owner >= 0) & (owner < len(place))
        renumbered = np.where(owned, place[np.where(owned, owner, 0)] if len(place) else -1, -1).astype(np.int32)
        return {
            "ids": to_bytes(ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids),
            "texts": to_bytes(self._texts.every(slots)),
            "first": self._first.array[slots],
            "others": np.concatenate([_NONE, *others]),
            "others_offsets": np.cumsum([0, *map(len, others)], dtype=np.int64),
            "owner": renumbered,
            "program": self._program.array,
            "condition": self._condition.array,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Subscriptions:
        """Return the subscriptions that `to_arrays` wrote; ids become a dictionary only when one is looked up.
        ValueError if these arrays cannot be what it wrote."""
        held = cls()
        held._saved_ids = from_bytes(arrays["ids"])
        held._count = len(held._saved_ids)
        texts = from_bytes(arrays["texts"])
        check_subscriptions(arrays, held._count, texts)
        held._texts = KeptTexts.of(texts)
        held._first = Growing.of(arrays["first"])
        held._owner = Growing.of(arrays["owner"])
        held._born = Growing.of(np.broadcast_to(np.int32(0), len(arrays["owner"])))
        held._program = Growing.of(arrays["program"])
        held._condition = Growing.of(arrays["condition"])
        bounds = arrays["others_offsets"]
        for slot in np.flatnonzero(np.diff(bounds)):
            held._others[int(slot)] = arrays["others"][bounds[slot] : bounds[slot + 1]]
        held.has_several = bool(held._others)
        held._apart = not np.array_equal(arrays["owner"], np.arange(len(arrays["owner"])))
        held.has_programs = bool((arrays["program"] >= 0).any())
        held.has_conditions = bool((arrays["condition"] >= 0).any())
        held._slots, held._numbers = Free(held._count), Free(len(arrays["owner"]))
        return held

    # Changing

    def add(
        self,
        ids: Any,
        texts: pa.Array,
        counts: npt.NDArray[Any],
        programs: Int32s,
        conditions: Int32s | None = None,
    ) -> tuple[Int32s, Int32s]:
        """Add or replace subscriptions with so many boxes each; return their box numbers, and those they replace."""
        self._known()
        self._adding = True
        known = ids.to_pylist() if isinstance(ids, pa.Array) else ids
        self._note_type(ids, known)
        self._undo = []
        is_new = self._slot_of.keys().isdisjoint(known)
        old = [-1] * len(known) if is_new else [self._slot_of.get(id, -1) for id in known]
        slots = np.array(old, np.int32)
        new = np.flatnonzero(slots < 0)
        slots[new] = self._slots.take(len(new), self._oldest())
        replaced = self.numbers_of(slots[slots >= 0][np.array(old)[slots >= 0] >= 0]) if len(new) < len(old) else _NONE
        numbers = self._numbers.take(len(programs), self._oldest())
        self._note_born(numbers)
        self._born.put(numbers, np.full(len(numbers), self._epoch + 1))
        owners = np.repeat(slots, counts)
        self._owner.put(numbers, owners)
        self._apart |= not np.array_equal(numbers, owners)
        self._program.put(numbers, programs)
        self._condition.put(numbers, np.full(len(numbers), -1, np.int32) if conditions is None else conditions)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        first = np.full(len(slots), _NO_NUMBER, np.int32)
        first[counts > 0] = numbers[starts[counts > 0]]
        for row in np.flatnonzero(np.array(old) >= 0):
            slot = old[row]
            self._undo.append((slot, int(self._first.array[slot]), self._others.pop(slot, _NONE), self._texts.at(slot)))
        if self._undo:
            self._texts.drop(np.array([slot for slot, *_ in self._undo], np.int32))
        self._first.put(slots, first)
        for row in np.flatnonzero(counts > 1):
            self._others[int(slots[row])] = numbers[starts[row] + 1 : starts[row] + counts[row]]
        self.has_several |= bool((counts > 1).any() or len(replaced))  # for a moment old and new boxes are both there
        self.has_programs |= bool((programs >= 0).any())
        self.has_conditions |= conditions is not None and bool((conditions >= 0).any())
        self._put_ids(known, slots)
        self._texts.put(slots, texts)
        self._slot_of.update(zip(known, slots.tolist(), strict=True))
        self._count = len(self._slot_of)
        return numbers, replaced

    def add_one(self, id: Hashable, text: str) -> Int32s | None:
        """Add a subscription of one box that says all; return the number of its box, None if there is one of that id
        (see `add`, which replaces it)."""
        if id in self._known():
            return None
        self._adding = True
        self._note_type([id], [id])
        self._undo = []
        oldest = self._oldest()
        (slot,), numbers = self._slots.take(1, oldest).tolist(), self._numbers.take(1, oldest)
        number = int(numbers[0])
        self._note_born(numbers)
        self._born.set(number, self._epoch + 1)
        self._owner.set(number, slot)
        self._apart |= number != slot
        self._program.set(number, -1)
        self._condition.set(number, -1)
        self._first.set(slot, number)
        self._put_id(id, slot)
        self._texts.put_one(slot, text)
        self._slot_of[id] = slot
        self._count = len(self._slot_of)
        return numbers

    def take_back(self, ids: Any, numbers: Int32s) -> None:
        """Undo the latest `add`, whose boxes were not accepted by the index."""
        known = ids.to_pylist() if isinstance(ids, pa.Array) else ids
        replaced = {slot for slot, *_ in self._undo}
        slots = np.array([self._slot_of[id] for id in known], np.int32)
        self._texts.drop(slots)
        for slot, first, others, text in self._undo:
            self._first.put(np.array([slot]), np.array([first]))
            self._others.pop(slot, None)
            if len(others):
                self._others[slot] = others
            self._texts.put(np.array([slot], np.int32), pa.array([text], pa.string()))
        fresh = [id for id in known if self._slot_of[id] not in replaced]
        freed = np.array([self._slot_of.pop(id) for id in fresh], np.int32)
        for slot in freed.tolist():
            self._others.pop(slot, None)
        self.release(numbers)
        self._adding = False
        self._slots.give(freed, self._epoch - 1)
        self._count = len(self._slot_of)
        self._changes += 1

    def remove(self, slots: Int32s) -> None:
        """Forget subscriptions; their boxes are no longer shown to readers that begin from now on."""
        numbers = self.numbers_of(slots)
        self._texts.drop(slots)
        for id in self._ids.array[slots].tolist():
            del self._slot_of[id]
        for slot in self._others.keys() & slots.tolist():
            del self._others[slot]
        self.publish(numbers, slots)
        self._count = len(self._slot_of)
        self._changes += 1

    def publish(self, replaced: Int32s, slots: Int32s = _NONE) -> None:
        """Let readers that begin from now on see the latest `add`, and no longer the boxes it replaces; slots that have
        no other boxes are free as soon as those are gone."""
        if len(replaced):
            self._dying.append(Dying(self._epoch + 1, replaced, slots))
        else:
            self._slots.give(slots, self._epoch)
        self._turn()
        self._adding = False

    def expendable(self) -> Int32s:
        """Return the replaced boxes that may leave the index: no reader is left that should see them."""
        if not self._dying:
            return _NONE
        oldest = self._oldest()
        return np.concatenate([_NONE, *(some.numbers for some in self._dying if some.since <= oldest)])

    def release(self, numbers: Int32s, free: Int32s | None = None) -> None:
        """Free box numbers that are out of the index; ``free`` are those that may be used again, without it all.

        Slots are freed with their numbers and in the same order, so that where every subscription has one box, its slot
        stays its number.
        """
        if len(self._dying) == 1 and np.array_equal(self._dying[0].numbers, numbers):
            left = [self._dying[0]._replace(numbers=_NONE)]
        else:
            left = [some._replace(numbers=np.setdiff1d(some.numbers, numbers)) for some in self._dying]
        self._dying = [some for some in left if len(some.numbers)]
        slots = np.concatenate([_NONE, *(some.slots for some in left if not len(some.numbers))])
        self._slots.give(np.sort(slots), self._epoch)
        self._numbers.give(np.sort(numbers if free is None else free), self._epoch)
        self._turn()

    def _turn(self) -> None:
        """Begin the next epoch. Its view shows first: a reader registers with an epoch no later than its view's."""
        dying = np.sort(np.concatenate([some.numbers for some in self._dying])) if self._dying else _NONE
        if self._epoch + 2 > np.iinfo(self._born.array.dtype).max:
            self._born = Growing.of(self._born.array.astype(np.int64))
        self._view = View(self._epoch + 1, dying)
        self._epoch += 1

    def _note_born(self, numbers: Int32s) -> None:
        """Remember the numbers that the next epoch shows first, and forget those that every reader sees."""
        oldest = self._oldest()
        del self._newborn[: sum(1 for _ in takewhile(lambda each: each[0] <= oldest, self._newborn))]
        self._newborn.append((self._epoch + 1, numbers))

    def _known(self) -> dict[Any, int]:
        """Return the slot of each id, which after a load is made of the saved ids first."""
        if self._saved_ids is not None:
            saved, known = self._saved_ids, self._saved_ids.to_pylist()
            self._id_type = saved.type
            self._put_ids(known, np.arange(len(known), dtype=np.int32))
            self._slot_of = {id: slot for slot, id in enumerate(known)}
            self._saved_ids = None
        return self._slot_of

    def _put_ids(self, known: list[Any], slots: Int32s) -> None:
        self._ids.put(slots, np.fromiter(known, np.object_, len(known)))
        if self._whole:
            try:
                whole = np.array(known, np.int64)
                self._whole = set(map(type, known)) <= {int}
            except (ValueError, TypeError, OverflowError):
                self._whole = False
            if self._whole:
                self._whole_ids.put(slots, whole)
        self._changes += 1

    def _put_id(self, id: Any, slot: int) -> None:
        """Keep one id."""
        self._ids.set(slot, id)
        if self._whole:
            self._whole = type(id) is int  # one that is given alone has 64 bits
            if self._whole:
                self._whole_ids.set(slot, id)
        self._changes += 1

    def _note_type(self, ids: Any, known: list[Any]) -> None:
        """Remember the Arrow type of ids, as long as all that come have it."""
        if isinstance(ids, pa.Array):
            kind = ids.type
            if not self._slot_of:
                self._id_type = kind
            elif kind != self._id_type:
                self._id_type = None
        elif not self._slot_of and len(known) == 1 and type(known[0]) in _ID_TYPES:
            self._id_type = _ID_TYPES[type(known[0])]
        elif not (_are_few_texts(known, self._id_type) or (self._slot_of and _is_one_more(known, self._id_type))):
            try:
                found = pa.array(known, self._id_type if self._slot_of else None).type
                self._id_type = self._id_type if self._slot_of else found
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
                self._id_type = None

    def _oldest(self) -> int:
        return min(list(self._readers.values()), default=self._epoch)


def _are_few_texts(ids: list[Any], kind: pa.DataType | None) -> bool:
    """Return whether ids are texts, not worth what `pyarrow.array` imports."""
    return kind == pa.string() and len(ids) < _MANY and all(type(id) is str for id in ids)


def _is_one_more(ids: list[Any], kind: pa.DataType | None) -> bool:
    """Return whether this is one id of the type of the others, by its class alone."""
    return len(ids) == 1 and type(ids[0]) in _ID_TYPES and _ID_TYPES[type(ids[0])] == kind


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
