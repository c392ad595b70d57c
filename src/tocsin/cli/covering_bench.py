"""`tocsin bench covering`: the covering paper's experiments, subscriptions of mixed types, a tree of brokers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json


def covering(
    commands: Annotated[int, typer.Option(min=100, help="Commands of the comparison of indexes.")] = 100_000,
    modes: Annotated[int, typer.Option(min=0, help="Commands of the experiment on k; 0 leaves it out.")] = 60_000,
    subscriptions: Annotated[
        int, typer.Option(min=0, help="Subscriptions of mixed types; 0 leaves them out.")
    ] = 1_000_000,
    brokers: Annotated[int, typer.Option(min=0, help="Brokers in the tree; 0 leaves it out.")] = 30,
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write covering.json, covering-figures.md, pictures."),
    ] = None,
) -> None:
    """Measure what covering costs and saves.

    Figures 8 and 9 and tables I and II of the paper (k from 1 to 6 under both loads), figures 10 to 12 (indexes against
    the scan at 6, 12 and 16 dimensions), subscribing many subscriptions of mixed types in bulk and singly, and a tree
    of brokers with and without covering; each table is printed as soon as it is there, the targets last. Times are
    processor times of one thread.
    """
    from tocsin.bench import covering as bench
    from tocsin.bench.covering_report import brokers_compared, mixed, page, parts_of, pruning
    from tocsin.bench.machine import describe

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), bench.SEED)
    found: dict[str, list[dict[str, Any]]] = {}

    def show(name: str, rows: list[dict[str, Any]]) -> None:
        """Print what was found as soon as it is: rows as JSON, or the tables that come of them."""
        before = [title for title, _, _ in parts_of(found)]
        found[name] = rows
        for row in rows if json else ():
            typer.echo(to_json({"experiment": name, **row}))
        for title, head, cells in () if json else parts_of(found):
            if title not in before and title != "Targets":
                typer.echo(f"\n{title}")
                draw(head, list(cells))

    with progress("compiling"):
        bench.warm_up()
    if modes:
        with progress("k from 1 to 6", bench.MODES) as advance:
            show("modes", bench.reporting_modes(modes, advance=advance))
    with progress("indexes", len(bench.DIMENSIONS) * len(bench.INDEXES)) as advance:
        show("comparison", bench.comparison(commands, advance=advance))
    if subscriptions:
        with progress("mixed types"):
            show("mixed", mixed(subscriptions))
        with progress("roots first"):
            show("pruning", pruning(min(subscriptions, 200_000)))
    if brokers:
        with progress("brokers"):
            show("brokers", brokers_compared(brokers))
    if not json:
        title, head, cells = parts_of(found)[-1]
        typer.echo(f"\n{title}")
        draw(head, list(cells))
    if output is not None:
        from tocsin.bench.covering_pictures import draw_all

        (output / "pictures").mkdir(parents=True, exist_ok=True)
        pictures = draw_all(found, output / "pictures")
        (output / "covering.json").write_text(to_json({"about": about, **found}) + "\n")
        (output / "covering-figures.md").write_text(page(about, found, pictures), encoding="utf-8")
