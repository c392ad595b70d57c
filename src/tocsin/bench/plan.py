"""How a run spends its time: what is measured in which order, what each may take, and what would take too long.

Small sizes come first, so that what an engine takes at a large one is foretold by what it took at the one before,
whichever way it answers: at worst, both loading and an event take as many times longer as there are subscriptions.
What is left of the time is shared among what is left to do, by weight; who needs less than his share leaves the rest
to the others, and who would need more is not run: its line says what was foretold. So every line of a run has a figure
or a forecast, however short the time is. What a target is judged by is always run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BY_HAND = "by hand"
"""The name under which the kernels written by hand appear."""

SPARK = "Spark SQL join"
"""The peer that is measured after everything else, so that nothing is measured beside its Java process."""

ALWAYS = ("adaptive", BY_HAND)
"""What is always run, whatever the workload and size."""

NEEDED = {(name, 1_000_000): (*ALWAYS, "propagation-prefetch") for name in ("W1", "W2")} | {
    ("boolean", 1_000_000): (*ALWAYS, "scan")
}
"""What targets compare besides, by workload and size."""

EVENTS = 4
"""So many events a measurement asks for at least: to warm up, to find how many it takes, and twice for the figure."""


class Step(NamedTuple):
    """One thing to measure: an engine, a kernel by hand or a peer, by ``kind``, on one workload and size."""

    workload: str
    size: int
    engine: str
    kind: str

    @property
    def is_needed(self) -> bool:
        """Whether a target is judged by it.

        >>> Step("W1", 1_000_000, "propagation-prefetch", "engine").is_needed, Step("R", 10, "scan", "engine").is_needed
        (True, False)
        """
        return self.engine in NEEDED.get((self.workload, self.size), ALWAYS)

    @property
    def weight(self) -> float:
        """What part of the time it has, among others: more at large sizes, for what is needed, and for Spark, where a
        call takes long whatever its rows."""
        return float(max(1.0, self.size / 10_000) ** 0.4 * (3 if self.is_needed or self.engine == SPARK else 1))


class Cost(NamedTuple):
    """Seconds that loading and one event took, or would take, with so many subscriptions; events asked at least."""

    size: int
    load: float
    event: float
    events: int = EVENTS

    def at(self, size: int) -> Cost:
        """Return what it would be with so many.

        >>> Cost(10, 1.0, 0.5).at(20).seconds
        6.0
        """
        growth = size / self.size
        return Cost(size, self.load * growth, self.event * growth, self.events)

    @property
    def seconds(self) -> float:
        """What measuring takes at least."""
        return self.load + self.events * self.event


def steps(
    cells: Sequence[tuple[str, int]], engines: Iterable[str], hands: Iterable[str], peers: Iterable[str]
) -> list[Step]:
    """Return what there is to measure, in the order of doing it. The first engine and the kernel by hand, which are
    compared with each other, are measured one after the other.

    >>> [step.engine for step in steps([("W0", 10)], ["adaptive", "scan"], ["W0"], [SPARK])]
    ['adaptive', 'by hand', 'scan', 'Spark SQL join']
    """
    first, *others = engines
    hands, peers = list(hands), list(peers)
    found = []
    for name, size in sorted(cells, key=lambda cell: cell[1]):
        found.append(Step(name, size, first, "engine"))
        if name in hands:
            found.append(Step(name, size, BY_HAND, "hand"))
        found += [Step(name, size, engine, "engine") for engine in others]
        found += [Step(name, size, peer, "peer") for peer in peers]
    return sorted(found, key=lambda step: step.engine == SPARK)


class Plan:
    """What is left to do and the time for it; ``seconds`` of None is as long as it takes."""

    def __init__(self, left: Iterable[Step], seconds: float | None) -> None:
        self._weight = sum(step.weight for step in left)
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._costs: dict[tuple[str, str], Cost] = {}

    def share(self, step: Step, most: float) -> float:
        """Begin a step: return the seconds that it may take, at most so many."""
        part = step.weight / self._weight
        self._weight = max(self._weight - step.weight, 1e-9)
        if self._end is None:
            return most
        return min(most, max(0.0, self._end - time.perf_counter()) * part)

    def learn(self, step: Step, cost: Cost) -> None:
        """Keep what a step took, or would have."""
        self._costs[step.workload, step.engine] = cost

    def foretold(self, step: Step) -> Cost | None:
        """Return what a step will take by a smaller size, if there was one."""
        known = self._costs.get((step.workload, step.engine))
        return known.at(step.size) if known is not None and known.size <= step.size else None
