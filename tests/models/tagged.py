"""Python values as JSON and back, exactly: what JSON has no word for is an object of one tagged entry."""

from __future__ import annotations

import ipaddress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tocsin import Interval

SAFE = 2**53
"""Whole numbers up to this are plain JSON numbers; beyond it some readers of JSON round."""


def to_json(value: Any) -> Any:
    """Return a value as JSON values that `from_json` reads back as the same."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= SAFE else {"int": str(value)}
        case float():
            return {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Interval():
            return {"interval": [to_json(value.low), to_json(value.high), value.closed]}
        case ipaddress.IPv4Address() | ipaddress.IPv6Address():
            return {"address": str(value)}
        case frozenset() | set():
            return {"set": sorted((to_json(each) for each in value), key=repr)}
        case tuple():
            return {"tuple": [to_json(each) for each in value]}
        case list():
            return [to_json(each) for each in value]
        case dict():
            if all(isinstance(name, str) for name in value):
                return {"dict": {name: to_json(each) for name, each in value.items()}}
            return {"pairs": [[to_json(name), to_json(each)] for name, each in value.items()]}
    raise TypeError(value)


def from_json(data: Any) -> Any:
    """Return the value that `to_json` wrote."""
    if isinstance(data, list):
        return [from_json(each) for each in data]
    if not isinstance(data, dict):
        return data
    ((tag, held),) = data.items()
    match tag:
        case "int":
            return int(held)
        case "float":
            return float(held)
        case "decimal":
            return Decimal(held)
        case "datetime":
            return datetime.fromisoformat(held)
        case "date":
            return date.fromisoformat(held)
        case "interval":
            return Interval(from_json(held[0]), from_json(held[1]), held[2])
        case "address":
            return ipaddress.ip_address(held)
        case "set":
            return frozenset(from_json(each) for each in held)
        case "tuple":
            return tuple(from_json(each) for each in held)
        case "dict":
            return {name: from_json(each) for name, each in held.items()}
        case "pairs":
            return {from_json(name): from_json(each) for name, each in held}
    raise ValueError(f"no such tag: {tag}")
