"""The tests of this room share one Spark session, and so one worker of pytest-xdist."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

_NOT_RUN: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep these tests on one worker where they are spread: two sessions would only compete.

    Where there is no Maven, what needs its artefacts cannot run; that is told at the end.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
    if shutil.which("mvn") is None:
        lost = [item for item in items if item.get_closest_marker("maven")]
        if lost:
            _NOT_RUN.extend(item.nodeid for item in lost)
            config.hook.pytest_deselected(items=lost)
            items[:] = [item for item in items if item not in lost]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not run for want of Maven."""
    if _NOT_RUN:
        terminalreporter.section("NOT RUN: no mvn is on the PATH, which fetches Kafka, Delta and their connectors")
        for name in _NOT_RUN:
            terminalreporter.line(name)
