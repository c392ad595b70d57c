"""`tocsin bench subjects` and `tocsin bench fleet`: publications that live."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json

Engine = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="The index of subscriptions; else as the space suggests.")
]


def subjects(
    size: Annotated[int, typer.Option(min=10, help="How many publications and subscriptions at most.")] = 100_000,
    engine: Engine = None,
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write subjects-benchmark.md, subjects.json and pictures/subjects.png here.",
        ),
    ] = None,
) -> None:
    """Measure insertions and updates of publications as figures 11 to 14 of the subject-space paper do.

    50 dimensions; 20 or 25 constraints a publication, 2 a subscription; 10 to 100,000 of each. Times are of single
    calls through the Python interface, and of batches, for each publication or new subscription; about a minute in all.
    """
    from tocsin.bench.machine import describe
    from tocsin.bench.subjects import OPERATIONS, PAPER, SEED, SIZES, WIDTHS, by_matches, figures

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), SEED)
    sizes = tuple(each for each in SIZES if each <= size) or (size,)
    held = tuple(dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])))
    list(figures((10,), (10,), engine))  # compiles, or reads the cache
    measured: list[dict[str, Any]] = []
    matches: list[dict[str, Any]] = []
    with progress(f"measuring up to {sizes[-1]:,}", len(held) * len(sizes) * OPERATIONS + len(WIDTHS)) as advance:
        for found, source in ((measured, figures(sizes, held, engine)), (matches, by_matches(sizes[-1], engine))):
            for one in source:
                found.append(one)
                advance(1)
    for one in measured:
        one["paper_ms"] = PAPER.get((one["operation"], one["publications"], one["subscriptions"]))
    if json:
        for row in (*measured, *({"figure": 14, **one} for one in matches)):
            typer.echo(to_json(row))
    else:
        names = ["operation", "publications", "subscriptions", "ms", "thread_ms", "transitions", "paper_ms"]
        draw(names, [[_shown(one[name]) for name in names] for one in measured])
        typer.echo("")
        names = ["width", "matches", "thread_ms"]
        draw(names, [[_shown(one[name]) for name in names] for one in matches])
    if output is not None:
        from tocsin.bench.subjects_pictures import draw_figures
        from tocsin.bench.subjects_report import page, targets

        draw_figures(measured, matches, output / "pictures" / "subjects.png")
        met = targets(measured, matches)
        (output / "subjects-benchmark.md").write_text(page(about, measured, matches, met), encoding="utf-8")
        said = [one.to_json() for one in met]
        whole = {"about": about, "targets": said, "figures": measured, "matches": matches}
        (output / "subjects.json").write_text(to_json(whole) + "\n")


def fleet(
    trucks: Annotated[int, typer.Option(min=1_000, help="How many trucks there are.")] = 1_000_000,
    fences: Annotated[int, typer.Option(min=10, help="How many fences there are.")] = 100_000,
    updates: Annotated[int, typer.Option(min=100, help="How many positions are reported.")] = 1_000_000,
    batch: Annotated[int, typer.Option(min=1, help="How many of them come together.")] = 50_000,
    engine: Engine = None,
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write fleet-benchmark.md and fleet.json here.")
    ] = None,
) -> None:
    """Measure position updates of a fleet among fences, with exact transitions, on one core.

    The same is measured with a tenth of the trucks, as the cost should follow the updates and not the trucks stored.
    """
    from tocsin.bench.fleet import Fleet
    from tocsin.bench.machine import describe
    from tocsin.bench.moving import moving

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), Fleet.seed)
    batch = min(batch, trucks // 10)
    moving(1_000, 100, 200, 100, engine)  # compiles, or reads the cache
    found = []
    for count in (trucks // 10, trucks):
        with progress(f"moving {count:,} trucks"):
            found.append(moving(count, fences, updates, batch, engine))
    if json:
        for row in found:
            typer.echo(to_json(row))
    else:
        names = [name for name in found[0] if name != "trucks"]
        heads = ["", *(f"{row['trucks']:,} trucks" for row in found)]
        draw(heads, [[name, *(_shown(row[name]) for row in found)] for name in names])
    if output is not None:
        from tocsin.bench.subjects_report import fleet_page, fleet_targets

        output.mkdir(parents=True, exist_ok=True)
        held = fleet_targets(found)
        (output / "fleet-benchmark.md").write_text(fleet_page(about, found, held), encoding="utf-8")
        said = [one.to_json() for one in held]
        (output / "fleet.json").write_text(to_json({"about": about, "targets": said, "runs": found}) + "\n")


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
