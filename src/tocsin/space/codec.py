"""What a codec is: order-preserving codes of one type of values, and the domain of those values.

Not every code is a value's. Each codec says which are, in `Codec.holds`: an interval of codes that holds no value of
its domain makes the box of a subscription empty (see `domains`), and a range that holds none is refused (`Codec.span`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import HIGHEST, LOWEST
from tocsin.language.literals import Literals
from tocsin.language.tree import Constant, Kind

Codes = npt.NDArray[np.int64]


class Cuts(NamedTuple):
    """Where constants fall: the greatest code not above each (NULL if none), the least not below it (if not ``above``
    all)."""

    floor: Codes
    ceil: Codes
    above: npt.NDArray[np.bool_]


class Ends(NamedTuple):
    """The bounds of a range, None where there is none, and which of them do not belong to it."""

    low: Any
    high: Any
    left_open: bool = False
    right_open: bool = False

    def __str__(self) -> str:
        left = "(" if self.left_open or self.low is None else "["
        right = ")" if self.right_open or self.high is None else "]"
        low, high = "-∞" if self.low is None else self.low, "∞" if self.high is None else self.high
        return f"{left}{low}, {high}{right}"


class ValueProblem(Exception):  # noqa: N818 - carried to the caller, who knows the row and the field
    """A value does not fit its dimension: ``row`` within the array, and what is wrong with it."""

    def __init__(self, reason: str, row: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.row = reason, row


class Codec(ABC):
    """Codes of one type of values."""

    kinds: ClassVar[frozenset[Kind]]
    expects: ClassVar[str]
    least: int = LOWEST
    """No value has a code below this one."""
    greatest: int = HIGHEST
    """No value has a code above this one."""
    wider: ClassVar[bool] = False
    """Whether a column may hold values beyond the domain, which are compared as they are."""

    def holds(self, low: int, high: int) -> bool:
        """Return whether a value of the domain has a code from ``low`` to ``high``."""
        return max(low, self.least) <= min(high, self.greatest)

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:
        """Return which intervals of codes, none crossed, may be without a value: those to ask `holds` about."""
        return (low > self.greatest) | (high < self.least)

    def place(self, value: Any) -> int:
        """Return the code of a value that is kept: whatever is subscribed later, it stays that of this value."""
        return self.code(value)

    def span(self, ends: Ends, *, keep: bool = False) -> tuple[int, int]:
        """Return the least and the greatest code of a range, the same twice if it holds one value; ValueProblem if it
        holds none. ``keep`` as in `place`."""
        low = self.least if ends.low is None else self.edge(ends.low, 1, ends.left_open)
        high = self.greatest if ends.high is None else self.edge(ends.high, -1, ends.right_open)
        least, most = max(low, self.least), min(high, self.greatest)
        if least > most:
            crossed = ends.low is not None and ends.high is not None
            if crossed and self.edge(ends.low, -1, False) > self.edge(ends.high, 1, False):
                raise ValueProblem(f"the lower bound of {ends} is above the upper")
            raise ValueProblem(f"{ends} holds no value")
        if least == most or self.wider:  # a point beyond the domain is not in the range
            return max(least, LOWEST), max(most, LOWEST)
        low = LOWEST if ends.low is None else max(low, LOWEST)
        return low, HIGHEST if ends.high is None else max(min(high, HIGHEST), LOWEST)

    def edge(self, value: Any, inwards: int, is_open: bool) -> int:
        """Return the code of the last value within a bound, which may lie beyond all codes; ``inwards`` is 1 for a
        lower bound and -1 for an upper one."""
        return self.code(value) + (inwards if is_open else 0)

    @abstractmethod
    def codes(self, values: pa.Array) -> Codes:
        """Return the code of each value, NULL for null; raise ValueProblem for the first that does not fit."""

    def write(self, values: pa.Array, codes: Codes) -> None:
        """Write the code of each value to ``codes``; where values are their own codes, in one pass."""
        codes[:] = self.codes(values)

    def are_codes(self, values: pa.Array) -> bool:
        """Return whether values are their own codes, but for any below `LOWEST`, whose code that is."""
        return False

    @abstractmethod
    def code(self, value: Any) -> int:
        """Return the code of one Python value that is not None; raise ValueProblem if it does not fit."""

    def check(self, value: Any) -> None:
        """Raise ValueProblem if a Python value that is not None does not fit, without looking for its code."""
        self.code(value)

    @abstractmethod
    def cut(self, constants: Literals) -> Cuts:
        """Return where constants fall on the axis; raise ValueProblem for the first that cannot be compared."""

    def cut_alone(self, constant: Constant) -> tuple[int, int] | None:
        """Return the greatest code not above one constant and the least not below it, however far outside; None where
        constants are cut together only."""
        return None

    @property
    def alike(self) -> Hashable:
        """What two codecs have equal only if they cut every constant alike; None if this one is like no other."""
        return None
