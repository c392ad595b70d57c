"""Finding words: which row of a hierarchy each text of a column names, many at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.kernels.keys import Keys, heads_of, search_keys
from tocsin.language.arrays import bytes_array, number_array

_MOST_RECENT = 1024


class Words:
    """Words with a number each. Never changed; `with_words` gives another that shares what is sorted.

    >>> words = Words({"laptop": 0, "notebook": 0, "phone": 1}).with_words({"tablet": 2})
    >>> words.find(pa.array(["phone", "car", "tablet"])).tolist()
    [1, -1, 2]
    """

    def __init__(self, numbers: Mapping[str, int]) -> None:
        ordered = sorted((word.encode(), number) for word, number in numbers.items())
        self._keys = keys_of(bytes_array([word for word, _ in ordered]))
        self._numbers = np.array([number for _, number in ordered], np.int64)
        self._recent: dict[str, int] = {}

    def with_words(self, numbers: Mapping[str, int]) -> Words:
        """Return the words with some more."""
        recent = {**self._recent, **numbers}
        if len(recent) > _MOST_RECENT:
            return Words({**self._decoded(), **recent})
        grown = Words.__new__(Words)
        grown._keys, grown._numbers, grown._recent = self._keys, self._numbers, recent
        return grown

    def find(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        """Return the number of each text (none null), -1 for one that is no word."""
        positions, equal = search_keys(self._keys, keys_of(texts))
        found = np.full(len(texts), -1, np.int64)
        if len(self._numbers):
            found[equal] = self._numbers[positions[equal]]
        if self._recent:
            unknown = np.flatnonzero(found < 0)
            some = texts.take(number_array(unknown)).to_pylist()
            found[unknown] = [self._recent.get(text, -1) for text in some]
        return found

    def _decoded(self) -> dict[str, int]:
        offsets, data = self._keys.offsets, self._keys.data.tobytes()
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), self._numbers.tolist(), strict=True)
        return {data[start:end].decode(): number for start, end, number in bounds}


def keys_of(texts: pa.Array) -> Keys:
    """Return texts as keys to search for."""
    array = texts.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    starts = (
        np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        if len(array)
        else np.zeros(1, np.int64)
    )
    flat = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return Keys(starts, flat, heads_of(starts, flat))
