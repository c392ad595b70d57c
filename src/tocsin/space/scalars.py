"""Single values on their way in: NumPy's as Python's, and which columns hold texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.arguments import brief as brief

_TIMES = (np.datetime64, np.timedelta64)
"""NumPy counts these in nanoseconds and the like, and hands the count out as a number."""


def plain_scalar(value: Any) -> Any:
    """Return a NumPy scalar as the Python value that it stands for; anything else as it is.

    >>> plain_scalar(np.float32(0.5)), plain_scalar("a")
    (0.5, 'a')
    """
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def plain_number(value: Any) -> Any:
    """Return a NumPy number as the Python one; anything else as it is, moments and durations too.

    >>> plain_number(np.int8(3)), plain_number(np.timedelta64(3, "ns"))
    (3, np.timedelta64(3,'ns'))
    """
    return value.item() if isinstance(value, np.generic) and not isinstance(value, _TIMES) else value


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts, as they are or in a dictionary.

    >>> is_text(pa.large_string()), is_text(pa.dictionary(pa.int8(), pa.string())), is_text(pa.int64())
    (True, True, False)
    """
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
