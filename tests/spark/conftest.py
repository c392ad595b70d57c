"""One Spark session for all tests of this room: two cores, UTC, no page, few partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tocsin.spark import local_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep these tests on one worker of pytest-xdist where it groups: two sessions would only compete."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session(
        2,
        "2g",
        **{
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
        },
    )
    yield session
    session.stop()
