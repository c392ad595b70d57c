"""Drivers that are killed with -9 at random points and started again, for the tests of every stream."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_with_kills(module: str, folder: Path, kills: int, pick: random.Random, change: Callable[[], object]) -> None:
    """Run a driver (``python -m module folder``) to its end, killed so often at random points before that; after each
    kill, ``change`` changes what it reads.

    A driver says ``started`` when its stream runs and ``done`` when nothing is left to read. A point is a moment of one
    of the next batches, by the stream's own log, so that a fast machine and a slow one are killed at like points; the
    files must last for three batches a kill and some more.
    """
    batches, killed = folder / "checkpoint" / "offsets", 0
    for _ in range(kills):
        driver = _start(module, folder)
        assert _said(driver, "started"), _log(folder)
        awaited = len(_numbers(batches)) + pick.randrange(-1, 2)
        moment = pick.uniform(0, 0.6)
        while driver.poll() is None and awaited >= 0 and str(awaited) not in _numbers(batches):
            time.sleep(0.01)
        time.sleep(moment)
        if driver.poll() is None:
            _kill(driver)
            killed += 1
            change()
    assert killed, "the driver was done before it could be killed"
    driver = _start(module, folder)
    assert _said(driver, "done"), _log(folder)
    driver.wait(timeout=600)


def _numbers(log: Path) -> set[str]:
    """Return the batches that a stream has begun."""
    return {file.name for file in log.glob("[0-9]*")}


def batch_files(folder: Path, batch: int) -> list[Path]:
    """Return the files of a batch: those that the source has logged up to its offset, and not up to the one before.

    A driver killed after the source has logged a file, but before the batch is, leaves that file to the next try, which
    finds one more: so a batch may have two. Every tenth log of the source holds the entries of all before it too.
    """
    first, last = (_offset(folder, number) for number in (batch - 1, batch))
    logs, entries = folder / "checkpoint" / "sources" / "0", dict[str, int]()
    for log in logs.glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            entry = json.loads(line)
            entries[entry["path"]] = entry["batchId"]
    return [Path(path.removeprefix("file://")) for path, number in entries.items() if first < number <= last]


def _offset(folder: Path, batch: int) -> int:
    """Return up to which entry of its log the source was read in a batch; -1 before the first."""
    if batch < 0:
        return -1
    *_, offset = (folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()
    return int(json.loads(offset)["logOffset"])


def _start(module: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", module, str(folder)]
    with (folder / "driver.log").open("a") as log:
        return subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )


def _said(process: subprocess.Popen[str], word: str) -> bool:
    """Read what a driver says until the word; return whether it came."""
    assert process.stdout is not None
    return any(line.strip() == word for line in process.stdout)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the driver, its Java and its workers at once, as a lost machine would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _log(folder: Path) -> str:
    return (folder / "driver.log").read_text()[-3000:]
