"""Functions in processes of their own: whatever they do, nobody waits beyond a limit, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tocsin
from tests.operators import isolated
from tocsin.errors import OperatorError
from tocsin.operators.channels import TooLongError, WrongTypeError
from tocsin.operators.processes import AGAIN, ElsewhereError, Processes
from tocsin.operators.serving import Work

LONG = 120.0
"""A limit that no call exceeds that ends at all, whatever else the machine does."""

SHORT = 0.5
"""A limit for calls that never end."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Processes]:
    yield Processes("does", Work("tests.operators.isolated", "does"), fresh=False)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(happened: Any) -> None:
    until = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def pid_in(path: Path) -> int:
    wait_for(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def test_one_that_is_killed_has_a_successor_at_once(shared: Processes) -> None:
    forker, first = shared.call(("tells",), LONG)
    for _ in range(3):
        with pytest.raises(TooLongError):
            shared.call(("loops",), SHORT)
    again, other = shared.call(("tells",), LONG)
    assert again == forker, "nothing was imported again"
    assert other != first
    wait_for(lambda: not is_alive(first))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("raises", ElsewhereError, "IndexError: list index out of range"),
        ("exits", ElsewhereError, "SystemExit: 4"),
        ("dies", ElsewhereError, "its process died, with status 3"),
        ("crashes", ElsewhereError, "its process died, by signal 11"),
        ("lambda", WrongTypeError, "<lambda>"),
        ("bomb", WrongTypeError, "posix._exit is not taken from another process"),
    ],
)
def test_what_one_does_harms_only_its_call(shared: Processes, what: str, error: type, message: str) -> None:
    for _ in range(2):
        with pytest.raises(error, match=message):
            shared.call((what,), LONG)
        assert shared.call(("returns", 5), LONG) == 5


@pytest.mark.parametrize(
    "value",
    [None, True, -(2**70), "é\0", b"\xff", float("inf"), [(1, "a"), {2}], {"a": [1.5]}, np.float32(0.5), np.int64(3)],
)
def test_plain_values_come_back_as_they_are(shared: Processes, value: Any) -> None:
    found = shared.call(("returns", value), LONG)
    assert (found, type(found)) == (value, type(value))


def test_what_derives_from_plain_types_comes_back_plain(shared: Processes) -> None:
    found = shared.call(("pair",), LONG)
    assert found == [("tug", 7)]
    assert (type(found[0]), type(found[0][1])) == (tuple, int)
    assert shared.call(("returns", np.arange(3)), LONG).tolist() == [0, 1, 2]


def test_large_arguments_and_results_pass(shared: Processes) -> None:
    large = b"x" * 5_000_000
    assert shared.call(("returns", large), LONG) == large


def test_a_process_that_takes_nothing_in_keeps_nobody_waiting(shared: Processes) -> None:
    """One call hangs in one thread; another, with arguments larger than any buffer, has a process of its own."""
    hanging = threading.Thread(target=_hangs, args=(shared, 2.0))
    hanging.start()
    assert len(shared.call(("returns", b"x" * 5_000_000), LONG)) == 5_000_000
    hanging.join()


def _hangs(processes: Processes, limit: float) -> None:
    with pytest.raises(TooLongError):
        processes.call(("loops",), limit)


def test_one_that_writes_a_lot_answers(shared: Processes) -> None:
    assert shared.call(("floods", 2_000), LONG) == 2_000


def test_threads_do_not_wait_for_each_other(shared: Processes, tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    found: list[Any] = []
    asked = [
        threading.Thread(target=lambda p=p: found.append(shared.call(("meets", p), LONG)))
        for p in ((one, other), (other, one))
    ]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    assert found == [True, True]


@pytest.mark.parametrize("what", ["forks", "leaves"])
def test_children_end_with_the_process_that_started_them(shared: Processes, tmp_path: Path, what: str) -> None:
    with pytest.raises((TooLongError, ElsewhereError)):
        shared.call((what, str(tmp_path / "child")), 5.0 if what == "forks" else LONG)
    child = pid_in(tmp_path / "child")
    wait_for(lambda: not is_alive(child))
    assert shared.call(("returns", 1), LONG) == 1


def test_an_answer_that_ctrl_c_has_cut_off_is_not_that_of_the_next_call(shared: Processes) -> None:
    with pytest.raises(KeyboardInterrupt):
        shared.call(("interrupts", os.getpid()), LONG)
    assert shared.call(("returns", 5), LONG) == 5


def test_processes_do_not_draw_the_same_random_numbers(shared: Processes) -> None:
    drawn = {shared.call(("random",), LONG)}
    for _ in range(2):
        with pytest.raises(ElsewhereError):
            shared.call(("dies",), LONG)
        drawn.add(shared.call(("random",), LONG))
    assert len(drawn) == 3


def test_the_one_that_forks_may_die_too() -> None:
    processes = Processes("does", Work("tests.operators.isolated", "does"), fresh=False)
    forker, _ = processes.call(("tells",), LONG)
    with pytest.raises(ElsewhereError, match="its process died"):
        processes.call(("kills its parent",), LONG)
    again, pid = processes.call(("tells",), LONG)
    assert again != forker
    del processes
    gc.collect()
    wait_for(lambda: not is_alive(again) and not is_alive(pid))


@pytest.mark.parametrize("fresh", [True, False])
def test_a_start_counts_against_the_limit_but_for_the_first(
    fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    monkeypatch.setenv("TOCSIN_TEST_GATE", str(gate))
    if not fresh:
        monkeypatch.setenv("TOCSIN_TEST_THREAD", "1")  # does not bear a fork, so that each starts anew
    processes = Processes("above", Work("tests.operators.gated", "above"), fresh)
    with pytest.raises(TooLongError) as caught:
        processes.call((-1.0,), 2.0)
    assert not str(caught.value), "the first start was not counted"
    wait_for(lambda: _answers(processes, 2.0))
    gate.touch()
    with pytest.raises(TooLongError):
        processes.call((-1.0,), SHORT)
    for _ in range(2):
        with pytest.raises(TooLongError, match=AGAIN):
            processes.call((2.0,), SHORT)
    gate.unlink()
    wait_for(lambda: _answers(processes, 2.0))


def _answers(processes: Processes, x: float) -> bool:
    try:
        return bool(processes.call((x,), 10.0))
    except TooLongError:
        return False


def test_what_cannot_be_imported_is_told_and_not_tried_at_every_call() -> None:
    for work, reason in (
        (Work("tests.operators.nowhere", "f"), "No module named 'tests.operators.nowhere'"),
        (Work("tests.operators.gated", "nothing"), "no attribute 'nothing'"),
        (Work("tests.operators.isolated", "tells", ("tests.operators.isolated", "does")), "missing 1 required"),
        (Work("tests.operators.isolated", "tells", ("os", "abort")), "it ends while it starts"),
    ):
        processes = Processes("f", work, fresh=False)
        for _ in range(3):
            with pytest.raises(OperatorError, match=f"f cannot run in a process of its own: .*{reason}"):
                processes.call((), LONG)


def test_a_resource_is_loaded_once_for_all_processes_of_an_operator() -> None:
    tells = tocsin.operator(
        isolated.tells,
        reads=["x"],
        outputs={"loaded": int, "runs": int},
        resource=isolated.loaded,
        isolate="process",
        limit=5.0,
    )
    space = tocsin.Space({"x": tocsin.Number()})
    matchers = [tocsin.Matcher(space, operators=[tells]) for _ in range(2)]
    told: list[str] = []
    for x in (1, -1, 2):
        for matcher in matchers:
            matcher.subscribe("a", "tells(:loaded, :runs) AND :loaded > 0", duplicates="replace")
            assert matcher.match({"x": x}) == ([] if x < 0 else ["a"])
            told += [str(matcher.explain({"x": x}, "a"))] if x > 0 else []
    numbers = {tuple(word for word in text.replace(",", " ").split() if word.isdigit()) for text in told}
    assert len({each[0] for each in numbers}) == 1, "matchers share them"
    cost = matchers[0].stats()["operators"]["used"]["tells"]["cost"]
    assert cost is not None


MAIN = """
import tocsin

@tocsin.operator(reads=["x"], isolate="process", limit=60.0)
def above(x):
    return x > 1

if __name__ == "__main__":
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number()}), operators=[above])
    matcher.subscribe("a", "above()")
    print(matcher.match({"x": 2}), matcher.match({"x": 0}), matcher.stats()["operators"]["used"]["above"]["failures"])
"""


def test_an_operator_may_stand_in_the_script_that_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(MAIN)
    run = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("['a'] [] {}\n", 0), run.stderr


SCRIPT = """
import os, sys, threading
import tocsin
from tests.operators import isolated
from tocsin.operators.processes import Processes
from tocsin.operators.serving import Work
processes = Processes("does", Work("tests.operators.isolated", "does"), fresh=FRESH)
parent, pid = processes.call(("tells",), None)
print(pid, flush=True)
threading.Thread(target=lambda: processes.call(("loops",), None), daemon=True).start()
while processes._held.idle:
    pass
if MODE == "forks":
    child = os.fork()
    if child == 0:
        os._exit(processes.call(("returns", 6), None))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
if MODE == "waits":
    print("waiting", flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize(("mode", "fresh"), [("ends", False), ("ends", True), ("waits", False), ("forks", False)])
def test_nothing_is_left_when_the_process_that_asks_is_gone(mode: str, fresh: bool) -> None:
    script = SCRIPT.replace("MODE", repr(mode)).replace("FRESH", str(fresh))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        if mode == "waits":
            assert process.stdout.readline() == "waiting\n"
            assert is_alive(pid)
            process.send_signal(signal.SIGKILL)
        elif mode == "forks":
            assert process.stdout.readline() == "6\n", "a fork of the process has processes of its own"
        assert process.wait(LONG) == (-signal.SIGKILL if mode == "waits" else 0)
    wait_for(lambda: not is_alive(pid))
