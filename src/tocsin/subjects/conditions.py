"""Operators in the regions of subscriptions: what they say of stored rows, asked when a pair is decided.

A box whose conjunction calls operators has, in place of the number of its program, one from `CONDITIONAL` on, which
stands for its program and its condition. A row is handed to operators as an event: its codes are read back to the
values of its dimensions. A dimension that spans a range is unknown to an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import NULL, Int32s, Int64s, Queries
from tocsin.language.symbolic import AxisKey
from tocsin.matcher.refining import Deciding
from tocsin.operators.conditions import Conditions
from tocsin.operators.operator import Operator
from tocsin.operators.registry import Registry
from tocsin.space.axes import Axes
from tocsin.space.columns import Column
from tocsin.space.decoding import decoded, single
from tocsin.space.events import Encoded, Encoder
from tocsin.space.space import Space
from tocsin.subjects.stores import Rows

CONDITIONAL = 2**30
"""Numbers of programs from here on stand for a program and a condition."""


class RowConditions:
    """The conditions of the boxes of one plane, and what they come to for its rows.

    ``open`` are pairs that a failed call leaves open. While ``counts_open``, those count as TRUE, otherwise as FALSE.
    """

    def __init__(self, space: Space, operators: Iterable[Operator]) -> None:
        self.operators = Registry(space.operators.values(), operators)
        self.conditions = Conditions()
        self.counts_open = False
        self._deciding = Deciding(space, "adaptive")
        self._parts: list[tuple[int, int]] = []
        self._number_of: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[int, int], bool | None] = {}

    def __len__(self) -> int:
        return len(self._parts)

    # Numbers

    def numbered(self, programs: Int32s, conditions: Int32s) -> Int32s:
        """Return the programs of boxes, those with a condition (not -1) renumbered."""
        found = programs.copy()
        for at in np.flatnonzero(conditions >= 0).tolist():
            part = int(programs[at]), int(conditions[at])
            number = self._number_of.setdefault(part, len(self._parts))
            if number == len(self._parts):
                self._parts.append(part)
            found[at] = CONDITIONAL + number
        return found

    def programs_of(self, numbers: Int32s) -> Int32s:
        """Return the programs themselves, -1 for none."""
        found = numbers.copy()
        for at in np.flatnonzero(numbers >= CONDITIONAL).tolist():
            found[at] = self._parts[int(numbers[at]) - CONDITIONAL][0]
        return found

    def compacted(self, numbers: Int32s, programs: Int32s) -> Int32s:
        """Return new numbers for those in use, whose programs are now these; conditions of no others are kept."""
        before, held = self.conditions, self._parts
        conditions = np.full(len(numbers), -1, np.int32)
        self.conditions, self._parts, self._number_of = Conditions(), [], {}
        for at in np.flatnonzero(numbers >= CONDITIONAL).tolist():
            checks = before.sources[held[int(numbers[at]) - CONDITIONAL][1]]
            conditions[at] = self.conditions.number(checks)
        return self.numbered(programs, conditions)

    # Deciding

    def begin(self) -> None:
        """Forget what was asked: rows have changed since."""
        self._known.clear()
        self.counts_open = False

    @property
    def has_open(self) -> bool:
        """Whether a failed call has left a pair open."""
        return None in self._known.values()

    def accept(
        self, axes: Axes, stored: Rows, absent: tuple[int, int], rows: Int32s, numbers: Int32s
    ) -> npt.NDArray[np.bool_]:
        """Return which pairs of a stored row and a number hold; each is asked about once until `begin`."""
        keys = list(zip(rows.tolist(), numbers.tolist(), strict=True))
        unknown: dict[int, list[int]] = {}
        for at, key in enumerate(keys):
            if key not in self._known:
                unknown.setdefault(key[0], []).append(at)
        for row, places in unknown.items():
            event = _event(axes, stored.low[row], stored.high[row], absent)
            wanted = list(dict.fromkeys(keys[at][1] for at in places))
            for number, truth in zip(wanted, self._truths(axes, event, wanted), strict=True):
                self._known[row, number] = truth
        found = [self._known[key] for key in keys]
        return np.array([self.counts_open if truth is None else truth for truth in found], bool)

    def _truths(self, axes: Axes, event: Encoded, numbers: list[int]) -> list[bool | None]:
        """Return what conditions come to for one event: None where a failed call might have made one TRUE."""
        from tocsin.operators.events import Events  # what evaluates operators is long to import, and seldom needed

        conditions = np.array([self._parts[number - CONDITIONAL][1] for number in numbers], np.int32)
        return self._deciding.evaluator.truths(self.conditions, Events(event, Encoder(axes).operands), conditions)

    def stats(self) -> dict[str, Any]:
        """Return what is known of operators by their names."""
        return self._deciding.learned()


def _event(axes: Axes, low: Int64s, high: Int64s, absent: tuple[int, int]) -> Encoded:
    """Return the codes of one row as an event."""
    source: dict[str, Any] = {}
    ranged: dict[tuple[str, ...], npt.NDArray[np.bool_]] = {}
    for key in dict.fromkeys(AxisKey(each.path) for each in axes.keys):
        axis = axes.number(key)
        least, most = int(low[axis]), int(high[axis])
        if least != NULL and single(axes, key.path, low[:, None], high[:, None])[0]:
            _put(source, key.path, decoded(axes, key.path, low[:, None], high[:, None])[0].as_py())
        elif (least, most) not in (absent, (NULL, NULL)):
            ranged[key.path] = np.ones(1, bool)
    return Encoded(1, Queries(low[:, None], high[:, None]), None, _Row(source), None, ranged)


def _put(source: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        source = source.setdefault(name, {})
    source[path[-1]] = value


class _Row(dict[tuple[str, ...], Column]):
    """No columns: operators read the dictionary that a row is handed over as."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__()
        self.source = source
