"""Tables that Spark reads and writes: formats, schemas, and what is said when they cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tocsin.errors import FileError
from tocsin.spark.tables import Source, read_stream, read_table, write_table


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_a_table_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path, format: str) -> None:
    place = str(tmp_path / "table")
    frame = spark.createDataFrame([(1, "a", 2.5), (2, None, 3.5)], "n int, s string, d double")
    write_table(frame, place, format)
    found = read_table(spark, Source.of(place, format))
    assert sorted((row["n"], row["s"], row["d"]) for row in found.collect()) == [(1, "a", 2.5), (2, None, 3.5)]
    assert read_stream(spark, Source.of(place, format)).schema == found.schema
    declared = read_stream(spark, Source.of(place, format, "n int, d double"))
    assert declared.schema.simpleString() == "struct<n:int,d:double>"
    with pytest.raises(FileError, match="exists already; name another directory"):
        write_table(frame, place, format)
    write_table(frame.limit(1), place, format, overwrite=True)
    assert read_table(spark, Source.of(place, format)).count() == 1


def test_what_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere does not exist$"):
        read_table(spark, Source.of(str(tmp_path / "nowhere")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="holds no parquet files; or give the schema"):
        read_stream(spark, Source.of(str(tmp_path / "empty")))
    (tmp_path / "text.parquet").write_text("this is no Parquet")
    with pytest.raises(FileError, match=r"text\.parquet cannot be read as parquet"):
        read_table(spark, Source.of(str(tmp_path / "text.parquet")))
    with pytest.raises(FileError, match="'xml' is no format of tables on Spark"):
        Source.of("table", "xml")


def test_kafka_needs_a_schema_its_servers_and_its_connector(spark: SparkSession) -> None:
    with pytest.raises(FileError, match="give their schema"):
        read_stream(spark, Source.of("offers", "kafka"))
    with pytest.raises(FileError, match="such as localhost:9092"):
        read_stream(spark, Source.of("offers", "kafka", "n int"))
    servers = {"kafka.bootstrap.servers": "localhost:9092"}
    with pytest.raises(
        FileError, match=r"no connector for kafka; add it with --packages org\.apache\.spark:spark-sql-kafka"
    ):
        read_stream(spark, Source.of("offers", "kafka", "n int", **servers))
