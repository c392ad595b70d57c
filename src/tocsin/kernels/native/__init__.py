"""Kernels as native code: finds the extension module for this processor, checks it, and loads it.

`build.py` makes a module for each group of kernels and each level of processors: ``native-v3.abi3.so`` with the kernels
of the product, ``covering-v3.abi3.so`` and ``papers-v3.abi3.so`` with those of other groups. Behind the machine code
the file carries a description in JSON and, last, a SHA-256 of everything before. Nothing of a file is executed before
that digest and the description fit; whatever does not is left alone, and `reason` says why.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent

INTERFACE = 1
"""What this module and a native one agree on; changed together with the functions of `dispatcher.c`."""

MAGIC = b"TOCSIN\r\n"
"""The end of a file. Before it: the digest (32 bytes), the length of the description (8 bytes), the description."""

TAIL = 8 + 32 + len(MAGIC)

GROUPS = {
    "product": (),
    "covering": ("containment",),
    "papers": ("bench", "bitmap.grids", "bitmap.match", "bitmap.ranges", "clusters"),
}
"""The native modules, and which folders and modules of kernels each has; the product has all others. Those of covering
take a quarter of the time that the product takes to build, and a demo does not call them; those of papers only the
papers' engines and the benchmarks call."""

LEVELS = {
    "v4-vbmi": ("X86_V4", "AVX512_ICL"),
    "v3": ("X86_V3",),
    "v2": ("X86_V2",),
}
"""The levels of processors, best first, and what NumPy calls the features of each."""

FLAGS = {
    "v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
    "v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "v4-vbmi": "avx512f avx512bw avx512cd avx512dq avx512vl avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq",
}
"""What Linux calls the features that each level has beyond the one before."""


class RefusedError(Exception):
    """A file is not used; the message says why."""


class Native(NamedTuple):
    """A loaded module. ``sources``: the fingerprint of each module of kernels that it was compiled from; None in a
    wheel, whose sources are those it was built from."""

    level: str
    file: Path
    sources: dict[str, str] | None
    identity: str
    bind: Callable[[str, Any], Any]
    entries: Callable[[], list[tuple[str, str]]]


_reasons: dict[str, str] = {}


def group_of(module: str) -> str:
    """Return which native module has the kernels of a module of this room.

    >>> group_of("segments.nodes"), group_of("clusters.family")
    ('product', 'papers')
    """
    for group, names in GROUPS.items():
        if f"{module}.".startswith(tuple(f"{name}." for name in names)):
            return group
    return "product"


def file_name(group: str, level: str) -> str:
    """Return the name of a native module."""
    return f"{'native' if group == 'product' else group}-{level}.abi3.so"


def reason(group: str) -> str:
    """Say why native code of a group runs, or why none does."""
    load(group)
    return _reasons[group]


@functools.cache
def load(group: str) -> Native | None:
    """Return the native module of a group for this processor; None if there is none that can be used."""
    refused = []
    try:
        wanted = wanted_levels()
    except RefusedError as error:
        _reasons[group] = str(error)
        return None
    for level in wanted:
        name = file_name(group, level)
        try:
            content = read(FOLDER / name)
            if content is None:
                continue
            found = _load(content, name, group, level)
        except RefusedError as error:
            refused.append(str(error))
            continue
        _reasons[group] = "; ".join([*refused, "the best level that is there for this processor"])
        return found
    _reasons[group] = "; ".join(refused) or f"no native code has been built for this processor ({wanted[0]})"
    return None


def wanted_levels() -> list[str]:
    """Return the levels that may be loaded, best first."""
    chosen = os.environ.get("TOCSIN_NATIVE", "1")
    if chosen in ("0", "build", "record"):
        raise RefusedError(f"TOCSIN_NATIVE={chosen}")
    if "t" in sys.abiflags:
        raise RefusedError("free-threaded Python has no stable binary interface yet")
    levels = host_levels()
    if not levels:
        raise RefusedError("native code is built for Linux on x86-64-v2 and later")
    if chosen in LEVELS and chosen not in levels:
        raise RefusedError(f"TOCSIN_NATIVE={chosen}, which this processor cannot execute")
    return [chosen] if chosen in LEVELS else levels


@functools.cache
def host_levels() -> list[str]:
    """Return the levels whose code this processor executes, best first."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return []
    features = _numpy_features()
    if features is not None:
        return [level for level, needed in LEVELS.items() if all(features[name] for name in needed)]
    flags, found = _linux_flags(), list[str]()
    for level, needed in FLAGS.items():
        if not flags.issuperset(needed.split()):
            break
        found.insert(0, level)
    return found


def _numpy_features() -> dict[str, bool] | None:
    """Return what NumPy found out by asking the processor itself; None from a NumPy that asks less than we need."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features  # type: ignore[import-not-found]
    except ImportError:
        return None
    known = all(name in features for needed in LEVELS.values() for name in needed)
    return dict(features) if known else None


def _linux_flags() -> set[str]:
    """Return the features of the processor as Linux lists them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return set()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return set(line.partition(":")[2].split())


def read(file: Path) -> bytes | None:
    """Return the content of a file of this package, which may lie in a zip; None if there is none."""
    loader: Any = __spec__.loader
    try:
        content: bytes = loader.get_data(str(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        if not error.errno:  # what `zipimport` raises
            return None
        raise RefusedError(f"{file.name} cannot be read: {error.strerror}") from error
    return content


def described(file: Path) -> dict[str, Any]:
    """Return the description at the end of a native module whose digest is right.

    Raises `RefusedError` for anything else; nothing is executed.
    """
    content = read(file)
    if content is None:
        raise RefusedError(f"{file.name} cannot be read: there is none")
    return _description(content, file.name)


def _description(content: bytes, name: str) -> dict[str, Any]:
    if len(content) < TAIL or not content.endswith(MAGIC) or not content.startswith(b"\x7fELF"):
        raise RefusedError(f"{name} is not a native module of Tocsin, or not all of one")
    end = len(content) - len(MAGIC) - 32
    if hashlib.sha256(memoryview(content)[:end]).digest() != content[end : end + 32]:
        raise RefusedError(f"{name} is damaged: its digest is another")
    length = int.from_bytes(content[end - 8 : end], "little")
    try:
        found = json.loads(content[end - 8 - length : end - 8])
    except ValueError as error:
        raise RefusedError(f"{name} has no description") from error
    if not isinstance(found, dict) or found.get("interface") != INTERFACE:
        raise RefusedError(f"{name} was built for another version of Tocsin")
    return found


def sealed(code: bytes, description: dict[str, Any]) -> bytes:
    """Return the content of a native module: machine code, its description and the digest."""
    text = json.dumps({"interface": INTERFACE, **description}, sort_keys=True).encode()
    content = code + text + len(text).to_bytes(8, "little")
    return content + hashlib.sha256(content).digest() + MAGIC


def _load(content: bytes, file: str, group: str, level: str) -> Native:
    """Load a native module whose content is this, once it has been checked."""
    about = _description(content, file)
    if (about.get("group"), about.get("level")) != (group, level):
        raise RefusedError(f"{file} has the code of {about.get('group')}, {about.get('level')}")
    name = f"{__name__}.native"
    try:
        path = str(FOLDER / file) if FOLDER.is_dir() else _in_memory(content, file)
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module: Any = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except (ImportError, OSError) as error:
        raise RefusedError(f"{file} cannot be loaded: {error}") from error
    if module.identity != about["identity"]:
        raise RefusedError(f"{file} is not the module that it describes")
    return Native(level, FOLDER / file, about["sources"], about["identity"], module.bind, module.entries)


def _in_memory(content: bytes, name: str) -> str:
    """Return the path of a file in memory: what lies in a zip is loaded without a place to write to.

    It stays open: a later one would get the same number, and the linker knows files by their path.
    """
    descriptor = os.memfd_create(name)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return f"/proc/self/fd/{descriptor}"
