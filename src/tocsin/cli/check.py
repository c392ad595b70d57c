"""`tocsin check`: what is wrong with a file of subscriptions."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import FOUND, options
from tocsin.cli.inputs import Input
from tocsin.cli.loading import load, never_matching, refuse_two_standard_inputs
from tocsin.cli.results import to_json
from tocsin.cli.spaces import declared_space
from tocsin.cli.subscriptions import read_subscriptions
from tocsin.matcher import Matcher


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
    can never match. The exit code is 1 if there is any.
    """
    refuse_two_standard_inputs(subscriptions, space, events)
    held = read_subscriptions(Input.open(subscriptions, subscriptions_format), id, expression)
    matcher = Matcher(declared_space(space, events, events_format), "scan")
    bad = load(matcher, held)
    never = never_matching(matcher, held)
    for finding in sorted([*bad, *never], key=lambda finding: finding.number):
        typer.echo(to_json(finding.as_json(held.name)) if json else finding.as_text(held.name))
    counts = {"good": len(matcher) - len(never), "bad": len(bad), "never": len(never)}
    if not json:
        typer.echo("{good:,} good, {bad:,} bad, {never:,} can never match".format(**counts))
    if bad or never:
        raise typer.Exit(FOUND)
