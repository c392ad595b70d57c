"""What a dimension holds for a value of an event, after all that gives it meaning: a number in its unit, a decimal of
its digits, a moment, the name of a concept. One value as Python has it, or a column as Arrow does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import NULL
from tocsin.space.codes import Codec, Codes, Decimals, Doubles, ValueProblem, scaled, unscaled_decimals, unscaled_value
from tocsin.space.quantities import Given, Quantities, struct_parts
from tocsin.space.scalars import is_text, plain_scalar
from tocsin.space.types import Boolean, Concept, Number, Scalar, Text, Time

_EPOCH = date(1970, 1, 1)
_MOMENT = {True: datetime(1970, 1, 1, tzinfo=UTC), False: datetime(1970, 1, 1)}


def arrow_type(kind: Scalar) -> pa.DataType:
    """Return the type of Arrow that holds the values of a dimension exactly.

    >>> arrow_type(Number("decimal(10, 2)")), arrow_type(Text())
    (Decimal128Type(decimal128(10, 2)), DataType(string))
    """
    if isinstance(kind, Number):
        return pa.decimal128(*kind.decimal) if kind.is_decimal else pa.int64() if kind.kind == "int64" else pa.float64()
    if isinstance(kind, Time):
        return pa.date32() if kind.kind == "date" else pa.timestamp("us", "UTC" if kind.kind == "timestamp" else None)
    return pa.bool_() if isinstance(kind, Boolean) else pa.string()


def typed_value(kind: Scalar, codec: Codec, value: Any) -> Any:
    """Return what a dimension holds for one value of an event, None for NULL; ValueProblem if it does not fit.

    >>> from tocsin.space.codes import Integers
    >>> typed_value(Number("int64"), Integers(), 3.0)
    3
    """
    if isinstance(codec, Quantities):
        value, codec = codec.number_of(value), codec.inner
    if value is None:
        return None
    if isinstance(kind, Time):
        code = codec.code(value)
        if kind.kind == "date":
            return _EPOCH + timedelta(days=code)
        return _MOMENT[kind.kind == "timestamp"] + timedelta(microseconds=code)
    codec.check(value)
    if isinstance(kind, Number):
        if kind.is_decimal:
            return scaled(unscaled_value(value, *kind.decimal), kind.decimal[1])
        return int(value) if kind.kind == "int64" else float(value)
    if isinstance(kind, Concept):
        row = kind.tree.row(value)
        return value if row is None else kind.tree.names[row]
    return plain_scalar(value) if isinstance(kind, (Boolean, Text)) else _address_text(value)


def _address_text(value: Any) -> str:
    """Return the usual text of an address; one of version 4 that is mapped into version 6 as one of version 4."""
    found = ip_address(value.strip()) if isinstance(value, str) else value
    return str(getattr(found, "ipv4_mapped", None) or found)


def typed_column(kind: Scalar, codec: Codec, values: pa.Array) -> pa.Array:
    """Return what a dimension holds for a column of values, as `typed_value` does for each; ValueProblem names the
    first that does not fit."""
    target = arrow_type(kind)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if isinstance(codec, Quantities) and (is_text(values.type) or pa.types.is_struct(values.type)):
        if isinstance(codec.inner, (Decimals, Doubles)):
            return of_codes(codec.codes(values), kind)
        return _each(quantities_in(values), kind, codec)
    if isinstance(kind, Number):
        if kind.is_decimal:
            return unscaled_decimals(values, *kind.decimal).cast(target)
        codec.codes(values)  # refuses what does not fit
        return values.cast(target)
    if isinstance(kind, (Time, Boolean)):
        codes = codec.codes(values)
        return values if values.type == target else of_codes(codes, kind)
    if isinstance(kind, Text) and is_text(values.type):
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    codec.codes(values)
    return mapped(values, lambda value: typed_value(kind, codec, value))


def mapped(values: pa.Array, meaning: Callable[[str], str]) -> pa.Array:
    """Return texts replaced by what each means, each distinct one looked up once; NULL stays.

    >>> mapped(pa.array(["a", None, "b", "a"]), {"a": "A"}.get).to_pylist()
    ['A', None, None, 'A']
    """
    encoded = (values.dictionary_decode() if pa.types.is_dictionary(values.type) else values).dictionary_encode()
    meanings = [meaning(word) for word in encoded.dictionary.to_pylist()]
    return pa.array(meanings, pa.string()).take(encoded.indices)


def _each(values: list[Any], kind: Scalar, codec: Codec) -> pa.Array:
    found = []
    for row, value in enumerate(values):
        try:
            found.append(typed_value(kind, codec, value))
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, row) from None
    return pa.array(found, arrow_type(kind))


def quantities_in(values: pa.Array) -> list[Any]:
    """Return a column of quantities value by value: structs with what they say of unit and day."""
    if not pa.types.is_struct(values.type):
        return list(values.to_pylist())
    parts = [[None] * len(values) if part is None else part.to_pylist() for part in struct_parts(values)]
    return [Given(*each) for each in zip(*parts, strict=True)]


def of_codes(codes: Codes, kind: Scalar) -> pa.Array:
    """Return the values of codes that are computed from values: numbers, times, truth."""
    missing, target = codes == NULL, arrow_type(kind)
    if pa.types.is_floating(target):
        return pa.array(np.where(codes < 0, NULL - codes, codes).view(np.float64), mask=missing)
    if pa.types.is_decimal(target):
        whole = pa.array(codes, pa.int64(), mask=missing).cast(pa.decimal128(38, 0))
        unit = pa.scalar(scaled(1, target.scale), pa.decimal128(target.scale + 1, target.scale))
        return pc.multiply(whole.cast(pa.decimal128(19, 0)), unit).cast(target) if target.scale else whole.cast(target)
    if pa.types.is_date(target):
        return pa.array(codes.astype(np.int32), pa.int32(), mask=missing).cast(target)
    if pa.types.is_boolean(target):
        return pa.array(codes > 0, mask=missing)
    return pa.array(codes, pa.int64(), mask=missing).cast(target)
