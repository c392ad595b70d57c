"""What an index costs the Python workers of a host: the time to open it, and the memory, each worker's own and shared.

All workers open it at the same time and are measured while all of them hold it, from the kernel's own account
(``/proc/self/smaps_rollup``): the proportional share counts a page that two processes map as half a page of each, so
that the sum over workers is what the host gives.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tocsin.bench.spark_sizes import Events, index_bytes

EVENTS_TO_OPEN = 16_384
"""Events that a worker matches before its memory is measured."""


class Memory(NamedTuple):
    """Bytes of a process: its share of what is resident, what is private to it and written, all that is resident."""

    share: int
    private: int
    resident: int


class Workers(NamedTuple):
    """So many workers with one index: the longest that opening took, by the clock and by the processor, and by how
    much they grew in bytes."""

    workers: int
    open_milliseconds: float
    open_processor_milliseconds: float
    index_bytes: int
    own_bytes: int
    """Private to a worker, the most of any."""
    host_bytes: int
    """All workers together, what they share counted once."""
    resident_bytes: int
    """All workers together, what they share counted for each."""

    @property
    def host_share(self) -> float:
        """The growth of the host for each byte of the index."""
        return round(self.host_bytes / self.index_bytes, 3)


def measure_workers(session: Any, events: Events, path: str, workers: int) -> Workers:
    """Let so many workers open an index at once and match some events.

    Each has first opened a copy of the index and keeps it, so that kernels are loaded, and so that what the index takes
    is neither memory that was free already nor pages that are mapped already.
    """
    from tocsin.spark.index import read_index

    copy = f"{path}-copy"
    shutil.copytree(path, copy)
    segments = read_index(session, path).segments
    some = events.frame.limit(EVENTS_TO_OPEN).toArrow()

    def grown(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tocsin.spark.remote import together
        from tocsin.spark.segments import open_matcher

        for _ in batches:
            pass
        before = [open_matcher(copy, segment) for segment in segments]
        for matcher in before:
            matcher.match_batch(some)
        together()
        start = memory()
        together()
        started, used = time.perf_counter(), time.process_time()
        held = [open_matcher(path, segment) for segment in segments]
        times = time.perf_counter() - started, time.process_time() - used
        for matcher in held:
            matcher.match_batch(some)
        together()
        growth = [after - earlier for earlier, after in zip(start, memory(), strict=True)]
        together()  # nobody leaves while another is measured
        del before, held
        names = ("seconds", "processor", *Memory._fields)
        yield pa.RecordBatch.from_pydict({name: [value] for name, value in zip(names, (*times, *growth), strict=True)})

    schema = "seconds double, processor double, share bigint, private bigint, resident bigint"
    rows = session.range(0, workers, 1, workers).mapInArrow(grown, schema, barrier=True).collect()
    shutil.rmtree(copy)
    return Workers(
        workers=len(rows),
        open_milliseconds=round(1000 * max(row["seconds"] for row in rows), 1),
        open_processor_milliseconds=round(1000 * max(row["processor"] for row in rows), 1),
        index_bytes=index_bytes(Path(path)),
        own_bytes=max(row["private"] for row in rows),
        host_bytes=sum(row["share"] for row in rows),
        resident_bytes=sum(row["resident"] for row in rows),
    )


def memory() -> Memory:
    """Return what this process holds.

    >>> memory().resident >= memory().private > 0
    True
    """
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    found = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines[1:] if len(line.split()) > 1}
    return Memory(found["Pss:"], found["Private_Dirty:"], found["Rss:"])
