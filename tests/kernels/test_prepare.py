"""`make` has kernels ready before they are needed: native, or in Numba's cache, whatever the machine lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin

SIGNATURE = "moves.difference: int32[::1], int32[::1], int32[::1], int32[::1]\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the sources, without native code and caches, whose kernels are one."""
    source = Path(tocsin.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "*.abi3.so")
    shutil.copytree(source, tmp_path / "src" / "tocsin", ignore=ignored)
    (tmp_path / "src" / "tocsin" / "kernels" / "native" / "signatures.txt").write_text(SIGNATURE)
    return tmp_path


def prepared(clone: Path, compiler: str) -> str:
    """Prepare the kernels of the product with a C compiler; return what is said."""
    command = [sys.executable, "-m", "tocsin.kernels.native.prepare", "product", "--jobs", "1"]
    environment = {
        name: value for name, value in os.environ.items() if name not in ("TOCSIN_NATIVE", "NUMBA_CACHE_DIR")
    }
    environment |= {"PYTHONPATH": str(clone / "src"), "CC": compiler}
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=True)
    return done.stderr


def assert_filled(clone: Path, said: str) -> None:
    assert "Numba compiles the kernels (product), once; " in said
    assert said.endswith("compiling kernels: 1/1\n")
    assert list(clone.rglob("*.nbc"))
    assert not list(clone.rglob("*.abi3.so"))


def test_without_a_compiler_numba_fills_its_cache_once(clone: Path) -> None:
    assert_filled(clone, prepared(clone, "there-is-no-such-compiler"))
    assert prepared(clone, "there-is-no-such-compiler") == ""


def test_with_a_broken_compiler_numba_fills_its_cache(clone: Path) -> None:
    assert_filled(clone, prepared(clone, "false"))
