"""The import law: which room may import which, and what each may take from outside.

docs/decisions/0001-import-law.md says why.
The checker reads sources with `ast`, so that a lazy import inside a function counts like one at the top.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "tocsin"
FILES = sorted(SOURCES.rglob("*.py"))

LIBRARY = {"language", "space", "kernels", "index", "covering", "operators"}
EVERYTHING = LIBRARY | {"matcher", "subjects", "broker", "store", "server", "spark"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "arguments": set(),
    "arrow": set(),
    "kernels": set(),
    "store": set(),
    "language": {"kernels"},
    "space": {"language", "kernels", "index.boxes"},
    "index": {"kernels"},
    "covering": {"index"},
    "operators": {"language", "space", "kernels", "index.boxes"},
    "matcher": LIBRARY,
    "subjects": LIBRARY | {"matcher"},
    "broker": {"subjects", "matcher", "covering", "store"},
    "server": {"broker"},
    "spark": {"space", "matcher", "subjects", "covering", "index", "operators"},
    "bench": EVERYTHING,
    "cli": EVERYTHING | {"bench"},
    "": {"space", "matcher", "operators", "covering", "subjects", "broker"},
}
"""What each room may import of ours, besides itself and `LEAVES`. The empty name is `tocsin/__init__.py`."""

LEAVES = {"errors", "arguments", "arrow"}
"""What every room may import; `arrow` only one that may import pyarrow."""

FACADE = {"cli", "bench"}
"""The rooms that may use the public names of `tocsin` itself."""

OWNERS: dict[str, set[str]] = {
    "numpy": set(MAY_IMPORT) - {"errors"},
    "pyarrow": set(MAY_IMPORT) - {"errors", "arguments", "kernels"},
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "sqlglot": {"language"},
    "pyspark": {"spark"},
    "pandas": {"spark"},
    "typer": {"cli"},
    "rich": {"cli", "bench"},
    "shapely": {"operators", "bench"},
    "re2": {"operators"},
    "pint": {"space"},
    "rdflib": {"space", "operators"},
    "duckdb": {"bench"},
    "matplotlib": {"bench"},
}
"""Which rooms may import which third-party package; anything not named here is not a dependency."""

COMES_WITH = {"llvmlite": "numba", "re2": "google-re2"}
"""Packages that are not declared because a declared one brings them, at the version it needs."""


def room_of(module: str) -> str:
    """Return the room of a module given without the leading `tocsin`."""
    return module.partition(".")[0]


def imports(source: str, module: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) for everything a source imports; `from a import b` gives `a.b`."""
    package = f"tocsin.{module}".rstrip(".").split(".")
    if not is_package:
        package = package[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=origin, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                base = ".".join([*above, *([origin] if origin else [])])
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def is_within(name: str, allowed: str) -> bool:
    """Return whether a dotted name is an allowed one or inside it."""
    return name == allowed or name.startswith(f"{allowed}.")


def breaches(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return a sentence for each import in a source that the law forbids."""
    room = room_of(module)
    if room not in MAY_IMPORT:
        return [f"tocsin.{module}: {room!r} is no room of the law; give it a line in MAY_IMPORT and the decision"]
    leaves = {leaf for leaf in LEAVES if leaf != "arrow" or room in OWNERS["pyarrow"]}
    found = []
    for line, name in imports(source, module, is_package):
        top, _, rest = name.partition(".")
        if top != "tocsin":
            if top in sys.stdlib_module_names or room in OWNERS.get(top, set()):
                continue
            owners = ", ".join(sorted(OWNERS.get(top, ()))) or "no room: it is not a declared dependency"
            found.append(f"tocsin.{module}:{line}: {room!r} may not import {top}; it belongs to {owners}")
        elif room_of(rest) not in MAY_IMPORT or not rest:
            if room not in FACADE:
                found.append(f"tocsin.{module}:{line}: {room!r} may not import {name} from the package itself")
        elif not any(is_within(rest, allowed) for allowed in {room, *leaves} | MAY_IMPORT[room]):
            allowed = ", ".join(sorted(MAY_IMPORT[room])) or "nothing"
            found.append(f"tocsin.{module}:{line}: {room!r} may not import {name}; of ours it may import {allowed}")
    return found


def module_of(path: Path) -> str:
    """Return the dotted module of a file without the leading `tocsin`."""
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_file_obeys_the_import_law(path: Path) -> None:
    assert breaches(path.read_text(), module_of(path), path.name == "__init__.py") == []


def test_there_are_files_to_check() -> None:
    assert {room_of(module_of(path)) for path in FILES} >= {"errors", "kernels", "index", "cli"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "from tocsin.index import boxes"),
        ("errors", "import numpy"),
        ("kernels.scan", "from tocsin.index.boxes import Boxes"),
        ("kernels.scan", "import pyarrow as pa"),
        ("kernels.scan", "from tocsin import arrow as pc"),
        ("index.scan", "import numba"),
        ("index.scan", "from numba import njit"),
        ("index.scan", "def late():\n    import numba.core.types"),
        ("index.scan", "from tocsin.space import Space"),
        ("index.scan", "from ..space import Space"),
        ("index.scan", "from .. import space"),
        ("index.scan", "import importlib\nimportlib.import_module('tocsin.space.axes')"),
        ("space.axes", "from tocsin.index import Boxes"),
        ("space.axes", "from tocsin.index.scan import Scan"),
        ("space.axes", "from tocsin.matcher import Matcher"),
        (
            "language.parse",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tocsin.space import Space",
        ),
        ("matcher", "import pyspark.sql"),
        ("matcher", "import tocsin"),
        ("matcher", "from tocsin import Space"),
        ("space.axes", "import pandas"),
        ("broker.outbox", "from tocsin.server import app"),
        ("server.app", "from tocsin.store import sqlite"),
        ("spark.match", "import requests"),
        ("bench.engines", "from tocsin.cli import main"),
        ("cli.match", "import duckdb"),
        ("", "from tocsin.cli import main"),
        ("attic", "import os"),
        ("attic.old", ""),
    ],
)
def test_checker_finds_a_breach(module: str, source: str) -> None:
    assert len(breaches(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "import enum"),
        ("kernels.scan", "import numba\nimport numpy as np\nfrom tocsin.kernels.compile import kernel"),
        ("space.axes", "from tocsin.index.boxes import NULL\nfrom tocsin.index import boxes"),
        (
            "space.axes",
            "from . import codes\nfrom .codes import encode\nfrom tocsin.errors import TocsinError",
        ),
        ("language.parse", "import sqlglot\nfrom tocsin.kernels import text"),
        ("matcher", "from tocsin import index, operators\nfrom tocsin.space import Space"),
        ("spark.match", "from pyspark.sql import DataFrame\nfrom tocsin.matcher import Matcher"),
        (
            "cli.match",
            "import tocsin\nfrom tocsin import Matcher\nimport typer\nfrom tocsin.bench import engines",
        ),
        ("", "from tocsin.space import Space\nfrom tocsin.matcher import Matcher"),
    ],
)
def test_checker_lets_lawful_imports_pass(module: str, source: str) -> None:
    assert breaches(source, module, is_package=module == "") == []


def test_relative_imports_resolve_from_packages_and_modules() -> None:
    source = "from . import boxes\nfrom ..space import axes"
    assert [name for _, name in imports(source, "index.scan")] == ["tocsin.index.boxes", "tocsin.space.axes"]
    assert [name for _, name in imports(source, "index", True)] == ["tocsin.index.boxes", "tocsin.space.axes"]


def test_every_third_party_package_of_the_law_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name != "dev"}
    declared = {
        re.split(r"[\[<>=~! ]", need)[0] for needs in [project["dependencies"], *extras.values()] for need in needs
    }
    assert {COMES_WITH.get(package, package) for package in OWNERS} <= declared


def test_the_decision_names_every_room() -> None:
    decision = (ROOT / "docs" / "decisions" / "0001-import-law.md").read_text()
    table = {
        room.strip("` /"): set(re.findall(r"`([\w.]+)`", allowed))
        for room, allowed in re.findall(r"^\| (`\w+/?`) *\|([^|]*)\|", decision, re.MULTILINE)
    }
    assert table == {room: allowed for room, allowed in MAY_IMPORT.items() if room}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_file_has_a_telling_name_and_a_readable_length(path: Path) -> None:
    assert path.stem not in {"utils", "util", "misc", "helpers", "helper", "core", "common"}
    assert len(path.read_text().splitlines()) <= 500
