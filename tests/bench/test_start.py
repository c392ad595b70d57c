"""A new process compiles nothing where native kernels are built, and the benchmark counts what others compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.bench.start import STEPS, page, run_program, ways, write_tables
from tocsin.kernels import native


def test_the_first_seconds_of_a_process_compile_nothing(tmp_path: Path) -> None:
    write_tables(tmp_path, 20_000, 2_000, seed=7)
    code, setting = "native", ways(tmp_path).get("native")
    if native.load("product") is None:
        code, setting = "python", {"NUMBA_DISABLE_JIT": "1"}
        write_tables(tmp_path, 100, 100, seed=7)
    assert setting is not None
    told = run_program(tmp_path, **setting)
    assert (told["compiled"], told["code"]) == (0, code)
    assert told["matches"] > 0


@pytest.mark.slow
def test_what_numba_compiles_is_counted(tmp_path: Path) -> None:
    """The fewest kernels: those of importing, of one subscription and of one match, in a cache of their own."""
    write_tables(tmp_path, 0, 0, seed=7)
    told = run_program(tmp_path, **ways(tmp_path)["Numba, cache empty"])
    assert (told["compiled"] > 0, told["code"]) == (True, "numba")


def test_the_page_names_the_machine_and_the_seed() -> None:
    about = {
        "command": "tocsin bench start", "date": "today", "seed": 7, "revision": "abc", "processor": "some", "cores": 2,
        "memory_gb": 24.0, "python": "3.11", "packages": {"numpy": "2.0"}, "load": 0.1,
    }  # fmt: skip
    row = {"kernels": "native", **dict.fromkeys(STEPS, 0.1), "compiled": 0}
    written = page(about, [row])
    assert "| native | 0.1 | 0.1 | 0.1 | 0.1 | 0.1 | 0.1 | 0 |" in written
    assert "seed 7" in written and "some, 2 cores" in written
