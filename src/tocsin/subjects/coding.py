"""From the values of regions to codes that stay: what a stored region mentions becomes a key of its axis.

An event's text may be coded by its neighbours, since it is asked about once. A stored one must keep its code while
subscriptions come and go, so its texts (addresses, long decimals) are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.errors import EventError, RegionError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes
from tocsin.space.codes import Codec, Direct, Integers, ValueProblem
from tocsin.space.events import Path, value_at
from tocsin.space.intervals import Interval, codes_of, column_codes, is_range
from tocsin.space.listed import Texts
from tocsin.space.space import nearest_of

_SPANS = frozenset({tuple, Interval, set, frozenset, dict})
"""The types of values that are not one point."""


class Place(NamedTuple):
    """An axis on which a field has codes."""

    axis: int
    codec: Codec


class Coder:
    """Codes of the values of stored regions, on all axes of a space that are in use."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._places: dict[Path, list[Place]] = {}
        self._direct: dict[str, tuple[int, Callable[[Any], int]]] = {}
        self._whole: dict[str, int] = {}
        self._known = 0
        anything = axes.space.unspecified == "any"
        self.absent = (LOWEST, HIGHEST) if anything else (NULL, NULL)

    @property
    def places(self) -> dict[Path, list[Place]]:
        """The axes of each field, the field's own first."""
        if self._known < len(self.axes):
            for axis in range(self._known, len(self.axes)):
                key = self.axes.keys[axis]
                self._places.setdefault(key.path, []).append(Place(axis, self.axes.codecs[axis]))
            self._known = len(self.axes)
            self._direct = {
                path[0]: (found[0].axis, found[0].codec.code)
                for path, found in self._places.items()
                if len(path) == len(found) == 1 and isinstance(found[0].codec, Direct)
            }
            self._whole = {
                path[0]: found[0].axis
                for path, found in self._places.items()
                if len(path) == len(found) == 1 and type(found[0].codec) is Integers
            }
        return self._places

    def points(self, values: Mapping[str, Any]) -> tuple[Int64s, Int64s] | None:
        """Return the axes and codes of values that are single and need no listing; None if some are not."""
        if self._known < len(self.axes):
            self.places  # noqa: B018 - learns the new axes
        direct, axes, codes = self._direct, [], []
        if set(map(type, values.values())) == {int}:  # most often all of them: then all at once
            try:
                axes = [self._whole[name] for name in values]
                whole = np.array(list(values.values()), np.int64)
                return np.array(axes, np.int64), np.maximum(whole, LOWEST, out=whole)
            except (KeyError, OverflowError):
                axes = []
        for name, value in values.items():
            place = direct.get(name)
            if place is None or value is None or type(value) in _SPANS:
                return None
            try:
                codes.append(place[1](value))
            except ValueProblem:
                return None
            axes.append(place[0])
        return np.array(axes, np.int64), np.array(codes, np.int64)

    def path_of(self, name: str) -> Path:
        """Return the field that a name means; RegionError names the nearest."""
        path = tuple(str(name).split("."))
        if not isinstance(name, str) or path not in self.places:
            raise RegionError(f"there is no dimension {name}; {nearest_of(str(name), list(self.axes.space))}")
        return path

    def flat(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by dotted name, those in nested dictionaries too."""
        if all((name,) in self.places for name in values):
            return dict(values)
        found: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, Mapping):
                inner = [".".join(path) for path in self.places if path[0] == name and len(path) > 1]
                unknown = set(_leaves(value, (name,))) - set(inner)
                if not inner or unknown:
                    self.path_of(min(unknown, default=name))
                found |= {each: value_at({name: value}, tuple(each.split("."))) for each in inner}
            else:
                found[name] = value
        return found

    def put(self, low: Int64s, high: Int64s, name: str, value: Any) -> None:
        """Write the codes of one field of a row; None is absent."""
        path = (name,)
        places = self.places.get(path) or self.places[self.path_of(name)]
        for axis, codec in places:
            if value is None:
                low[axis], high[axis] = self.absent
                continue
            try:
                low[axis], high[axis] = codes_of(codec, value, keep=True)
            except ValueProblem as problem:
                raise EventError(f"field {name}: {problem.reason}; {expected(codec, value)} is expected") from None

    def columns(self, name: str, column: pa.Array) -> list[tuple[int, Int64s, Int64s]]:
        """Return (axis, low, high) of one column of publications, for each axis of its field."""
        found = []
        for axis, codec in self.places[self.path_of(name)]:
            try:
                low, high = column_codes(codec, column, keep=True)
            except ValueProblem as problem:
                error = EventError(f"row {problem.row}, field {name}: {problem.reason}; {codec.expects} is expected")
                error.row = problem.row  # type: ignore[attr-defined]
                raise error from None
            missing = low == NULL
            if self.absent[0] != NULL and missing.any():
                low, high = np.where(missing, self.absent[0], low), np.where(missing, self.absent[1], high)
            found.append((axis, low, high))
        return found

    def derived(self, axis: int, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
        """Return the codes on a new derived axis of rows whose codes on the field's own axis are given."""
        key = self.axes.keys[axis]
        own, codec = self.axes.codecs[self.axes.number(AxisKey(key.path))], self.axes.codecs[axis]
        assert isinstance(own, Texts) and isinstance(codec, Texts)  # only texts are derived from
        points = (low == high) & (low != NULL)
        distinct, which = np.unique(low[points], return_inverse=True)
        codes = [codec.place(own.book.key_near(int(code))[0].decode()) for code in distinct]
        new_low, new_high = np.where(low == NULL, NULL, LOWEST), np.where(low == NULL, NULL, HIGHEST)
        new_low[points] = new_high[points] = np.array(codes, np.int64)[which]
        return new_low, new_high


def expected(codec: Codec, value: Any) -> str:
    """Return what would have been right in the place of a value."""
    if is_range(value):
        return f"an interval that holds {codec.expects}"
    if isinstance(value, (list, dict)):
        return f"{codec.expects}, an interval (low, high) or a set of them"
    return codec.expects


def _leaves(value: Mapping[str, Any], above: Sequence[str]) -> list[str]:
    found = []
    for name, inner in value.items():
        here = (*above, name)
        found += _leaves(inner, here) if isinstance(inner, Mapping) else [".".join(here)]
    return found
