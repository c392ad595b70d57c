"""A pytest plugin for `scripts/mutants`: which lines of a room does each test execute, and how long does it take?

EXECUTED_LINES is `room:file`; the file becomes JSON: `{"src/tocsin/room/x.py:12": {"tests/...::test": seconds}}`. With
xdist each worker writes a file of its own, with its name behind a dot.
Lines that run while modules are imported are counted for every test of the first file that needs them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOM, _, OUTPUT = os.environ.get("EXECUTED_LINES", "").partition(":")
FOLDER = str(ROOT / "src" / "tocsin" / ROOM) + os.sep

_current: set[tuple[str, int]] = set()
_imported: set[tuple[str, int]] = set()
_by_line: dict[str, dict[str, float]] = {}
_failed: set[str] = set()


def _trace(frame: FrameType, event: str, argument: Any) -> Any:
    if not frame.f_code.co_filename.startswith(FOLDER):
        return None
    _current.add((frame.f_code.co_filename, frame.f_lineno))
    return _trace


def pytest_configure() -> None:
    sys.settrace(_trace)
    threading.settrace(_trace)


def pytest_collection_finish() -> None:
    _imported.update(_current)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _current.clear()
    sys.settrace(_trace)
    begun = time.perf_counter()
    yield
    seconds = time.perf_counter() - begun
    for file, line in list(_current):  # threads that a test left behind go on adding to it
        place = f"{Path(file).relative_to(ROOT)}:{line}"
        _by_line.setdefault(place, {})[item.nodeid] = round(seconds, 3)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    sys.settrace(None)
    for tests in _by_line.values():  # a test that fails anyway notices nothing
        for test in _failed & tests.keys():
            del tests[test]
    seconds = {test: took for tests in _by_line.values() for test, took in tests.items()}
    fastest = sorted(seconds, key=seconds.__getitem__)[:400]
    for file, line in _imported:
        place = f"{Path(file).relative_to(ROOT)}:{line}"
        _by_line.setdefault(place, {test: seconds[test] for test in fastest})
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    Path(f"{OUTPUT}.{worker}" if worker else OUTPUT).write_text(json.dumps(_by_line))
