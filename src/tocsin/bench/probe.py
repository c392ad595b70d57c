"""A process that measures one revision for `compare`: it uses nothing but the public names of `tocsin`.

It is run as a script with another revision on the path, so it must not import its own neighbours.
"""

from __future__ import annotations

import json
import sys
import time

LONG_ENOUGH = 0.2
"""Seconds that a measurement lasts, about."""


def main(subscriptions: str, events: str, engine: str) -> None:
    """Load a workload from files, then measure at every line of input and answer with a line of JSON."""
    sys.path = [place for place in sys.path if not place.endswith("tocsin/bench")]
    import pyarrow.parquet as parquet

    import tocsin

    asked = parquet.read_table(events)
    matcher = tocsin.Matcher(tocsin.Space.from_arrow(asked.schema), engine=engine)
    started = time.perf_counter()
    matcher.subscribe_many(parquet.read_table(subscriptions))
    _answer(time.perf_counter() - started)
    matcher.match_batch(asked.slice(0, 256))
    started = time.perf_counter()
    matcher.match_batch(asked)
    times = max(1, round(LONG_ENOUGH / (time.perf_counter() - started)))
    for _ in sys.stdin:
        started = time.perf_counter()
        for _ in range(times):
            matcher.match_batch(asked)
        _answer((time.perf_counter() - started) / times)


def _answer(seconds: float) -> None:
    print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
