"""What every type of dimension says of itself, and constants as Spark SQL writes them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any


class Misfit(Exception):  # noqa: N818
    """A value that its dimension does not take."""


def order(one: Any, other: Any) -> int:
    """Return -1, 0 or 1 for two values of an ordered type."""
    return (one > other) - (one < other)


class Kind(ABC):
    """A type of dimension."""

    name: str
    ordered = True
    finite = False
    """Whether all values of the domain are among the witnesses, whatever the constants."""

    @abstractmethod
    def declare(self) -> Any:
        """Return the dimension as Tocsin declares it."""

    @abstractmethod
    def read(self, given: Any) -> Any:
        """Return the value that something given in a publication or an event is."""

    def constant(self, given: Any) -> Any:
        """Return the value that a constant of a subscription is compared as."""
        return self.read(given)

    def compare(self, value: Any, constant: Any) -> int:
        """Return the order of a value and of a constant, both read."""
        return order(value, constant)

    @abstractmethod
    def near(self, constant: Any) -> Iterable[Any]:
        """Return the values of the domain that lie at, next below and next above a constant."""

    def ends(self) -> Iterable[Any]:
        """Return the least and greatest values of the domain."""
        return ()

    def sql(self, constant: Any) -> str:
        """Return a constant as Spark SQL."""
        return literal(constant)

    @abstractmethod
    def arrow(self) -> list[Any]:
        """Return the Arrow types whose columns may hold this dimension; the first holds every value."""


def literal(constant: Any) -> str:
    """Return a constant as Spark SQL writes it."""
    match constant:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if constant else "FALSE"
        case float():
            if math.isnan(constant):
                return "CAST('NaN' AS DOUBLE)"
            if math.isinf(constant):
                return "1e400" if constant > 0 else "-1e400"
            return f"{constant!r}D" if "e" not in repr(constant) else repr(constant)
        case int():
            return str(constant)
        case Decimal():
            text = format(constant, "f")
            return text if "." in text else f"{text}BD"
        case str():
            escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 else f"\\{c}" if c in "\\'" else c for c in constant)
            return f"'{escaped}'"
        case datetime():
            if constant.tzinfo is None:
                return f"TIMESTAMP_NTZ '{constant.isoformat(' ')}'"
            return f"TIMESTAMP '{constant.isoformat(' ')}'"
        case date():
            return f"DATE '{constant.isoformat()}'"
    raise TypeError(constant)
