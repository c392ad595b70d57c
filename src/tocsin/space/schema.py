"""Spaces from what is there: an Arrow schema, or the values of dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.errors import SpaceError
from tocsin.space.nested import elements_of
from tocsin.space.scalars import brief
from tocsin.space.types import Address, Boolean, Number, Repeated, Scalar, Text, Time

MOST_NESTED = 64
"""How deep dimensions, and the values of events that they are inferred from, are nested at most."""


def dimensions_of(schema: Any) -> dict[str, Any]:
    """Return the dimensions of an Arrow schema; fields whose type has no axis are left out."""
    if not isinstance(schema, pa.Schema):
        try:
            schema = pa.schema(schema)
        except (TypeError, ValueError, pa.ArrowInvalid):
            raise SpaceError(f"this is not an Arrow schema: {brief(schema)}") from None
    _refuse_twice([field.name for field in schema], "the schema")
    found = {field.name: _of_type(field.type) for field in schema}
    return {name: kind for name, kind in found.items() if kind is not None}


def dimensions_of_values(events: Iterable[Any]) -> dict[str, Any]:
    """Return the dimensions of dictionaries, each the narrowest type that holds all of its values."""
    found: dict[str, Any] = {}
    spelled: dict[str, tuple[str, ...]] = {}
    for row, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise SpaceError(f"event {row} is not a dictionary: {event!r}")
        for path, value, repeated in _leaves(event, (), repeated=False):
            name = ".".join(path)
            if spelled.setdefault(name, path) != path:
                raise SpaceError(f"{name} is given twice, as {spelled[name]} and as {path}; leave one of them out")
            _widen(found, name, value, repeated)
    return {name: kind for name, kind in found.items() if kind is not None}


def _refuse_twice(names: list[str], where: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len({*names}) < len(names) else []
    if twice:
        raise SpaceError(f"{where} has several fields {twice[0]!r}; give each a name of its own")


def _of_type(arrow_type: pa.DataType) -> Any:
    """Return the dimension of an Arrow type, nested dimensions for a struct, or None."""
    if pa.types.is_dictionary(arrow_type):
        return _of_type(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        _refuse_twice([field.name for field in arrow_type], "a struct")
        inner = {field.name: _of_type(field.type) for field in arrow_type}
        return {name: kind for name, kind in inner.items() if kind is not None} or None
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        return _repeated(_of_type(arrow_type.value_type))
    return _scalar(arrow_type)


def _repeated(inner: Any) -> Any:
    """Return the repeated form of what stands in a list: every field below it is repeated, however deep."""
    if isinstance(inner, dict):
        return {name: _repeated(kind) for name, kind in inner.items()}
    return Repeated(inner) if isinstance(inner, Scalar) else inner


def _scalar(arrow_type: pa.DataType) -> Scalar | None:
    types = pa.types
    if types.is_boolean(arrow_type):
        return Boolean()
    if types.is_uint64(arrow_type):
        return Number("decimal(20, 0)")
    if types.is_integer(arrow_type):
        return Number("int64")
    if types.is_floating(arrow_type):
        return Number("double")
    if types.is_decimal(arrow_type) and arrow_type.precision <= 38 and arrow_type.scale >= 0:
        return Number(f"decimal({arrow_type.precision}, {arrow_type.scale})")
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return Text()
    if types.is_timestamp(arrow_type):
        return Time("timestamp" if arrow_type.tz else "timestamp_ntz")
    if types.is_date(arrow_type):
        return Time("date")
    return None


def _leaves(event: Mapping[str, Any], above: tuple[str, ...], *, repeated: bool) -> Iterator[tuple[Any, ...]]:
    """Yield (path, value, whether it is one of several) for every single value of an event."""
    if len(above) > MOST_NESTED:
        raise SpaceError(f"{'.'.join(above[:3])}...: values are nested more than {MOST_NESTED} deep")
    for name, value in event.items():
        path = (*above, str(name))
        if isinstance(value, Mapping):
            yield from _leaves(value, path, repeated=repeated)
        elif isinstance(value, (list, tuple, set, frozenset)):
            value = elements_of(value, path)
            structs = [element for element in value if isinstance(element, Mapping)]
            for struct in structs:
                yield from _leaves(struct, path, repeated=True)
            if len(structs) < len(value) or not structs:
                yield path, None, True
            for element in value:
                if not isinstance(element, Mapping):
                    yield path, element, True
        else:
            yield path, value, repeated


def _widen(found: dict[str, Any], name: str, value: Any, repeated: bool) -> None:
    """Widen what was found of a field so far by one value."""
    held = found.get(name)
    inner = _wider(name, held.of if isinstance(held, Repeated) else held, _of_value(name, value))
    repeated |= isinstance(held, Repeated)
    found[name] = Repeated(inner) if repeated and inner is not None else inner


def _of_value(path: str, value: Any) -> Scalar | None:
    """Return the type of one Python value; None says nothing."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    for kind, scalar in (
        (bool, Boolean()),
        (int, Number("int64")),
        (float, Number("double")),
        (str, Text()),
        (date, Time("date")),
        ((IPv4Address, IPv6Address), Address()),
    ):
        if isinstance(value, kind) and not isinstance(value, datetime):
            return scalar
    if isinstance(value, datetime):
        return Time("timestamp" if value.tzinfo else "timestamp_ntz")
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        return Number(f"decimal({max(len(digits) + max(0, int(exponent)), scale, 1)}, {scale})")
    raise SpaceError(f"{path}: no dimension holds {brief(value)}")


def _wider(path: str, held: Scalar | None, new: Scalar | None) -> Scalar | None:
    """Return the type that holds both."""
    if held is None or new is None or held == new:
        return held or new
    if isinstance(held, Number) and isinstance(new, Number):
        return _wider_number(held, new)
    raise SpaceError(f"{path}: some values are {held.type}, some {new.type}; declare the space")


def _wider_number(held: Number, new: Number) -> Number:
    if "double" in (held.kind, new.kind):
        return Number("double")
    (whole, scale), (other_whole, other_scale) = (
        (19, 0) if number.kind == "int64" else (number.decimal[0] - number.decimal[1], number.decimal[1])
        for number in (held, new)
    )
    scale = max(scale, other_scale)
    return Number(f"decimal({min(38, max(whole, other_whole) + scale)}, {scale})")
