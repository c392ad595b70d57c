"""Where the values of a field come from when it is not simply a column of its name.

A field may stand under a synonym, have further fields below it in the attribute tree whose values count as its own,
have a companion that names the unit of its numbers, words that mean others, or be derived by a formula. Each rule is a
function of one value; for a column it is applied to the distinct ones, or the same is said to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.language.formulas import fields_of, parse_formula
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import codec_of
from tocsin.space.codes import Codec, Ends, ValueProblem
from tocsin.space.columns import Column as Column
from tocsin.space.columns import Open, Path, either, together, two_values
from tocsin.space.days import day_of, days_of
from tocsin.space.decoding import only_value, only_values
from tocsin.space.derived import as_declared, compute
from tocsin.space.intervals import Interval, column_codes, ends_at, ends_of, interval_of, is_range, is_ranged, is_set
from tocsin.space.quantities import DAY, Given, given_of, struct_parts, unit_of
from tocsin.space.scalars import is_text
from tocsin.space.space import Space
from tocsin.space.typed import arrow_type, mapped, typed_column, typed_value
from tocsin.space.types import Number, Text

Raw = Callable[[Path], Column | None]
"""Gives the column of a path in a batch, None if there is none."""

Look = Callable[[Path], Any]
"""Gives the value at a path of a dictionary."""

_LISTS = (list, tuple, set, frozenset, np.ndarray)


class _Own(NamedTuple):
    """How a field is read apart from what is below it: its names, the companions of its number, its words."""

    names: tuple[Path, ...]
    unit: Path | None
    day: Path | None
    words: dict[str, str] | None


class Readings:
    """How the special fields of a space are read; ordinary ones are not ``in`` it."""

    def __init__(self, space: Space) -> None:
        self._space = space
        aliases: dict[Path, list[Path]] = {}
        for alias, path in space.synonyms.items():
            aliases.setdefault(path, []).append(tuple(alias.split(".")))
        self._own = {path: self._how(path, aliases.get(path, [])) for path in space.paths()}
        self._formulas = {path: parse_formula(space.derived[path]) for path in space.derived}
        self._special = frozenset(path for path in space.paths() if self._is_special(path))
        self.codec: Callable[[Path], Codec] = cache(lambda path: codec_of(space, AxisKey(path)))

    def __contains__(self, path: Path) -> bool:
        return path in self._special

    def _how(self, path: Path, aliases: list[Path]) -> _Own:
        kind = self._space.scalar(path)
        unit, day = (kind.unit_field, kind.at) if isinstance(kind, Number) else (None, None)
        words = dict(kind.synonyms) if isinstance(kind, Text) and kind.synonyms else None
        return _Own((path, *aliases), self._beside(unit), self._beside(day), words)

    def _beside(self, name: str | None) -> Path | None:
        """Return the path of a companion: of a dimension if it is one, else as it is written."""
        if not name:
            return None
        path = tuple(name.split("."))
        return self._space.find(path) or path

    def _is_special(self, path: Path) -> bool:
        own = self._own[path]
        special = len(own.names) > 1 or own.unit or own.day or own.words or path in self._formulas
        return bool(special) or len(self._space.family(path)) > 1

    def sources(self, path: Path) -> list[list[Path]]:
        """Return the columns that a field is read from: of each list one is enough."""
        family = self._space.family(path)
        if len(family) == 1 and path in self._formulas:
            return [each for inner in self._operands(path).values() for each in self.sources(inner)]
        names = [self._own[member].names for member in family if member not in self._formulas]
        derived = [self.sources(member) for member in family if member in self._formulas and member != path]
        needed = [name for member in derived for some in member for name in some]
        return [[*(name for some in names for name in some), *needed]]

    def _operands(self, path: Path) -> dict[Path, Path]:
        """Return the dimensions that a formula computes with, by the names it has for them."""
        found = {field.path: self._space.find(field.path) for field in fields_of(self._formulas[path])}
        return {name: source for name, source in found.items() if source is not None}

    def is_there(self, has: Callable[[Path], bool], path: Path) -> bool:
        """Return whether a table has what a field is read from: a column of one of its names, of a field below it in
        the attribute tree, or all that a formula needs. One that is no dimension is read from its own."""
        if path not in self._own:
            return has(path)
        return any(self._is_there(has, member) for member in self._space.family(path))

    def _is_there(self, has: Callable[[Path], bool], path: Path) -> bool:
        if path in self._formulas:
            return all(self.is_there(has, source) for source in self._operands(path).values())
        return any(map(has, self._own[path].names))

    def lacking(self, raw: Raw, path: Path) -> Path:
        """Return the field that a batch lacks where another cannot be read: one of its formula, or itself."""
        if len(self._space.family(path)) == 1 and path in self._formulas:
            for source in self._operands(path).values():
                if all(raw(name) is None for some in self.sources(source) for name in some):
                    return self.lacking(raw, source)
        return path

    def single(self) -> list[Path]:
        """Return the paths that fields of one value are read from: a set there is a choice of values."""
        paths = [path for path in self._space.paths() if path not in self._space.repeated]
        return [name for path in paths if path not in self._formulas for name in self._own[path].names]

    def plain(self) -> frozenset[str]:
        """Return the names of the columns that fields which are not repeated are read from: a list there is a set."""
        return frozenset(name[0] for name in self.single() if len(name) == 1)

    # A batch

    def column(self, raw: Raw, path: Path, rows: int, *, missing: str = "error") -> Column | None:
        """Return the column of a special field, None if the batch has nothing to read it from.

        A formula that lacks a column has nothing to be read from, or with ``missing="unspecified"`` reads NULL there.
        """
        members = [(member, self._member(raw, member, rows, missing)) for member in self._space.family(path)]
        there = [(member, column) for member, column in members if column is not None]
        if not there:
            return None
        if path not in self._space.repeated:
            return there[0][1]
        listed = [self._listed(member, column) for member, column in there]
        return listed[0] if len(listed) == 1 else together(listed, lambda values: self._typed(path, values))

    def _listed(self, path: Path, column: Column) -> Column:
        """Return the elements that a field gives what is above it: its own, or one, which may be any of a range."""
        ranged = is_ranged(column.values.type)
        if path in self._space.repeated or not (ranged or column.spans is not None):
            return column.listed()
        single, several = column.values, column.spans  # what a formula makes of a range may be anything
        if several is None:
            single, several = self._only_values(path, column.values)
        there = np.flatnonzero(several | np.array(single.is_valid()))
        ranges = np.full(len(there), None)
        for at, row in enumerate(there.tolist()):
            if several[row]:
                ends = ends_at(column.values, row) if ranged else None
                ranges[at] = Open(path, ends or Ends(None, None))
        present = np.zeros(len(single), bool)
        present[there] = True
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(present)])
        known = pc.if_else(pa.array(several), pa.scalar(None, single.type), single)
        return Column(known.take(pa.array(there)), offsets, present, open=ranges)

    def _member(self, raw: Raw, path: Path, rows: int, missing: str) -> Column | None:
        """Return the column of a field itself, under whichever of its names, with units and words in place."""
        if path in self._formulas:
            return self._derived(raw, path, rows, missing)
        own = self._own[path]
        found = [(name, column) for name in own.names if (column := raw(name)) is not None]
        if not found:
            return None
        first, column = found[0]
        for name, other in found[1:]:
            column = either(column, other, (first, name), lambda values: self._typed(path, values))
        if own.unit or own.day:
            column = self._with_companions(raw, column, own, rows)
        if own.words:
            words = own.words
            column = column._replace(values=_at_ends(column.values, lambda texts: _translated(texts, words)))
        return column

    def _with_companions(self, raw: Raw, column: Column, own: _Own, rows: int) -> Column:
        """Return numbers with what the companion fields say of them, as structs."""
        unit = self._companion(raw, column, own.unit, rows)
        day = self._companion(raw, column, own.day, rows, days=True)
        if unit is None and day is None:
            return column
        return column._replace(values=_at_ends(column.values, lambda values: _measured(values, unit, day)))

    def _companion(
        self, raw: Raw, column: Column, path: Path | None, rows: int, *, days: bool = False
    ) -> pa.Array | None:
        """Return what a companion says of each value of a column, None if the batch has it not."""
        beside = None if path is None else self.column(raw, path, rows) if path in self else raw(path)
        if beside is None or pa.types.is_null(beside.values.type):
            return None
        try:
            values = days_of(beside.values, self._space.zone) if days else beside.values
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, beside.row_of(problem.row)) from None
        values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        if beside.offsets is not None:
            counts = np.diff(beside.offsets)
            wanted = np.ones(rows, np.int64) if column.offsets is None else np.diff(column.offsets)
            wrong = np.flatnonzero(counts != wanted)
            if len(wrong):
                raise ValueProblem(_uneven(int(wanted[wrong[0]]), int(counts[wrong[0]])), int(wrong[0]))
            return values
        if column.offsets is not None:
            return values.take(pa.array(np.repeat(np.arange(column.rows), np.diff(column.offsets))))
        return values

    def _derived(self, raw: Raw, path: Path, rows: int, missing: str) -> Column | None:
        columns: dict[Path, pa.Array] = {}
        spans = np.zeros(rows, bool)
        for name, source in self._operands(path).items():
            inner = self.column(raw, source, rows, missing=missing) if source in self else raw(source)
            if inner is None and missing == "error":
                return None
            if inner is not None and inner.offsets is not None:
                raise ValueProblem(f"the column {'.'.join(source)} holds lists; a formula takes fields of one value")
            columns[name], unknown = self._operand(source, Column(pa.nulls(rows)) if inner is None else inner)
            spans |= unknown
        return Column(self._computed(path, columns, rows), spans=spans if spans.any() else None)

    def _operand(self, path: Path, column: Column) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the values that a formula computes with, and in which rows there are several."""
        values = column.values
        if is_ranged(values.type):
            typed, unknown = self._only_values(path, values)
        else:
            typed = self._typed(path, values)
            unknown = np.zeros(len(values), bool)
        if column.spans is not None:
            unknown |= column.spans
        if self._space.unspecified == "any":
            unknown |= np.array(typed.is_null())
        return typed, unknown

    def _only_values(self, path: Path, ranges: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the values of ranges that hold one and no other, null for the others, and which hold several."""
        single, several = only_values(self._space, path, lambda codec: column_codes(codec, ranges, keep=True))
        return self._typed(path, single), several

    def _computed(self, path: Path, columns: dict[Path, pa.Array], rows: int) -> pa.Array:
        found = compute(self._formulas[path], columns, rows, self._space.timezone)
        return as_declared(found, arrow_type(self._space.scalar(path)))

    def _typed(self, path: Path, values: pa.Array) -> pa.Array:
        """Return a column as its dimension holds it."""
        if is_ranged(values.type):
            raise ValueProblem("a range stands in a list, whose elements are single values")
        return typed_column(self._space.scalar(path), self.codec(path), values)

    # A dictionary

    def value(self, look: Look, path: Path) -> Any:
        """Return the value of a special field of a dictionary; of a repeated one, a list."""
        family = self._space.family(path)
        if path not in self._space.repeated:
            return self._value(look, path)
        found = [(member, self._value(look, member)) for member in family]
        there = [(member, value) for member, value in found if value is not None]
        if not there:
            return None
        return [each for member, value in there for each in self._elements(member, value)]

    def _elements(self, path: Path, value: Any) -> Iterable[Any]:
        """Return the elements that a field gives what is above it; a value of one is one."""
        if path in self._space.repeated:
            return value if isinstance(value, _LISTS) else [value]
        if is_range(value):
            single = only_value(self._space, path, value)
            return [Open(path, ends_of(value)) if single is None else single]
        return [value]

    def _value(self, look: Look, path: Path) -> Any:
        """Return the value of a field itself, under whichever of its names, with units and words in place."""
        if path in self._formulas:
            return self._derived_value(look, path)
        own = self._own[path]
        found = [(name, value) for name in own.names if (value := look(name)) is not None]
        if not found:
            return None
        repeated = path in self._space.repeated
        if not repeated and any(is_set(value) for _, value in found):
            raise SetGiven
        first, value = found[0]
        for name, other in found[1:]:
            if not _same(value, other, repeated):
                raise ValueProblem(two_values(first, name, value, other))
        if own.unit or own.day:
            return self._with_companion_values(look, value, own, repeated)
        if own.words:
            words = own.words
            return _each_point(value, repeated, lambda each: words.get(each, each) if isinstance(each, str) else each)
        return value

    def _with_companion_values(self, look: Look, value: Any, own: _Own, repeated: bool) -> Any:
        """Return numbers with what the companion fields say of them."""
        unit = self._companion_value(look, own.unit)
        day = self._companion_value(look, own.day)
        if unit is None and day is None:
            return value
        if not repeated:
            return _each_point(value, False, lambda each: _measured_value(each, unit, day_of(day, self._space.zone)))
        elements = value if isinstance(value, _LISTS) else [value]
        units, days = (each if isinstance(each, (list, tuple)) else [each] * len(elements) for each in (unit, day))
        for each in (units, days):
            if len(each) != len(elements):
                raise ValueProblem(_uneven(len(elements), len(each)))
        beside = zip(elements, units, days, strict=True)
        return [_measured_value(each, of, day_of(at, self._space.zone)) for each, of, at in beside]

    def _companion_value(self, look: Look, path: Path | None) -> Any:
        return None if path is None else self.value(look, path) if path in self else look(path)

    def _derived_value(self, look: Look, path: Path) -> Any:
        columns: dict[Path, pa.Array] = {}
        for name, source in self._operands(path).items():
            value = self.value(look, source) if source in self else look(source)
            if is_set(value):
                raise SetGiven
            if is_range(value):
                value = only_value(self._space, source, value)
                if value is None:
                    return ANYTHING
            elif value is None and self._space.unspecified == "any":
                return ANYTHING
            kind = self._space.scalar(source)
            columns[name] = pa.array([typed_value(kind, self.codec(source), value)], arrow_type(kind))
        return self._computed(path, columns, 1)[0].as_py()


ANYTHING = Interval()
"""What a formula makes of a range is not known: it may be anything."""


class SetGiven(Exception):  # noqa: N818 - a signal to take the event apart
    """A field of one value has a set of them: the event stands for several."""


def _same(one: Any, other: Any, repeated: bool) -> bool:
    if repeated:
        one, other = (list(each) if isinstance(each, _LISTS) else [each] for each in (one, other))
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays, which are compared one by one
        return False


def _uneven(values: int, others: int) -> str:
    return f"there are {values} numbers and {others} units or days beside them"


def _each_point(value: Any, repeated: bool, meaning: Callable[[Any], Any]) -> Any:
    """Return a value with each of its points replaced by what it means: elements, the ends of a range, or itself."""
    if repeated and isinstance(value, _LISTS):
        return [meaning(each) for each in value]
    if not repeated and is_range(value):
        low, high, closed = (interval := interval_of(value)).low, interval.high, interval.closed
        return Interval(None if low is None else meaning(low), None if high is None else meaning(high), closed)
    return meaning(value)


def _at_ends(values: pa.Array, meaning: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return a column replaced by what it means, or where it holds ranges, both of their ends."""
    if not is_ranged(values.type):
        return meaning(values)
    names = [field.name for field in values.type]
    parts = [pc.struct_field(values, name) for name in names]
    found = [meaning(part) if name != "closed" else part for name, part in zip(names, parts, strict=True)]
    return pa.StructArray.from_arrays(found, names, mask=values.is_null())


def _translated(values: pa.Array, words: dict[str, str]) -> pa.Array:
    return mapped(values, lambda word: words.get(word, word)) if is_text(values.type) else values


def _measured_value(value: Any, unit: Any, day: Any) -> Given:
    given = given_of(value)
    return Given(given.value, unit_of(unit) if given.unit is None else given.unit, day)


def _measured(values: pa.Array, unit: pa.Array | None, day: pa.Array | None) -> pa.Array:
    """Return numbers, or structs of number and unit, with the units and days beside them."""
    number, own, _ = struct_parts(values) if pa.types.is_struct(values.type) else (values, None, None)
    if unit is not None and not is_text(unit.type):
        raise ValueProblem(f"the units are {unit.type}, not text")
    if own is not None and not pa.types.is_null(own.type):
        unit = own if unit is None else pc.coalesce(own.cast(pa.large_string()), unit.cast(pa.large_string()))
    number = number.dictionary_decode() if pa.types.is_dictionary(number.type) else number
    parts = {"value": number, "unit": unit, DAY: day}
    there = {name: part for name, part in parts.items() if part is not None}
    return pa.StructArray.from_arrays(list(there.values()), list(there), mask=number.is_null())
