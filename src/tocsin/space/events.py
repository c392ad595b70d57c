"""From events to queries: Arrow batches and dictionaries become codes on the axes in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError, MissingColumnError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s, Queries
from tocsin.kernels.picking import raise_to
from tocsin.language.arrays import numbers_of
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes, codec_of
from tocsin.space.codes import Codec, Ends, ValueProblem
from tocsin.space.columns import Column, Open, column_at, has_column, stacked
from tocsin.space.elements import (
    NONE_CHOSEN,
    Chosen,
    Elements,
    chosen_value,
    codes_of_elements,
    filled_in,
    objects,
    open_of,
    opened,
    with_elements,
)
from tocsin.space.encoded import Encoded as Encoded
from tocsin.space.encoded import LazyColumns
from tocsin.space.intervals import (
    Interval,
    alternatives,
    codes_of,
    column_codes,
    ends_of,
    exploded,
    is_range,
    is_ranged,
    is_set,
    single_texts,
)
from tocsin.space.listed import Texts
from tocsin.space.nested import elements_of, value_at, with_values
from tocsin.space.operands import Operands
from tocsin.space.reading import Readings, SetGiven
from tocsin.space.scalars import brief
from tocsin.space.space import nearest_of
from tocsin.space.typed import typed_value
from tocsin.space.types import Text

Path = tuple[str, ...]

_COPIED = 2**19
"""Up to so many codes are copied without NumPy, which would let go of Python's lock for each column, and wait."""

_MAPPINGS = frozenset({dict})
_MAY_HOLD_SETS = frozenset({set, frozenset, dict})
"""The types of values of an event in which a set of values may stand."""

_RANGES = frozenset({tuple, Interval, set, frozenset})
"""The types of values that are not one point."""

_NO_VALUE = ("presence", "least")
"""Axes on which values are not looked at, or not as such."""

_ATOM_TYPES = {"text": pa.string(), "int64": pa.int64()}


class _Reader(NamedTuple):
    """How an axis is read from a dictionary."""

    name: str
    path: Path
    codec: Codec
    code: Callable[[Any], int]
    repeated: bool
    special: bool


class Encoder:
    """Encodes events on the axes that subscriptions use at the moment of the call.

    ``verified`` are fields that programs look at: their values are checked as those of axes are, whether or not a
    program comes to look at them. ``operands`` are fields that operators receive, which a table must have. Both may
    grow.
    """

    def __init__(self, axes: Axes, verified: Sequence[Path] = (), operands: Sequence[Path] = ()) -> None:
        self._axes = axes
        self._verified, self._received = verified, operands
        self._beside: tuple[tuple[int, int], list[tuple[Path, Codec]]] = (0, 0), []
        self._space = axes.space
        self.readings = Readings(axes.space)
        self._plain = self.readings.plain()
        self._single = self.readings.single()
        self._flat = [path for path in self._single if len(path) == 1]
        self._readers: list[_Reader] = []
        self.operands = Operands(axes, self.readings, value_at)

    def batch(
        self, batch: pa.RecordBatch, *, missing: str = "error", sets: bool = False, chosen: Chosen = NONE_CHOSEN
    ) -> Encoded:
        """Return the queries of a batch; EventError names the first value that does not fit.

        ``sets``: a list in a field that is not repeated is a set of values, and not an error. ``chosen``: these values
        stand for the ranges of their fields.
        """
        axes = len(self._axes)
        batch, fold = exploded(batch, self._plain) if sets else (batch, None)
        if missing == "error":
            self._check_received(batch)
        columns = LazyColumns(lambda path: filled_in(self.column(batch, path, missing), chosen), batch)
        codes = np.empty((axes, batch.num_rows), np.int64)
        elements: Elements = {}
        open_: dict[Path, list[Ends | None]] = {}
        tops: dict[int, Int64s] = {}
        copied: list[int] = []
        wide: dict[Path, npt.NDArray[np.bool_]] = {}
        single: dict[Path, pa.Array] = {}
        for axis in range(axes):
            path = self._axes.keys[axis].path
            column, codec = columns[path], self._axes.codecs[axis]
            if self._axes.is_repeated(axis):
                known = self._codes(codec, column.values, path, column.offsets)
                elements[axis] = opened(codec, axis, known, column, chosen)
                open_ |= open_of(column, chosen)
                codes[axis] = NULL
            elif chosen and path in chosen and axis in chosen[path].codes:
                codes[axis] = chosen[path].codes[axis]
                continue
            elif column.present is not None:
                codes[axis] = np.where(column.present, LOWEST, NULL)
            elif is_ranged(column.values.type):
                codes[axis], tops[axis] = self._range_codes(axis, column.values)
                if isinstance(codec, Texts) and path not in single:
                    single[path] = single_texts(codec, column.values)
                    wide[path] = np.array(column.values.is_valid()) & np.array(single[path].is_null())
            elif codes.size <= _COPIED and column.spans is None and codec.are_codes(column.values):
                codes[axis].data[:] = numbers_of(column.values).data
                copied.append(axis)
            else:
                self._write(codec, column.values, path, codes[axis])
            if column.spans is not None:
                low, high = codec.span(Ends(None, None))
                tops[axis] = np.where(column.spans, high, codes[axis])
                codes[axis] = np.where(column.spans, low, codes[axis])
        for path, codec in self._beside_axes():
            self._codes(codec, columns[path].values, path, columns[path].offsets)
            open_ |= open_of(columns[path], chosen)
        if copied:
            raise_to(codes, np.array(copied), LOWEST)
        for path in {self._axes.keys[axis].path for axis in tops}:  # atoms look at single values
            if path in single:
                columns[path] = Column(single[path])
            elif is_ranged(columns[path].values.type):
                columns[path] = Column(pc.struct_field(columns[path].values, "low"))
        return self._encoded(batch.num_rows, codes, elements, columns, tops, fold, wide, open_)

    def _beside_axes(self) -> list[tuple[Path, Codec]]:
        """Return the fields that programs look at and whose values no axis has, with their codecs: repeated ones."""
        if not self._verified:
            return []
        seen = len(self._verified), len(self._axes)
        if self._beside[0] != seen:
            on_axes = {key.path for key in self._axes.keys if key.derivation not in _NO_VALUE}
            paths = dict.fromkeys(path for path in self._verified if path not in on_axes)
            self._beside = seen, [(path, codec_of(self._space, AxisKey(path))) for path in paths]
        return self._beside[1]

    def _check_received(self, batch: pa.RecordBatch) -> None:
        """Raise MissingColumnError if a batch lacks a column that operators receive."""
        for path in self._received:
            found = self._space.find(path) or path
            if not self.readings.is_there(lambda each: has_column(batch.schema, each), found):
                raise self._no_column(batch, found)

    def misfits(self, batch: pa.RecordBatch, *, missing: str = "error") -> dict[int, EventError]:
        """Return the rows of a batch with a value that does not fit, in order, each with its first such value."""
        found: dict[int, EventError] = {}
        fields = [(key.path, codec) for key, codec in zip(self._axes.keys, self._axes.codecs, strict=False)]
        for path, codec in (*fields, *self._beside_axes()):
            for row, reason in self._refused(batch, path, codec, missing, 0):
                found.setdefault(row, self._misfit(path, reason, codec, row))
        return dict(sorted(found.items()))

    def _refused(
        self, batch: pa.RecordBatch, path: Path, codec: Codec, missing: str, start: int
    ) -> Iterator[tuple[int, str]]:
        """Yield each row of a field that cannot be read or does not fit, and what is wrong with it; rows count from
        ``start``."""
        try:
            values, offsets, *_ = self.column(batch, path, missing)
        except EventError as error:
            if getattr(error, "row", None) is None:
                raise
            if batch.num_rows == 1:
                yield start, getattr(error, "reason", str(error))
                return
            middle = batch.num_rows // 2
            yield from self._refused(batch.slice(0, middle), path, codec, missing, start)
            yield from self._refused(batch.slice(middle), path, codec, missing, start + middle)
            return
        for place, reason in _problems(codec, values, 0, len(values)):
            row = place if offsets is None else int(np.searchsorted(offsets, place, "right")) - 1
            yield start + row, reason

    def one(self, event: Mapping[str, Any], chosen: Chosen = NONE_CHOSEN) -> Encoded:
        """Return the query of one dictionary; a field left out is unspecified. ``chosen`` as in `batch`."""
        if not isinstance(event, Mapping):
            raise EventError(f"an event is a dictionary, not {brief(event)}")
        if len(self._readers) < len(self._axes):
            self._readers = [self._reader(axis) for axis in range(len(self._axes))]
        types = set(map(type, event.values()))
        if not types.isdisjoint(_MAY_HOLD_SETS) and (sets := self._sets(event, types)):
            return self._alternatives(event, sets)
        wide: set[Path] = set()
        open_: dict[Path, Ends] = {}
        codes, elements, tops = self._codes_of(event, wide, open_, chosen)
        columns = LazyColumns(lambda path: self.lazy_column(event, path, chosen), event)
        ranged = {path: np.ones(1, bool) for path in wide}
        alone: dict[Path, list[Ends | None]] = {path: [ends] for path, ends in open_.items()}
        return self._encoded(1, np.array(codes, np.int64)[:, None], elements, columns, tops, None, ranged, alone)

    def _codes_of(
        self, event: Mapping[str, Any], wide: set[Path], open_: dict[Path, Ends], chosen: Chosen
    ) -> tuple[list[int], Elements, dict[int, Int64s]]:
        """Return the codes of one dictionary on each axis, those of the elements of repeated fields, and the highest
        ones of ranges. ``wide`` comes to hold the fields with ranges of several texts, ``open_`` the ranges below
        attributes."""
        codes: list[int] = []
        elements: Elements = {}
        tops: dict[int, Int64s] = {}
        for axis, (name, path, codec, code, repeated, special) in enumerate(self._readers):
            if special:
                value = self.value(event, path)
            elif len(path) == 1:
                value = event.get(name)
            else:
                value = value_at(event, path)
            if repeated:
                elements[axis] = self._elements_of(codec, axis, value, path, open_, chosen)
                codes.append(NULL)
            elif chosen and path in chosen and axis in chosen[path].codes:
                codes.append(chosen[path].codes[axis])
            elif value is None:
                codes.append(NULL)
            elif type(value) in _RANGES and path not in self._space.repeated:  # of a list, whether it is there
                try:
                    low, high = codes_of(codec, value)
                except ValueProblem as problem:
                    raise self._misfit(path, problem.reason, codec) from None
                codes.append(low)
                tops[axis] = np.array([high], np.int64)
                if isinstance(codec, Texts) and codec.only(ends_of(value)) is None:
                    wide.add(path)
            else:
                try:
                    codes.append(code(value))
                except ValueProblem as problem:
                    raise self._misfit(path, problem.reason, codec) from None
        for path, codec in self._beside_axes():
            self._elements_of(codec, -1, self.value(event, path), path, open_, chosen)
        return codes, elements, tops

    def _elements_of(
        self, codec: Codec, axis: int, value: Any, path: Path, open_: dict[Path, Ends], chosen: Chosen
    ) -> tuple[Int64s, Int64s]:
        """Return the codes of the elements of a repeated field; ``open_`` comes to hold the ranges among them."""
        listed = elements_of(value, path)
        open_ |= {each.member: each.ends for each in listed if type(each) is Open and each.member not in chosen}
        try:
            return codes_of_elements(codec, axis, listed, chosen)
        except ValueProblem as problem:
            raise self._misfit(path, problem.reason, codec) from None

    def _sets(self, event: Mapping[str, Any], types: set[type]) -> dict[Path, Any]:
        """Return the sets of values that fields of one value have in an event; deeper down if it has mappings."""
        paths = self._single if not types.isdisjoint(_MAPPINGS) else self._flat
        found = {}
        for path in paths:
            try:
                value = value_at(event, path)
            except EventError:  # told when a subscription looks at it
                continue
            if is_set(value):
                found[path] = value
        return found

    def _alternatives(self, event: Mapping[str, Any], sets: Mapping[Path, Any]) -> Encoded:
        """Return the queries of an event with sets: one for each combination of their members."""
        events = [with_values(event, chosen) for chosen in alternatives(sets, frozenset())]
        wide: list[set[Path]] = [set() for _ in events]
        ranges: list[dict[Path, Ends]] = [{} for _ in events]
        found = [self._codes_of(*each, NONE_CHOSEN) for each in zip(events, wide, ranges, strict=True)]
        codes = np.array([codes for codes, _, _ in found], np.int64).T
        elements: Elements = {}
        for axis in found[0][1]:
            low, high = (np.concatenate([some[axis][side] for _, some, _ in found]) for side in (0, 1))
            elements[axis] = low, low if np.array_equal(low, high) else high
        open_ = {path: [each.get(path) for each in ranges] for path in set().union(*ranges)}
        tops = {
            axis: np.array([tops[axis][0] if axis in tops else codes[axis] for codes, _, tops in found], np.int64)
            for axis in {axis for _, _, tops in found for axis in tops}
        }
        columns = LazyColumns(lambda path: stacked([self.lazy_column(one, path) for one in events]), events)
        ranged = {path: np.array([path in each for each in wide]) for path in set().union(*wide)}
        fold = np.zeros(len(events), np.int64)
        return self._encoded(len(events), codes, elements, columns, tops, fold, ranged, open_)

    def _reader(self, axis: int) -> _Reader:
        path, codec = self._axes.keys[axis].path, self._axes.codecs[axis]
        return _Reader(path[0], path, codec, codec.code, self._axes.is_repeated(axis), path in self.readings)

    def holds_text(self, path: Path) -> bool:
        """Return whether a field holds texts."""
        return isinstance(self._space.scalar(path), Text)

    def value(self, event: Mapping[str, Any], path: Path) -> Any:
        """Return the value of a field of a dictionary, wherever it comes from; EventError if it cannot be had."""
        if path not in self.readings:
            return value_at(event, path)
        try:
            return self.readings.value(lambda each: value_at(event, each), path)
        except SetGiven:
            return value_at(event, path)
        except ValueProblem as problem:
            raise self._misfit(path, problem.reason, codec_of(self._space, AxisKey(path))) from None

    def _encoded(
        self,
        count: int,
        codes: Int64s,
        elements: Elements,
        columns: Mapping[Path, Column],
        tops: Mapping[int, Int64s],
        fold: Int64s | None,
        wide: Mapping[Path, npt.NDArray[np.bool_]],
        open_: Mapping[Path, list[Ends | None]],
    ) -> Encoded:
        """Return codes as queries: unspecified fields as the space says, an extra query for each element.

        ``tops`` are the highest codes of axes on which some event has a range; ``wide`` says which events have ranges
        of several texts, whose codes need not differ; ``open_`` has the ranges below attributes.
        """
        low = high = codes
        if tops:
            high = codes.copy()
            for axis, top in tops.items():
                high[axis] = top
        if self._space.unspecified == "any":
            unspecified = codes == NULL
            for axis in elements:
                unspecified[axis] = ~columns[self._axes.keys[axis].path].present  # type: ignore[operator]
            low, high = np.where(unspecified, LOWEST, low), np.where(unspecified, HIGHEST, high)
        ranged = dict(wide)
        for axis, top in tops.items():
            path, spans = self._axes.keys[axis].path, codes[axis] != top
            ranged[path] = ranged[path] | spans if path in ranged else spans
        if not elements:
            return Encoded(count, Queries(low, high), None, columns, None, ranged, fold, open_)
        for path, ends in open_.items():
            here = np.array([each is not None for each in ends], bool)
            above = {self._axes.keys[axis].path for axis in elements}
            for each in (each for each in above if path in self._space.family(each)):
                ranged[each] = ranged[each] | here if each in ranged else here
        queries, rows, facts = with_elements(self._axes, low, high, elements, columns)
        return Encoded(count, queries, rows, columns, facts, ranged, fold, open_)

    def column(self, batch: pa.RecordBatch, path: Path, missing: str) -> Column:
        """Return the values of a field in a batch, wherever they come from."""
        repeated = path in self._space.repeated
        if path in self.readings:
            try:
                column = self.readings.column(
                    lambda each: column_at(batch, each), path, batch.num_rows, missing=missing
                )
            except ValueProblem as problem:
                raise self._misfit(path, problem.reason, codec_of(self._space, AxisKey(path)), problem.row) from None
        else:
            column = column_at(batch, path)
        if column is None:
            if missing != "error":
                return self._absent(batch.num_rows, repeated)
            raise self._no_column(batch, path)
        if column.offsets is not None and not repeated:
            raise EventError(f"the column {'.'.join(path)} holds lists; declare it as Repeated(...)")
        return column.listed() if repeated else column

    @staticmethod
    def _absent(count: int, repeated: bool) -> Column:
        if repeated:
            return Column(pa.nulls(0), np.zeros(count + 1, np.int64), np.zeros(count, bool))
        return Column(pa.nulls(count))

    def _codes(self, codec: Codec, values: pa.Array, path: Path, offsets: Int64s | None) -> Int64s:
        if pa.types.is_null(values.type):
            return np.full(len(values), NULL)
        try:
            return codec.codes(values)
        except ValueProblem as problem:
            row = problem.row if offsets is None else int(np.searchsorted(offsets, problem.row, "right")) - 1
            error = self._misfit(path, problem.reason, codec, row)
            raise error from None

    def _write(self, codec: Codec, values: pa.Array, path: Path, codes: Int64s) -> None:
        if pa.types.is_null(values.type):
            codes[:] = NULL
            return
        try:
            codec.write(values, codes)
        except ValueProblem as problem:
            raise self._misfit(path, problem.reason, codec, problem.row) from None

    def _range_codes(self, axis: int, values: pa.Array) -> tuple[Int64s, Int64s]:
        key, codec = self._axes.keys[axis], self._axes.codecs[axis]
        try:
            return column_codes(codec, values)
        except ValueProblem as problem:
            raise self._misfit(key.path, problem.reason, codec, problem.row) from None

    @staticmethod
    def _misfit(path: Path, reason: str, codec: Codec, row: int | None = None) -> EventError:
        where = f"field {'.'.join(path)}" if row is None else f"row {row}, field {'.'.join(path)}"
        error = EventError(f"{where}: {reason}; {codec.expects} is expected")
        error.row, error.reason = row, reason  # type: ignore[attr-defined]
        return error

    def _no_column(self, batch: pa.RecordBatch, path: Path) -> MissingColumnError:
        needed = self.readings.lacking(lambda each: column_at(batch, each), path)
        name = ".".join(needed)
        who = "subscriptions test" if needed == path else f"the formula of {'.'.join(path)} needs"
        return MissingColumnError(
            f"the events have no column {name}, which {who}; {nearest_of(name, batch.schema.names)} "
            "(pass missing='unspecified' to read it as left out)"
        )

    def lazy_column(self, event: Mapping[str, Any], path: Path, chosen: Chosen = NONE_CHOSEN) -> Column:
        """Return the values of one field of a dictionary as a column of one row, for atoms.

        Atoms look at texts and whole numbers; what another field holds is left out. ``chosen`` as in `batch`.
        """
        value = self.value(event, path)
        repeated = path in self._space.repeated
        if not repeated and type(value) in _RANGES:
            codec = codec_of(self._space, AxisKey(path))
            value = codec.only(ends_of(value)) if isinstance(codec, Texts) and is_range(value) else None
        elements, ranges = elements_of(value, path) if repeated else [value], None
        if Open in map(type, elements):
            known = [chosen_value(each, chosen) if type(each) is Open else each for each in elements]
            ranges = objects([each if one is None else None for each, one in zip(elements, known, strict=True)])
            elements = known
        scalar = self._space.scalar(path)
        kind = _ATOM_TYPES.get(getattr(scalar, "kind", scalar.type)) if not getattr(scalar, "unit", None) else None
        values = pa.nulls(len(elements))
        if kind is not None:
            codec = self.readings.codec(path)
            try:
                values = pa.array([typed_value(scalar, codec, each) for each in elements], kind)
            except ValueProblem as problem:
                raise self._misfit(path, problem.reason, codec) from None
        if not repeated:
            return Column(values)
        offsets = np.array([0, len(elements)], np.int64)
        return Column(values, offsets, np.array([value is not None]), open=ranges)


def _problems(codec: Codec, values: pa.Array, start: int, stop: int) -> Iterator[tuple[int, str]]:
    """Yield each place whose value does not fit and what is wrong with it: by halving, as a codec names only one."""
    try:
        if start < stop and not pa.types.is_null(values.type):
            some = values.slice(start, stop - start)
            column_codes(codec, some)
    except ValueProblem as problem:
        if stop - start == 1:
            yield start, problem.reason
            return
        middle = (start + stop) // 2
        yield from _problems(codec, values, start, middle)
        yield from _problems(codec, values, middle, stop)
