"""`tocsin stream`: match events as they arrive, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import FOUND, INTERRUPTED, options
from tocsin.cli.progress import progress
from tocsin.cli.results import to_json
from tocsin.cli.spaces import load_space
from tocsin.cli.spark import Cores, Jars, Packages, Schema, TableFormat, open_session, spark_room
from tocsin.errors import FileError


def stream(
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="A directory where files arrive, or a topic of Kafka.")
    ],
    subscriptions: Annotated[
        str, typer.Argument(metavar="SUBSCRIPTIONS", help="A table of ids and expressions, or an index built on Spark.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where the matches go; or a topic.")],
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="DIR", help="Where the stream keeps how far it has come.")
    ],
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="Go on for ever, a batch each '10 seconds'.")
    ] = None,
    events_format: Annotated[
        TableFormat | None, typer.Option("--events-format", help="Format of EVENTS, where its name does not tell.")
    ] = None,
    subscriptions_format: Annotated[
        TableFormat | None,
        typer.Option("--subscriptions-format", help="Format of SUBSCRIPTIONS, where its name does not tell."),
    ] = None,
    to: Annotated[TableFormat, typer.Option("--to", help="Format of the matches.")] = TableFormat.parquet,
    schema: Schema = None,
    servers: Annotated[str | None, typer.Option("--servers", metavar="HOST:PORT", help="The servers of Kafka.")] = None,
    space: options.SpaceFile = None,
    refused: Annotated[
        str | None, typer.Option("--refused", metavar="DIR", help="Write events that do not fit here, with the reason.")
    ] = None,
    records: Annotated[
        str | None,
        typer.Option("--records", metavar="DIR", help="Record batches here, where the index is read-only."),
    ] = None,
    cores: Cores = "*",
    packages: Packages = None,
    jars: Jars = None,
    json: options.Json = False,
) -> None:
    """Match events as they arrive, on Spark.

    Without --every, what is there now is matched and the command ends; run again, it goes on where it was. The index of
    the subscriptions is kept beside the checkpoint: a replayed batch gives the same matches.
    """
    ts = spark_room()
    from tocsin.spark.streaming import Progress, run_stream
    from tocsin.spark.tables import Source, read_stream, read_table

    if every and refused:
        raise FileError("--refused is for a stream that ends; leave --every out, or read the index's quarantine")
    session = open_session(cores, packages, jars, TableFormat.delta in (events_format, subscriptions_format, to))
    kafka = {"kafka.bootstrap.servers": servers} if servers else {}
    source = Source.of(events, events_format, schema, **kafka)
    if source.format == "kafka":
        source.options.setdefault("startingOffsets", "earliest")
    arriving = read_stream(session, source)
    index: Any = subscriptions
    if not (Path(subscriptions) / "versions").is_dir():
        index = f"{checkpoint}/index"
        table = read_table(session, Source.of(subscriptions, subscriptions_format))
        declared = load_space(space) if space else None
        ts.build_index(table, index, events_sample=arriving, space=declared, overwrite=True)
    quarantine = ts.Quarantine()
    matched = ts.match(arriving, index, quarantine=quarantine, records=records)
    if to is TableFormat.kafka:
        matched = matched.selectExpr("CAST(subscription AS STRING) AS key", "to_json(struct(*)) AS value")

    def said(step: Progress) -> None:
        facts = {"batch": step.batch, "events": step.events, "matches": step.matches, "refused": step.refused}
        if json:
            typer.echo(to_json(facts | {"events_per_second": round(step.rate)}))
        else:
            typer.echo(
                f"batch {step.batch}: {step.events:,} events, {step.matches:,} matches, {step.refused:,} refused, "
                f"{step.rate:,.0f} events/s"
            )

    try:
        with progress("streaming"):
            place = f"{checkpoint}/matches"
            total = run_stream(matched, output, place, format=to, every=every, report=said, options=kafka)
            if refused is not None:
                run_stream(quarantine.events, refused, f"{checkpoint}/refused", format="json")
    except KeyboardInterrupt:
        typer.echo("tocsin: interrupted; the same command goes on where it was", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if not json:
        typer.echo(f"{total.events:,} events, {total.matches:,} matches, {total.refused:,} refused")
    if total.refused:
        raise typer.Exit(FOUND)
