"""`tocsin bench`: measurements of this machine, each repeatable by its seed."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer

from tocsin.bench.searches import SPACE, searches
from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json
from tocsin.matcher import Matcher

bench = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure this machine.")


@bench.callback()
def group() -> None:
    """Measure this machine."""


@bench.command()
def load(
    subscriptions: Annotated[int, typer.Option(min=10, help="How many subscriptions are loaded at most.")] = 1_000_000,
    engine: options.Engine = "adaptive",
    seed: Annotated[int, typer.Option(min=0, help="What the subscriptions are generated from.")] = 7,
    json: options.Json = False,
) -> None:
    """Measure how fast subscriptions load: parsed, normalised, encoded and indexed.

    The expressions are saved searches of ten templates. A tenth of them is loaded first, then all, each into a matcher
    of its own; when the rate is the same, the time is linear in their number.
    """
    table = searches(subscriptions, np.random.default_rng(seed))
    Matcher(SPACE, engine).subscribe_many(table.slice(0, min(subscriptions, 10_000)))  # compiles, or reads the cache
    found = []
    for count in (subscriptions // 10, subscriptions):
        matcher = Matcher(SPACE, engine)
        started = time.perf_counter()
        with progress(f"loading {count:,}"):
            matcher.subscribe_many(table.slice(0, count))
        seconds = time.perf_counter() - started
        found.append(
            {"engine": engine, "subscriptions": count, "seconds": round(seconds, 3), "rate": int(count / seconds)}
        )
    if json:
        for row in found:
            typer.echo(to_json(row))
    else:
        draw(["engine", "subscriptions", "seconds", "a second"], [[*map(_shown, row.values())] for row in found])


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
