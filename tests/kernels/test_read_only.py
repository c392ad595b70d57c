"""Where nothing can be written, by a user who has no home, from folders and from zips, everything works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.test_compile import CALLER, HELPER, room_in
from tests.kernels.test_wheel import PROGRAM

import tocsin
from tocsin.kernels import native

NOBODY = 54_321
"""A user that no machine has."""

WATCHED = """
import os, sys
written = []
def watch(event, given):
    if event == "open" and isinstance(given[0], str) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(given[0])
sys.addaudithook(watch)
"""
"""Notes every file that is opened for writing."""


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that everybody can read, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="tocsin-read-only-"))
    folder.chmod(0o755)
    yield folder
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        each.chmod(0o755)
    shutil.rmtree(folder)


def somebody() -> dict[str, Any]:
    """Return how a process is started as a user without a home and rights, if we may and Python can then be read."""
    if os.geteuid() != 0:
        return {}
    other: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    try:
        done = subprocess.run([sys.executable, "-c", "import numpy, tocsin"], **other, capture_output=True, cwd="/")
    except OSError:
        return {}
    return other if done.returncode == 0 else {}


def run(script: str, path: Path, **environment: str) -> tuple[str, str]:
    """Run a script with a path of Python's and no home, in a folder that cannot be written to."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOME", "XDG_", "NUMBA_"))}
    kept |= {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd="/", env=kept, capture_output=True, text=True, **somebody()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def sealed(folder: Path, kind: str) -> Path:
    """Make the packages in a folder read-only, as they are or as a zip; return where they are imported from."""
    if kind == "zip":
        file = folder.with_suffix(".zip")
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
        shutil.rmtree(folder)
        file.chmod(0o444)
        return file
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_whole_program_runs_and_writes_only_what_it_is_told_to(place: Path, kind: str) -> None:
    source = Path(tocsin.__file__).parent
    shutil.copytree(source, place / "lib" / "tocsin", ignore=shutil.ignore_patterns("__pycache__", "papers-*", "bench"))
    saved = place / "given"
    saved.mkdir()
    saved.chmod(0o777)
    is_native = native.load("product") is not None
    script = WATCHED + PROGRAM.format(count=2_000 if is_native else 20, path=str(saved / "matcher"))
    script += "print(sorted(path for path in written if not path.startswith(" + repr(str(saved)) + ")))"
    setting = {} if is_native else {"NUMBA_DISABLE_JIT": "1"}
    said, _ = run(script, sealed(place / "lib", kind), **setting)
    result, others = said.splitlines()
    assert result.endswith(" native" if is_native else " python")
    assert others == "[]"


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_numba_compiles_in_memory_and_says_once_how_to_keep_it(place: Path, kind: str) -> None:
    (place / "lib").mkdir()
    room = room_in(place / "lib", CALLER)
    (room / "helper.py").write_text(HELPER.format(step=1))
    said, told = run("from room import caller; print(caller.call(1))", sealed(place / "lib", kind), TOCSIN_NOTICES="1")
    assert said == "2\n"
    if somebody():
        notices = [line for line in told.splitlines() if "compiled in memory" in line]
        assert len(notices) == 1
        assert "set NUMBA_CACHE_DIR" in notices[0]
