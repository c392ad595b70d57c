"""Listed codes: an order-preserving number for each text, address or long decimal that a subscription mentions.

Such values have no room in 64 bits, but only those named in subscriptions matter. Each of them, a *key*, gets a label,
labels are ordered as keys and keep gaps between them, so that a new key finds a label between its neighbours and no
stored box changes. A value that is not a key is coded just above the label of the key before it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import NULL
from tocsin.kernels.checks import check, check_length, check_rising
from tocsin.kernels.keys import Keys, heads_of, search_keys
from tocsin.language.arrays import bytes_array, number_array

Codes = npt.NDArray[np.int64]

BOTTOM, TOP = -(2**62), 2**62
_FIRST_SPAN = 2**61
_END_STEP = 2**44
_RECENT = 1024


class BookFullError(Exception):
    """There is no label left between two keys: the book must be relabelled. Internal."""


class _State(NamedTuple):
    """What readers see: replaced as a whole, never changed."""

    keys: Keys
    labels: Codes
    recent: list[bytes]
    recent_labels: list[int]


class Book:
    """The labels of one axis. One writer at a time; readers need no lock.

    >>> book = Book()
    >>> low, high = book.place([b"apple", b"pear"])
    >>> low < book.find_one(b"banana") < high
    True
    >>> book.find_one(b"pear") == high
    True
    """

    def __init__(self) -> None:
        self._state = _State(_keys_of([]), np.empty(0, np.int64), [], [])
        self._latest = NULL
        self._side = 0
        self._run = 0
        self._merging = threading.Lock()

    def __len__(self) -> int:
        return len(self._state.labels) + len(self._state.recent)

    @property
    def nbytes(self) -> int:
        """The memory of the keys and labels."""
        state = self._state
        return (
            sum(part.nbytes for part in state.keys)
            + state.labels.nbytes
            + sum(map(len, state.recent))
            + 100 * len(state.recent)
        )

    def place(self, keys: list[bytes] | pa.Array) -> list[int] | Codes:
        """Return the labels of these keys, adding those that are new; BookFullError leaves the book as it was."""
        if isinstance(keys, list):
            return [self._place_one(key) for key in keys]
        keys = keys.cast(pa.large_binary())
        if len(keys) <= 8:
            return np.array([self._place_one(key) for key in keys.to_pylist()], np.int64)
        return self._place_many(keys)

    def find(self, values: pa.Array) -> Codes:
        """Return the codes of values (binary, none null): of a key its label, of another value one above the key
        below."""
        state = self._state
        sought = _keys_of(values)
        positions, equal = search_keys(state.keys, sought)
        below = np.where(positions >= 0, state.labels[positions] if len(state.labels) else BOTTOM, BOTTOM)
        codes = np.where(equal, below, below + 1)
        if state.recent:
            positions, equal = search_keys(_keys_of(state.recent), sought)
            labels = np.array(state.recent_labels, np.int64)
            below = np.where(positions >= 0, labels[positions], BOTTOM)
            codes = np.maximum(codes, np.where(equal, below, below + 1))
        return codes

    def find_one(self, value: bytes) -> int:
        """Return the code of one value."""
        state = self._state
        positions, equal = search_keys(state.keys, _one_key(value))
        code = int(state.labels[positions[0]]) + (not equal[0]) if positions[0] >= 0 else BOTTOM + 1
        at = bisect_right(state.recent, value) - 1
        if at >= 0:
            code = max(code, state.recent_labels[at] + (state.recent[at] != value))
        return code

    def are_labels(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Return which codes are the labels of keys."""
        state = self._state
        found: npt.NDArray[np.bool_] = np.isin(codes, np.array(state.recent_labels, np.int64))
        if len(state.labels):
            places = np.minimum(np.searchsorted(state.labels, codes), len(state.labels) - 1)
            found |= state.labels[places] == codes
        return found

    def key_near(self, code: int) -> tuple[bytes, int]:
        """Return the key whose label is this code or next to it, and the difference: what a bound of a box stands
        for."""
        state = self._state  # not merged: every single subscription asks
        at = bisect_left(state.recent_labels, code)
        for position in (at, at - 1):
            if 0 <= position < len(state.recent) and abs(code - state.recent_labels[position]) <= 1:
                return state.recent[position], code - state.recent_labels[position]
        at = int(state.labels.searchsorted(code))
        for position in (at, at - 1):
            if 0 <= position < len(state.labels) and abs(code - int(state.labels[position])) <= 1:
                start, end = state.keys.offsets[position : position + 2]
                return state.keys.data[start:end].tobytes(), code - int(state.labels[position])
        raise KeyError(code)

    def relabelled(self, used: Codes) -> tuple[Book, Codes, Codes]:
        """Return a book of the keys whose codes are still used, evenly labelled, with the old and the new labels."""
        state = self._merged()
        keep = np.isin(state.labels, np.concatenate([used - 1, used, used + 1]))
        book = Book()
        keys = _keys_of(_array_of(state.keys).filter(pa.array(keep)))
        book._state = _State(keys, _spread(len(keys.heads), -_FIRST_SPAN, _FIRST_SPAN), [], [])
        return book, state.labels[keep], book._state.labels

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the book as plain arrays."""
        state = self._merged()
        return {"offsets": state.keys.offsets, "data": state.keys.data, "labels": state.labels}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[np.generic]]) -> Book:
        """Return the book that `to_arrays` wrote; ValueError if these arrays cannot be what it wrote."""
        book = cls()
        offsets, data = np.asarray(arrays["offsets"], np.int64), np.asarray(arrays["data"], np.uint8)
        labels = np.asarray(arrays["labels"], np.int64)
        check_rising("keys", offsets, 0, len(data))
        check_length("labels", len(labels), len(offsets) - 1)
        check(bool(np.all(labels[:-1] < labels[1:])), "labels out of order")
        book._state = _State(Keys(offsets, data, heads_of(offsets, data)), labels, [], [])
        return book

    def _place_one(self, key: bytes) -> int:
        code = self.find_one(key)
        state = self._state
        below = code - 1
        at = bisect_right(state.recent, key)
        if at and state.recent[at - 1] == key:
            return state.recent_labels[at - 1]
        positions, equal = search_keys(state.keys, _one_key(key))
        if equal[0]:
            return code
        following = int(positions[0]) + 1
        above = int(state.labels[following]) if following < len(state.labels) else TOP
        if at < len(state.recent):
            above = min(above, state.recent_labels[at])
        label = self._between(below, above)
        recent, recent_labels = state.recent.copy(), state.recent_labels.copy()
        recent.insert(at, key)
        recent_labels.insert(at, label)
        self._state = state._replace(recent=recent, recent_labels=recent_labels)
        self._latest = label
        if len(recent) > _RECENT:
            self._merged()
        return label

    def _between(self, below: int, above: int) -> int:
        """Return a label between two: in the middle, but close to the latest where keys arrive in order."""
        gap = above - below
        if gap < 6:
            raise BookFullError
        if below == BOTTOM and above == TOP:
            return 0
        if above == TOP:
            return below + min(_END_STEP, gap // 2)
        if below == BOTTOM:
            return above - min(_END_STEP, gap // 2)
        side = (self._latest == below) - (self._latest == above)
        self._run, self._side = (self._run + 1 if side and side == self._side else 0), side
        if self._run > 2:
            step = max(3, gap >> 8)
            return below + step if below == self._latest else above - step
        return below + gap // 2

    def _place_many(self, keys: pa.Array) -> Codes:
        """Add many keys at once: those that fall between the same two old ones share the gap evenly."""
        state = self._merged()
        codes = self.find(keys)
        known = np.isin(codes, state.labels)
        fresh = pc.unique(keys.filter(pa.array(~known)))
        if len(fresh):
            fresh = fresh.take(pc.array_sort_indices(fresh))
            after = np.searchsorted(state.labels, self.find(fresh))
            bounds = np.concatenate([[BOTTOM], state.labels, [TOP]])
            labels = np.empty(len(fresh), np.int64)
            starts = np.flatnonzero(np.diff(after, prepend=-1))
            for start, end in zip(starts, [*starts[1:], len(fresh)], strict=True):
                low, high = int(bounds[after[start]]), int(bounds[after[start] + 1])
                labels[start:end] = _spread(end - start, *_room(low, high, end - start))
            merged_labels = np.concatenate([state.labels, labels])
            order = np.argsort(merged_labels, kind="stable")
            merged = pa.concat_arrays([_array_of(state.keys), fresh.cast(pa.large_binary())]).take(number_array(order))
            self._state = _State(_keys_of(merged), merged_labels[order], [], [])
        return self.find(keys)

    def _merged(self) -> _State:
        """Return the state with the recent keys merged into the sorted arrays."""
        with self._merging:
            state = self._state
            if state.recent:
                labels = np.concatenate([state.labels, np.array(state.recent_labels, np.int64)])
                order = np.argsort(labels, kind="stable")
                keys = pa.concat_arrays([_array_of(state.keys), bytes_array(state.recent)])
                state = _State(_keys_of(keys.take(number_array(order))), labels[order], [], [])
                self._state = state
            return state


def _room(low: int, high: int, count: int) -> tuple[int, int]:
    """Return the part of a gap to spread ``count`` labels over; at the ends most of the room is kept for later."""
    count = int(count)
    if low == BOTTOM and high == TOP:
        return -_FIRST_SPAN, _FIRST_SPAN
    if high == TOP:
        high = min(high, low + _END_STEP * (count + 1))
    if low == BOTTOM:
        low = max(low, high - _END_STEP * (count + 1))
    if (high - low) // (count + 1) < 6:
        raise BookFullError
    return low, high


def _spread(count: int, low: int, high: int) -> Codes:
    """Return labels evenly between two bounds."""
    step = (high - low) // (count + 1)
    return low + step * np.arange(1, count + 1, dtype=np.int64)


def _keys_of(values: list[bytes] | pa.Array) -> Keys:
    array = bytes_array(values) if isinstance(values, list) else values.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    starts = (
        np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        if offsets
        else np.zeros(1, np.int64)
    )
    if len(starts) == 0:
        starts = np.zeros(1, np.int64)
    flat = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return Keys(starts, flat, heads_of(starts, flat) if len(array) else np.empty(0, np.uint64))


def _one_key(key: bytes) -> Keys:
    data = np.frombuffer(key, np.uint8) if key else np.empty(0, np.uint8)
    head = np.array([int.from_bytes(key[:8].ljust(8, b"\0"), "big")], np.uint64)
    return Keys(np.array([0, len(key)], np.int64), data, head)


def _array_of(keys: Keys) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(keys.offsets)), pa.py_buffer(np.ascontiguousarray(keys.data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(keys.heads), buffers)
