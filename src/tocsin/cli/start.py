"""`tocsin bench start`: the first seconds of a process."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json

PAGE = "start-benchmark.md"


def start(
    repetitions: Annotated[int, typer.Option(min=1, help="How often a program runs; the median is told.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="What subscriptions and events are generated from.")] = 7,
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help=f"Write {PAGE} and start.json here.")
    ] = None,
) -> None:
    """Measure what a new process pays: import, first subscribe, match, bulk load and batch, in processor seconds.

    With native kernels, where there are any; where Numba is installed, with its cache empty, which compiles for a
    minute or two, and with its cache filled.
    """
    from tocsin.bench import start as bench
    from tocsin.bench.machine import describe

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), seed)
    rows = []
    with progress("measuring") as advance:
        for row in bench.measure(repetitions, seed):
            rows.append(row)
            advance(1)
            if json:
                typer.echo(to_json(row))
    if not json:
        draw(list(rows[0]), [[*row.values()] for row in rows])
        typer.echo(
            f"processor seconds; {about['processor']}, {about['cores']} cores, load {about['load']}, seed {seed}"
        )
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / PAGE).write_text(bench.page(about, rows))
        (output / "start.json").write_text(to_json({"about": about, "ways": rows}) + "\n")
