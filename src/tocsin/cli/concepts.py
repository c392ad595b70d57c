"""`tocsin bench concepts`: the figures of the concept-tree paper."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json

PAGE = "concepts-benchmark.md"


def concepts(
    subscriptions: Annotated[
        int, typer.Option(min=500, help="How many subscriptions there are at most; the paper has 10,000.")
    ] = 1_000_000,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure briefly: for a look, not for figures to keep.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Begin no further measurement after so many minutes.")
    ] = None,
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help=f"Write {PAGE}, concepts.json and pictures/concepts-*.png here."
        ),
    ] = None,
) -> None:
    """Measure bitmap and adaptive on trees of concepts, beside the strategies that came before.

    Figures 7 and 8 of the concept-tree paper (its Table 1, heights 1 to 5, 500 to 10,000 subscriptions), then on to
    larger sizes: walking the tree for each candidate, expanding events, expanding subscriptions, bit arrays on the
    tree, and the default engine. All must find the same pairs.
    """
    from tocsin.bench.concept_trees import SEED
    from tocsin.bench.concepts import EFFORT, cells, measure, targets
    from tocsin.bench.machine import describe
    from tocsin.bench.timing import QUICK

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), SEED)
    wanted = cells(subscriptions)
    deadline = None if minutes is None else time.perf_counter() + 60 * minutes
    found = []
    with progress("measuring", sum(len(cell[3]) for cell in wanted)) as advance:
        for one in measure(wanted, QUICK if quick else EFFORT, deadline):
            found.append(one)
            advance(1)
            if json:
                typer.echo(to_json(one.to_json()))
    held = targets(found)
    if json:
        typer.echo(to_json({"targets": [target.to_json() for target in held]}))
    else:
        rows = [[one.height, f"{one.size:,}", f"{one.broad:.0%}", one.way, *_figures(one)] for one in found]
        draw(["height", "size", "match all", "way", "µs an event", "pairs an event", "MB", "note"], rows)
        marks = {True: "yes", False: "NO", None: ""}
        draw(["target", "measured", "met?"], [[target.target, target.measured, marks[target.met]] for target in held])
    if output is not None:
        from tocsin.bench.concept_report import draw_figures, page

        files = draw_figures(found, output / "pictures")
        (output / PAGE).write_text(page(about, found, held, [f"pictures/{file.name}" for file in files]))
        whole = {
            "about": about,
            "measurements": [one.to_json() for one in found],
            "targets": [target.to_json() for target in held],
        }
        (output / "concepts.json").write_text(to_json(whole) + "\n")


def _figures(one: object) -> list[str]:
    """Return what was measured as the cells of a line."""
    from tocsin.bench.concepts import Measured

    assert isinstance(one, Measured)
    if one.micros is None or one.bytes is None or one.pairs_an_event is None:
        return ["not run", "", "", one.note]
    return [f"{one.micros:,.3g}", f"{one.pairs_an_event:,.3g}", f"{one.bytes / 1e6:,.3g}", ""]
