"""`tocsin bench start`: what the first subscribe, match, bulk load and batch of a process cost, in fresh processes.

All figures are processor seconds, of all threads, so that whatever else the machine does is not counted. Three ways:
native kernels, Numba with an empty cache, and Numba with the cache that this left.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.bench.searches import offers, searches
from tocsin.kernels import native

STEPS = ("import", "subscribe", "match", "bulk", "batch", "total")
"""What is measured: `import` from the start of the interpreter, `total` with all that lies between the others."""

BULK, BATCH = 20_000, 10_000
"""How many subscriptions are loaded at once, and how many events are then matched at once."""

PROGRAM = """
import sys, time
clock = [0.0]
import tocsin
clock.append(time.process_time())
fields = {"title": tocsin.Text(), "item": tocsin.Text(), "city": tocsin.Text(),
          "price": tocsin.Number(), "rating": tocsin.Number(), "used": tocsin.Boolean()}
matcher = tocsin.Matcher(tocsin.Space(fields))
matcher.subscribe("cheap", "price <= 400 AND city = 'Porto'")
clock.append(time.process_time())
assert matcher.match({"item": "bicycle", "price": 350, "city": "Porto"}) == ["cheap"]
clock.append(time.process_time())
import pyarrow as pa
def read(name):
    with pa.memory_map(sys.argv[1] + "/" + name) as file:
        return pa.ipc.open_file(file).read_all()
subscriptions, events = read("searches"), read("offers")
read_at = time.process_time()
matcher.subscribe_many(subscriptions)
bulk = time.process_time() - read_at
begun = time.process_time()
found = matcher.match_batch(events).num_rows
ended = time.process_time()
compiled = 0
if "numba" in sys.modules:
    import gc
    from numba.core.dispatcher import Dispatcher
    compiled = sum(sum(each.stats.cache_misses.values()) for each in gc.get_objects() if isinstance(each, Dispatcher))
import json
steps = [after - before for before, after in zip(clock, clock[1:])] + [bulk, ended - begun, ended]
print(json.dumps({"steps": steps, "matches": found, "compiled": compiled, "code": matcher.stats()["kernels"]["code"]}))
"""


def write_tables(folder: Path, bulk: int, batch: int, seed: int) -> None:
    """Write what the program reads: saved searches and offers from a seed."""
    random = np.random.default_rng(seed)
    for name, table in (("searches", searches(bulk, random)), ("offers", offers(batch, random))):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


def run_program(folder: Path, **environment: str) -> dict[str, Any]:
    """Run the program in a new process; return its steps in processor seconds, and what it compiled.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(Path(folder), 100, 100, 7)
    ...     told = run_program(Path(folder), NUMBA_DISABLE_JIT="1")
    >>> told["compiled"], told["code"], len(told["steps"]) == len(STEPS)
    (0, 'python', True)
    """
    path = os.pathsep.join(filter(None, sys.path))
    variables = os.environ | {"PYTHONPATH": path, "TOCSIN_NOTICES": "0"} | environment
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def ways(folder: Path) -> dict[str, dict[str, str]]:
    """Return how kernels can come to run here: a name, and the environment of it.

    Numba's ways share a cache, which the first of them fills.
    """
    found: dict[str, dict[str, str]] = {}
    if native.load("product") is not None:
        found["native"] = {"TOCSIN_NATIVE": "1"}
    if find_spec("numba") is not None:
        cached = {"TOCSIN_NATIVE": "0", "NUMBA_CACHE_DIR": str(folder / "numba")}
        found |= {"Numba, cache empty": cached, "Numba, cache filled": cached}
    return found


def measure(repetitions: int, seed: int, bulk: int = BULK, batch: int = BATCH) -> Iterator[dict[str, Any]]:
    """Yield for each way the medians of its steps in processor seconds, and how many kernels it compiled.

    With an empty cache there is one run; of the others a first one, which writes bytecode, is not counted.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_tables(folder, bulk, batch, seed)
        for name, environment in ways(folder).items():
            if name == "Numba, cache empty":
                runs = [run_program(folder, **environment)]
            else:
                runs = [run_program(folder, **environment) for _ in range(1 + repetitions)][1:]
            steps = [statistics.median(step) for step in zip(*(run["steps"] for run in runs), strict=True)]
            yield {
                "kernels": name,
                **{step: round(seconds, 4) for step, seconds in zip(STEPS, steps, strict=True)},
                "compiled": max(run["compiled"] for run in runs),
                "matches": runs[0]["matches"],
            }


def page(about: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return the page that a run leaves."""
    head = ["kernels", *STEPS, "compiled"]
    lines = [
        "# The first seconds of a process",
        "",
        f"Processor seconds of `import tocsin`, first subscribe and match, a bulk load of {BULK:,} subscriptions and a",
        f"batch of {BATCH:,} events, in processes of their own. `import` counts from the start of the interpreter;",
        "`compiled` is the number of kernels that Numba compiled.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(str(row[name]) for name in head) + " |" for row in rows),
        "",
        f"Written by `{about['command']}` on {about['date']}: {about['processor']}, {about['cores']} cores, "
        f"{about['memory_gb']} GB, load {about['load']}; Python {about['python']}, "
        + ", ".join(f"{name} {version}" for name, version in about["packages"].items())
        + f"; seed {about['seed']}, "
        + (f"revision {about['revision']}." if about["revision"] else "an installed wheel."),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
