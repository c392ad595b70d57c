"""`tocsin bench transitions`: a fleet on Spark, entering and leaving fences."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.results import draw, to_json
from tocsin.cli.spark import open_session


def transitions(
    trucks: Annotated[int, typer.Option(min=100, help="How many publications are stored.")] = 1_000_000,
    fences: Annotated[int, typer.Option(min=100, help="How many subscriptions there are.")] = 100_000,
    rows: Annotated[int, typer.Option(min=10, help="Position updates a batch.")] = 200_000,
    batches: Annotated[int, typer.Option(min=1, help="Batches of updates, the first two of which warm up.")] = 8,
    buckets: Annotated[int | None, typer.Option(min=1, help="Over how many tasks publications are spread.")] = None,
    cores: Annotated[str, typer.Option(metavar="N", help="How many cores Spark uses; * is all.")] = "2",
    seed: Annotated[int, typer.Option(min=0, help="What the fleet is generated from.")] = 2004,
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write a page, JSON and a picture here.")
    ] = None,
) -> None:
    """Measure transitions on Spark: trucks that enter and leave fences as they move.

    A stream reads position updates from Parquet files, a file a batch, and writes transitions to Parquet files. The
    same is done with a fifth of the trucks, to see whether the cost follows the updates. Every transition is compared
    with the library's. With --output, DIR gets transitions.md, transitions.json and pictures/.
    """
    from tocsin.bench.machine import describe
    from tocsin.bench.transitions import draw_transitions, measure_transitions, page

    if rows > trucks:
        raise typer.BadParameter("a batch moves a truck once: --rows is at most --trucks")
    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), seed)
    session = open_session(cores)
    try:
        say = lambda text: typer.echo(text, err=True)  # noqa: E731 - named where it is used
        found = measure_transitions(session, trucks, fences, rows, batches, buckets, seed, say)
    finally:
        session.stop()
    if json:
        typer.echo(to_json({"about": about} | found.to_json()))
    else:
        draw(
            ["", f"{found.fleet.trucks:,} stored", f"{found.smaller.trucks:,} stored"],
            [[*row] for row in found.as_rows()],
        )
        typer.echo(f"with all trucks stored the rate is {found.share} of that with few")
    if output is not None:
        draw_transitions(found, output / "pictures" / "transitions.png")
        (output / "transitions.md").write_text("\n".join(page(about, found, "pictures/transitions.png")) + "\n")
        (output / "transitions.json").write_text(to_json({"about": about} | found.to_json()) + "\n")
