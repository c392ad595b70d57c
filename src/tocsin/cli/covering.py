"""`tocsin covering`: which subscriptions of a file make others redundant."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import FOUND, needs, options
from tocsin.cli.inputs import Input
from tocsin.cli.loading import load, refuse_two_standard_inputs, report
from tocsin.cli.progress import progress
from tocsin.cli.results import to_json
from tocsin.cli.spaces import declared_space
from tocsin.cli.subscriptions import read_subscriptions
from tocsin.covering import FullGraph, Graph, RelationGraph, StrictPoset, Tree, forest
from tocsin.errors import FileError
from tocsin.matcher import Matcher
from tocsin.matcher.relations import redundancy_of, relation_graph

BAR = 30
"""How long the bar of the largest tree is drawn."""

PICTURES = (".png", ".svg")
"""How the name of a picture ends."""


class Kind(StrEnum):
    """Which relation graph."""

    k = "k"
    full = "full"
    strict = "strict"


def covering(
    subscriptions: options.SubscriptionsFile,
    space: Annotated[
        str | None, typer.Option("--space", metavar="FILE", help="The space of the subscriptions, as JSON.")
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="A table of events whose columns are the space.")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="On how many others one may hang.")] = 1,
    graph: Annotated[
        Kind, typer.Option("--graph", help="k: G_k. full: all that covers. strict: without what follows from the rest.")
    ] = Kind.k,
    depth: Annotated[int, typer.Option("--depth", min=0, help="How deep trees are printed.")] = 3,
    most: Annotated[int, typer.Option("--most", min=1, help="How many lines are printed.")] = 40,
    id: options.IdColumn = "id",
    expression: options.ExpressionColumn = "expression",
    events_format: options.EventsFormat = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    json: options.Json = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw the forest here, as PNG or SVG.")
    ] = None,
) -> None:
    """Show which subscriptions cover others, as a forest with sizes.

    A root does the work of its whole tree: a broker forwards roots only. Equal subscriptions are one node with many
    owners. One of several alternatives is covered by another one if each of its alternatives is: that is sound, and
    may miss some. With --json, the first line has the counts and each further line a tree. Bad rows are reported and
    left out; the exit code is then 1.
    """
    refuse_two_standard_inputs(subscriptions, space, events)
    if picture is not None:
        _refuse_picture(picture)
    held = read_subscriptions(Input.open(subscriptions, subscriptions_format), id, expression)
    matcher = Matcher(declared_space(space, events, events_format), "scan")
    findings = load(matcher, held)
    report(held.name, findings)
    made: Graph = {Kind.full: FullGraph, Kind.strict: StrictPoset}[graph]() if graph != Kind.k else RelationGraph(k)
    with progress("covering"):
        relation_graph(matcher, made)
    trees = forest(made)
    found = redundancy_of(made)
    if json:
        typer.echo(to_json({**found._asdict(), "share": round(found.share, 4)}))
        for tree in trees:
            typer.echo(to_json(tree.to_json()))
    else:
        typer.echo(
            f"{found.subscriptions:,} subscriptions, {found.different:,} different; {found.roots:,} roots cover "
            f"{found.covered:,} others, {found.never:,} can never match: {found.share:.1%} need not be forwarded"
        )
        for line in drawn(trees, depth, most):
            typer.echo(line)
    if picture is not None:
        from tocsin.bench.covering_pictures import draw_forest

        draw_forest(trees, picture)
    if findings:
        raise typer.Exit(FOUND)


def _refuse_picture(file: Path) -> None:
    """Raise FileError, before any work, if a picture cannot be drawn or not be written there."""
    needs("matplotlib")
    if file.suffix.lower() not in PICTURES:
        raise FileError(f"--picture {file}: the name of a picture ends in {' or '.join(PICTURES)}")
    if not file.parent.is_dir():
        raise FileError(f"--picture {file}: there is no folder {file.parent}; make it first")


def drawn(trees: list[Tree], depth: int, most: int) -> Iterator[str]:
    """Yield the lines of a forest: owners, a bar and the size of the tree; what is left out is counted."""
    largest = max((tree.size for tree in trees), default=1)
    lines: list[tuple[str, Tree]] = []
    for tree in trees:
        lines += _lines(tree, depth)
        if len(lines) > most:
            break
    width = min(60, max((len(head) for head, _ in lines[:most]), default=0))
    for head, tree in lines[:most]:
        bar = "█" * max(1, round(BAR * tree.size / largest))
        yield f"{head[:width]:{width}}  {bar} {tree.size:,}"
    left = sum(tree.nodes for tree in trees) - len(lines[:most])
    if left > 0:
        yield f"... and {left:,} more; see --most, --depth and --json"


def _lines(tree: Tree, depth: int) -> list[tuple[str, Tree]]:
    lines: list[tuple[str, Tree]] = []
    waiting: list[tuple[str, str, Tree, int]] = [("", "", tree, 0)]
    while waiting:
        head, below, one, level = waiting.pop()
        lines.append((head + _names(one.owners), one))
        if level < depth:
            for place, child in reversed(list(enumerate(one.children))):
                corner, rule = ("└─ ", "   ") if place == len(one.children) - 1 else ("├─ ", "│  ")
                waiting.append((below + corner, below + rule, child, level + 1))
    return lines


def _names(owners: tuple[Any, ...]) -> str:
    shown = ", ".join(map(str, owners[:3]))
    return shown + (f" and {len(owners) - 3:,} more" if len(owners) > 3 else "")
