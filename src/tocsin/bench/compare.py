"""`tocsin bench compare`: two revisions, measured in turns, and each difference called noise, gain or regression.

Each revision is checked out in a temporary worktree and runs in a process of its own, with the same interpreter and
packages. Both get the same subscriptions and events from files and are asked in turns: first the one, then the
other, then the other way round, so that whatever else the machine does falls on both. Several pairs of processes are
started, because two processes of the same program may differ by where their memory happens to lie.

The rule. A round gives the ratio of the two times. Of all rounds, the median ratio has a confidence interval by order
statistics, which supposes nothing about how times are distributed. A difference is a gain or a regression when that
interval (99 %) excludes 1, when the median ratio is more than `LEAST` away from 1, and when every pair of processes has
its median on the same side. Else it is noise.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from tocsin.bench.engines import MEASURED
from tocsin.errors import TocsinError

LEAST = 0.03
"""A difference of less than this is noise however sure it is."""

CONFIDENCE = 0.99
PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True)
class Difference:
    """One workload in two revisions: events a second of each, the ratio of the second to the first, and the verdict."""

    workload: str
    first: float
    second: float
    ratio: float
    low: float
    high: float
    rounds: int
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in asdict(self).items()
        }


def compare(
    revisions: tuple[str, str],
    workloads: Sequence[str],
    size: int,
    engine: str = "adaptive",
    rounds: int = 12,
    launches: int = 2,
) -> Iterator[Difference]:
    """Measure two revisions of the repository around the working directory; yield a difference for each workload."""
    with ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-compare-")))
        sources = [
            held.enter_context(_worktree(revision, scratch / name))
            for revision, name in zip(revisions, ("first", "second"), strict=True)
        ]
        for workload in workloads:
            files = _written(workload, size, scratch)
            times: list[list[tuple[float, float]]] = []
            for _ in range(launches):
                with ExitStack() as running:
                    probes = [running.enter_context(_probe(source, files, engine)) for source in sources]
                    times.append([_round(probes, turned=bool(number % 2)) for number in range(rounds)])
            rows = pyarrow.parquet.read_metadata(files[1]).num_rows
            yield judged(workload, times, rows)


def judged(workload: str, launches: Sequence[Sequence[tuple[float, float]]], rows: int) -> Difference:
    """Return the verdict on the times of two revisions: a list of rounds for each pair of processes.

    >>> judged("W0", [[(1.0, 0.5)] * 8, [(1.0, 0.52)] * 8], 1000).verdict
    'gain'
    >>> judged("W0", [[(1.0, 0.99), (1.0, 1.02)] * 8], 1000).verdict
    'noise'
    """
    rounds = [times for launch in launches for times in launch]
    ratios = sorted(first / second for first, second in rounds)
    low, high = interval(ratios)
    ratio = statistics.median(ratios)
    each = [statistics.median(first / second for first, second in launch) for launch in launches]
    verdict = "noise"
    if low > 1 and ratio > 1 + LEAST and min(each) > 1:
        verdict = "gain"
    elif high < 1 and ratio < 1 - LEAST and max(each) < 1:
        verdict = "regression"
    first, second = (rows / statistics.median(times[side] for times in rounds) for side in (0, 1))
    return Difference(workload, first, second, ratio, low, high, len(rounds), verdict)


def interval(ordered: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the confidence interval of the median of values in ascending order; everything, when they are too few.

    The k-th lowest and the k-th highest enclose the median with a probability that the binomial distribution gives.

    >>> interval([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    (2, 11)
    >>> interval([1, 2])
    (-inf, inf)
    """
    count, outside, k = len(ordered), 0.0, 0
    while k < count // 2:
        outside += 2 * math.comb(count, k) / 2**count
        if 1 - outside < confidence:
            break
        k += 1
    return (ordered[k - 1], ordered[count - k]) if k else (-math.inf, math.inf)


@contextmanager
def _worktree(revision: str, directory: Path) -> Iterator[Path]:
    """Check a revision out in a worktree of its own, and remove that at the end."""
    _git("worktree", "add", "--detach", "--quiet", str(directory), revision)
    try:
        yield directory / "src"
    finally:
        _git("worktree", "remove", "--force", str(directory))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TocsinError(f"git {' '.join(arguments[:2])} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _written(workload: str, size: int, directory: Path) -> tuple[Path, Path]:
    """Write the subscriptions and events of a workload to files that any revision can read."""
    drawn = MEASURED[workload]
    files = directory / f"{workload}-subscriptions.parquet", directory / f"{workload}-events.parquet"
    tables: tuple[pa.Table, pa.Table] = drawn.expressions(size), drawn.events(16_384)
    for table, file in zip(tables, files, strict=True):
        pyarrow.parquet.write_table(table, file)
    return files


class _Probe:
    """A process that measures when it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self.process = process

    def measure(self) -> float:
        """Return the seconds that one round of matching took."""
        self._in.write("measure\n")
        self._in.flush()
        return self.answer()

    def answer(self) -> float:
        """Return the next figure."""
        line = self._out.readline()
        if not line:
            raise TocsinError("a revision stopped while it was measured; its message is above")
        seconds: float = json.loads(line)["seconds"]
        return seconds


@contextmanager
def _probe(source: Path, files: tuple[Path, Path], engine: str) -> Iterator[_Probe]:
    """Start a process that has a revision's sources and has loaded a workload."""
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(source.parent / ".numba")}
    command = [sys.executable, str(PROBE), *map(str, files), engine]
    # Outside the sources that run this: the folder of a script comes first on its path.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=source.parent
    ) as process:
        probe = _Probe(process)
        try:
            probe.answer()
            yield probe
        finally:
            process.kill()


def _round(probes: Sequence[_Probe], turned: bool) -> tuple[float, float]:
    """Ask both, in one order or the other."""
    order = (1, 0) if turned else (0, 1)
    times = {place: probes[place].measure() for place in order}
    return times[0], times[1]
