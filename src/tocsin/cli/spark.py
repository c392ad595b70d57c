"""What the commands on Spark share: their options, a session, where subscriptions come from."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from tocsin.cli.declared import share_folder
from tocsin.cli.results import draw
from tocsin.cli.spaces import load_space
from tocsin.errors import FileError, SparkError
from tocsin.operators.operator import Operator

SHOWN_ROWS = 20


class TableFormat(StrEnum):
    """The formats of tables on Spark."""

    parquet = "parquet"
    json = "json"
    csv = "csv"
    delta = "delta"
    kafka = "kafka"


Cores = Annotated[str, typer.Option("--cores", metavar="N", help="How many cores Spark uses; * is all.")]
Packages = Annotated[
    str | None, typer.Option("--packages", metavar="LIST", help="Maven packages of connectors, such as that of Kafka.")
]
Jars = Annotated[
    str | None, typer.Option("--jars", metavar="LIST", help="Files of connectors, where Spark is not to fetch them.")
]
Schema = Annotated[
    str | None, typer.Option("--schema", metavar="DDL", help="The events' schema, such as 'price double, city string'.")
]


def spark_room() -> ModuleType:
    """Return the room of Spark; say what to install where it cannot be opened."""
    try:
        from tocsin import spark
    except ModuleNotFoundError as error:
        raise SparkError(str(error)) from error
    return spark


DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a session needs to read and write Delta tables, besides their connector."""


LOGGING = Path(__file__).with_name("log4j2.properties")
"""What Java may say on the command line."""


def open_session(
    cores: str,
    packages: str | None = None,
    jars: str | None = None,
    delta: bool = False,
    memory: str | None = None,
    **more: str,
) -> Any:
    """Return a session on this machine, with connectors from Maven or from files; ``more`` are settings of Spark."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.log.level": "FATAL",
    }
    settings |= {"spark.jars.packages": packages} if packages else {}
    settings |= {"spark.jars": jars} if jars else {}
    settings |= DELTA_SETTINGS if delta else {}
    session = spark_room().local_session(cores, memory, **settings, **more)
    _be_quiet_when_interrupted()
    return session


def _be_quiet_when_interrupted() -> None:
    """Let Ctrl-C end a command as it ends any other: without what Py4J and Java have to say about it.

    PySpark's own handler asks Java to cancel jobs through the connection that is in use, which fails with a traceback.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger().addHandler(logging.NullHandler())  # Py4J writes to the root, which without a handler prints


def match_on_spark(
    events: str,
    subscriptions: str,
    space: str | None,
    missing: str,
    skip_bad: bool,
    output: str | None,
    events_format: str | None,
    subscriptions_format: str | None,
    to: str | None,
    operators: Sequence[Operator] = (),
    cores: str = "*",
) -> int:
    """Match tables on Spark; return how many rows were refused."""
    ts = spark_room()
    from tocsin.spark.tables import Source, read_table, write_table

    if operators:
        share_folder()
    session = open_session(cores)
    frame = read_table(session, Source.of(events, events_format))
    quarantine = ts.Quarantine()
    held: Any = subscriptions
    if not (Path(subscriptions) / "versions").is_dir():
        held = read_table(session, Source.of(subscriptions, subscriptions_format))
    declared = load_space(space) if space else None
    bad = "quarantine" if skip_bad else "error"
    found = ts.match(frame, held, space=declared, missing=missing, bad=bad, quarantine=quarantine, operators=operators)
    if output is not None:
        kind = to or Source.of(output).format
        if kind not in tuple(TableFormat):
            raise FileError(f"Spark does not write {kind}; choose parquet, json or csv with --to")
        write_table(found, output, kind)
    else:
        rows = found.limit(SHOWN_ROWS + 1).collect()
        draw(found.columns, [list(row) for row in rows[:SHOWN_ROWS]])
        if len(rows) > SHOWN_ROWS:
            print(f"tocsin: {SHOWN_ROWS} rows shown; --output DIR gives them all", file=sys.stderr)
    refused = quarantine.events.collect()
    for row in refused[:SHOWN_ROWS]:
        print(f"{events}: {row.asDict()}", file=sys.stderr)
    return len(refused) + int(quarantine.subscriptions.count())
