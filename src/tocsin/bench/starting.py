"""The first match of a process: what it takes from nothing to an answer, once kernels and bytecode are on disk."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

SCRIPT = """
import time
clock = [time.perf_counter()]
import tocsin
clock.append(time.perf_counter())
matcher = tocsin.Matcher(tocsin.Space({"price": tocsin.Number(), "city": tocsin.Text()}))
matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
clock.append(time.perf_counter())
found = matcher.match({"price": 350, "city": "NYC"})
clock.append(time.perf_counter())
import json
print(json.dumps({"found": found, "clock": clock, "cpu": time.process_time()}))
"""


def first_match(repetitions: int = 5) -> dict[str, Any]:
    """Import Tocsin, subscribe and match in a new process; return how long each took, as medians in seconds.

    ``cpu_s`` is what the process used up to then, on all cores: it tells where others were busy on the machine. A first
    process, which is not counted, compiles what is not on disk yet.
    """
    with tempfile.TemporaryDirectory() as directory:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": directory, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        runs = [_run(environment) for _ in range(1 + repetitions)][1:]
    steps = [[after - before for before, after in zip(run["clock"], run["clock"][1:], strict=False)] for run in runs]
    imported, subscribed, matched = (round(statistics.median(step), 4) for step in zip(*steps, strict=True))
    return {
        "import_s": imported,
        "subscribe_s": subscribed,
        "match_s": matched,
        "all_s": round(statistics.median(sum(step) for step in steps), 4),
        "cpu_s": round(statistics.median(run["cpu"] for run in runs), 4),
    }


def _run(environment: dict[str, str]) -> dict[str, Any]:
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(run.stdout)
    return told
