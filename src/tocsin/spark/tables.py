"""Tables that Spark reads and writes: Parquet, JSON, CSV, Delta and Kafka, batch and streaming."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import FileError, SparkError
from tocsin.spark.session import is_failure, reason_of_failure

FORMATS = ("parquet", "json", "csv", "delta", "kafka")
SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
PACKAGES = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "delta": f"io.delta:delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_2.13:VERSION",
}


@dataclass(frozen=True)
class Source:
    """Where a table is: a path, or a topic of Kafka; and what its format does not say itself.

    ``schema`` is Spark's DDL (``price double, city string``). A topic's values are JSON objects of that schema.
    """

    place: str
    format: str = "parquet"
    schema: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, place: str, format: str | None = None, schema: str | None = None, **options: str) -> Source:
        """Return a source whose format its name tells, unless it is given.

        >>> Source.of("offers.jsonl").format, Source.of("offers").format
        ('json', 'parquet')
        """
        told = next((kind for suffix, kind in SUFFIXES.items() if place.rstrip("/").endswith(suffix)), "parquet")
        chosen = format or told
        if chosen not in FORMATS:
            raise FileError(f"{chosen!r} is no format of tables on Spark; there is {', '.join(FORMATS)}")
        return cls(place, chosen, schema, dict(options))


def read_table(session: SparkSession, source: Source) -> DataFrame:
    """Return a table as a DataFrame."""
    reader = session.read.format(source.format).options(**_options(source))
    return _read(session, source, reader, streaming=False)


def read_stream(session: SparkSession, source: Source) -> DataFrame:
    """Return a table that grows as a streaming DataFrame; without a schema it is that of the files already there."""
    if source.schema is None and source.format in ("parquet", "json", "csv"):
        try:
            found = read_table(session, source).schema
        except FileError as error:
            raise FileError(f"{error}; or give the schema, so that the stream may begin with nothing") from None
        reader = session.readStream.format(source.format).options(**_options(source)).schema(found)
        return reader.load(source.place)
    reader = session.readStream.format(source.format).options(**_options(source))
    return _read(session, source, reader, streaming=True)


def _read(session: SparkSession, source: Source, reader: Any, streaming: bool) -> DataFrame:
    try:
        if source.format == "kafka":
            return _from_kafka(source, reader)
        if source.schema is not None and source.format != "delta":
            reader = reader.schema(source.schema)
        frame: DataFrame = reader.load(source.place)
        frame.schema  # noqa: B018 - over Spark Connect, the first look is what finds that a path is not there
    except FileError:
        raise
    except Exception as error:  # a damaged file raises what Java raised, through Py4J or Spark Connect
        raise explained(source, error) from error
    return frame


def _from_kafka(source: Source, reader: Any) -> DataFrame:
    """Return the values of a topic, which are JSON objects; the time of the record is ``kafka_timestamp``."""
    if source.schema is None:
        raise FileError(f"the topic {source.place} does not say what its values are; give their schema")
    if "kafka.bootstrap.servers" not in source.options:
        raise FileError("Kafka needs the address of its servers, such as localhost:9092")
    records = reader.option("subscribe", source.place).load()
    parsed = F.from_json(F.col("value").cast("string"), source.schema)
    frame: DataFrame = records.select(parsed.alias("event"), F.col("timestamp").alias("kafka_timestamp"))
    return frame.select("event.*", "kafka_timestamp")


def _options(source: Source) -> dict[str, str]:
    given = dict(source.options)
    if source.format == "csv":
        given = {"header": "true", "inferSchema": str(source.schema is None).lower()} | given
    return given


def explained(source: Source, error: Exception) -> FileError:
    """Return an error of ours for one of Spark's, with what to do."""
    condition = (error.getCondition() if isinstance(error, PySparkException) else "") or ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith(("[", "Caused by", ": "))), (lines or [""])[0]).lstrip(
        ": "
    )
    if condition.startswith("PATH_NOT_FOUND"):
        return FileError(f"{source.place} does not exist")
    if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
        return FileError(f"{source.place} holds no {source.format} files")
    if re.search(r"DATA_SOURCE_NOT_FOUND|Failed to find data source", condition + message):
        package = PACKAGES.get(source.format, "")
        return FileError(f"Spark has no connector for {source.format}; add it with --packages {package}")
    return FileError(f"{source.place} cannot be read as {source.format}: {message}")


def write_table(frame: DataFrame, place: str, format: str, overwrite: bool = False) -> None:
    """Write a DataFrame as a directory of files; one that is there already is kept unless it may be overwritten."""
    writer = frame.write.format(format).mode("overwrite" if overwrite else "errorifexists")
    if format == "csv":
        writer = writer.option("header", "true")
    try:
        writer.save(place)
    except Exception as error:
        if not is_failure(error):
            raise
        condition = error.getCondition() if isinstance(error, PySparkException) else None
        if condition in ("PATH_ALREADY_EXISTS", "DELTA_PATH_EXISTS"):
            raise FileError(f"{place} exists already; name another directory, or allow it to be overwritten") from None
        raise SparkError(f"{place} cannot be written: {reason_of_failure(error)}") from error
