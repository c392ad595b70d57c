"""Events and subscriptions from JSON: an array of objects, or an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.errors import EventError, SubscriptionError, TocsinError


def events_of(source: str | Path) -> Iterator[dict[str, Any]]:
    r"""Yield the events of a JSON text, or of a file given as a Path.

    >>> list(events_of('{"price": 3}\n{"price": 9007199254740993}'))
    [{'price': 3}, {'price': 9007199254740993}]
    """
    for number, found in _values(source, EventError):
        if not isinstance(found, dict):
            raise EventError(f"{number}: an event is an object, not {found!r}")
        yield found


def subscriptions_of(source: str | Path) -> pa.Table:
    """Return the subscriptions of a JSON text, or of a file given as a Path, as a table of ids and expressions.

    >>> subscriptions_of('[{"id": 1, "expression": "price > 3"}]').to_pylist()
    [{'id': 1, 'expression': 'price > 3'}]
    """
    ids, expressions = [], []
    for number, found in _values(source, SubscriptionError):
        if not isinstance(found, dict) or not {"id", "expression"} <= found.keys():
            raise SubscriptionError(f"{number}: a subscription is an object with id and expression, not {found!r}")
        if not isinstance(found["expression"], str):
            raise SubscriptionError(f"{number}: an expression is text, not {found['expression']!r}")
        ids.append(found["id"])
        expressions.append(found["expression"])
    try:
        return pa.table({"id": pa.array(ids), "expression": pa.array(expressions, pa.string())})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise SubscriptionError(f"the ids and expressions do not fit columns: {error}; use ids of one type") from None


def _values(source: str | Path, refusal: type[TocsinError]) -> Iterator[tuple[str, Any]]:
    """Yield each value with the words that say where it stands."""
    text = _text_of(source, refusal)
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("["):
        try:
            listed = json.loads(stripped)
        except json.JSONDecodeError as error:
            raise refusal(f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}") from None
        except (RecursionError, ValueError) as error:  # a number of thousands of digits is the other
            raise refusal(_beyond(error)) from None
        yield from ((f"element {number}", value) for number, value in enumerate(listed))
        return
    for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise refusal(f"line {number}, column {error.colno}: this is not JSON: {error.msg}") from None
            except (RecursionError, ValueError) as error:
                raise refusal(f"line {number}: {_beyond(error)}") from None
            yield f"line {number}", value


def _text_of(source: str | Path, refusal: type[TocsinError]) -> str:
    if isinstance(source, str):
        return source
    if not isinstance(source, Path):
        raise refusal(f"JSON is given as text, or as a pathlib.Path of a file, not {source!r}")
    try:
        return source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise refusal(f"{source} is not UTF-8: {error}") from None
    except OSError as error:
        raise refusal(f"{source} cannot be read: {error.strerror}") from None


def _beyond(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
