"""What counts as a core that stood still: that a process which only sleeps could not wake up there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tocsin.bench.stillness import LEAST, Stillness

STOPPED = 10 * LEAST


def test_a_core_stands_still_when_its_sleeper_cannot_wake_up() -> None:
    with Stillness() as still:
        time.sleep(LEAST)
        began = time.perf_counter()
        os.kill(still._sleepers[0].pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(still._sleepers[0].pid, signal.SIGCONT)
        ended = time.perf_counter()
    assert still.within(began, ended) >= STOPPED * 0.8
    assert still.total >= still.longest >= STOPPED * 0.8


def test_a_core_that_is_busy_does_not_stand_still() -> None:
    """Four programs on each core of this process, all in need of it."""
    core = min(os.sched_getaffinity(0))
    busy = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    programs = [subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        with Stillness() as still:
            time.sleep(1.0)
    finally:
        for program in programs:
            program.kill()
            program.communicate()
    assert still.total < 0.5  # a virtual machine may well stop it for a while


def test_sleepers_end_with_it() -> None:
    with Stillness() as still:
        sleepers = still._sleepers
        assert all(sleeper.poll() is None for sleeper in sleepers)
    assert all(sleeper.poll() is not None for sleeper in sleepers)
