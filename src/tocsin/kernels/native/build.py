"""Builds the native kernels: ``python -m tocsin.kernels.native.build [GROUP ...] [--level LEVEL]``.

Every kernel in `signatures.txt` is compiled by Numba for a level of processors, its optimised module reduced to what
the kernel needs and written as position-independent object code (`emit.py`, in processes of its own); a C compiler
(``CC``) links all of them with `dispatcher.c` into one extension module. Object files are kept and named by what they
were compiled from, so that a build compiles what has changed and no more.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.kernels import native
from tocsin.kernels.compile import ROOM, fingerprint
from tocsin.kernels.native import signatures
from tocsin.kernels.native.entries import header

DISPATCHER = native.FOLDER / "dispatcher.c"
OBJECTS = ROOM.parents[2] / "build" / "native"
"""Where object files are kept, in a clone."""

EMISSION = 1
"""Part of the name of every object file; another number compiles all of them anew."""

GROUPS = tuple(native.GROUPS)


class Target(NamedTuple):
    """A level of processors, by the names that LLVM has for it."""

    cpu: str
    features: str


TARGETS = {
    "v2": Target("x86-64-v2", ""),
    "v3": Target("x86-64-v3", ""),
    "v4-vbmi": Target("x86-64-v4", "+avx512vbmi,+avx512vbmi2,+avx512bitalg,+avx512vpopcntdq"),
}


class Line(NamedTuple):
    """A kernel, and the types that it is called with."""

    kernel: str
    types: str

    @property
    def module(self) -> str:
        """The module of the kernel within the room."""
        return self.kernel.rpartition(".")[0]

    @property
    def symbol(self) -> str:
        """The name of its machine code."""
        return f"tocsin_{sha256(f'{self.kernel}: {self.types}'.encode()).hexdigest()[:16]}"

    def key(self, level: str) -> str:
        """Return what two compilations have equal only if they give the same code."""
        tools = [metadata.version(name) for name in ("numba", "llvmlite")]
        text = f"{EMISSION} {_sources(self.module)} {tools} {TARGETS[level]} {self.kernel}: {self.types}"
        return sha256(text.encode()).hexdigest()[:32]


def _sources(module: str) -> str:
    return fingerprint(ROOM.joinpath(*module.split(".")).with_suffix(".py"))


def lines(group: str) -> list[Line]:
    """Return what `signatures.txt` lists for a group: kernels in order, and of each what fits fewer arguments first."""
    listed = [Line(*call) for call in signatures.listed()]
    ours = [line for line in listed if native.group_of(line.module) == group]
    return sorted(ours, key=lambda line: (line.kernel, line.types.count("[:]"), line.types.count("const "), line.types))


def identity(group: str, level: str) -> str:
    """Return what two native modules have equal only if they are built from the same."""
    parts = [(native.FOLDER / name).read_text(encoding="utf-8") for name in ("dispatcher.c", "entries.py")]
    return sha256("\0".join([*parts, *(line.key(level) for line in lines(group))]).encode()).hexdigest()


def is_built(group: str, level: str) -> bool:
    """Return whether the native module of a level is there, whole, and built from what the sources say now."""
    try:
        found = native.described(native.FOLDER / native.file_name(group, level))
    except native.RefusedError:
        return False
    return bool(found["identity"] == identity(group, level))


def what_is_missing() -> str | None:
    """Say what must be installed to build; None if everything is there."""
    if shutil.which(compiler()[0]) is None:
        return "a C compiler (Debian and Ubuntu: apt install gcc), or CC set to the command of one"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "Python's headers (Debian and Ubuntu: apt install python3-dev)"
    return None


def compiler() -> list[str]:
    """Return the command of the C compiler."""
    return shlex.split(os.environ.get("CC") or "cc")


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Progress = Callable[[int, int, str], None]


def build(
    group: str, level: str, *, jobs: int, progress: Progress, wheel: Path | None = None, folder: Path = OBJECTS
) -> Path:
    """Build the module of a group and a level; what ``folder`` has of an earlier build is used again.

    For a ``wheel`` it is put there instead of beside the sources, which it is then never compared with.
    """
    output = (wheel or native.FOLDER) / native.file_name(group, level)
    folder.mkdir(parents=True, exist_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    ours = lines(group)
    missing = [line for line in ours if not (folder / f"{line.key(level)}.json").exists()]
    if missing:
        _emit(missing, level, folder, jobs, progress)
    sources = (
        None if wheel is not None else {module: _sources(module) for module in sorted({line.module for line in ours})}
    )
    unique = identity(group, level)
    description = {"group": group, "level": level, "identity": unique, "sources": sources}
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        linked = Path(temporary, output.name)
        _link(ours, level, folder, linked, unique)
        whole = Path(temporary, "whole")
        whole.write_bytes(native.sealed(linked.read_bytes(), description))
        # Another process may run what is there, or build the same.
        replacement = output.with_name(f"{output.name}.{os.getpid()}")
        shutil.copyfile(whole, replacement)
        replacement.replace(output)
    return output


def _emit(missing: list[Line], level: str, folder: Path, jobs: int, progress: Progress) -> None:
    """Compile kernels in processes that compile for the level and not for this machine."""
    environment = os.environ | {
        "NUMBA_CPU_NAME": TARGETS[level].cpu,
        "NUMBA_CPU_FEATURES": TARGETS[level].features,
        "NUMBA_DISABLE_JIT": "0",
        "TOCSIN_NATIVE": "build",
    }
    command = [sys.executable, "-m", "tocsin.kernels.native.emit", json.dumps([*TARGETS[level]]), str(folder)]

    def message(line: Line) -> list[str]:
        return [line.kernel, line.types, line.symbol, line.key(level)]

    if not in_processes(missing, message, command, environment, jobs, progress):
        raise SystemExit("The kernels could not be compiled; what went wrong stands above.")


def in_processes(
    lines: list[Line],
    message: Callable[[Line], list[str]],
    command: list[str],
    environment: dict[str, str],
    jobs: int,
    progress: Progress,
) -> bool:
    """Give kernels to processes that read a message for each and answer with a line; return whether all did."""
    by_module: dict[str, list[Line]] = {}
    for line in lines:
        by_module.setdefault(line.module, []).append(line)
    waiting = sorted(by_module.values(), key=len)  # the longest first; kernels of a module share what they call
    done, failed, lock = 0, threading.Event(), threading.Lock()

    def work() -> None:
        nonlocal done
        with subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            while waiting and not failed.is_set():
                for line in waiting.pop():
                    process.stdin.write(json.dumps(message(line)) + "\n")
                    process.stdin.flush()
                    if not process.stdout.readline():
                        failed.set()
                        return
                    with lock:
                        done += 1
                        progress(done, len(lines), line.kernel)
            process.stdin.close()

    progress(0, len(lines), "")
    threads = [threading.Thread(target=work) for _ in range(min(jobs, len(by_module)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return not failed.is_set()


def _link(ours: list[Line], level: str, folder: Path, output: Path, build_identity: str) -> None:
    """Compile the dispatcher and link it with the object files."""
    import numpy

    entries = [json.loads((folder / f"{line.key(level)}.json").read_text()) for line in ours]
    (output.parent / "entries.h").write_text(header(build_identity, ours, entries))
    includes = [sysconfig.get_paths()["include"], numpy.get_include(), str(output.parent)]
    command = [*compiler(), "-std=c11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]
    command += ["-Wno-unused-parameter", *(f"-I{each}" for each in includes), str(DISPATCHER)]
    command += [str(folder / f"{line.key(level)}.o") for line in ours]
    command += ["-Wl,--gc-sections", "-Wl,-z,noexecstack", "-Wl,-s", "-lm", "-o", str(output)]
    subprocess.run(command, check=True)


def show(done: int, total: int, kernel: str) -> None:
    """Show progress on stderr: a bar on a terminal, a line for every tenth elsewhere."""
    if sys.stderr.isatty():
        bar = "#" * (30 * done // total)
        end = "\n" if done == total else ""
        print(
            f"\r\x1b[Kcompiling kernels [{bar:30}] {done}/{total} {kernel[:40]}", end=end, file=sys.stderr, flush=True
        )
    elif done == total or done * 10 // total != (done - 1) * 10 // total:
        print(f"compiling kernels: {done}/{total}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Build, as the command line says."""
    host: Any = native.host_levels()[:1]
    parser = argparse.ArgumentParser(description="Build the native kernels.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)} (default: all)")
    parser.add_argument("--level", choices=TARGETS, action="append", help="default: the best of this machine")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one a core)")
    parser.add_argument("--wheel", type=Path, metavar="DIR", help="put it here, for a wheel: its sources do not change")
    options = parser.parse_args(arguments)
    groups, levels = options.groups or GROUPS, options.level or host
    if not set(groups) <= set(GROUPS):
        parser.error(f"the groups are {', '.join(GROUPS)}")
    if not levels:
        parser.error("native code is built for Linux on x86-64-v2 and later")
    missing = what_is_missing()
    if missing is not None:
        raise SystemExit(f"To build native kernels install {missing}. Until then Numba compiles them.")
    for group in groups:
        for level in levels:
            if options.wheel is None and is_built(group, level):
                print(f"{native.file_name(group, level)} is up to date", file=sys.stderr)
                continue
            output = build(group, level, jobs=options.jobs, progress=show, wheel=options.wheel)
            print(f"{output.name}: {output.stat().st_size / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
