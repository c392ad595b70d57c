"""`tocsin bench compare`: what a change did to the speed."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.engines import chosen, size_of
from tocsin.cli.results import draw, to_json


def compare(
    first: Annotated[str, typer.Argument(metavar="REV1", help="The revision that is compared with: HEAD~1, a tag.")],
    second: Annotated[str, typer.Argument(metavar="REV2", help="The revision that is judged.")],
    workloads: Annotated[str, typer.Option(metavar="NAMES", help="Workloads, with commas between.")] = "W1,W2,text",
    size: Annotated[str, typer.Option(help="How many subscriptions there are.")] = "50K",
    engine: options.Engine = "adaptive",
    rounds: Annotated[int, typer.Option(min=1, help="How often both are measured in turn.")] = 12,
    launches: Annotated[int, typer.Option(min=1, help="How many pairs of processes are started.")] = 2,
    json: options.Json = False,
) -> None:
    """Compare two revisions, and call each difference noise, gain or regression.

    Run it inside a clone. Both revisions are checked out in temporary worktrees, which are removed at the end. They
    are measured in turns in processes of their own, by match_batch on the same files. A difference counts when the
    99 % interval of the median ratio excludes 1, the ratio is more than 3 % from 1, and all pairs of processes agree.

    W0 and R take long to load here: nearly each of their subscriptions has a template of its own.
    """
    from tocsin.bench.compare import compare as compared
    from tocsin.bench.engines import MEASURED

    names = chosen(workloads, list(MEASURED), "workload")
    rows = []
    for found in compared((first, second), names, size_of(size), engine, rounds, launches):
        if json:
            typer.echo(to_json(found.to_json()))
        rows.append(
            [
                found.workload,
                f"{found.first:,.0f}",
                f"{found.second:,.0f}",
                f"{found.ratio:.3f}",
                f"{found.low:.3f} to {found.high:.3f}",
                found.rounds,
                found.verdict,
            ]
        )
    if not json:
        draw(
            ["workload", f"{first} events/s", f"{second} events/s", "ratio", "99 % interval", "rounds", "verdict"], rows
        )
