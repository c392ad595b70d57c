"""What every run of the tests says first, and the one Spark session that all of them share."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.oracle.test_duckdb import EXPRESSIONS, ROWS, SEED, SPACES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Java that starts fast and does not optimise: tests run seconds, not hours. Every Java that they start reads it."""


def pytest_report_header() -> str:
    cases = 4 * SPACES * EXPRESSIONS
    return f"oracle: seed {SEED} (TOCSIN_SEED), {cases:,} expressions over {ROWS} events each"


# No test may fail for want of time. Continuous integration draws the same examples at every run of the same tests, so
# that it fails for what has changed; everyone else draws new ones.
settings.register_profile("anyone", deadline=None)
settings.register_profile("integration", deadline=None, derandomize=True)
settings.load_profile("integration" if os.environ.get("CI") else "anyone")


def pytest_configure() -> None:
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script: programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


_CHANGING_ID = re.compile(r"\{[^:{}]*,[^:{}]*\}|0x[0-9a-f]{6,}")
"""What the name of a test may not contain: a set is written in another order, an address is another, in each process,
and the workers of one run must agree on the names of all tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    changing = [item.nodeid for item in items if _CHANGING_ID.search(item.nodeid)]
    if changing:
        raise pytest.UsageError(f"give these tests ids that are the same in every process: {', '.join(changing)}")


_seconds: Counter[str] = Counter()
"""How long the tests of each room took in this run."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _, *room, _ = ("", *report.nodeid.partition("::")[0].split("/"))
    _seconds["/".join(room[:2])] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add them to what other runs of `make test` have written; see `scripts/minutes`."""
    file = os.environ.get("TOCSIN_MINUTES")
    if file and not hasattr(session.config, "workerinput"):
        with Path(file).open("a") as told:
            told.write(json.dumps(_seconds) + "\n")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, UTC, few partitions, plans that are not revised while they run."""
    from tocsin.spark import local_session

    configuration = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    session = local_session(2, "2g", **configuration)
    yield session
    session.stop()
