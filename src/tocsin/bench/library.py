"""Workloads of operators through the library itself: subscriptions as text, operators that only look up a truth."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.matcher import Matcher
from tocsin.operators.operator import operator
from tocsin.space import Number, Space


class Calls(NamedTuple):
    """The calls made an event, the seconds an event that all of it took, and those within the calls."""

    made: float
    seconds: float
    inside: float


def evaluated_by(
    order: Any,
    offsets: npt.NDArray[np.int64],
    members: npt.NDArray[np.int32],
    holds: npt.NDArray[np.bool_],
    spin: float,
    timed: int,
) -> tuple[Calls, Calls]:
    """Match events in an order: all of them with operator calls that take no time, then the first ``timed`` of them
    with calls that take ``spin`` seconds of the processor each."""
    inside, busy = [0.0], [0.0]

    def bit(event: int, number: int) -> bool:
        if busy[0]:
            begun = time.thread_time()
            while time.thread_time() - begun < busy[0]:
                continue
            inside[0] += time.thread_time() - begun
        return bool(holds[event, number])

    given = operator(bit, reads=["event"], cost=1e-3)
    matcher = Matcher(Space({"event": Number("int64")}), operators=[given], order=order)
    texts = [
        " AND ".join(f"bit({number})" for number in members[offsets[at] : offsets[at + 1]].tolist())
        for at in range(len(offsets) - 1)
    ]
    matcher.subscribe_many(pa.table({"id": range(len(texts)), "expression": texts}))
    matcher.match({"event": 0})

    def calls(events: int, each: float) -> Calls:
        inside[0], busy[0] = 0.0, each
        before = matcher.stats()["operators"]["used"]["bit"]["evaluated"]
        begun = time.thread_time()
        for event in range(events):
            matcher.match({"event": event})
        spent = time.thread_time() - begun
        made = matcher.stats()["operators"]["used"]["bit"]["evaluated"] - before
        return Calls(made / events, spent / events, inside[0] / events)

    return calls(len(holds), 0.0), calls(timed, spin)
