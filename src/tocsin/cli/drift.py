"""`tocsin bench drift`: subscriptions and events change their nature while they are matched."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import options
from tocsin.cli.results import draw, to_json


def drift(
    subscriptions: Annotated[
        int, typer.Option(min=1_000, help="How many subscriptions there are at any time.")
    ] = 300_000,
    budget: Annotated[
        float, typer.Option(min=1.0, help="Seconds of processor time that matching may take for one strategy.")
    ] = 20.0,
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write drift.json and pictures/drift.png here.")
    ] = None,
) -> None:
    """Measure how adaptive and dynamic follow a drift, against the same without maintenance.

    Two experiments of the clusters paper (section 6.2.3): subscriptions turn to other attributes, and one attribute
    becomes skewed in subscriptions and events alike. All subscriptions are replaced in ten steps. Rates are by
    processor time: that of matching alone, and that of matching and changing.
    """
    from tocsin.bench.drift import experiment, summary
    from tocsin.bench.machine import describe
    from tocsin.bench.workloads import DRIFTS

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), DRIFTS["schema"][0].seed)
    found: list[dict[str, Any]] = []
    for name in DRIFTS:
        found.append(experiment(name, subscriptions, budget=budget))
        if json:
            typer.echo(to_json(found[-1]))
    if not json:
        rows = [row for one in found for row in summary(one)]
        draw(
            list(rows[0]),
            [[f"{cell:,}" if isinstance(cell, float) else cell or "" for cell in row.values()] for row in rows],
        )
    if output is not None:
        from tocsin.bench.pictures import draw_drift

        (output / "pictures").mkdir(parents=True, exist_ok=True)
        draw_drift(found, output / "pictures" / "drift.png")
        (output / "drift.json").write_text(to_json({"about": about, "experiments": found}) + "\n")
