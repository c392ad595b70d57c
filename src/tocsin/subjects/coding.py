"""From the values of regions to codes that stay: what a stored region mentions becomes a key of its axis.

An event's text may be coded by its neighbours, since it is asked about once. A stored one must keep its code while
subscriptions come and go, so its texts (addresses, long decimals) are listed. A dictionary and a table are read by the
same rules, those of events: names and synonyms, words, units and companions (`Readings`), then codes (`codes_of` for
one value, `column_codes` for a column).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError, RegionError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes
from tocsin.space.codes import Codec, Direct, Integers, ValueProblem
from tocsin.space.columns import Column, Path
from tocsin.space.decoding import decoded, single
from tocsin.space.intervals import Interval, codes_of, column_codes, is_range, is_ranged
from tocsin.space.listed import Texts
from tocsin.space.reading import Readings
from tocsin.space.schema import MOST_NESTED
from tocsin.space.space import nearest_of

_SPANS = frozenset({tuple, Interval, set, frozenset, dict})
"""The types of values that are not one point."""

MOST_NAMES = 100_000
"""How many dimensions one region may name."""

Given = Mapping[Path, Any]
"""What a region says: values by the names that they stand under, those of nested dictionaries apart."""


class NewAxisError(Exception):
    """A value needs an axis that stored rows have not got yet: the step begins anew once they have. Internal."""


class Place(NamedTuple):
    """An axis on which a field has codes."""

    axis: int
    codec: Codec


class Coder:
    """Codes of the values of stored regions, on all axes of a space that are in use."""

    def __init__(self, axes: Axes) -> None:
        self.axes, space = axes, axes.space
        self._readings = Readings(space)
        self._dimensions = {path: path for path in space.paths() if path not in space.derived}
        self._dimensions |= {tuple(alias.split(".")): path for alias, path in space.synonyms.items()}
        self._above = {path[:depth] for path in self._dimensions for depth in range(1, len(path))}
        self._formulas = [path for path in space.paths() if path in space.derived]
        self._given_axes = np.empty(0, np.int64)
        self._places: dict[Path, list[Place]] = {}
        self._direct: dict[str, tuple[int, Callable[[Any], int]]] = {}
        self._whole: dict[str, int] = {}
        self._known = 0
        anything = space.unspecified == "any"
        self.absent = (LOWEST, HIGHEST) if anything else (NULL, NULL)

    @property
    def places(self) -> dict[Path, list[Place]]:
        """The axes of each field, the field's own first."""
        if self._known < len(self.axes):
            for axis in range(self._known, len(self.axes)):
                key = self.axes.keys[axis]
                self._places.setdefault(key.path, []).append(Place(axis, self.axes.codecs[axis]))
            self._known = len(self.axes)
            computed = np.array([key.path in self.axes.space.derived for key in self.axes.keys], bool)
            self._given_axes = np.flatnonzero(~computed)
            alone = {
                path[0]: found[0]
                for path, found in self._places.items()
                if len(path) == len(found) == 1 and path in self._dimensions and path not in self._readings
            }
            if not self._formulas:  # what is computed from them would have to be computed anew
                self._direct = {
                    name: (axis, codec.code) for name, (axis, codec) in alone.items() if isinstance(codec, Direct)
                }
                self._whole = {name: axis for name, (axis, codec) in alone.items() if type(codec) is Integers}
        return self._places

    def points(self, values: Mapping[str, Any]) -> tuple[Int64s, Int64s] | None:
        """Return the axes and codes of values that are single and need no listing; None if some are not."""
        if self._known < len(self.axes):
            self.places  # noqa: B018 - learns the new axes
        direct, axes, codes = self._direct, [], []
        if set(map(type, values.values())) == {int}:  # most often all of them: then all at once
            try:
                axes = [self._whole[name] for name in values]
                if min(values.values()) > LOWEST:
                    return np.array(axes, np.int64), np.array(list(values.values()), np.int64)
                return None
            except (KeyError, OverflowError):
                axes = []
        for name, value in values.items():
            place = direct.get(name)
            if place is None or value is None or type(value) in _SPANS:
                return None
            try:
                code = place[1](value)
            except ValueProblem:
                return None
            if code == LOWEST:
                return None
            axes.append(place[0])
            codes.append(code)
        return np.array(axes, np.int64), np.array(codes, np.int64)

    def constrained(self, low: Int64s, high: Int64s) -> npt.NDArray[np.bool_]:
        """Return which rows, int64[axes, rows], say something of a dimension that is given; computed ones are not."""
        if self._known < len(self.axes):
            self.places  # noqa: B018 - learns the new axes
        mine = self._given_axes
        found: npt.NDArray[np.bool_] = ((low[mine] != self.absent[0]) | (high[mine] != self.absent[1])).any(axis=0)
        return found

    # Names

    def flat(self, values: Mapping[str, Any]) -> Given:
        """Return values by name, those in nested dictionaries too; RegionError for a name that is not there."""
        found, unknown = self.sorted_out(values)
        for path in sorted(unknown):
            raise self.unknown(path)
        return found

    def sorted_out(self, values: Mapping[str, Any]) -> tuple[Given, set[Path]]:
        """Return values by name, those in nested dictionaries too, and the names that are not there."""
        found: dict[Path, Any] = {}
        unknown: set[Path] = set()
        for count, (path, value) in enumerate(self._leaves(values, (), ())):
            if count >= MOST_NAMES:
                raise RegionError(f"a region names more than {MOST_NAMES:,} dimensions")
            if path not in self._dimensions:
                unknown.add(path)
            elif path in found:
                raise RegionError(f"{'.'.join(path)} is given twice, by its name and in a dictionary")
            else:
                found[path] = value
        return found, unknown

    def _leaves(self, values: Mapping[Any, Any], above: Path, within: tuple[int, ...]) -> Iterator[tuple[Path, Any]]:
        """Yield what dictionaries hold, each by its path; what holds itself is no deeper than that."""
        within = (*within, id(values))
        for name, value in values.items():
            path = (*above, *name.split(".")) if isinstance(name, str) else (*above, str(name), "")
            deeper = isinstance(value, Mapping) and id(value) not in within and len(within) <= MOST_NESTED
            if deeper and path not in self._dimensions:
                yield from self._leaves(value, path, within)
            else:
                yield path, value

    def unknown(self, path: Path) -> RegionError:
        """Return what is wrong with a name that is not that of a dimension that can be given."""
        name = ".".join(path).rstrip(".")
        if path in self.axes.space.derived:
            return RegionError(f"{name} is computed from other dimensions: give those")
        return RegionError(f"there is no dimension {name}; {nearest_of(name, list(self.axes.space))}")

    # Values

    def meant(self, given: Given) -> Iterator[tuple[Path, Any]]:
        """Yield the dimensions that are given, each with its value wherever that comes from."""
        done = set()
        for name, value in given.items():
            path = self._dimensions[name]
            if path in done:
                continue
            done.add(path)
            if path in self._readings:
                try:
                    value = self._readings.value(given.get, path)
                except ValueProblem as problem:
                    raise EventError(f"field {'.'.join(path)}: {problem.reason}") from None
            yield path, value

    def named(self, given: Given) -> Given:
        """Return what is given by the names of the dimensions."""
        return {self._dimensions[name]: value for name, value in given.items()}

    def others_of(self, given: Given, names: Iterable[str]) -> list[str]:
        """Return those of some names that mean a dimension which is given under another name."""
        meant = {self._dimensions[name]: ".".join(name) for name in given}
        paths = {name: self._dimensions.get(tuple(name.split("."))) for name in names}
        return [name for name, path in paths.items() if path in meant and meant[path] != name]

    def put(self, low: Int64s, high: Int64s, given: Given) -> None:
        """Write the codes of what is given of a row, ``low`` and ``high`` int64[axes]; None is absent."""
        for path, value in self.meant(given):
            for axis, codec in self.places[path]:
                if value is None:
                    low[axis], high[axis] = self.absent
                    continue
                try:
                    low[axis], high[axis] = codes = codes_of(codec, value, keep=True)
                    if type(codec) is Integers and LOWEST in codes:
                        self.tell_least_apart(path)
                except ValueProblem as problem:
                    reason = f"field {'.'.join(path)}: {problem.reason}; {expected(codec, value)} is expected"
                    raise EventError(reason) from None

    def columns(self, table: Mapping[str, pa.Array]) -> list[tuple[int, Int64s, Int64s]]:
        """Return (axis, low, high) of the columns of a table of publications."""
        raw = {path: Column(column) for name, column in table.items() for path, column in self._parts((name,), column)}
        rows = len(next(iter(table.values())))
        found = []
        for path in dict.fromkeys(self._dimensions[name] for name in raw):
            codec = self.places[path][0].codec
            try:
                column = self._readings.column(raw.get, path, rows) if path in self._readings else raw[path]
                assert column is not None  # one of its names is there
                for axis, codec in self.places[path]:
                    low, high = column_codes(codec, column.values, keep=True)
                    if type(codec) is Integers and (low == LOWEST).any():
                        self.tell_least_apart(path)
                    missing = low == NULL
                    if missing.any():
                        low, high = np.where(missing, self.absent[0], low), np.where(missing, self.absent[1], high)
                    found.append((axis, low, high))
            except ValueProblem as problem:
                where = f"row {problem.row}, field {'.'.join(path)}"
                error = EventError(f"{where}: {problem.reason}; {codec.expects} is expected")
                error.row = problem.row  # type: ignore[attr-defined]
                raise error from None
        return found

    def tell_least_apart(self, path: Path) -> None:
        """Have the axis that tells the least whole number, which is about to be stored, from its neighbour."""
        if len(self.places[path]) == 1:
            self.axes.number(AxisKey(path, "least"))
            raise NewAxisError

    def _parts(self, path: Path, column: pa.Array) -> Iterator[tuple[Path, pa.Array]]:
        """Yield the columns of a column: itself, or what its structs hold."""
        path = (*path[:-1], *path[-1].split("."))
        if path in self._dimensions:
            if pa.types.is_string_view(column.type):
                column = column.cast(pa.large_string())
            yield path, column
        elif path in self._above and pa.types.is_struct(column.type) and not is_ranged(column.type):
            for field in column.type:
                yield from self._parts((*path, field.name), pc.struct_field(column, field.name))
        else:
            raise self.unknown(path)

    # What is computed

    def compute(self, low: Int64s, high: Int64s) -> None:
        """Write the codes of dimensions that are computed from others, ``low`` and ``high`` int64[axes, rows].

        Of a range nothing is known: what is computed from one spans its domain.
        """
        rows = low.shape[1]

        def raw(path: Path) -> Column | None:
            if path not in self.places or path not in self._dimensions:
                return None  # a synonym: the codes are those of the dimension that it means
            return Column(decoded(self.axes, path, low, high))

        for path in self._formulas:
            unknown = np.zeros(rows, bool)
            for name in self._sources(path):
                unknown |= ~single(self.axes, name, low, high)
            try:
                column = self._readings.column(raw, path, rows, missing="unspecified")
                assert column is not None  # what is missing is NULL
                for axis, codec in self.places[path]:
                    least, most = column_codes(codec, column.values, keep=True)
                    gone = least == NULL
                    least, most = np.where(gone, self.absent[0], least), np.where(gone, self.absent[1], most)
                    low[axis], high[axis] = np.where(unknown, LOWEST, least), np.where(unknown, HIGHEST, most)
            except ValueProblem as problem:
                raise EventError(f"row {problem.row}, field {'.'.join(path)}: {problem.reason}") from None

    def _sources(self, path: Path) -> list[Path]:
        """Return the dimensions that a formula is computed from, through other formulas too."""
        return [name for some in self._readings.sources(path) for name in some if name in self.places]

    def derived(self, axis: int, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
        """Return the codes on a new derived axis of rows whose codes on the field's own axis are given."""
        key = self.axes.keys[axis]
        own, codec = self.axes.codecs[self.axes.number(AxisKey(key.path))], self.axes.codecs[axis]
        if key.derivation == "least":  # a row with the least itself had it from the beginning: see tell_least_apart
            every = (low == LOWEST) & (high == HIGHEST)
            new_low = np.where(low == NULL, NULL, np.where(every, LOWEST, low > LOWEST))
            return new_low, np.where(low == NULL, NULL, np.where(every, HIGHEST, 1))
        assert isinstance(own, Texts) and isinstance(codec, Texts)  # only texts are derived from
        points = (low == high) & (low != NULL)
        distinct, which = np.unique(low[points], return_inverse=True)
        texts = pa.array([own.book.key_near(int(code))[0].decode() for code in distinct], pa.large_string())
        codes = codec.place_all(texts)  # together: one after another they would soon use up the room between labels
        new_low, new_high = np.where(low == NULL, NULL, LOWEST), np.where(low == NULL, NULL, HIGHEST)
        new_low[points] = new_high[points] = codes[which]
        return new_low, new_high


def expected(codec: Codec, value: Any) -> str:
    """Return what would have been right in the place of a value."""
    if is_range(value):
        return f"an interval that holds {codec.expects}"
    if isinstance(value, (list, dict)):
        return f"{codec.expects}, an interval (low, high) or a set of them"
    return codec.expects
