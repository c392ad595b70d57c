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
        float, typer.Option(min=0, help="A join finishes a size in this time, or not at all; 0 leaves joins out.")
    ] = 120.0,
    join_events: Annotated[int, typer.Option(min=1, help="How many events a join must finish with.")] = 100_000,
    step: Annotated[float, typer.Option(min=1.1, help="Each larger size is so many times the last.")] = 2.0,
    most: Annotated[int, typer.Option(min=1_000, help="The most subscriptions that are tried.")] = 8_000_000,
    segment_rows: Annotated[
        int | None, typer.Option(min=1, help="Subscriptions a segment; by default all cores build some.")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Shards of the index.")] = 1,
    memory: Annotated[str, typer.Option(help="The memory of Spark's Java.")] = "6g",
    json: options.Json = False,
) -> None:
    """Measure matching on Spark: W0, from Parquet to a count of pairs.

    In one run and on the same rows: a pass through Python that only counts, matching, and four joins in plain SQL that
    find the same pairs; then more subscriptions, up to the largest number that each join can finish. Opening the index
    and the memory that it takes are measured in all workers at once.
    """
    spark_room()
    from tocsin.bench.spark import measure_spark
    from tocsin.bench.spark_sizes import Limits

    with progress("starting Spark"):
        session = open_session(str(cores), memory=memory)

    def say(text: str) -> None:
        typer.echo(f"tocsin: {text}", err=True)

    limits = Limits(join_events, join_seconds, step, most) if join_seconds else None
    figures = measure_spark(session, subscriptions, events, cores, "W0", repetitions, limits, segment_rows, shards, say)
    if json:
        typer.echo(to_json(figures.to_json()))
        return
    rows = figures.as_rows()
    draw(
        ["what", "how much"],
        [[name, f"{value:,}" if isinstance(value, int | float) else str(value)] for name, value in rows],
    )
