"""`--operators module:name`: one's own operators on the command line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tocsin.errors import OperatorError
from tocsin.operators.operator import Operator
from tocsin.operators.serving import told

FORM = "write --operators module:name, such as my_operators:near"


def operators_named(names: Iterable[str]) -> list[Operator]:
    """Return the operators that ``module:name`` says, modules being looked for in the working folder too.

    ``name`` is that of an operator, dotted if it stands inside something, or of a list of operators.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return [each for name in names for each in _named(name)]


def share_folder() -> None:
    """Let processes that are started from now on, workers of Spark, find modules in the working folder."""
    held = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), *([held] if held else [])])


def _named(given: str) -> list[Operator]:
    module, colon, path = given.partition(":")
    if not colon or not module or not path:
        raise OperatorError(f"{given!r} names no operator; {FORM}")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            reason = f"there is no module {error.name} in {Path.cwd()} or where Python looks for modules"
        else:
            reason = f"the module {module} needs {error.name}, which is not installed"
        raise OperatorError(f"--operators {given}: {reason}") from error
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise OperatorError(f"--operators {given}: importing {module} fails: {told(error)}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise OperatorError(f"--operators {given}: the module {module} has no {path}")
        found = getattr(found, part)
    several: list[object] = list(found) if isinstance(found, (list, tuple)) else [found]
    for each in several:
        if not isinstance(each, Operator):
            raise OperatorError(
                f"--operators {given}: that is no operator but a {type(each).__name__}; decorate a function with "
                "@tocsin.operator"
            )
    return [each for each in several if isinstance(each, Operator)]
