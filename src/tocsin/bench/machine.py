"""What a measurement was made on and with, so that its figures can be read later."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "numba", "pyarrow", "duckdb", "pyspark")


def describe(command: str, seed: int) -> dict[str, Any]:
    """Return the machine, the versions, the date, the seed and the command line as plain values.

    >>> sorted(describe("tocsin bench engines", 4089))[:4]
    ['command', 'cores', 'date', 'load']
    """
    return {
        "command": command,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": seed,
        "revision": revision(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def processor() -> str:
    """Return the name of the processor."""
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def revision() -> str | None:
    """Return the commit that the running sources are of, with a ``+`` when they differ from it."""
    here = Path(__file__).parent
    try:
        asked = ("git", "-C", str(here))
        number = subprocess.run([*asked, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run(
            [*asked, "status", "--porcelain", "--", str(here.parent)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return number.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _memory() -> float | None:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
