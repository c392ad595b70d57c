"""The command line: one file per command group, and the files they read and write.

Exit codes: 0 all is well, 1 something was found (a bad subscription, an event that does not fit), 2 the
command or its input cannot be used, 130 interrupted. Results go to standard output, everything else to
standard error.
"""

from __future__ import annotations

import os
import sys

from tocsin.errors import FileError, OperatorError, SpaceError, SparkError, TocsinError, UnknownEngineError

__all__ = ["main"]

FOUND, UNUSABLE, INTERRUPTED = 1, 2, 130
_UNUSABLE = FileError | OperatorError | SpaceError | SparkError | UnknownEngineError


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    try:
        from tocsin.cli.application import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"tocsin: the command line needs {error.name}: pip install 'tocsin[cli]'", file=sys.stderr)
        sys.exit(UNUSABLE)
    try:
        app(prog_name="tocsin")
    except TocsinError as error:
        print(f"tocsin: {error}", file=sys.stderr)
        sys.exit(UNUSABLE if isinstance(error, _UNUSABLE) else FOUND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        _let_go_of_stdout()


def _let_go_of_stdout() -> None:
    """Flush what is left; when its reader has gone (``| head``), that is no error worth a traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
