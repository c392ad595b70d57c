"""The contract suite on code that this machine does not take by itself: the compiler's, and that of lower levels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.kernels.native import build

ROOT = Path(__file__).parent.parent.parent
CONTRACT = [
    "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/index/test_contract.py",
    "--noconftest", "--hypothesis-profile", "ci",
]  # fmt: skip
"""Without what `conftest.py` imports: DuckDB does not run on the oldest of these processors."""


def contract(*before: str, setting: str, chosen: str = "") -> None:
    """Run the contract suite, or the tests chosen of it, in a process of its own with a setting of TOCSIN_NATIVE."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TOCSIN_M"))}
    done = subprocess.run(
        [*before, sys.executable, *CONTRACT, "-k", chosen],
        cwd=ROOT,
        env=environment | {"TOCSIN_NATIVE": setting},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    print(f"contract, TOCSIN_NATIVE={setting}: {done.stdout.splitlines()[-1]}")


@pytest.mark.slow
def test_the_contract_holds_on_the_compiler() -> None:
    contract(setting="0")


@pytest.mark.slow
@pytest.mark.parametrize(("processor", "level"), [("Nehalem", "v2"), ("Haswell", "v3")])
def test_the_contract_holds_on_older_processors(processor: str, level: str) -> None:
    """An emulator refuses every instruction that the processor does not have; it is slow, so only `adaptive` runs."""
    emulator = shutil.which("qemu-x86_64")
    assert emulator is not None, "this takes an emulator: apt install qemu-user"
    if not build.is_built("product", level):
        build.build("product", level, jobs=build.cores(), progress=build.show)
    script = "from tocsin.kernels.compile import runs; print(runs()['level'])"
    emulated = [emulator, "-cpu", processor]
    told = subprocess.run([*emulated, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == level
    contract(*emulated, setting=level, chosen="adaptive")
