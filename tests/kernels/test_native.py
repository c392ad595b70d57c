"""Native code is used only where it is whole, meant for this processor and built from what the sources say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import tocsin
from tocsin.kernels import native
from tocsin.kernels.compile import runs
from tocsin.kernels.native import signatures

CODE = b"\x7fELF, as if it were machine code"
ABOUT = {"group": "product", "level": "v2", "identity": "0", "sources": None}


def test_a_sealed_file_is_described(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(native.sealed(CODE, ABOUT))
    assert native.described(tmp_path / "whole") == {"interface": native.INTERFACE, **ABOUT}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda whole: whole[:-1], "not all of one"),
        (lambda whole: whole[: len(whole) // 2], "not all of one"),
        (lambda whole: b"", "not all of one"),
        (lambda whole: CODE, "not all of one"),
        (lambda whole: b"MZ" + whole[2:], "not a native module"),
        (lambda whole: whole[:10] + b"!" + whole[11:], "its digest is another"),
        (lambda whole: whole[:-20] + b"!" + whole[-19:], "its digest is another"),
        (lambda whole: CODE + whole, "its digest is another"),
        (lambda whole: native.sealed(CODE, {"interface": native.INTERFACE + 1}), "another version of Tocsin"),
    ],
    ids=["end", "half", "empty", "plain", "foreign", "code", "digest", "longer", "version"],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, damage: Any, said: str) -> None:
    (tmp_path / "damaged").write_bytes(damage(native.sealed(CODE, ABOUT)))
    with pytest.raises(native.RefusedError, match=said):
        native.described(tmp_path / "damaged")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(native.RefusedError, match="cannot be read"):
        native.described(tmp_path / "none")


def room_with(folder: Path, **files: bytes) -> str:
    """Copy what loads native code into a package of its own, with these files; return what it says of the product."""
    room = folder / "room"
    room.mkdir()
    shutil.copy(native.__file__, room)
    for level, content in files.items():
        (room / native.file_name("product", level)).write_bytes(content)
    script = "import room; print(room.load('product'), room.reason('product'))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "TOCSIN_NATIVE": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_nothing_of_a_refused_file_is_executed(tmp_path: Path) -> None:
    """Loading any of these would fail in another way, or kill the process."""
    said = room_with(tmp_path, v2=native.sealed(CODE, {**ABOUT, "group": "papers"}))
    if native.host_levels():
        assert said.startswith("None native-v2.abi3.so has the code of papers, v2")
    else:
        assert said.startswith("None native code is built for Linux")


def test_a_file_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    assert room_with(tmp_path, v2=native.sealed(CODE, ABOUT)).startswith("None native")


@pytest.mark.parametrize(
    ("setting", "code", "why"),
    [
        ({"TOCSIN_NATIVE": "0"}, "numba", "TOCSIN_NATIVE=0"),
        ({"NUMBA_DISABLE_JIT": "1"}, "python", "NUMBA_DISABLE_JIT is set"),
    ],
)
def test_what_runs_is_told(setting: dict[str, str], code: str, why: str) -> None:
    script = "from tocsin.kernels.compile import runs; print(*runs().values(), sep=', ')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ | setting
    )
    assert done.stdout == f"{code}, None, {why}\n"


def test_a_matcher_says_what_runs() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number("int64")}))
    assert matcher.stats()["kernels"] == runs()
    assert (runs()["code"] == "native") == (native.load("product") is not None)


def test_levels_are_listed_best_first() -> None:
    levels = native.host_levels()
    assert levels == [level for level in native.LEVELS if level in levels]
    assert list(native.LEVELS) == list(reversed(native.FLAGS))


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize(
    "value",
    [
        3,
        2.5,
        True,
        None,
        np.zeros(2, np.int32),
        np.zeros((2, 3), np.uint64),
        np.zeros((2, 3), np.float32).T,
        np.zeros((4, 4), np.int8)[::2, ::2],
        np.zeros(2, bool),
        (1, np.zeros(3)),
        ((1, 2), (True,)),
    ],
    ids=str,
)
def test_types_are_read_as_they_are_written(value: Any) -> None:
    kind = numba.typeof(value)
    assert signatures.from_text(signatures.to_text(kind)) == (kind,)


def test_read_only_arrays_are_told_apart() -> None:
    array = np.zeros(3, np.int64)
    array.flags.writeable = False
    assert signatures.to_text(numba.typeof(array)) == "const int64[::1]"
    assert signatures.from_text("const int64[::1]") == (numba.typeof(array),)


@pytest.mark.parametrize("text", ["int64[", "int64)", "(int64", "whatever", "const int64"])
def test_what_is_no_list_of_types_is_refused(text: str) -> None:
    with pytest.raises((ValueError, AttributeError)):
        signatures.from_text(text)


def test_every_listed_signature_is_a_kernel_with_types_that_exist() -> None:
    listed = signatures.listed()
    assert listed == sorted(set(listed))
    for kernel, types in listed:
        assert ", ".join(map(signatures.to_text, signatures.from_text(types))) == types, kernel
