"""Where the values of a field come from when it is not simply a column of its name.

A field may stand under a synonym, have further fields below it in the attribute tree whose values count as its own,
have a companion that names the unit of its numbers, words that mean others, or be derived by a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import Int64s
from tocsin.language.formulas import fields_of, parse_formula
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import codec_of
from tocsin.space.codes import ValueProblem
from tocsin.space.derived import compute, values_of_codes
from tocsin.space.quantities import Given, Quantities, day_of
from tocsin.space.space import Space
from tocsin.space.types import Number, Text, Time
from tocsin.space.words import Words

Path = tuple[str, ...]


class Column(NamedTuple):
    """The values of one field: for a repeated field, the elements of all rows with their offsets, and which rows have
    any."""

    values: pa.Array
    offsets: Int64s | None = None
    present: npt.NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """How many events there are."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def listed(self) -> Column:
        """Return the column as one of a repeated field: a value is one element, NULL none."""
        if self.offsets is not None:
            return self
        present = np.array(self.values.is_valid())
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(present)])
        return Column(self.values.drop_null(), offsets, present)


Raw = Callable[[Path], Column | None]
"""Gives the column of a path in a batch, None if there is none."""

Look = Callable[[Path], Any]
"""Gives the value at a path of a dictionary."""


class Readings:
    """How the special fields of a space are read; ordinary ones are not ``in`` it."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._names: dict[Path, list[Path]] = {}
        for alias, path in space.synonyms.items():
            self._names.setdefault(path, [path]).append(tuple(alias.split(".")))
        self._words = {path: Words(dict(_numbered(kind))) for path in space.paths() if (kind := _text(space, path))}
        self._formulas = {path: parse_formula(space.derived[path]) for path in space.derived}

        self._special = frozenset(path for path in space.paths() if self._is_special(path))

    def __contains__(self, path: Path) -> bool:
        return path in self._special

    def _is_special(self, path: Path) -> bool:
        kind = self._space.scalar(path)
        return (
            path in self._names
            or path in self._words
            or path in self._formulas
            or len(self._space.family(path)) > 1
            or (isinstance(kind, Number) and bool(kind.unit_field or kind.at))
        )

    def sources(self, path: Path) -> list[list[Path]]:
        """Return the columns that a field is read from: of each list one is enough."""
        if path in self._formulas:
            found = [self._space.find(field.path) for field in fields_of(self._formulas[path])]
            return [each for inner in found if inner is not None for each in self.sources(inner)]
        return [[name for member in self._space.family(path) for name in self._names.get(member, [member])]]

    def plain(self) -> frozenset[str]:
        """Return the names of the columns that fields which are not repeated are read from: a list there is a set."""
        paths = [path for path in self._space.paths() if path not in self._space.repeated]
        names = [name for path in paths for some in self.sources(path) for name in some]
        return frozenset(name[0] for name in names if len(name) == 1)

    # A batch

    def column(self, raw: Raw, path: Path, rows: int) -> Column | None:
        """Return the column of a special field, None if the batch has nothing to read it from."""
        if path in self._formulas:
            return self._derived(raw, path, rows)
        members = [self._member(raw, member) for member in self._space.family(path)]
        there = [member for member in members if member is not None]
        if not there:
            return None
        if path not in self._space.repeated:
            return there[0]
        return there[0].listed() if len(there) == 1 else _together([member.listed() for member in there])

    def _member(self, raw: Raw, path: Path) -> Column | None:
        """Return the column of a field itself, under whichever of its names, with units and words in place."""
        found = [(name, column) for name in self._names.get(path, [path]) if (column := raw(name)) is not None]
        if not found:
            return None
        column = found[0][1]
        for name, other in found[1:]:
            column = _either(column, other, found[0][0], name)
        kind = self._space.scalar(path)
        if isinstance(kind, Number) and (kind.unit_field or kind.at):
            column = self._with_unit(raw, column, kind)
        if path in self._words:
            column = column._replace(values=self._canonical(column.values, path))
        return column

    def _with_unit(self, raw: Raw, column: Column, kind: Number) -> Column:
        """Return numbers with what the companion fields say of them, as structs."""
        parts: dict[str, pa.Array] = {"value": column.values}
        for name, field in (("unit", kind.unit_field), ("at", kind.at)):
            beside = raw(tuple(field.split("."))) if field else None
            if beside is not None and beside.offsets is None:
                values = beside.values
                if column.offsets is not None:
                    values = values.take(pa.array(np.repeat(np.arange(column.rows), np.diff(column.offsets))))
                parts[name] = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        if pa.types.is_struct(column.values.type) or len(parts) == 1:
            return column
        return column._replace(values=pa.StructArray.from_arrays(list(parts.values()), list(parts)))

    def _canonical(self, values: pa.Array, path: Path) -> pa.Array:
        """Return texts with every synonym replaced by what it means."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            return values
        kind = _text(self._space, path)
        encoded = values.dictionary_encode()
        found = self._words[path].find(encoded.dictionary)
        if kind is None or not (found >= 0).any():
            return values
        meanings = pa.array([meaning for _, meaning in kind.synonyms], pa.string())
        words = meanings.take(pa.array(np.where(found >= 0, found, 0)))
        mapped = pc.if_else(pa.array(found >= 0), words, encoded.dictionary.cast(pa.string()))
        return mapped.take(encoded.indices)

    def _derived(self, raw: Raw, path: Path, rows: int) -> Column | None:
        columns: dict[Path, pa.Array] = {}
        for field in fields_of(self._formulas[path]):
            source = self._space.find(field.path)
            assert source is not None  # a space checks its formulas
            inner = self.column(raw, source, rows) if source in self else raw(source)
            if inner is None:
                return None
            columns[field.path] = self._operand(inner.values, source)
        return Column(compute(self._formulas[path], columns, rows, self._space.timezone))

    def _operand(self, values: pa.Array, path: Path) -> pa.Array:
        """Return a column as formulas compute with it: times from texts, quantities as numbers."""
        kind = self._space.scalar(path)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_null(values.type)
        if isinstance(kind, Time) or (isinstance(kind, Number) and kind.unit is not None and not numeric):
            codec = codec_of(self._space, AxisKey(path))
            codes = codec.codes(values) if not pa.types.is_null(values.type) else np.full(len(values), -(2**63))
            return values_of_codes(codes, codec, kind)
        return values

    # A dictionary

    def value(self, look: Look, path: Path) -> Any:
        """Return the value of a special field of a dictionary; of a repeated one, a list."""
        if path in self._formulas:
            return self._derived_value(look, path)
        found = [self._own(look, member) for member in self._space.family(path)]
        there = [each for each in found if each is not None]
        if path not in self._space.repeated or len(there) <= 1:
            return there[0] if there else None
        return [each for some in there for each in (some if isinstance(some, (list, tuple, set)) else [some])]

    def _own(self, look: Look, path: Path) -> Any:
        names = self._names.get(path, [path])
        found = [(name, value) for name in names if (value := look(name)) is not None]
        if not found:
            return None
        if any(value != found[0][1] for _, value in found):
            raise ValueProblem(_two_values(found[0][0], found[-1][0], found[0][1], found[-1][1]))
        value, kind = found[0][1], self._space.scalar(path)
        if isinstance(kind, Number) and (kind.unit_field or kind.at) and not isinstance(value, Mapping):
            unit = look(tuple(kind.unit_field.split("."))) if kind.unit_field else None
            if unit is not None and not isinstance(unit, str):
                raise ValueProblem(f"the unit {unit!r} is not text")
            day = day_of(look(tuple(kind.at.split(".")))) if kind.at else None
            if isinstance(value, (list, tuple, set)):
                return [Given(each, unit, day) for each in value]
            return Given(value, unit, day)
        text = _text(self._space, path)
        if text is not None:
            meanings = dict(text.synonyms)
            if isinstance(value, (list, tuple, set)):
                return [meanings.get(each, each) if isinstance(each, str) else each for each in value]
            return meanings.get(value, value) if isinstance(value, str) else value
        return value

    def _derived_value(self, look: Look, path: Path) -> Any:
        columns: dict[Path, pa.Array] = {}
        for field in fields_of(self._formulas[path]):
            source = self._space.find(field.path)
            assert source is not None  # a space checks its formulas
            value = self.value(look, source) if source in self else look(source)
            kind = self._space.scalar(source)
            codec = codec_of(self._space, AxisKey(source))
            if value is not None and (isinstance(kind, Time) or isinstance(codec, Quantities)):
                columns[field.path] = values_of_codes(np.array([codec.code(value)]), codec, kind)
            else:
                try:
                    columns[field.path] = pa.array([value])
                except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                    raise ValueProblem(f"{value!r} is nothing to compute with") from None
        return compute(self._formulas[path], columns, 1, self._space.timezone)[0].as_py()


def _text(space: Space, path: Path) -> Text | None:
    """Return the type of a text field that has synonyms."""
    kind = space.scalar(path)
    return kind if isinstance(kind, Text) and kind.synonyms else None


def _numbered(kind: Text) -> list[tuple[str, int]]:
    return [(word, number) for number, (word, _) in enumerate(kind.synonyms)]


def _two_values(one: Path, other: Path, value: Any, second: Any) -> str:
    return f"{'.'.join(one)} says {value!r} and {'.'.join(other)}, which means the same, {second!r}"


def _either(one: Column, other: Column, name: Path, second: Path) -> Column:
    """Return the values of a field that stands under two names; ValueProblem where they differ."""
    if one.offsets is not None or other.offsets is not None:
        return _together([one.listed(), other.listed()])
    left, right = _of_one_type([one.values, other.values])
    differ = np.flatnonzero(np.array(pc.fill_null(pc.not_equal(left, right), False)))
    if len(differ):
        row = int(differ[0])
        raise ValueProblem(_two_values(name, second, left[row].as_py(), right[row].as_py()), row)
    return Column(pc.coalesce(left, right))


def _together(columns: list[Column]) -> Column:
    """Return the elements of several repeated columns as those of one, row by row."""
    values = pa.concat_arrays(_of_one_type([column.values for column in columns]))
    bounds = [column.offsets for column in columns if column.offsets is not None]
    rows = [np.repeat(np.arange(len(each) - 1), np.diff(each)) for each in bounds]
    order = np.argsort(np.concatenate(rows), kind="stable")
    offsets = np.sum(bounds, axis=0)
    present = np.logical_or.reduce([column.present for column in columns if column.present is not None])
    return Column(values.take(pa.array(order)), offsets, present)


def _of_one_type(arrays: list[pa.Array]) -> list[pa.Array]:
    """Return arrays cast to one type: that of all if they agree, else texts, whole numbers or doubles."""
    plain = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in arrays]
    kinds = {each.type for each in plain if not pa.types.is_null(each.type)}
    if len(kinds) <= 1:
        target = next(iter(kinds), pa.null())
    elif all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
        target = pa.large_string()
    elif all(pa.types.is_integer(kind) for kind in kinds):
        target = pa.int64()
    elif all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        target = pa.float64()
    else:
        raise ValueProblem(f"the columns hold {' and '.join(sorted(map(str, kinds)))}")
    try:
        return [each.cast(target) for each in plain]
    except pa.ArrowInvalid as error:
        raise ValueProblem(f"the columns do not fit together: {error}") from None
