"""Whether the machine itself stood still: a virtual one is stopped now and then, for tenths of a second.

A process on each core, of eight at most, does nothing but sleep for two milliseconds again and again. Where all of
them were kept from waking up for `LEAST` seconds at the same time, no program ran, whatever its threads were waiting
for: the machine was stopped, or, in a container with less time than its cores have, all that is in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import reduce
from types import TracebackType

Spans = list[tuple[float, float]]
"""Stretches of time, in seconds of `time.perf_counter`, one after another."""

LEAST = 0.02

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
    """Notices, while it is entered, when the machine stands still."""

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
        spans = reduce(common, ([_span(line) for line in lines.splitlines()] for lines in told))
        self.spans = [(first, last) for first, last in spans if last - first >= LEAST]

    @property
    def longest(self) -> float:
        """The longest time for which it stood still, in seconds."""
        return max((last - first for first, last in self.spans), default=0.0)

    @property
    def total(self) -> float:
        """How long it stood still in all, in seconds."""
        return sum(last - first for first, last in self.spans)

    def within(self, begin: float, end: float) -> float:
        """Return for how many seconds of these it stood still.

        >>> still = Stillness()
        >>> still.spans = [(1.0, 1.5), (2.0, 4.0)]
        >>> still.within(1.25, 3.0), still.within(5.0, 6.0)
        (1.25, 0)
        """
        return sum(last - first for first, last in common(self.spans, [(begin, end)]))


def common(one: Spans, other: Spans) -> Spans:
    """Return the time that two lists of stretches have in common.

    >>> common([(0.0, 2.0), (3.0, 6.0)], [(1.0, 4.0), (5.0, 9.0)])
    [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    """
    both = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(first, last) for first, last in both if first < last]


def _span(line: str) -> tuple[float, float]:
    first, last = line.split()
    return float(first), float(last)
