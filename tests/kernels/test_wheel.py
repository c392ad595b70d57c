"""What is installed runs without Numba and without what builds native code."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.test_import_law import imports, module_of

import tocsin
from tocsin.kernels import native

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(tocsin.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

FORBIDDEN = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"

PAPERS = (
    "bench.",
    "index.bitmap.",
    "index.bitmap_parts.",
    "index.clusters.",
    "index.counting.",
    "index.dynamic.",
    "index.propagation.",
    "index.static.",
    "kernels.",
)
"""Modules that may call the kernels of papers' engines, and the kernels themselves."""

PROGRAM = """
import numpy as np, pyarrow as pa, tocsin
count = {count}
space = tocsin.Space({{"item": tocsin.Text(), "price": tocsin.Number(), "city": tocsin.Text()}})
matcher = tocsin.Matcher(space)
matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
assert matcher.match({{"item": "bicycle", "price": 350, "city": "NYC"}}) == ["cheap"]
texts = [f"price <= {{i % 977}} AND city = 'c{{i % 50}}' AND item = 'i{{i % 300}}'" for i in range(count)]
matcher.subscribe_many(pa.table({{"id": [f"s{{i}}" for i in range(count)], "expression": texts}}))
columns = {{"item": [f"i{{i % 300}}" for i in range(count)], "price": [float(i % 500) for i in range(count)],
           "city": [f"c{{i % 50}}" for i in range(count)]}}
found = matcher.match_batch(pa.table(columns)).num_rows
matcher.unsubscribe("cheap")
matcher.save({path!r})
loaded = tocsin.Matcher.load({path!r})
assert loaded.match_batch(pa.table(columns)).num_rows == found
fleet = tocsin.Subjects(tocsin.Space({{"x": tocsin.Number(), "y": tocsin.Number()}}))
fleet.subscribe("yard", "x BETWEEN 0 AND 10 AND y BETWEEN 0 AND 10")
assert len(list(fleet.publish("truck-7", {{"x": 3, "y": (9, 11)}}))) == 1
print(found, matcher.stats()["kernels"]["code"])
"""
"""Subscribes one by one and in bulk, matches, saves, loads and moves."""


def said_by(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | environment)


def test_without_native_code_and_numba_one_sentence_says_what_to_install() -> None:
    done = said_by(FORBIDDEN + "import tocsin", TOCSIN_NATIVE="0", NUMBA_DISABLE_JIT="0")
    *_, last = done.stderr.splitlines()
    assert last == (
        "ModuleNotFoundError: no native kernels (TOCSIN_NATIVE=0) and no Numba to compile them: "
        "pip install 'tocsin[jit]'"
    )
    assert "numba" in [need.partition(">")[0] for need in PROJECT["project"]["optional-dependencies"]["jit"]]


def test_native_kernels_serve_a_whole_program_without_numba(tmp_path: Path) -> None:
    if native.load("product") is None:
        done = said_by(FORBIDDEN + PROGRAM.format(count=20, path=str(tmp_path / "saved")), NUMBA_DISABLE_JIT="1")
        assert done.stdout.endswith(" python\n"), done.stderr
    else:
        done = said_by(FORBIDDEN + PROGRAM.format(count=20_000, path=str(tmp_path / "saved")))
        assert done.stdout.endswith(" native\n"), done.stderr


def test_the_product_calls_no_kernel_that_the_wheel_leaves_out() -> None:
    for path in PACKAGE.rglob("*.py"):
        module = module_of(path)
        if not f"{module}.".startswith(PAPERS):
            names = [name for _, name in imports(path.read_text(), module, path.name == "__init__.py")]
            ours = [name.removeprefix("tocsin.kernels.") for name in names if name.startswith("tocsin.kernels.")]
            assert [name for name in ours if native.group_of(name) == "papers"] == [], path


def test_the_wheel_leaves_out_what_builds_and_nothing_that_it_imports() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    left_out = [ROOT / name for name in wheel["exclude"]]
    assert all(file.exists() for file in left_out)
    builders = {module_of(file) for file in left_out if file.suffix == ".py"}
    for path in set(PACKAGE.rglob("*.py")) - set(left_out):
        for _, name in imports(path.read_text(), module_of(path), path.name == "__init__.py"):
            assert name.removeprefix("tocsin.") not in builders, path
    assert (ROOT / wheel["hooks"]["custom"]["path"]).exists()
