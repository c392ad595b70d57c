"""What counts as the machine standing still: that no process could wake up, on no core."""

from __future__ import annotations

import os
import signal
import time

from tocsin.bench.stillness import LEAST, Stillness

STOPPED = 10 * LEAST


def stopped(pids: list[int]) -> tuple[float, float]:
    """Stop processes for a while; return when."""
    began = time.perf_counter()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return began, time.perf_counter()


def test_a_standstill_is_when_every_process_was_stopped() -> None:
    with Stillness() as still:
        began, ended = stopped([sleeper.pid for sleeper in still._sleepers])
    assert still.within(began, ended) >= STOPPED * 0.8
    assert still.total >= still.longest >= STOPPED * 0.8


def test_a_core_that_is_busy_is_no_standstill() -> None:
    with Stillness() as still:
        pids = [sleeper.pid for sleeper in still._sleepers]
        began, ended = stopped(pids[:1])
    assert len(pids) == 1 or still.within(began, ended) < STOPPED * 0.8


def test_sleepers_end_with_it() -> None:
    with Stillness() as still:
        sleepers = still._sleepers
        assert all(sleeper.poll() is None for sleeper in sleepers)
    assert all(sleeper.poll() is not None for sleeper in sleepers)
