"""Functions for processes of their own, at the top of a module so that those can import them."""

from __future__ import annotations

import enum
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class Pair(NamedTuple):
    """A tuple that is more than one."""

    kind: str
    count: int


class Size(enum.IntEnum):
    """A number that is more than one."""

    LARGE = 7


class Bomb:
    """A value that ends whoever takes it in."""

    def __reduce__(self) -> Any:
        return os._exit, (9,)


def does(what: str, argument: Any = None) -> Any:
    """Do what is asked."""
    return _DEEDS[what](argument)


def loops(ignoring: Any) -> None:
    """Never end, not even when asked to."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(0.1)


def forks(path: str) -> None:
    """Leave a child behind that does not end, tell its number, and do not end either."""
    child = os.fork()
    while child == 0:
        time.sleep(1)
    Path(path).write_text(str(child))
    loops(None)


def leaves(path: str) -> None:
    """Leave a child behind that does not end, tell its number, and die."""
    child = os.fork()
    while child == 0:
        time.sleep(1)
    Path(path).write_text(str(child))
    os._exit(3)


def meets(paths: tuple[str, str]) -> bool:
    """Wait for another call that does the same the other way round."""
    mine, other = map(Path, paths)
    mine.touch()
    while not other.exists():
        time.sleep(0.01)
    return True


def floods(lines: int) -> int:
    """Write a lot to both outputs."""
    for _ in range(lines):
        print("x" * 100)
        print("y" * 100, file=sys.stderr)
    return lines


def interrupts(process: int) -> None:
    """Press Ctrl-C in the process that asked, and do not end."""
    os.kill(process, signal.SIGINT)
    loops(None)


_DEEDS: dict[str, Any] = {
    "returns": lambda value: value,
    "raises": lambda value: [][1],
    "exits": lambda value: sys.exit(4),
    "dies": lambda value: os._exit(3),
    "crashes": lambda value: os.kill(os.getpid(), signal.SIGSEGV),
    "loops": loops,
    "forks": forks,
    "leaves": leaves,
    "meets": meets,
    "floods": floods,
    "interrupts": interrupts,
    "kills its parent": lambda value: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(600),
    "tells": lambda value: (os.getppid(), os.getpid()),
    "lambda": lambda value: does.__call__ and (lambda: 1),
    "bomb": lambda value: [Bomb()],
    "pair": lambda value: [Pair("tug", Size.LARGE)],
    "random": lambda value: __import__("numpy").random.random(),
}


def loaded() -> dict[str, int]:
    """Load something, and note where."""
    return {"loaded in": os.getpid()}


def tells(resource: dict[str, int], x: float) -> tuple[int, int]:
    """Say where the resource was loaded and where this runs; never end for a negative number."""
    if x < 0:
        loops(None)
    return resource["loaded in"], os.getpid()
