"""Columns of any name: how Spark is told of one, and how a function over Arrow batches gets them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import SparkError
from tocsin.space import Space
from tocsin.space.names import column_key, path_key
from tocsin.spark.failures import Batches, Guarded


def quoted(name: str) -> str:
    """Return a column's name so that a dot in it is no path.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def column_of(name: str) -> Column:
    """Return a column by its name, whatever characters that has."""
    return F.col(quoted(name))


def plain(frame: DataFrame) -> DataFrame:
    """Return a frame whose columns have names that PySpark's ``mapInArrow`` takes for names.

    It takes one with a dot for a path, and one with a backtick for a quotation. Only those are renamed, and that is to
    be done before expressions over many columns are added: from each renaming above such an expression the optimizer
    of Spark makes another form of it, all combinations of them.
    """
    names = frame.columns
    chosen = plain_names(names)
    if chosen == names:
        return frame
    columns = [
        column_of(old) if old == new else column_of(old).alias(new) for old, new in zip(names, chosen, strict=True)
    ]
    return frame.select(*columns)


def plain_names(names: list[str]) -> list[str]:
    """Return names without dots and backticks, all different.

    >>> plain_names(["a.b", "c d", "e`f"])
    ['__tocsin_column_0', 'c d', '__tocsin_column_2']
    """
    prefix, folded = "__tocsin_column_", [column_key(name) for name in names]
    while any(name.startswith(prefix) for name in folded):
        prefix += "_"
    return [f"{prefix}{place}" if "." in name or "`" in name else name for place, name in enumerate(names)]


def known_schema(frame: DataFrame, space: Space, operands: Iterable[str] = ()) -> types.StructType:
    """Return the schema of events with the names that a space, and operators, have for their fields.

    Spark resolves names without regard to case, unless the session says otherwise; SparkError where that leaves two
    fields of a struct for one of the space.
    """
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return frame.schema
    named: dict[tuple[str, ...], str] = {}
    aliases = (tuple(name.split(".")) for name in (*space.synonyms, *operands))
    for path in (*aliases, *space.paths()):
        named |= {path_key(path[:depth]): path[depth - 1] for depth in range(1, len(path) + 1)}
    known: types.StructType = _renamed(frame.schema, (), named)
    return known


def _renamed(kind: Any, above: tuple[str, ...], named: dict[tuple[str, ...], str]) -> Any:
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_renamed(kind.elementType, above, named), kind.containsNull)
    if not isinstance(kind, types.StructType):
        return kind
    fields, seen = [], dict[str, str]()
    for field in kind.fields:
        path = (*above, field.name)
        name = named.get(path_key(path)) if "." not in field.name else None
        if name is not None and seen.setdefault(name, field.name) != field.name:
            raise SparkError(
                f"{'.'.join(path)} and {'.'.join((*above, seen[name]))} of the events are one name, as case does not "
                "tell names apart; rename one of them"
            )
        inner = _renamed(field.dataType, path, named)
        fields.append(types.StructField(name or field.name, inner, field.nullable, field.metadata))
    return types.StructType(fields)


def with_schema(frame: DataFrame, schema: types.StructType) -> DataFrame:
    """Return a frame whose first columns have the names of a schema, and inside structs the names that it has there."""
    fields = frame.schema.fields
    if all(old.name == new.name and old.dataType == new.dataType for old, new in zip(fields, schema, strict=False)):
        return frame
    columns = []
    for old, new in zip(fields, schema, strict=False):
        column = column_of(old.name)
        columns.append((column if old.dataType == new.dataType else column.cast(new.dataType)).alias(new.name))
    return frame.select(*columns, *(column_of(field.name) for field in fields[len(schema.fields) :]))


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Batches], Batches],
    schema: types.StructType,
    names: list[str] | None = None,
) -> DataFrame:
    """Return ``frame.mapInArrow(function, schema)`` of a frame with columns of any names.

    The function gets the columns under their own names; under these ``names`` the first of them, where given.
    """
    known = frame.columns
    wanted = [*(names or []), *known[len(names or []) :]]
    given = plain(frame)
    called = function if given.columns == wanted else _Named(function, tuple(wanted))
    return given.mapInArrow(Guarded(called), schema)


@dataclass(frozen=True)
class _Named:
    """A function for `mapInArrow` that is given its batches with other names than Spark's."""

    function: Callable[[Batches], Batches]
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Return what the function makes of the batches."""
        return self.function(batch.rename_columns(list(self.names)) for batch in batches)
