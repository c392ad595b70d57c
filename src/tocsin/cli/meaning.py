"""`tocsin bench meaning`: what concepts, their growth and units cost."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.engines import size_of
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json

PAGE = "meaning-benchmark.md"

FIGURES = 46
"""How many a run has."""


def meaning(
    size: Annotated[str, typer.Option(help="How many subscriptions there are.")] = "1M",
    concepts: Annotated[int, typer.Option(min=100, help="How many concepts the hierarchy has.")] = 100_000,
    depth: Annotated[int, typer.Option(min=1, max=100, help="How deep it is.")] = 15,
    engine: options.Engine = "adaptive",
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help=f"Write {PAGE}, meaning.json and pictures/meaning.png here."
        ),
    ] = None,
) -> None:
    """Measure matching in a hierarchy of real size, second parents, growth, units, and the paper's workload.

    All of it through the matcher, texts and Arrow in. Second parents are measured with a tenth of the subscriptions,
    the paper's workload (height 5) with a hundredth, a tenth and all of them, on bitmap and on adaptive. Rates are of
    one core, in processor time.
    """
    from tocsin.bench import meaning as bench
    from tocsin.bench.machine import describe

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), bench.SEED)
    count = size_of(size)
    found = []
    parts = (
        bench.real_size(concepts, depth, count, engine),
        bench.several_parents(concepts, depth, max(1, count // 10), engine),
        bench.units(max(1000, min(count, 1_000_000))),
        *(bench.paper(5, some) for some in sorted({max(1, count // share) for share in (100, 10, 1)})),
    )
    with progress("measuring", FIGURES) as advance:
        for part in parts:
            for figure in part:
                found.append(figure)
                advance(1)
                if json:
                    typer.echo(to_json(figure.to_json()))
    held = bench.targets(found)
    if json:
        typer.echo(to_json({"targets": [target.to_json() for target in held]}))
    else:
        draw(["", "measured", "figure", ""], [[one.part, one.what, f"{one.value:,.4g}", one.unit] for one in found])
        marks = {True: "yes", False: "NO", None: ""}
        draw(["target", "measured", "met?"], [[target.target, target.measured, marks[target.met]] for target in held])
    if output is not None:
        from tocsin.bench.meaning_picture import draw_meaning
        from tocsin.bench.meaning_report import page

        (output / "pictures").mkdir(parents=True, exist_ok=True)
        draw_meaning(output / "pictures" / "meaning.png", found)
        (output / PAGE).write_text(page(about, found, held, "pictures/meaning.png"))
        targets = [target.to_json() for target in held]
        text = to_json({"about": about, "figures": [one.to_json() for one in found], "targets": targets})
        (output / "meaning.json").write_text(text + "\n")
