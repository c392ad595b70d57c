"""What an action on Spark costs: seconds that pass, and seconds of the processors of Java and its workers.

The first is what a user waits for. The second hardly changes when other programs share the machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds that passed, and seconds of processors."""

    seconds: float
    processor: float

    def without(self, fixed: Cost) -> Cost:
        """Return what is left when a fixed cost is taken off; at least a tenth, since less is within the noise."""
        return Cost(*(max(whole - part, whole / 10) for whole, part in zip(self, fixed, strict=True)))


def timed(action: Callable[[], int]) -> tuple[Cost, int]:
    """Return what an action cost, and what it returned."""
    before, started = processor_seconds(), time.perf_counter()
    found = action()
    return Cost(time.perf_counter() - started, processor_seconds() - before), found


def in_turn(
    repetitions: int, warm_up: int, actions: dict[str, Callable[[], int]]
) -> tuple[dict[str, Cost], dict[str, int]]:
    """Return the median cost of each action, and what it returned, after some runs of all that warm up.

    The actions take turns: one that ran before the other would meet a colder Java and another load of the machine.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in actions}
    found = {}
    for _ in range(repetitions + warm_up):
        for name, action in actions.items():
            cost, found[name] = timed(action)
            costs[name].append(cost)
    return {
        name: Cost(*map(statistics.median, zip(*each[warm_up:], strict=True))) for name, each in costs.items()
    }, found


_seen: dict[tuple[int, int], int] = {}
"""Ticks of processors by process: its number and when it began. Those that have ended keep what they were last seen
with: the parent of Spark's workers does not wait for them, so that the kernel adds their time to nobody's."""


def processor_seconds() -> float:
    """Return the seconds of processors that the processes below this one have used, and those below that have ended.

    It never falls. What a process uses between a call and its end is not counted.

    >>> processor_seconds() >= 0.0
    True
    """
    parents: dict[int, int] = {}
    running: dict[int, tuple[int, int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended since it was listed
            continue
        number = int(file.parent.name)
        parents[number], running[number] = int(fields[1]), (int(fields[19]), sum(map(int, fields[11:13])))
    for number, (began, ticks) in running.items():
        if _is_below(number, parents):
            _seen[number, began] = ticks
    return sum(_seen.values()) / os.sysconf("SC_CLK_TCK")


def _is_below(number: int, parents: dict[int, int]) -> bool:
    while number in parents:
        number = parents[number]
        if number == os.getpid():
            return True
    return False
