"""`tocsin bench spark`: matching on Spark beside what bounds it and what plain SQL does."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json
from tocsin.cli.spark import open_session, spark_room


def spark(
    subscriptions: Annotated[int, typer.Option(min=1_000, help="How many subscriptions are indexed.")] = 1_000_000,
    events: Annotated[int, typer.Option(min=1_000, help="How many events are matched.")] = 2_000_000,
    cores: Annotated[int, typer.Option(min=1, help="How many cores Spark uses.")] = 2,
    repetitions: Annotated[int, typer.Option(min=1, help="How often each pass is timed; the median counts.")] = 5,
    join_seconds: Annotated[
        float, typer.Option(min=0, help="Each join gets more events until it takes so long; 0 leaves joins out.")
    ] = 30.0,
    segment_rows: Annotated[
        int | None, typer.Option(min=1, help="Subscriptions a segment; by default all cores build some.")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Shards of the index.")] = 1,
    memory: Annotated[str, typer.Option(help="The memory of Spark's Java.")] = "6g",
    json: options.Json = False,
) -> None:
    """Measure matching on Spark: W0, from Parquet to a count of pairs.

    In one run and on the same rows: a pass through Python that only counts, matching, and four joins in plain SQL that
    find the same pairs.
    """
    spark_room()
    from tocsin.bench.spark import measure_spark

    with progress("starting Spark"):
        session = open_session(str(cores), memory=memory)

    def say(text: str) -> None:
        typer.echo(f"tocsin: {text}", err=True)

    figures = measure_spark(
        session, subscriptions, events, cores, "W0", repetitions, join_seconds, segment_rows, shards, say
    )
    rows = figures.as_rows()
    if json:
        typer.echo(to_json(dict(rows)))
        return
    draw(
        ["what", "how much"],
        [[name, f"{value:,}" if isinstance(value, int | float) else str(value)] for name, value in rows],
    )
