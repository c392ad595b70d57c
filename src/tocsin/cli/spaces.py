"""The space of a command: read from a JSON file, and what it says about the columns of files that carry no types."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pyarrow as pa

from tocsin.cli.files import Batches, read_batches
from tocsin.cli.inputs import DELIMITERS, Format, Input
from tocsin.errors import FileError, FileFormatError, SpaceError
from tocsin.space import Number, Space
from tocsin.space.types import Boolean, Dimension


def load_space(path: str) -> Space:
    """Read a space from a JSON file, or from standard input for ``-``."""
    source = Input.open(path, Format.json)
    try:
        return Space.from_json(_parsed(source))
    except SpaceError as error:
        raise SpaceError(f"{source.name}: {error}") from error


def space_of(batches: Batches) -> Space:
    """Return the space of a table's own schema."""
    try:
        return Space.from_arrow(batches.schema)
    except SpaceError as error:
        if batches.schema.names and all(pa.types.is_null(kind) for kind in batches.schema.types):
            raise SpaceError(
                f"{batches.name} has no value in any of its columns ({', '.join(batches.schema.names)}), so that their "
                "types are unknown; declare them with --space FILE"
            ) from error
        raise SpaceError(
            f"{batches.name}: {error}; its columns: {', '.join(batches.schema.names) or 'none'}"
        ) from error


def column_types(space: Space, format: Format) -> dict[str, pa.DataType]:
    """Return the types in which columns of a file without types are read, so that no digit is lost on the way.

    Times, addresses and quantities are read as texts: the space parses those. Repeated fields, and what stands beside
    them in one struct, are inferred: a space does not say which level of a nested field is the list.

    >>> column_types(Space({"price": Number("decimal(9, 2)"), "seller": {"id": Number("int64")}}), Format.jsonl)
    {'price': Decimal128Type(decimal128(9, 2)), 'seller': StructType(struct<id: int64>)}
    """
    paths = [path for path in space.paths() if path not in space.derived]
    single = {name: space[path] for name, path in space.synonyms.items() if path not in space.repeated}
    if format in DELIMITERS:
        found = {".".join(path): _scalar(space[path]) for path in paths if path not in space.repeated}
        return found | {name: _scalar(kind) for name, kind in single.items()}
    guessed = {path[0] for path in paths if path in space.repeated or _is_quantity(space[path])}
    found = _fields(space, [path for path in paths if path[0] not in guessed], 0)
    return found | {name: _scalar(kind) for name, kind in single.items() if "." not in name and not _is_quantity(kind)}


def _fields(space: Space, paths: list[tuple[str, ...]], depth: int) -> dict[str, pa.DataType]:
    found = {}
    for name, group in groupby(sorted(paths), key=lambda path: path[depth]):
        members = list(group)
        is_leaf = len(members) == 1 and len(members[0]) == depth + 1
        inner = _scalar(space[members[0]]) if is_leaf else pa.struct(list(_fields(space, members, depth + 1).items()))
        found[name] = inner
    return found


def _is_quantity(kind: Dimension) -> bool:
    """Return whether a dimension takes texts and structs as numbers with a unit."""
    return isinstance(kind, Number) and kind.unit is not None


def _scalar(kind: Dimension) -> pa.DataType:
    if isinstance(kind, Number) and not _is_quantity(kind):
        return {"double": pa.float64(), "int64": pa.int64()}.get(kind.kind) or pa.decimal128(*kind.decimal)
    return pa.bool_() if isinstance(kind, Boolean) else pa.string()


def _parsed(source: Input) -> Any:
    try:
        return json.loads(str(source.data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source.name} is not JSON: {error}") from error


def declared_space(space: str | None, events: str | None, events_format: Format | None) -> Space:
    """Return the space of a file of subscriptions: from its own file, or that of the columns of events."""
    if space is not None:
        return load_space(space)
    if events is not None:
        return space_of(read_batches(Input.open(events, events_format)))
    raise FileError("say which fields there are: --space FILE (see `tocsin space`) or --events FILE")
