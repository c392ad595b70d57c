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
    spin: float = 0.0,
) -> Calls:
    """Match events in an order whose operator calls take ``spin`` seconds of the processor each."""
    inside = [0.0]

    def bit(event: int, number: int) -> bool:
        if spin:
            begun = time.thread_time()
            while time.thread_time() - begun < spin:
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
    before = matcher.stats()["operators"]["used"]["bit"]
    inside[0] = 0.0
    begun = time.thread_time()
    for event in range(len(holds)):
        matcher.match({"event": event})
    spent = time.thread_time() - begun
    after = matcher.stats()["operators"]["used"]["bit"]
    calls = (after["evaluated"] - before["evaluated"]) / len(holds)
    return Calls(calls, spent / len(holds), inside[0] / len(holds))
