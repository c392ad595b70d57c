"""Arrow arrays of plain values. `pyarrow.array` imports pandas first, wherever there is one: a quarter of a second
before the first match of a process. These look only at what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_DTYPES = {
    pa.from_numpy_dtype(dtype): np.dtype(dtype)
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
}


def text_array(texts: Sequence[str]) -> pa.StringArray:
    """Return texts as an Arrow array; UnicodeEncodeError if one is no text.

    >>> text_array(["a", "", "Grüße"]).to_pylist()
    ['a', '', 'Grüße']
    """
    return _packed([text.encode() for text in texts], pa.string(), np.int32)


def bytes_array(keys: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Return keys as an Arrow array.

    >>> bytes_array([b"a", b""]).to_pylist()
    [b'a', b'']
    """
    return _packed(keys, pa.large_binary(), np.int64)


def number_array(values: npt.NDArray[np.integer]) -> pa.Array:
    """Return whole numbers as an Arrow array without a copy.

    >>> number_array(np.array([1, 2], np.int32)).type
    DataType(int32)
    """
    plain = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(plain.dtype), len(plain), [None, pa.py_buffer(plain)])


def numbers_of(values: pa.Array) -> npt.NDArray[Any]:
    """Return what an Arrow array of numbers holds, without a copy; what stands for a null is any number.

    >>> numbers_of(number_array(np.array([1, 2, 3], np.int32)).slice(1)).tolist()
    [2, 3]
    """
    data = values.buffers()[1]
    if data is None:
        return np.empty(0, _DTYPES[values.type])
    return np.frombuffer(data, _DTYPES[values.type])[values.offset : values.offset + len(values)]


def are_valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values of an Arrow array with nulls are none.

    >>> are_valid(pa.array([1, None, 3]).slice(1)).tolist()
    [False, True]
    """
    bits, end = np.frombuffer(values.buffers()[0], np.uint8), values.offset + len(values)
    return np.unpackbits(bits, count=end, bitorder="little")[values.offset :].view(np.bool_)


def _packed(values: Sequence[bytes], kind: pa.DataType, width: type[np.integer]) -> pa.Array:
    offsets = np.array([0, *accumulate(map(len, values))], width)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))])
