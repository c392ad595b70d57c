"""From events to queries: Arrow batches and dictionaries become codes on the axes in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError, MissingColumnError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s, Queries
from tocsin.kernels.operators.programs import Facts
from tocsin.kernels.picking import raise_to
from tocsin.language.arrays import numbers_of
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes, codec_of
from tocsin.space.codes import Codec, Ends, ValueProblem
from tocsin.space.columns import Column, column_at, has_column, stacked
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

    def batch(self, batch: pa.RecordBatch, *, missing: str = "error", sets: bool = False) -> Encoded:
        """Return the queries of a batch; EventError names the first value that does not fit.

        ``sets``: a list in a field that is not repeated is a set of values, and not an error.
        """
        axes = len(self._axes)
        batch, fold = exploded(batch, self._plain) if sets else (batch, None)
        if missing == "error":
            self._check_received(batch)
        columns = LazyColumns(lambda path: self.column(batch, path, missing), batch)
        codes = np.empty((axes, batch.num_rows), np.int64)
        elements: dict[int, Int64s] = {}
        tops: dict[int, Int64s] = {}
        copied: list[int] = []
        wide: dict[Path, npt.NDArray[np.bool_]] = {}
        single: dict[Path, pa.Array] = {}
        for axis in range(axes):
            path = self._axes.keys[axis].path
            column, codec = columns[path], self._axes.codecs[axis]
            if self._axes.is_repeated(axis):
                elements[axis] = self._codes(codec, column.values, path, column.offsets)
                codes[axis] = NULL
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
        if copied:
            raise_to(codes, np.array(copied), LOWEST)
        for path in {self._axes.keys[axis].path for axis in tops}:  # atoms look at single values
            if path in single:
                columns[path] = Column(single[path])
            elif is_ranged(columns[path].values.type):
                columns[path] = Column(pc.struct_field(columns[path].values, "low"))
        return self._encoded(batch.num_rows, codes, elements, columns, tops, fold, wide)

    def _beside_axes(self) -> list[tuple[Path, Codec]]:
        """Return the fields that programs look at and whose values no axis has, with their codecs: repeated ones."""
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

    def one(self, event: Mapping[str, Any]) -> Encoded:
        """Return the query of one dictionary; a field left out is unspecified."""
        if not isinstance(event, Mapping):
            raise EventError(f"an event is a dictionary, not {brief(event)}")
        if len(self._readers) < len(self._axes):
            self._readers = [self._reader(axis) for axis in range(len(self._axes))]
        types = set(map(type, event.values()))
        if not types.isdisjoint(_MAY_HOLD_SETS) and (sets := self._sets(event, types)):
            return self._alternatives(event, sets)
        wide: set[Path] = set()
        codes, elements, tops = self._codes_of(event, wide)
        columns = LazyColumns(lambda path: self.lazy_column(event, path), event)
        ranged = {path: np.ones(1, bool) for path in wide}
        return self._encoded(1, np.array(codes, np.int64)[:, None], elements, columns, tops, None, ranged)

    def _codes_of(
        self, event: Mapping[str, Any], wide: set[Path]
    ) -> tuple[list[int], dict[int, Int64s], dict[int, Int64s]]:
        """Return the codes of one dictionary on each axis, those of the elements of repeated fields, and the highest
        ones of ranges. ``wide`` comes to hold the fields with ranges of several texts."""
        codes: list[int] = []
        elements: dict[int, Int64s] = {}
        tops: dict[int, Int64s] = {}
        for axis, (name, path, codec, code, repeated, special) in enumerate(self._readers):
            if special:
                value = self.value(event, path)
            elif len(path) == 1:
                value = event.get(name)
            else:
                value = value_at(event, path)
            if repeated:
                found = [self._code(codec, each, path) for each in elements_of(value)]
                elements[axis] = np.array(found, np.int64)
                codes.append(NULL)
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
            for each in elements_of(self.value(event, path)):
                self._code(codec, each, path)
        return codes, elements, tops

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
        found = [self._codes_of(one, ranged) for one, ranged in zip(events, wide, strict=True)]
        codes = np.array([codes for codes, _, _ in found], np.int64).T
        elements = {axis: np.concatenate([some[axis] for _, some, _ in found]) for axis in found[0][1]}
        tops = {
            axis: np.array([tops[axis][0] if axis in tops else codes[axis] for codes, _, tops in found], np.int64)
            for axis in {axis for _, _, tops in found for axis in tops}
        }
        columns = LazyColumns(lambda path: stacked([self.lazy_column(one, path) for one in events]), events)
        ranged = {path: np.array([path in each for each in wide]) for path in set().union(*wide)}
        return self._encoded(len(events), codes, elements, columns, tops, np.zeros(len(events), np.int64), ranged)

    def _reader(self, axis: int) -> _Reader:
        path, codec = self._axes.keys[axis].path, self._axes.codecs[axis]
        return _Reader(path[0], path, codec, codec.code, self._axes.is_repeated(axis), path in self.readings)

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
        elements: dict[int, Int64s],
        columns: Mapping[Path, Column],
        tops: Mapping[int, Int64s] = MappingProxyType({}),
        fold: Int64s | None = None,
        wide: Mapping[Path, npt.NDArray[np.bool_]] = MappingProxyType({}),
    ) -> Encoded:
        """Return codes as queries: unspecified fields as the space says, an extra query for each element.

        ``tops`` are the highest codes of axes on which some event has a range; ``wide`` says which events have ranges
        of several texts, whose codes need not differ.
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
            return Encoded(count, Queries(low, high), None, columns, None, ranged, fold)
        encoded = self._withelements_of(count, low, high, elements, columns)
        return replace(encoded, ranged=ranged, fold=fold)

    def _withelements_of(
        self, count: int, low: Int64s, high: Int64s, elements: dict[int, Int64s], columns: Mapping[Path, Column]
    ) -> Encoded:
        """Return one query for each event, and one for each element of each repeated field."""
        repeated_of = np.full(low.shape[0], -1, np.int32)
        offsets: list[Int64s] = []
        present: list[npt.NDArray[np.bool_]] = []
        flat: list[Int64s] = []
        start = 0
        queries = [(low, high, np.arange(count, dtype=np.int32))]
        done: dict[Path, int] = {}
        for axis, found in elements.items():
            path = self._axes.keys[axis].path
            column = columns[path]
            repeated_of[axis] = len(offsets)
            assert column.offsets is not None and column.present is not None  # a repeated column has both
            offsets.append(column.offsets + start)
            present.append(column.present)
            flat.append(found)
            start += len(found)
            if path not in done:
                rows = np.repeat(np.arange(count, dtype=np.int32), np.diff(column.offsets))
                done[path] = len(queries)
                queries.append(
                    (low[:, rows], high[:, rows], rows) if high is not low else (wide := low[:, rows], wide, rows)
                )
            some_low, some_high, _ = queries[done[path]]
            some_low[axis] = found
            some_high[axis] = found
        absent_is_any = self._space.unspecified == "any"
        facts = Facts(low, high, repeated_of, np.stack(offsets), np.concatenate(flat), np.stack(present), absent_is_any)
        all_low = np.concatenate([each for each, _, _ in queries], axis=1)
        all_high = all_low if high is low else np.concatenate([each for _, each, _ in queries], axis=1)
        rows = np.concatenate([each for _, _, each in queries])
        return Encoded(count, Queries(all_low, all_high), rows, columns, facts)

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

    def _code(self, codec: Codec, value: Any, path: Path) -> int:
        try:
            return NULL if value is None else codec.code(value)
        except ValueProblem as problem:
            raise self._misfit(path, problem.reason, codec) from None

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

    def lazy_column(self, event: Mapping[str, Any], path: Path) -> Column:
        """Return the values of one field of a dictionary as a column of one row, for atoms.

        Atoms look at texts and whole numbers; what another field holds is left out.
        """
        value = self.value(event, path)
        repeated = path in self._space.repeated
        if not repeated and type(value) in _RANGES:
            codec = codec_of(self._space, AxisKey(path))
            value = codec.only(ends_of(value)) if isinstance(codec, Texts) and is_range(value) else None
        elements = elements_of(value) if repeated else [value]
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
        return Column(values, np.array([0, len(elements)], np.int64), np.array([value is not None]))


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
