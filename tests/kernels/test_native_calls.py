"""A kernel answers alike as native code and compiled by Numba, whichever of the two a clone has built."""

from __future__ import annotations

import gc
import os
import re
import resource
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tocsin
from tocsin.kernels import native
from tocsin.kernels.compile import Deferred, deferred_behind, dispatcher
from tocsin.kernels.picking import ascend, firsts
from tocsin.kernels.subjects import Members, Pool, match_members

SOURCES = Path(tocsin.__file__).parent


def pairs(seed: int, count: int) -> tuple[Any, ...]:
    """Draw places, rows and numbers for `firsts`."""
    random = np.random.default_rng(seed)
    rows = np.sort(random.integers(0, 5, count)).astype(np.int32)
    return np.arange(count), rows, random.integers(0, 9, count).astype(np.int32), 9


@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_results_are_the_same_from_numba(count: int) -> None:
    given = pairs(count, count)
    mine, compiled = firsts(*given), dispatcher(firsts)(*given)
    np.testing.assert_array_equal(mine, compiled)
    assert (mine.dtype, mine.flags.writeable) == (compiled.dtype, compiled.flags.writeable)


def test_named_tuples_are_taken_apart() -> None:
    """A pair whose only box has a program is told as doubtful."""
    point = np.zeros((1, 1), np.int64)
    one, first = np.zeros(1, np.int32), np.array([0, 1])
    pool = Pool(np.zeros(1, np.int64), np.ones(1, np.int32), one, np.array([-1]), np.array([1]))
    members = Members(first, one, np.ones(1, np.int64))
    given = pool, one, (point, point), members, members, (np.zeros(1, np.int64), np.zeros(1, np.int64))
    for kernel in (match_members, dispatcher(match_members)):
        assert kernel(*given, np.zeros((2, 1), np.int64)).tolist() == [[0, 0, 0]]


def test_what_a_kernel_raises_is_raised() -> None:
    places, rows, numbers, _ = pairs(1, 4)
    with pytest.raises(ValueError, match="negative dimensions not allowed"):
        firsts(places, rows, numbers, -1)


def test_memory_of_results_is_given_back() -> None:
    """Also that of what a kernel allocates for itself: 8 MB in each of 300 calls."""
    given = (*pairs(2, 4)[:3], 1_000_000)
    firsts(*given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        firsts(*given)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes


def test_a_part_of_a_result_keeps_its_memory() -> None:
    found = firsts(*pairs(3, 100))
    wanted, part = found[1:3].tolist(), found[1:3]
    gone = weakref.ref(found)
    del found
    gc.collect()
    assert gone() is None or part.base is gone()
    np.full(1000, -1)
    assert part.tolist() == wanted


def test_threads_call_at_once() -> None:
    given = [pairs(seed, 2_000) for seed in range(16)]
    with ThreadPoolExecutor(4) as threads:
        for each, found in zip(given, threads.map(lambda each: firsts(*each), given), strict=True):
            np.testing.assert_array_equal(found, firsts(*each))


def test_types_that_nobody_foresaw_are_compiled_and_that_is_told_once() -> None:
    script = """
import numpy as np
from tocsin.kernels.picking import ascend
print(ascend(np.array([1, 2], np.int16)), ascend(np.array([2, 1], np.int16)), ascend(np.array([2.5, 1.5])))
"""
    environment = os.environ | {"TOCSIN_NOTICES": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "True False False\n"
    told = [line for line in done.stderr.splitlines() if "picking.ascend is compiled by Numba" in line]
    assert len(told) == (native.load("product") is not None)


def test_what_no_kernel_can_take_is_a_type_error() -> None:
    if deferred_behind(ascend) is not None:
        with pytest.raises(TypeError, match=r"picking\.ascend cannot be called with object"):
            ascend(object())
    with pytest.raises(TypeError):
        ascend()


STANDS_FOR = """
from tocsin.kernels import picking, sets, subjects
from tocsin.kernels.compile import Deferred, deferred_behind
print(*[type(held).__name__ for held in (sets.merge_intervals, picking.ascend, subjects.pairs_meet)])
print(getattr(deferred_behind(sets.merge_intervals), "why", ""))
"""


def copied(folder: Path) -> Path:
    """Copy the package, with the product's native code if it is built."""
    return shutil.copytree(SOURCES, folder / "tocsin", ignore=shutil.ignore_patterns("__pycache__", "papers-*"))


def said_in(folder: Path, script: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def test_an_edit_turns_off_what_it_touches_and_no_more(tmp_path: Path) -> None:
    room = copied(tmp_path)
    built = native.load("product") is not None
    before, _ = said_in(tmp_path, STANDS_FOR)
    assert set(before.split()) == {"builtin_function_or_method" if built else "_Kernel"}
    with (room / "kernels" / "sets.py").open("a") as file:
        file.write("\n# edited\n")
    after, why = said_in(tmp_path, STANDS_FOR)
    if built:
        assert after.split() == [Deferred.__name__, *before.split()[1:]]
        assert why == "sets or what it imports has changed since native code was built"
    else:
        assert after == before


def test_a_damaged_file_is_left_alone(tmp_path: Path) -> None:
    room = copied(tmp_path)
    for file in (room / "kernels" / "native").glob("*.so"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    script = "from tocsin.kernels.compile import runs; print(runs()['code']); print(runs()['why'])"
    code, why = said_in(tmp_path, script)
    assert code == "numba"
    assert re.search(r"is damaged|no native code has been built|TOCSIN_NATIVE|is built for Linux", why)
