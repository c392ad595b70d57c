"""Which fields of an event the space does not have: by default they are ignored, and a misspelt one with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

from tocsin.arguments import expect_choice
from tocsin.errors import EventError
from tocsin.space.columns import Path
from tocsin.space.space import Space

Unknown = Literal["ignore", "error"]


def check_unknown(unknown: str) -> None:
    """Refuse another word than the two that say what to do with fields that the space does not have."""
    expect_choice(unknown, "unknown", "ignore", "error")


def refuse_unknown_fields(space: Space, event: Any, unknown: str = "error") -> None:
    """Raise EventError for the first field of a dictionary that the space does not have.

    >>> from tocsin.space.types import Text
    >>> refuse_unknown_fields(Space({"seller": {"city": Text()}}), {"seller": {"City": "NYC"}})
    Traceback (most recent call last):
    ...
    tocsin.errors.EventError: the space has no field seller.City; did you mean seller.city?
    """
    check_unknown(unknown)
    inner = _inner(space)
    waiting: list[tuple[Path, Any]] = [((), event)]
    while waiting:
        above, value = waiting.pop()
        if isinstance(value, Mapping):
            for name, each in value.items():
                path = (*above, str(name))
                if path in inner:
                    waiting.append((path, each))
                elif not _is_known(space, path):
                    raise EventError(_told(space, path))
        elif isinstance(value, (list, tuple)):
            waiting += [(above, each) for each in value if isinstance(each, Mapping)]


def known_only(space: Space, batches: Iterator[pa.RecordBatch], unknown: str) -> Iterator[pa.RecordBatch]:
    """Pass batches on; unless it is ignored, raise EventError for the first column that the space does not have."""
    check_unknown(unknown)
    return batches if unknown == "ignore" else _checked(space, batches)


def _checked(space: Space, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for problem in unknown_columns(space, batch.schema):
            raise EventError(problem)
        yield batch


def unknown_columns(space: Space, schema: pa.Schema) -> list[str]:
    """Return a sentence for each column of a table, fields of structs among them, that the space does not have.

    >>> from tocsin.space.types import Number
    >>> unknown_columns(Space({"price": Number()}), pa.schema({"Price": pa.int64()}))
    ['the space has no field Price; did you mean price?']
    """
    inner = _inner(space)
    return [_told(space, path) for path in _paths(schema, (), inner) if not _is_known(space, path)]


def _paths(fields: Any, above: Path, inner: set[Path]) -> Iterator[Path]:
    for each in fields:
        path, kind = (*above, each.name), each.type
        while pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            kind = kind.value_type
        if path in inner:
            yield from _paths(kind, path, inner) if pa.types.is_struct(kind) else ()
        else:
            yield path


def _inner(space: Space) -> set[Path]:
    """Return the paths that lead to dimensions and are none."""
    return {path[:depth] for path in space.paths() for depth in range(1, len(path))}


def _is_known(space: Space, path: Path) -> bool:
    return path in space.paths() or (len(path) == 1 and path[0] in space.synonyms)


def _told(space: Space, path: Path) -> str:
    name = ".".join(path)
    found = space.find(tuple(name.split(".")))
    if found is not None and len(path) < len(found):
        nested = "".join(f"{{{part!r}: " for part in found) + "..." + "}" * len(found)
        return f"the space has no field {name!r} by that one name; write it nested: {nested}"
    return f"the space has no field {name}; {space.nearest(name)}"
