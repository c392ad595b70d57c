"""`tocsin bench spark`: matching on Spark beside what bounds it and what plain SQL does."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
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
    repetitions: Annotated[int, typer.Option(min=1, help="How often each pass is timed; the median counts.")] = 3,
    join_seconds: Annotated[
        float, typer.Option(min=0, help="A join finishes a size in this time, or not at all; 0 leaves joins out.")
    ] = 180.0,
    join_events: Annotated[int, typer.Option(min=1, help="How many events a join must finish with, at least.")] = 100,
    larger: Annotated[
        list[int] | None,
        typer.Option(min=1_000, help="More subscriptions for joins; repeat it for further sizes.  [5000000, 20000000]"),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0, help="No larger size is begun after so many minutes.")] = 12.0,
    segment_rows: Annotated[
        int | None, typer.Option(min=1, help="Subscriptions a segment; by default all cores build some.")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Shards of the index.")] = 1,
    memory: Annotated[str, typer.Option(help="The memory of Spark's Java.")] = "12g",
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write a page, JSON and a picture here.")
    ] = None,
) -> None:
    """Measure matching on Spark: W0, from Parquet to a count of pairs.

    In one run and on the same rows: a pass through Python that only counts, matching, three plain joins in SQL that
    find the same pairs, and an index by hand in SQL; then more subscriptions, up to the largest number that the best
    plain join can finish. Opening the index and the memory that it takes are measured in all workers at once. With
    --output, DIR gets spark-benchmark.md, spark-benchmark.json and pictures/spark.png.
    """
    spark_room()
    from tocsin.bench.machine import describe
    from tocsin.bench.spark import measure_spark
    from tocsin.bench.spark_report import draw_spark, mark, page, targets
    from tocsin.bench.spark_sizes import Limits
    from tocsin.bench.workloads import WORKLOADS

    sizes = tuple(larger) if larger else Limits().larger
    if list(sizes) != sorted({subscriptions, *sizes})[-len(sizes) :]:
        raise typer.BadParameter("sizes rise, and are more than --subscriptions", param_hint="--larger")
    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), WORKLOADS["W0"].seed)
    with progress("starting Spark"):
        session = open_session(str(cores), memory=memory, spark_driver_maxResultSize="0")

    def say(text: str) -> None:
        typer.echo(f"tocsin: {text}", err=True)

    limits = Limits(join_events, join_seconds, sizes, minutes) if join_seconds else None
    workload = WORKLOADS["W0"]
    found = measure_spark(
        session, subscriptions, events, cores, workload, repetitions, limits, segment_rows, shards, say
    )
    with suppress(Exception):  # Java may have run out of memory at the largest size
        session.stop()
    held = targets(found)
    written = {"about": about} | found.to_json() | {"targets": [one.to_json() for one in held]}
    if json:
        typer.echo(to_json(written))
    else:
        rows = found.as_rows() + [(f"target: {one.target}", f"{mark(one)}: {one.measured}") for one in held]
        draw(
            ["what", "how much"],
            [[name, f"{value:,}" if isinstance(value, int | float) else str(value)] for name, value in rows],
        )
    if output is not None:
        (output / "pictures").mkdir(parents=True, exist_ok=True)
        draw_spark(output / "pictures" / "spark.png", found)
        (output / "spark-benchmark.md").write_text(page(about, found, held, "pictures/spark.png"))
        (output / "spark-benchmark.json").write_text(to_json(written) + "\n")
