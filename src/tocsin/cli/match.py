"""`tocsin match`: which events satisfy which subscriptions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from tocsin.cli import FOUND, options
from tocsin.cli.declared import operators_named
from tocsin.cli.files import Batches, read_batches, require_columns
from tocsin.cli.inputs import Format, Input
from tocsin.cli.loading import load, refuse_two_standard_inputs, report
from tocsin.cli.progress import progress
from tocsin.cli.results import Write, open_result
from tocsin.cli.spaces import column_types, load_space, space_of
from tocsin.cli.spark import match_on_spark
from tocsin.cli.subscriptions import read_subscriptions
from tocsin.errors import FileColumnError, FileError, MissingColumnError
from tocsin.matcher import Matcher, Problem
from tocsin.matcher.matcher import Missing

RESULT = ("event", "subscription")
"""The columns that every result has."""


def match(
    events: options.EventsFile,
    subscriptions: options.SubscriptionsFile,
    space: options.SpaceFile = None,
    columns: Annotated[
        list[str], typer.Option("--with", metavar="COLUMN", help="Add this column of EVENTS to the result; repeatable.")
    ] = [],  # noqa: B006 - Typer's way to say that an option may be given any number of times
    missing: Annotated[
        Missing, typer.Option(help="What it means that EVENTS lacks a column which subscriptions test.")
    ] = "error",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Report bad rows and go on without them; the exit code is still 1.")
    ] = False,
    id: options.IdColumn = "id",
    expression: options.ExpressionColumn = "expression",
    operators: options.Operators = [],  # noqa: B006 - as above
    engine: options.Engine = "adaptive",
    events_format: options.EventsFormat = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    output: options.Output = None,
    to: options.To = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Match on Spark: the tables may be directories, the result has all columns."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Find which events satisfy which subscriptions.

    The result has a row for each match: the number of the event, counted from 0, and the id of the subscription.
    """
    own = operators_named(operators)
    if spark:
        places = match_on_spark(
            events, subscriptions, space, missing, skip_bad, output, events_format, subscriptions_format, to, own
        )
        raise typer.Exit(FOUND if places else 0)
    _refuse_columns_twice(columns)
    refuse_two_standard_inputs(events, subscriptions, space)
    held = read_subscriptions(Input.open(subscriptions, subscriptions_format), id, expression)
    source = Input.open(events, events_format)
    declared = load_space(space) if space else None
    if missing == "unspecified" and declared is None:
        raise FileError("--missing unspecified needs --space FILE: without it the columns of EVENTS are the space")
    batches = read_batches(source, column_types(declared, source.format) if declared else None, skip_bad=skip_bad)
    require_columns(source.name, batches.schema.names, columns)
    matcher = Matcher(declared or space_of(batches), engine, operators=own)
    findings = load(matcher, held)
    report(held.name, findings)
    if findings and not skip_bad:
        raise typer.Exit(FOUND)
    schema = pa.schema(
        [
            pa.field("event", pa.int64()),
            pa.field("subscription", held.table.schema.field("id").type),
            *(batches.schema.field(name) for name in columns),
        ]
    )
    with open_result(output, Format.jsonl if json else to, schema) as write:
        is_clean = _match_all(matcher, batches, schema, write, missing, skip_bad)
    if findings or not is_clean:
        raise typer.Exit(FOUND)


def _refuse_columns_twice(columns: list[str]) -> None:
    """Refuse columns that the result has by itself, or that are asked for twice."""
    for place, name in enumerate(columns):
        if name in RESULT or name in columns[:place]:
            there = "the result has a column of that name by itself" if name in RESULT else "it is asked for twice"
            raise FileColumnError(f"--with {name}: {there}; rename the column of EVENTS, or leave it out")


def _match_all(
    matcher: Matcher, batches: Batches, schema: pa.Schema, write: Write, missing: Missing, skip_bad: bool
) -> bool:
    """Match batch after batch and write what is found; return whether every event fitted the space."""
    start, is_clean = 0, not batches.skipped
    for number, fault in batches.skipped.items():
        print(f"{batches.name}: event {number}: {fault}", file=sys.stderr)
    with progress("matching", batches.rows) as advance:
        for batch in batches:
            problems: list[Problem] = []
            kept = _kept(batch, batches.skipped, start)
            try:
                found = matcher.match_batch(batch.take(kept), missing=missing, problems=problems)
            except MissingColumnError as error:
                reason, _, _ = str(error).partition(" (")
                raise FileColumnError(f"{batches.name}: {reason}; or say --missing unspecified") from error
            _report(batches.name, problems, start, kept)
            is_clean = is_clean and not problems
            if problems and not skip_bad:
                raise typer.Exit(FOUND)
            found = found.set_column(0, "event", kept.take(found["event"].combine_chunks()))
            write(_result(found, batch, schema, start))
            start += batch.num_rows
            advance(batch.num_rows)
    return is_clean


def _kept(batch: pa.RecordBatch, skipped: Mapping[int, str], start: int) -> pa.Array:
    """Return the rows of a batch that were read, which counts from ``start``."""
    return pa.array(
        [row for row in range(batch.num_rows) if row + start not in skipped] if skipped else np.arange(batch.num_rows),
        pa.int64(),
    )


def _result(found: pa.Table, batch: pa.RecordBatch, schema: pa.Schema, start: int) -> pa.RecordBatch:
    """Return the matches, in order, with events numbered through the whole file, beside the columns asked for."""
    found = found.sort_by([("event", "ascending"), ("subscription", "ascending")])
    rows = found["event"].combine_chunks()
    columns = [batch.column(name).take(rows) for name in schema.names[2:]]
    numbers = pa.array(rows.to_numpy() + start)
    return pa.record_batch(
        [numbers, found["subscription"].combine_chunks().cast(schema.field(1).type), *columns], schema
    )


def _report(name: str, problems: list[Problem], start: int, kept: pa.Array) -> None:
    for row, _, error in problems:
        print(f"{name}: event {kept[row].as_py() + start}: {str(error).removeprefix(f'row {row}, ')}", file=sys.stderr)
