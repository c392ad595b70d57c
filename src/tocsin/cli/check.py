"""`tocsin check`: what is wrong with a file of subscriptions."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import FOUND, options
from tocsin.cli.files import read_batches
from tocsin.cli.inputs import Format, Input
from tocsin.cli.loading import load, never_matching, refuse_two_standard_inputs
from tocsin.cli.results import to_json
from tocsin.cli.spaces import declared_space
from tocsin.cli.subscriptions import read_subscriptions
from tocsin.matcher import Matcher
from tocsin.space import Space
from tocsin.space.unknown import unknown_columns


def check(
    subscriptions: options.SubscriptionsFile,
    space: Annotated[
        str | None, typer.Option("--space", metavar="FILE", help="The space of the subscriptions, as JSON.")
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="A table of events whose columns are the space.")
    ] = None,
    id: options.IdColumn = "id",
    expression: options.ExpressionColumn = "expression",
    events_format: options.EventsFormat = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    json: options.Json = False,
) -> None:
    """Validate a file of subscriptions.

    Every row that is bad is listed with its line, the column in its expression and the reason; so is every row that
    can never match. Where a space and events are given, columns of the events that the space lacks are listed too:
    they would be ignored. The exit code is 1 if there is any.
    """
    refuse_two_standard_inputs(subscriptions, space, events)
    held = read_subscriptions(Input.open(subscriptions, subscriptions_format), id, expression)
    declared = declared_space(space, events, events_format)
    unknown = _unknown_columns(declared, events, events_format) if space is not None and events is not None else []
    matcher = Matcher(declared, "scan")
    bad = load(matcher, held)
    never = never_matching(matcher, held)
    for finding in sorted([*bad, *never], key=lambda finding: finding.number):
        typer.echo(to_json(finding.as_json(held.name)) if json else finding.as_text(held.name))
    for problem in unknown:
        typer.echo(to_json({"file": events, "kind": "unknown", "reason": problem}) if json else f"{events}: {problem}")
    counts = {"good": len(matcher) - len(never), "bad": len(bad), "never": len(never)}
    if not json:
        typer.echo("{good:,} good, {bad:,} bad, {never:,} can never match".format(**counts))
    if bad or never or unknown:
        raise typer.Exit(FOUND)


def _unknown_columns(space: Space, events: str, format: Format | None) -> list[str]:
    """Return what is to be said of columns of a table of events that the space does not have."""
    return unknown_columns(space, read_batches(Input.open(events, format), skip_bad=True).schema)
