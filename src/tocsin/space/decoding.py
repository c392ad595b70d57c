"""From codes back to the single values that they stand for, for formulas and for what no interval can say."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import LOWEST, NULL, Int64s
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes, codec_of
from tocsin.space.codes import Codec, Integers, scaled
from tocsin.space.columns import Path
from tocsin.space.concepts import ConceptCodes
from tocsin.space.intervals import codes_of
from tocsin.space.listed import Addresses, Listed, LongDecimals
from tocsin.space.quantities import Quantities
from tocsin.space.space import Space
from tocsin.space.typed import arrow_type, of_codes
from tocsin.space.types import Scalar

_OFFSET = 2**127

Spans = Callable[[Codec], tuple[Int64s, Int64s]]


def single(axes: Axes, path: Path, low: Int64s, high: Int64s) -> npt.NDArray[np.bool_]:
    """Return which rows, ``low`` and ``high`` int64[axes, rows], have one value (or NULL) of a dimension, no range."""
    found: npt.NDArray[np.bool_] = np.ones(low.shape[1], bool)
    for axis in (axes.find(AxisKey(path)), axes.find(AxisKey(path, "least"))):
        if axis is not None:
            found &= low[axis] == high[axis]
    return found


def decoded(axes: Axes, path: Path, low: Int64s, high: Int64s) -> pa.Array:
    """Return the single values of a dimension of rows, ``low`` and ``high`` int64[axes, rows], null where there is
    none."""
    own, least = axes.number(AxisKey(path)), axes.find(AxisKey(path, "least"))
    codes = np.where(single(axes, path, low, high), low[own], NULL)
    return _values(axes.codecs[own], axes.space.scalar(path), codes, None if least is None else high[least] == 0)


def only_values(space: Space, path: Path, spans: Spans) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the values of ranges of a field that hold one and no other, and which hold several. ``spans`` gives the
    codes of the ranges, which are kept, on an axis of the field.
    """
    codec = codec_of(space, AxisKey(path))
    low, high = spans(codec)
    several = low != high
    is_least = None
    if type(codec) is Integers and (low == LOWEST).any():
        least, most = spans(codec_of(space, AxisKey(path, "least")))  # which alone tells the least from the next
        several |= least != most
        is_least = most == 0
    return _values(codec, space.scalar(path), np.where(several, NULL, low), is_least), several


def only_value(space: Space, path: Path, value: Any) -> Any:
    """Return the value of a range of a field that holds one and no other; None if it holds several. ValueProblem if it
    is no range of the field.

    >>> from tocsin import Interval, Number
    >>> only_value(Space({"x": Number("int64")}), ("x",), Interval(2, 4, "neither"))
    3
    """

    def spans(codec: Codec) -> tuple[Int64s, Int64s]:
        low, high = codes_of(codec, value, keep=True)
        return np.array([low]), np.array([high])

    return only_values(space, path, spans)[0][0].as_py()


def _values(codec: Codec, kind: Scalar, codes: Int64s, is_least: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Return the values of codes; ``is_least`` says which are the least whole number, not the next, whose code it
    shares."""
    inner = codec.inner if isinstance(codec, Quantities) else codec
    if isinstance(inner, (Listed, ConceptCodes)):
        values = pa.array([None if code == NULL else _named(inner, code) for code in codes.tolist()], arrow_type(kind))
    elif is_least is not None:
        values = pa.array(np.where(is_least, -(2**63), codes), pa.int64(), mask=codes == NULL)
    else:
        values = of_codes(codes, kind)
    if isinstance(codec, Quantities):  # it is in the unit of its dimension, whatever stands beside it
        unit = pa.array([codec.unit] * len(values), pa.string())
        return pa.StructArray.from_arrays([values, unit], ["value", "unit"], mask=values.is_null())
    return values


def _named(codec: Codec, code: int) -> Any:
    """Return the value of a code that is listed."""
    if isinstance(codec, ConceptCodes):
        known = codec.known
        rows = np.flatnonzero(known.numbering.code[:-1] == code)
        return known.hierarchy.names[rows[0]] if len(rows) else {at: text for text, at in codec.texts.items()}[code]
    assert isinstance(codec, Listed)
    key = codec.book.key_near(code)[0]
    if isinstance(codec, LongDecimals):
        return scaled(int.from_bytes(key, "big") - _OFFSET, codec.scale)
    if isinstance(codec, Addresses):
        address = IPv6Address(key)
        return str(address.ipv4_mapped or address)
    return key.decode()
