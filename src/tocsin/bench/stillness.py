"""Whether a core itself stood still: those of a virtual machine are stopped now and then, for tenths of a second.

A process on each core, of eight at most, does nothing but sleep for two milliseconds again and again. Where one of them
was kept from waking up for `LEAST` seconds, its core was stopped: programs that keep the core busy, be they eight, do
not keep a sleeper waiting that long. A thread on such a core stands still as well, and with it whoever waits for it;
the other threads have to share what cores are left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from types import TracebackType

Spans = list[tuple[float, float]]
"""Stretches of time, in seconds of `time.perf_counter`, one after another."""

LEAST = 0.01

_SLEEPER = f"""
import os, select, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {{int(sys.argv[1])}})
last, over = time.perf_counter(), False
print("awake", flush=True)
while not over:
    over = bool(select.select([sys.stdin], [], [], 0.002)[0])
    now = time.perf_counter()
    if now - last > {LEAST}:
        print(last, now, flush=True)
    last = now
"""


class Stillness:
    """Notices, while it is entered, when a core stands still; ``spans`` say when, afterwards."""

    def __init__(self) -> None:
        self.spans: Spans = []
        self._sleepers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Stillness:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
        self._sleepers = [
            subprocess.Popen(
                [sys.executable, "-c", _SLEEPER, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for core in cores[:8]
        ]
        for sleeper in self._sleepers:
            if sleeper.stdout is not None:
                sleeper.stdout.readline()  # that it is awake
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        told = [sleeper.communicate()[0] for sleeper in self._sleepers]  # the end of its input is that of a sleeper
        self.spans = joined(_span(line) for lines in told for line in lines.splitlines())

    @property
    def longest(self) -> float:
        """The longest time for which one stood still, in seconds."""
        return max((last - first for first, last in self.spans), default=0.0)

    @property
    def total(self) -> float:
        """For how many seconds one or another stood still, in all."""
        return sum(last - first for first, last in self.spans)

    def within(self, begin: float, end: float) -> float:
        """Return for how many seconds of these a core stood still.

        >>> still = Stillness()
        >>> still.spans = [(1.0, 1.5), (2.0, 4.0)]
        >>> still.within(1.25, 3.0), still.within(5.0, 6.0)
        (1.25, 0)
        """
        overlaps = ((max(first, begin), min(last, end)) for first, last in self.spans)
        return sum(last - first for first, last in overlaps if first < last)


def joined(spans: Iterable[tuple[float, float]]) -> Spans:
    """Return stretches of time in order, those that overlap as one.

    >>> joined([(3.0, 6.0), (0.0, 2.0), (1.0, 2.5), (4.0, 5.0)])
    [(0.0, 2.5), (3.0, 6.0)]
    """
    found: Spans = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def _span(line: str) -> tuple[float, float]:
    first, last = line.split()
    return float(first), float(last)
