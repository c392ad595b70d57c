"""Columns of any name: how Spark is told of one, and how a function over Arrow batches gets them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.space.names import column_key
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
