"""`tocsin space`: the space of a table of events, to keep, edit and declare."""

from __future__ import annotations

import json as json_text

import typer

from tocsin.cli import options
from tocsin.cli.files import read_batches
from tocsin.cli.inputs import Input
from tocsin.cli.results import draw
from tocsin.cli.spaces import space_of
from tocsin.space.types import to_json


def space(events: options.EventsFile, events_format: options.EventsFormat = None, json: options.Json = False) -> None:
    """Show the dimensions of a table of events.

    With --json it is printed as the JSON that --space takes: keep it in a file, correct the types that were guessed.
    """
    found = space_of(read_batches(Input.open(events, events_format)))
    if json:
        typer.echo(json_text.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    draw(["dimension", "type", "settings"], [[name, *_described(to_json(found[name]))] for name in found])


def _described(kind: dict[str, object]) -> list[str]:
    of = kind.get("of")
    if isinstance(of, dict):
        return [f"repeated {of['type']}", ", ".join(str(value) for name, value in of.items() if name != "type")]
    return [str(kind["type"]), ", ".join(str(value) for name, value in kind.items() if name != "type")]
