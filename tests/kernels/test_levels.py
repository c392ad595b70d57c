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
    "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/index/test_contract.py", "--noconftest",
    "--hypothesis-profile", "ci",
]  # fmt: skip
"""Without what `conftest.py` imports: DuckDB does not run on the oldest of these processors."""

SCRIPT = """
import os, sys
import pytest
from numpy._core._multiarray_umath import __cpu_features__
if sys.argv[1]:
    __cpu_features__[sys.argv[1]] = True
from tocsin.kernels.compile import runs
assert os.environ["TOCSIN_NATIVE"] in ("0", runs()["level"]), runs()
sys.exit(pytest.main(sys.argv[2:]))
"""
"""The first argument is a feature that the processor has, though NumPy was told not to use it: sorting with AVX2 goes
wrong in QEMU 7.2 (``np.argsort`` of 5,000 random numbers is not in order), and what is tested is Tocsin's code."""


def contract(*before: str, setting: str, chosen: str = "", hidden: str = "") -> None:
    """Run the contract suite, or the tests chosen of it, in a process of its own with a setting of TOCSIN_NATIVE and a
    feature of the processor hidden from NumPy."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TOCSIN_M"))}
    environment |= {"TOCSIN_NATIVE": setting} | ({"NPY_DISABLE_CPU_FEATURES": hidden} if hidden else {})
    command = [*before, sys.executable, "-c", SCRIPT, hidden, *CONTRACT, "-k", chosen]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    print(f"contract, TOCSIN_NATIVE={setting}: {done.stdout.splitlines()[-1]}")


@pytest.mark.slow
def test_the_contract_holds_on_the_compiler() -> None:
    contract(setting="0")


@pytest.mark.slow
@pytest.mark.parametrize(("processor", "level", "hidden"), [("Nehalem", "v2", ""), ("Haswell", "v3", "X86_V3")])
def test_the_contract_holds_on_older_processors(processor: str, level: str, hidden: str) -> None:
    """An emulator refuses every instruction that the processor does not have; it is slow, so only `adaptive` runs."""
    emulator = shutil.which("qemu-x86_64")
    assert emulator is not None, "this takes an emulator: apt install qemu-user"
    for group in ("product", "covering"):
        if not build.is_built(group, level):
            build.build(group, level, jobs=build.cores(), progress=build.show)
    script = "from tocsin.kernels.compile import runs; print(runs()['level'])"
    emulated = [emulator, "-cpu", processor]
    told = subprocess.run([*emulated, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == level
    contract(*emulated, setting=level, chosen="adaptive", hidden=hidden)
