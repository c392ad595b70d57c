"""The command line: one file per command group, and the files they read and write.

Exit codes: 0 all is well, 1 something was found (a bad subscription, an event that does not fit), 2 the
command or its input cannot be used, 130 interrupted. Results go to standard output, everything else to
standard error.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec

from tocsin.errors import FileError, OperatorError, SpaceError, SparkError, TocsinError, UnknownEngineError

__all__ = ["main"]

FOUND, UNUSABLE, INTERRUPTED = 1, 2, 130
_UNUSABLE = FileError | OperatorError | SpaceError | SparkError | UnknownEngineError


EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "numba": "jit",
    "matplotlib": "bench",
    "duckdb": "bench",
    "pyspark": "spark",
    "shapely": "geo",
    "pint": "units",
    "re2": "text",
    "rdflib": "ontology",
}
"""Which extra of the distribution installs a package that may be missing."""


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    _reopen_streams()
    sys.exit(_flushed(_run()))


def needs(package: str) -> None:
    """Raise ModuleNotFoundError, which `main` turns into a sentence, unless a package is installed.

    >>> needs("json")
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def _reopen_streams() -> None:
    """Replace the standard streams that the caller has closed, which Python has as None.

    Reading the input and writing the output fail, as on any closed descriptor; what is told on standard error is lost,
    and goes nowhere else. The new descriptors also keep files that are opened later from getting those numbers.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _run() -> int | str | None:
    """Return the exit code of the command; what went wrong is told on standard error."""
    try:
        from tocsin.cli.application import command_line

        command_line(prog_name="tocsin")
    except SystemExit as ended:
        return ended.code
    except TocsinError as error:
        said = str(error)
        code = UNUSABLE if isinstance(error, _UNUSABLE) else FOUND
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        needy = "the command line" if EXTRAS[package] == "cli" else "this"
        said, code = f"{needy} needs {package}: pip install 'tocsin[{EXTRAS[package]}]'", UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        said, code = _unwritable(error), UNUSABLE
    else:
        return 0
    _tell(said)
    return code


def _tell(said: str) -> None:
    """Tell what went wrong; where standard error cannot be written either, the exit code has to do."""
    with suppress(OSError):
        print(f"tocsin: {said}", file=sys.stderr)


def _flushed(code: int | str | None) -> int | str | None:
    """Flush what is left and return the exit code; a reader who has gone (``| head``) is no error worth telling."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if code != UNUSABLE:
            _tell(_unwritable(error))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNUSABLE
    return code


def _unwritable(error: OSError) -> str:
    return f"{error.filename or 'standard output'} cannot be written: {error.strerror or error}"
