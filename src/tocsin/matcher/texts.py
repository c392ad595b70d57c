"""The expressions of subscriptions: those of a bulk load as the Arrow array that came, a single one by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import Int32s
from tocsin.language.arrays import text_array
from tocsin.operators.growing import Growing

_SINGLE = -1


class KeptTexts:
    """A text for each slot. A load of which none is left is freed.

    >>> texts = KeptTexts()
    >>> texts.put(np.array([0, 1], np.int32), pa.array(["a = 1", "b = 2"]))
    >>> texts.put_one(2, "c = 3")
    >>> texts.at(1), texts.every(np.array([2, 0])).to_pylist()
    ('b = 2', ['c = 3', 'a = 1'])
    """

    def __init__(self) -> None:
        self._chunk = Growing(np.int32)
        self._row = Growing(np.int32)
        self._chunks: list[pa.Array] = []
        self._users: list[int] = []
        self._single: dict[int, str] = {}

    @classmethod
    def of(cls, texts: pa.Array) -> KeptTexts:
        """Return what holds a saved array, slot by slot."""
        kept = cls()
        kept._chunks, kept._users = [texts], [len(texts)]
        kept._chunk = Growing.of(np.broadcast_to(np.int32(0), len(texts)))
        kept._row = Growing.of(np.arange(len(texts), dtype=np.int32))
        return kept

    @property
    def nbytes(self) -> int:
        """The memory of the arrays (the texts not counted)."""
        return self._chunk.nbytes + self._row.nbytes

    def at(self, slot: int) -> str:
        """Return the text of a slot."""
        chunk = int(self._chunk.array[slot])
        if chunk == _SINGLE:
            return self._single[slot]
        text: str = self._chunks[chunk][int(self._row.array[slot])].as_py()
        return text

    def put(self, slots: Int32s, texts: pa.Array) -> None:
        """Keep the texts of slots."""
        if len(slots) == 1:
            self.put_one(int(slots[0]), texts[0].as_py())
            return
        self._chunk.put(slots, np.full(len(slots), len(self._chunks), np.int32))
        self._row.put(slots, np.arange(len(slots), dtype=np.int32))
        self._chunks.append(texts)
        self._users.append(len(slots))

    def put_one(self, slot: int, text: str) -> None:
        """Keep the text of one slot."""
        self._single[slot] = text
        self._chunk.set(slot, _SINGLE)

    def drop(self, slots: Int32s) -> None:
        """Forget the texts of slots."""
        if len(slots) == 1 and self._single.pop(int(slots[0]), None) is not None:
            return
        chunks, counts = np.unique(self._chunk.array[slots], return_counts=True)
        for chunk, users in zip(chunks.tolist(), counts.tolist(), strict=True):
            if chunk != _SINGLE:
                self._users[chunk] -= users
                if self._users[chunk] == 0:
                    self._chunks[chunk] = text_array([])
            else:
                for slot in slots.tolist():
                    self._single.pop(slot, None)

    def every(self, slots: npt.NDArray[np.int64]) -> pa.Array:
        """Return the texts of slots."""
        chunks, rows = self._chunk.array[slots], self._row.array
        order = np.argsort(chunks, kind="stable")
        starts = np.flatnonzero(np.diff(chunks[order], prepend=_SINGLE - 1))
        parts = [
            pa.array([self._single[slot] for slot in slots[some].tolist()], pa.large_string())
            if chunks[some[0]] == _SINGLE
            else self._chunks[chunks[some[0]]].take(pa.array(rows[slots[some]])).cast(pa.large_string())
            for some in np.split(order, starts[1:])
            if len(some)
        ]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays([pa.array([], pa.large_string()), *parts]).take(pa.array(back))
