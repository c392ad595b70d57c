"""The application: the options of `tocsin` itself, and the commands in the order that `--help` lists them."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from tocsin.cli.bench import bench
from tocsin.cli.check import check
from tocsin.cli.compare import compare
from tocsin.cli.concepts import concepts
from tocsin.cli.covering import covering
from tocsin.cli.covering_bench import covering as covering_bench
from tocsin.cli.demo import demo
from tocsin.cli.drift import drift
from tocsin.cli.engines import engines
from tocsin.cli.explain import explain
from tocsin.cli.match import match
from tocsin.cli.meaning import meaning
from tocsin.cli.operators import operators
from tocsin.cli.space import space
from tocsin.cli.spark_bench import spark
from tocsin.cli.stream import stream
from tocsin.cli.subjects import fleet, subjects
from tocsin.cli.transitions import transitions

app = typer.Typer(
    name="tocsin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help reads the same in a terminal, a pipe and docs/cli.md
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tocsin {importlib.metadata.version('tocsin')}")
        raise typer.Exit


@app.callback()
def tocsin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Match events against standing subscriptions, exactly."""


for command in (demo, match, stream, explain, check, covering, space):
    app.command()(command)
for measurement in (
    engines,
    drift,
    covering_bench,
    compare,
    concepts,
    spark,
    transitions,
    operators,
    meaning,
    subjects,
    fleet,
):
    bench.command()(measurement)
app.add_typer(bench, name="bench")

command_line = typer.main.get_command(app)
"""The application, ready to be called: Typer would otherwise read the signatures of all commands at each call."""
