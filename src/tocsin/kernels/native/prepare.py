"""Makes kernels ready before they are needed: ``python -m tocsin.kernels.native.prepare GROUP ...``, as `make` does.

In a clone native code is built for this processor, once, on all cores; while the kernels stay the same nothing is done.
Where it cannot be built, because there is no C compiler or another processor, Numba's cache is filled instead with the
same kernels. Neither is needed for correct answers: whatever fails here is told, and compiled later when it is called.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from hashlib import sha256

from tocsin.kernels import native
from tocsin.kernels.native import build
from tocsin.kernels.native.signatures import PACKAGE, from_text


def prepare(groups: list[str], jobs: int) -> None:
    """Build the native modules of some groups, or fill Numba's cache with their kernels and say why."""
    level, why = _level()
    if why is None:
        try:
            for group in groups:
                if not build.is_built(group, level):
                    print(f"Building native kernels ({group}, {level}), once", file=sys.stderr)
                    build.build(group, level, jobs=jobs, progress=build.show)
            return
        except (OSError, subprocess.CalledProcessError, SystemExit) as error:
            why = f"they could not be built: {error}"
    for group in groups:
        _fill_cache(group, jobs, why)


def _level() -> tuple[str, str | None]:
    """Return the level of this processor, and why native code cannot be built for it."""
    try:
        levels = native.wanted_levels()
    except native.RefusedError as error:
        return "", str(error)
    missing = build.what_is_missing()
    return levels[0], None if missing is None else f"to have them native, install {missing}"


def _fill_cache(group: str, jobs: int, why: str) -> None:
    """Have Numba compile the kernels of a group in processes of their own, and remember that it did."""
    lines = build.lines(group)
    remembered = build.OBJECTS / f"numba-{group}"
    identity = sha256("".join(line.key("v2") for line in lines).encode()).hexdigest()
    if remembered.exists() and remembered.read_text() == identity:
        return
    print(f"Numba compiles the kernels ({group}), once; {why}", file=sys.stderr)
    environment = os.environ | {"TOCSIN_NATIVE": "0", "TOCSIN_NOTICES": "0"}
    command = [sys.executable, "-m", f"{PACKAGE}.native.prepare", "--process"]
    if build.in_processes(lines, list, command, environment, jobs, build.show):
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.write_text(identity)
    else:
        print("What Numba has not compiled it will compile when it is called.", file=sys.stderr)


def _compile_lines() -> None:
    """Compile what standard input names into Numba's cache: as listed, and for arrays that may be written to, since
    Numba's cache does not take one for the other."""
    for text in sys.stdin:
        kernel, types = json.loads(text)
        module, _, name = kernel.rpartition(".")
        held = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
        for each in sorted({types, types.replace("const ", "")}):
            held.compile(from_text(each))
        print(kernel, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Prepare what the command line names."""
    parser = argparse.ArgumentParser(description="Make kernels ready: native, or in Numba's cache.")
    parser.add_argument("groups", nargs="*", choices=[*build.GROUPS, []], metavar="GROUP")
    parser.add_argument("--jobs", type=int, default=build.cores(), help="processes (default: one a core)")
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.process:
        _compile_lines()
    else:
        prepare(options.groups, options.jobs)


if __name__ == "__main__":
    main()
