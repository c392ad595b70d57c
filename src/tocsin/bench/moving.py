"""`tocsin bench fleet`: position updates of a fleet in the library, in batches, with exact transitions."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.bench.fleet import SPACE, Fleet
from tocsin.matcher import Matcher
from tocsin.subjects import Subjects

LOADED = 50_000
"""How many trucks are inserted together."""


def moving(trucks: int, fences: int, updates: int, batch: int, engine: str | None = None) -> dict[str, Any]:
    """Load both sides, then report ``updates`` positions in batches; return rates and what was told.

    ``exact`` says whether all that entered less all that left is what a matcher finds at the final positions, and what
    a table of new fences found there is too.
    """
    fleet = Fleet(trucks, fences)
    subjects = Subjects(SPACE, engine=engine)
    began = time.perf_counter()
    subjects.subscribe_many(fleet.subscriptions())
    loaded = time.perf_counter() - began
    batches = fleet.batches(max(1, updates // batch), batch)
    start = next(batches).drop_columns(["at"])
    began, entered = time.perf_counter(), 0
    for first in range(0, trucks, LOADED):
        entered += len(subjects.put_many(start.slice(first, LOADED), key="truck"))
    inserted = time.perf_counter() - began
    place = {name: start[name].to_numpy().copy() for name in ("x", "y")}
    wall, processor, told = [], 0.0, [0, 0]
    for report in batches:
        moved = report.select(["truck", "x", "y"])
        began, used = time.perf_counter(), time.process_time()
        found = subjects.put_many(moved, key="truck")
        found.to_arrow()
        wall.append(time.perf_counter() - began)
        processor += time.process_time() - used
        told = [told[0] + found.enters, told[1] + found.leaves]
        for name, held in place.items():
            held[moved["truck"].to_numpy()] = moved[name].to_numpy()
    began = time.perf_counter()
    asked = subjects.subscribe(-1, {"x": (400.0, 410.0), "y": (400.0, 410.0), "kind": 3})
    answered = time.perf_counter() - began
    more = Fleet(trucks, max(1, fences // 10), seed=fleet.seed + 1).subscriptions()
    more = more.set_column(0, "id", pa.array(np.arange(fences, fences + more.num_rows)))
    began = time.perf_counter()
    found = subjects.subscribe_many(more)
    found.to_arrow()
    bulk = time.perf_counter() - began
    final = pa.table({**place, "kind": start["kind"], "cargo": start["cargo"]})
    matching, expected = (_matching(table, final) for table in (fleet.subscriptions(), more))
    return {
        "trucks": trucks,
        "fences": fences,
        "engine": engine or "default",
        "batch": batch,
        "updates": batch * len(wall),
        "load_seconds": round(loaded, 2),
        "load_rate": round(fences / loaded),
        "insert_rate": round(trucks / inserted),
        "update_rate": round(batch * len(wall) / sum(wall)),
        "update_rate_of_processor": round(batch * len(wall) / processor),
        "slowest_batch_rate": round(batch / float(np.max(wall))),
        "enters": told[0],
        "leaves": told[1],
        "matching": matching,
        "exact": matching == entered + told[0] - told[1] and expected == len(found),
        "new_fences": more.num_rows,
        "new_fences_rate": round(more.num_rows / bulk),
        "new_fences_enters": len(found),
        "new_subscription_ms": round(answered * 1e3, 2),
        "new_subscription_enters": len(asked),
    }


def _matching(fences: pa.Table, trucks: pa.Table) -> int:
    """Return how many pairs a matcher finds."""
    matcher = Matcher(SPACE)
    matcher.subscribe_many(fences)
    return len(matcher.match_batch(trucks))
