"""What every run of the tests says first, and the one Spark session that all of them share."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType
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


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)
    os.environ.setdefault("TOCSIN_NOTICES", "0")  # programs that tests start would tell that they compile
    if not hasattr(config, "workerinput"):
        os.environ["TOCSIN_ENTRIES"] = str(_entries())
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
    if hasattr(session.config, "workerinput"):
        return
    file = os.environ.get("TOCSIN_MINUTES")
    if file:
        with Path(file).open("a") as told:
            told.write(json.dumps(_seconds) + "\n")
    unlisted = _unlisted_calls()
    if unlisted:
        print("\nkernels were called with types that src/tocsin/kernels/native/signatures.txt does not list:")
        print(*unlisted, sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@functools.cache
def _entries() -> Path:
    """Return the file in which all processes of a run note which kernels had no native code for their arguments.

    Set ``TOCSIN_ENTRIES`` to keep it, for `python -m tocsin.kernels.native.signatures`."""
    kept = os.environ.get("TOCSIN_ENTRIES")
    return Path(kept) if kept else Path(tempfile.mkdtemp(prefix="tocsin-entries-")) / "entries.txt"


def _unlisted_calls() -> list[str]:
    """Return the calls noted that `signatures.txt` does not list, and those that native code of their types refused."""
    from tocsin.kernels import native
    from tocsin.kernels.native.signatures import covers, listed

    noted = _entries().read_text().splitlines() if _entries().exists() else []
    if _entries().parent.name.startswith("tocsin-entries-"):
        shutil.rmtree(_entries().parent)
    calls = sorted({(kernel, types) for kernel, _, types in (line.partition(": ") for line in noted)})
    known, built = listed(), [code.entries() for code in map(native.load, ("product", "papers")) if code is not None]

    def is_among(call: tuple[str, str], entries: list[tuple[str, str]]) -> bool:
        return any(kernel == call[0] and covers(types, call[1]) for kernel, types in entries)

    return [
        f"{': '.join(call)}{' (listed, and built, but refused)' if is_among(call, known) else ''}"
        for call in calls
        if not is_among(call, known) or (_is_native(call[0]) and any(is_among(call, entries) for entries in built))
    ]


def _is_native(kernel: str) -> bool:
    """Return whether a kernel runs as native code: it is built, and its sources have not changed since."""
    module, _, name = kernel.rpartition(".")
    return isinstance(getattr(importlib.import_module(f"tocsin.kernels.{module}"), name), BuiltinFunctionType)


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
