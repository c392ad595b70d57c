"""`tocsin explain`: why a subscription matches an event, or does not."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import typer

from tocsin.cli import options
from tocsin.cli.files import Batches, read_batches
from tocsin.cli.inputs import Format, Input
from tocsin.cli.loading import refuse_two_standard_inputs
from tocsin.cli.results import to_json
from tocsin.cli.spaces import column_types, load_space, space_of
from tocsin.cli.subscriptions import Subscriptions, read_subscriptions
from tocsin.errors import ExpressionError, FileError, UnknownSubscriptionError
from tocsin.matcher import Matcher


def explain(
    event: Annotated[str | None, typer.Option("--event", metavar="JSON", help="The event, as a JSON object.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPRESSION", help="The subscription, as an expression.")
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="A table of events, instead of --event.")
    ] = None,
    row: Annotated[int, typer.Option("--row", min=0, help="Which row of --events, counted from 0.")] = 0,
    subscriptions: Annotated[
        str | None,
        typer.Option("--subscriptions", metavar="FILE", help="A table of subscriptions, instead of --where."),
    ] = None,
    subscription: Annotated[
        str | None, typer.Option("--subscription", metavar="ID", help="Which row of --subscriptions.")
    ] = None,
    space: options.SpaceFile = None,
    id: options.IdColumn = "id",
    expression: options.ExpressionColumn = "expression",
    events_format: options.EventsFormat = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    json: options.Json = False,
) -> None:
    """Say why a subscription matches an event, or does not.

    Each clause that decides is shown with the value it met; of those that failed, the nearest miss comes first.
    """
    refuse_two_standard_inputs(events, subscriptions, space)
    declared = load_space(space) if space else None
    source = _event_source(event, events, events_format)
    batches = read_batches(source, column_types(declared, source.format) if declared else None)
    chosen, text = _subscription(where, subscriptions, subscription, subscriptions_format, id, expression)
    matcher = Matcher(declared or space_of(batches), "scan")
    matcher.subscribe(chosen, text)
    explanation = matcher.explain(_row(batches, row), chosen)
    typer.echo(to_json(explanation.to_json()) if json else str(explanation))


def _event_source(event: str | None, events: str | None, format: Format | None) -> Input:
    if (event is None) == (events is None):
        raise FileError("say which event: either --event JSON, or --events FILE with --row")
    if events is not None:
        return Input.open(events, format)
    return Input("--event", Format.jsonl, pa.py_buffer(str(event).encode("utf-8", "surrogateescape")))


def _row(batches: Batches, row: int) -> dict[str, Any]:
    start = 0
    for batch in batches:
        if row < start + batch.num_rows:
            found: dict[str, Any] = batch.slice(row - start, 1).to_pylist()[0]
            return found
        start += batch.num_rows
    raise FileError(f"{batches.name} has no row {row}; it has {start:,}, counted from 0")


def _subscription(
    where: str | None, path: str | None, wanted: str | None, format: Format | None, id: str, expression: str
) -> tuple[Any, str]:
    """Return the id and the expression of the subscription to explain."""
    if (where is None) == (path is None):
        raise FileError(
            "say which subscription: either --where EXPRESSION, or --subscriptions FILE with --subscription"
        )
    if path is None:
        if wanted is not None:
            raise FileError("--subscription ID says which row of --subscriptions FILE; with --where leave it out")
        return "the subscription", str(where)
    held = read_subscriptions(Input.open(path, format), id, expression)
    if wanted is None:
        raise FileError(f"say which of the {held.table.num_rows:,} subscriptions in {held.name}: --subscription ID")
    return _find(held, wanted)


def _find(held: Subscriptions, wanted: str) -> tuple[Any, str]:
    """Return the subscription whose id is written like this; UnknownSubscriptionError if there is none, or several."""
    ids = held.table["id"]
    rows = [row for row, id in enumerate(ids.to_pylist()) if id is not None and wanted in _spellings(id)]
    if not rows:
        bad = next((fault for fault in held.faults if str(fault.id) == wanted), None)
        shown = ", ".join(_spellings(id)[0] for id in ids.slice(0, 5).to_pylist() if id is not None)
        why = f"; {held.place} {bad.line} is bad: {bad.reason}" if bad else f"; its first are {shown}" if shown else ""
        raise UnknownSubscriptionError(f"{held.name} has no subscription {wanted!r}{why}")
    if len(rows) > 1:
        raise UnknownSubscriptionError(f"{held.name} has {len(rows):,} subscriptions {wanted!r}; ids are unique")
    text = held.table["expression"][rows[0]].as_py()
    if text is None:
        raise ExpressionError(f"the expression of {wanted!r} in {held.name} is NULL")
    return ids[rows[0]].as_py(), text


def _spellings(id: Any) -> list[str]:
    """Return the ways in which an id may be written on a command line, the usual one first.

    >>> _spellings(2.0), _spellings(True), _spellings(b"a")
    (['2.0', '2'], ['True', 'true'], ['a'])
    """
    if isinstance(id, bool):
        return [str(id), str(id).lower()]
    if isinstance(id, bytes):
        return [id.decode("utf-8", "backslashreplace")]
    if isinstance(id, float) and id.is_integer():
        return [str(id), str(int(id))]
    return [str(id), id.isoformat()] if hasattr(id, "isoformat") else [str(id)]
