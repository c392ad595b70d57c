"""The options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.inputs import Format

EventsFile = Annotated[str, typer.Argument(metavar="EVENTS", help="A table of events; - is standard input.")]
SubscriptionsFile = Annotated[
    str, typer.Argument(metavar="SUBSCRIPTIONS", help="A table of ids and expressions; - is standard input.")
]
EventsFormat = Annotated[
    Format | None, typer.Option("--events-format", help="Format of EVENTS, where its name does not tell.")
]
SubscriptionsFormat = Annotated[
    Format | None, typer.Option("--subscriptions-format", help="Format of SUBSCRIPTIONS, where its name does not tell.")
]
SpaceFile = Annotated[
    str | None, typer.Option("--space", metavar="FILE", help="The space as JSON; else it is that of the events.")
]
IdColumn = Annotated[str, typer.Option("--id", metavar="COLUMN", help="The column of SUBSCRIPTIONS that holds ids.")]
ExpressionColumn = Annotated[
    str, typer.Option("--expression", metavar="COLUMN", help="The column of SUBSCRIPTIONS that holds expressions.")
]
Operators = Annotated[
    list[str],
    typer.Option(
        "--operators", metavar="MODULE:NAME", help="An operator of your own that subscriptions call; repeatable."
    ),
]
Engine = Annotated[str, typer.Option("--engine", metavar="NAME", help="The engine that matches.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result here, not to standard output.")
]
To = Annotated[Format | None, typer.Option("--to", help="Format of the result; else by the name of FILE, or a table.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
