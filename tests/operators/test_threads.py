"""Threads: how many calls run at once, that none is left when a matcher is gone, and that nobody waits for himself."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from typing import Any

import pyarrow as pa
import pytest

import tocsin
from tocsin.operators.isolation import _Thread
from tocsin.operators.running import MOST_AT_ONCE

SPACE = tocsin.Space({"x": tocsin.Number()})


def threads_of(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"tocsin-{name}"]


@pytest.mark.parametrize("kind", ["limited", "waiting"])
def test_threads_of_an_operator_end_with_its_matcher(kind: str) -> None:
    if kind == "limited":
        limited = tocsin.operator(lambda x: x > 0, name="limited", reads=["x"], limit=60)
    else:

        @tocsin.operator(name="waiting", reads=["x"])
        async def limited(x: float) -> bool:
            return x > 0

    matcher = tocsin.Matcher(SPACE, operators=[limited])
    matcher.subscribe(1, f"{kind}()")
    assert matcher.match({"x": 1}) == [1]
    (thread,) = threads_of(kind)
    del matcher
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    again = tocsin.Matcher(SPACE, operators=[limited])
    again.subscribe(1, f"{kind}()")
    assert again.match({"x": 1}) == [1], "the operator goes on working elsewhere"


_SCRIPT = """
import warnings; warnings.simplefilter("error", ResourceWarning)
import gc, threading
import pyarrow as pa
import tocsin

def work(name):
    limited = tocsin.operator(lambda x: x > 0, name="limited_" + name, reads=["x"], limit=60)

    @tocsin.operator(name="waiting_" + name, reads=["x"])
    async def waiting(x):
        return x > 0

    space = tocsin.Space({"x": tocsin.Number()})
    matcher = tocsin.Matcher(space, operators=[limited, waiting], threads=2)
    matcher.subscribe(1, f"limited_{name}() AND waiting_{name}()")
    assert matcher.match_batch(pa.table({"x": [1.0, -1.0] * 10})).num_rows == 10
    return matcher

held, gone = work("held"), work("gone")
threads = [thread for thread in threading.enumerate() if thread.name.endswith("_gone")]
assert len(threads) == 2, threads
del gone
gc.collect()
for thread in threads:
    thread.join(60)
assert not any(thread.is_alive() for thread in threads)
"""


def test_nothing_is_left_open_in_development_mode() -> None:
    done = subprocess.run([sys.executable, "-X", "dev", "-c", _SCRIPT], capture_output=True, text=True, timeout=600)
    assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr


def test_so_many_async_calls_run_at_once_and_no_more() -> None:
    running: list[int] = [0, 0]

    @tocsin.operator(reads=["x"])
    async def waits(x: float) -> bool:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0)
        running[0] -= 1
        return x > 0

    matcher = tocsin.Matcher(SPACE, operators=[waits])
    matcher.subscribe(1, "waits()")
    count = 2 * MOST_AT_ONCE + 10
    assert matcher.match_batch(pa.table({"x": [1.0] * count})).num_rows == count
    assert running[1] == MOST_AT_ONCE


@pytest.mark.parametrize("limit", [None, 60])
def test_an_operator_may_match_tables_with_the_matcher_that_asks_it(limit: float | None) -> None:
    @tocsin.operator(reads=["x"], limit=limit)
    def looks_up(x: float) -> bool:
        return matcher.match_batch(pa.table({"x": [1.0] * 20_000})).num_rows == 20_000

    matcher = tocsin.Matcher(SPACE, operators=[looks_up], threads=2)
    matcher.subscribe("plain", "x > 0")
    matcher.subscribe("asked", "x > 1 AND looks_up()")
    found: list[Any] = []
    events = pa.table({"x": [2.0, *[-1.0] * 16_383, 3.0]})
    thread = threading.Thread(target=lambda: found.extend(matcher.match_batch(events).to_pylist()), daemon=True)
    thread.start()
    thread.join(120)
    assert [(each["event"], each["subscription"]) for each in found if each["subscription"] == "asked"] == [
        (0, "asked"),
        (16_384, "asked"),
    ]


def test_errors_of_tasks_reach_who_asked() -> None:
    @tocsin.operator(reads=["x"], on_failure="error")
    def insists(x: float) -> bool:
        if x < 0:
            raise ValueError("negative")
        return True

    matcher = tocsin.Matcher(SPACE, operators=[insists], threads=2)
    matcher.subscribe(1, "insists()")
    values: list[Any] = [1.0] * 20_000
    values[17_000] = -1.0
    with pytest.raises(tocsin.TocsinError, match="row 17000, operator insists"):
        matcher.match_batch(pa.table({"x": values}))


def test_who_waits_for_a_thread_to_end_goes_on_when_it_has() -> None:
    thread = _Thread("waited-for")
    assert thread.run(thread.join, (60.0,), 30.0) == (True, None), "a thread does not wait for itself"
    thread.leave()
    thread.join(60.0)
    assert not thread._thread.is_alive()
