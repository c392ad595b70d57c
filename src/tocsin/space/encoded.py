"""Events as queries: codes on axes, and beside them the columns that programs look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.kernels.operators.programs import Facts
from tocsin.space.codes import Ends
from tocsin.space.columns import Column

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Events as queries. ``rows`` maps a query to its event, where repeated fields make several queries of an event.

    ``columns`` are the values themselves, for atoms; ``ranged`` says of which events a field is no single value, so
    that an atom may hold of it. Where an event has sets, its alternatives are events of their own and ``fold`` maps
    each to the event it belongs to. ``open`` has the ranges of fields below attributes that are tested, by row.
    """

    count: int
    queries: Queries
    rows: Int32s | None
    columns: Mapping[Path, Column]
    repeated_facts: Facts | None = None
    ranged: Mapping[Path, npt.NDArray[np.bool_]] = field(default_factory=dict)
    fold: Int64s | None = None
    open: Mapping[Path, list[Ends | None]] = field(default_factory=dict)

    @property
    def source(self) -> Any:
        """The events themselves: a record batch, or one dictionary."""
        return getattr(self.columns, "source", None)

    @property
    def facts(self) -> Facts:
        """What verification programs read of the events."""
        return self.repeated_facts or _plain_facts(*self.queries)


class LazyColumns(dict[Path, Column]):
    """The columns of events, each made when it is first asked for."""

    def __init__(self, make: Callable[[Path], Column], source: Any = None) -> None:
        super().__init__()
        self._make = make
        self.source = source

    def __missing__(self, path: Path) -> Column:
        self[path] = column = self._make(path)
        return column


def _plain_facts(low: Int64s, high: Int64s) -> Facts:
    """Return the facts of events without repeated fields."""
    repeated_of = np.full(low.shape[0], -1, np.int32)
    nothing = np.zeros((0, 0), np.int64), np.zeros(0, np.int64), np.zeros((0, 0), bool)
    return Facts(low, high, repeated_of, *nothing, False)
