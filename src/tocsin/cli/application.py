"""The application: the options of `tocsin` itself, and the commands in the order that `--help` lists them."""

from __future__ import annotations

import importlib.metadata
import json
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
from tocsin.cli.start import start
from tocsin.cli.stream import stream
from tocsin.cli.subjects import fleet, subjects
from tocsin.cli.transitions import transitions
from tocsin.kernels.compile import runs

app = typer.Typer(
    name="tocsin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help reads the same in a terminal, a pipe and docs/cli.md
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def tocsin(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --version: as JSON, with what the kernels run as, and why.")
    ] = False,
) -> None:
    """Match events against standing subscriptions, exactly."""
    if version:
        number = importlib.metadata.version("tocsin")
        typer.echo(json.dumps({"version": number, "kernels": runs()}) if as_json else f"tocsin {number}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


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
    start,
):
    bench.command()(measurement)
app.add_typer(bench, name="bench")

command_line = typer.main.get_command(app)
"""The application, ready to be called: Typer would otherwise read the signatures of all commands at each call."""
