"""A cached kernel is used only if no file that it was compiled from has changed since."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin

SCRIPT = "from room import caller; print(caller.call(1))"
HELPER = "from room.compile import kernel\n\nSTEP = {step}\n\n@kernel\ndef helper(x):\n    return x + STEP\n"
CALLER = (
    "from room.compile import kernel\nfrom room.helper import helper\n\n@kernel\ndef call(x):\n    return helper(x)\n"
)


def room_in(folder: Path, caller: str) -> Path:
    """Return a package with what compiles kernels and one module that has some; it has no native code."""
    room = folder / "room"
    (room / "native").mkdir(parents=True)
    (room / "__init__.py").touch()
    for name in ("compile.py", "jit.py", "native/__init__.py"):
        shutil.copy(Path(tocsin.__file__).parent / "kernels" / name, room / name)
    (room / "caller.py").write_text(caller)
    return room


def answer(folder: Path, script: str = SCRIPT, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
    )  # fmt: skip
    return done.stdout.strip()


def test_a_change_in_an_imported_file_compiles_its_callers_anew(tmp_path: Path) -> None:
    room = room_in(tmp_path, CALLER)
    (room / "helper.py").write_text(HELPER.format(step=1))
    assert answer(tmp_path) == "2"
    cached = {file.name: file.stat().st_mtime_ns for file in room.rglob("*.nbc")}
    assert cached
    assert answer(tmp_path) == "2"
    assert {file.name: file.stat().st_mtime_ns for file in room.rglob("*.nbc")} == cached, "compiled without need"
    (room / "stranger.py").write_text("WHO = 1\n")
    assert answer(tmp_path) == "2"
    assert {file.name: file.stat().st_mtime_ns for file in room.rglob("*.nbc")} == cached, "compiled without need"
    (room / "helper.py").write_text(HELPER.format(step=5))
    assert answer(tmp_path) == "6"


@pytest.mark.parametrize(
    ("imported", "constants"),
    [
        ("from room.constants import STEP\n", "constants.py"),
        ("from room.constants import (\n    OTHER,\n    STEP,\n)\n", "constants.py"),
        ("from room import constants as known\n\nSTEP = known.STEP\n", "constants.py"),
        ("from room.within import constants\n\nSTEP = constants.STEP\n", "within/constants.py"),
    ],
)
def test_a_change_behind_an_imported_file_compiles_its_callers_anew(
    tmp_path: Path, imported: str, constants: str
) -> None:
    room = room_in(tmp_path, CALLER)
    (room / "within").mkdir()
    (room / "within" / "__init__.py").touch()
    (room / "helper.py").write_text(HELPER.replace("STEP = {step}\n", imported))
    (room / constants).write_text("OTHER, STEP = 0, 1\n")
    assert answer(tmp_path) == "2"
    (room / constants).write_text("OTHER, STEP = 0, 3\n")
    assert answer(tmp_path) == "4"


def test_kernels_run_as_plain_python_with_the_jit_off(tmp_path: Path) -> None:
    room = room_in(tmp_path, CALLER)
    (room / "helper.py").write_text(HELPER.format(step=1))
    assert answer(tmp_path, NUMBA_DISABLE_JIT="1") == "2"
    assert not list(room.rglob("*.nbc"))


SORTING = """
import numpy as np
from room.compile import kernel

@kernel
def call(count):
    if count < 0:
        raise ValueError("no fewer than none")
    values = np.empty(count, np.int64)
    for place in range(count):
        values[place] = (7 * place) % count
    listed = [value for value in np.sort(values) if value > 1]
    return len(listed), np.array(listed).sum()
"""

REFUSED = """
import sys
from room import caller
print(*caller.call(9))
try:
    caller.call(-1)
except ValueError as error:
    print(error)
print("numba.np.arrayobj" in sys.modules, "numba.np.arraymath" in sys.modules)
"""


def test_a_cached_kernel_needs_no_module_of_what_is_built_into_it(tmp_path: Path) -> None:
    """It allocates, sorts, lists and raises all the same."""
    room_in(tmp_path, SORTING)
    compiled, loaded = answer(tmp_path, REFUSED), answer(tmp_path, REFUSED)
    assert compiled.splitlines()[:2] == loaded.splitlines()[:2] == ["7 35", "no fewer than none"]
    assert loaded.splitlines()[2] == "False False"
