"""Saves that are killed, that meet other saves, and that may not write: run as a program, in a process that may fork.

Each function prints one line for what it found; the tests read them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tocsin import Matcher, Number, Space, Text, TocsinError
from tocsin.index import Boxes, Index, create
from tocsin.index.saved import open_saved, save

EVENT = {"price": 5, "city": "NYC"}


def matcher_of(name: str, count: int) -> Matcher:
    matcher = Matcher(Space({"price": Number(), "city": Text()}))
    for at in range(count):
        matcher.subscribe(f"{name} {at}", "price < 10 AND city LIKE '%Y%'" if at % 2 else f"price < {at + 6}")
    return matcher


def in_child(work: Callable[[], None]) -> int:
    """Do something in a forked process; return how it ended: 0, or less by the signal that killed it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(point: int, directory: Path) -> None:
    """Have this process killed when it is about to touch a file of the directory for the n-th time."""
    touched = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal touched
        if event in ("open", "os.rename", "os.remove") and str(arguments[0]).startswith(str(directory)):
            touched += 1
            if touched == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def strays(directory: Path) -> int:
    """Return how many files there are that the manifest does not name."""
    manifest = json.loads((directory / "manifest.json").read_text())
    named = {one["file"] for one in manifest["body"]["arrays"].values()} | {"manifest.json"}
    return len({file.name for file in directory.iterdir()} - named)


def index_of(*bounds: int) -> Index:
    """Return an index of a few boxes: the fewer files a save writes, the sooner it is killed at each of them."""
    index = create("scan")
    index.insert(np.arange(len(bounds), dtype=np.int32), Boxes.of([{0: [(0, bound)]} for bound in bounds]))
    return index


def killed(directory: Path) -> None:
    """Kill a save at each of its steps, over an index that is there and where there is none."""
    held = {"old": index_of(1, 2), "new": index_of(3, 4, 5)}
    for fresh in (False, True):
        found: dict[str, int] = {}
        ended, point = -signal.SIGKILL, 0
        while ended == -signal.SIGKILL and point < 1_000:
            point += 1
            shutil.rmtree(directory, ignore_errors=True)
            if not fresh:
                save(held["old"], directory, {"name": "old"})

            def work() -> None:
                kill_at(point, directory)  # noqa: B023
                save(held["new"], directory, {"name": "new"})

            ended = in_child(work)
            try:
                loaded = open_saved(directory)
                expected, name = held[loaded.notes["name"]].contents(), loaded.notes["name"]
                outcome = name if repr(loaded.index.contents()) == repr(expected) else "wrong"
            except TocsinError as error:
                outcome = "none" if "there is no index here" in str(error) else str(error)
            found[outcome] = found.get(outcome, 0) + 1
            save(held["old"], directory)
            if strays(directory):
                found["strays"] = strays(directory)
        print("killed", json.dumps({"fresh": fresh, "ended": ended, "points": point, "found": found}))


def at_once(directory: Path) -> None:
    """Have two processes save to one place while this one loads."""
    held = [matcher_of(name, 20) for name in "ab"]
    held[0].save(directory, note="a")
    children = []
    for matcher, note in zip(held, "ab", strict=True):
        child = os.fork()
        if child == 0:
            for _ in range(8):
                matcher.save(directory, note=note)
            os._exit(0)
        children.append(child)
    loads, ended = 0, []
    while len(ended) < len(children):
        loaded = Matcher.load(directory)
        assert list(loaded) == list(held["ab".index(loaded.note)]), loaded.note
        loads += 1
        found = os.waitpid(-1, os.WNOHANG)
        ended += [os.waitstatus_to_exitcode(found[1])] if found[0] else []
    print("at_once", json.dumps({"ended": ended, "loads": loads > 0, "strays": strays(directory)}))


def forbidden(_: Path) -> None:
    """Save where this user may not write, and load what it may not read."""
    directory = Path(tempfile.mkdtemp())
    matcher = matcher_of("a", 10)
    matcher.save(directory / "held")
    directory.chmod(0o555)
    (directory / "held").chmod(0o555)
    file = max((directory / "held").glob("*.npy"))
    file.chmod(0)
    reading, writing = os.pipe()

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65534)
        said = []
        for way in (
            lambda: matcher.save(directory / "held"),
            lambda: matcher.save(directory / "new"),
            lambda: Matcher.load(directory / "held"),
        ):
            try:
                way()
                said.append("nothing was raised")
            except TocsinError as error:
                said.append(
                    f"{type(error).__name__}: {error}".replace(str(directory), "PLACE").replace(file.name, "FILE")
                )
        os.write(writing, json.dumps(said).encode())

    ended = in_child(work)
    os.close(writing)
    with os.fdopen(reading) as answers:
        print("forbidden", json.dumps({"ended": ended, "said": json.loads(answers.read() or "[]")}))
    directory.chmod(0o755)
    (directory / "held").chmod(0o755)
    shutil.rmtree(directory)


if __name__ == "__main__":
    for name in ("killed", "at_once", "forbidden"):
        globals()[name](Path(sys.argv[1]) / name)
