"""The other side of `starting`: processes that fork others, and those that run operators.

Those that fork run nothing of the user's but the import (and the loading of a resource), so they have one thread and
always answer. They end when whoever started them closes the control socket or is gone, and take the others with them:
workers are killed with all of their process group, and by the kernel if the process is killed that forked them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import GeneratorType
from typing import Any, NamedTuple

from tocsin.operators.channels import Channel, ClosedError, pack

READY = "ready"
THREADED = "threaded"
RESULT, RAISED, LIED = "result", "raised", "lied"
FORK, KILL, ENDED = b"F", b"K", b"E"

_LOOKS_AFTER_PARENT = 5_000  # milliseconds
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Work(NamedTuple):
    """Which function a process is to run, by module and dotted path, and what loads its resource."""

    module: str
    path: str
    resource: tuple[str, str] | None = None


class Start(NamedTuple):
    """What a process is told when it starts: its work, and how to be like the process that asks."""

    work: Work
    prepared: dict[str, Any] | None
    path: list[str]
    environment: dict[str, str]
    folder: str | None


def told(error: BaseException) -> str:
    """Return what an exception says, even one that cannot say it.

    >>> told(ZeroDivisionError("by zero"))
    'ZeroDivisionError: by zero'
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def whole(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns; what it yields, as a list.

    >>> whole(lambda n: (each for each in range(n)), 3)
    [0, 1, 2]
    """
    result = function(*arguments)
    return list(result) if type(result) is GeneratorType else result


def main(end: int, is_root: bool) -> None:
    """Begin in a new interpreter."""
    with socket.socket(fileno=end) as control:
        if is_root:
            gc.freeze()  # what is there already stays shared by those that are forked
            Channel(control).send(READY.encode())
            _Forks(control, _fork_on, _let_end).run()
        else:
            function = _started(Channel(control), forks=False)
            if function is not None:
                serve(Channel(control), function)


def _fork_on(control: socket.socket) -> None:
    """Be the one that forks workers for an operator."""
    function = _started(Channel(control), forks=True)
    if function is not None:
        _Forks(control, lambda end: serve(Channel(end), function), _kill).run()


def _started(channel: Channel, forks: bool) -> Callable[..., Any] | None:
    """Return what is to be run, as the first message says; None if it cannot be, which is told."""
    start: Start = pickle.loads(channel.receive())
    try:
        sys.path[:] = start.path
        os.environ.clear()
        os.environ.update(start.environment)
        if start.folder is not None:
            os.chdir(start.folder)
        if start.prepared is not None:
            from multiprocessing import spawn

            spawn.prepare(start.prepared)
        function = load(start.work)
    except BaseException as error:  # told to whoever started this
        channel.send(f"{told(error)[:2000]}; define it at the top of a module".encode())
        return None
    if forks and threading.active_count() > 1:
        channel.send(THREADED.encode())
        return None
    gc.collect()
    gc.freeze()
    channel.send(READY.encode())
    return function


def load(work: Work) -> Callable[..., Any]:
    """Return the function that is asked for, its resource loaded and given.

    >>> load(Work("math", "sqrt"))(9.0)
    3.0
    """
    found = _found(work.module, work.path)
    function: Callable[..., Any] = getattr(found, "function", found)
    if work.resource is None:
        return function
    loads = getattr(found, "resource", None) or _found(*work.resource)
    return partial(function, loads())


def _found(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def serve(channel: Channel, function: Callable[..., Any]) -> None:
    """Answer calls, one after another, until whoever asks is gone."""
    with contextlib.suppress(ClosedError):
        while True:
            channel.send(_answer(function, pickle.loads(channel.receive())))


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return the message that says what a call came to."""
    try:
        result = whole(function, *arguments)
    except BaseException as error:  # told to whoever asked
        return pack((RAISED, told(error)))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
    try:
        return pack((RESULT, result))
    except BaseException as error:  # what it returned cannot be sent
        return pack((LIED, told(error)))


class _Forks:
    """Forks processes when asked to, kills them when asked to, and buries the dead."""

    def __init__(
        self, control: socket.socket, run: Callable[[socket.socket], None], end: Callable[[int], None]
    ) -> None:
        self._control, self._run, self._end_one = control, run, end
        self._pids: dict[bytes, int] = {}
        self._ended: dict[bytes, int] = {}  # how those ended that were not killed
        self._killed: set[bytes] = set()
        self._woken, self._waking = os.pipe()
        self._parent = os.getppid()
        self._prctl = ctypes.CDLL(None).prctl
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._is_over = False
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        signal.signal(signal.SIGTERM, self._stop)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)

    def run(self) -> None:
        """Do what is asked until nobody is there to ask; then end all processes."""
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        self._control.settimeout(None)
        try:
            while os.getppid() == self._parent and not self._is_over:
                ready = {end for end, _ in waiting.poll(_LOOKS_AFTER_PARENT)}
                if self._woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._woken, 4096)
                self._bury()
                if self._control.fileno() in ready and not self._do():
                    return
        finally:
            signal.set_wakeup_fd(-1)
            for pid in self._pids.values():
                self._end_one(pid)

    def _stop(self, *_: Any) -> None:
        self._is_over = True

    def _do(self) -> bool:
        """Do one thing that is asked; return whether there was one."""
        try:
            asked, ends, _, _ = socket.recv_fds(self._control, 9, 1)
        except OSError:
            return False
        what, key = asked[:1], asked[1:]
        if what == FORK and ends:
            self._fork(key, ends[0])
        elif what == KILL:
            self._ended.pop(key, None)
            if key in self._pids:
                self._killed.add(key)
                _kill(self._pids[key])  # buried when it has ended
        elif what == ENDED:
            Channel(self._control).send(key + str(self._status(key)).encode())
        return bool(asked)

    def _status(self, key: bytes) -> int:
        """Return how a process ended whose channel is closed."""
        if key in self._pids:
            _kill(self._pids[key])  # changes nothing of how one ends that has begun to
            self._end(key)
        return self._ended.pop(key, 0)

    def _bury(self) -> None:
        for key, pid in list(self._pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                _kill(pid)  # while its number is still its own: what it started and left behind
                self._end(key)

    def _end(self, key: bytes) -> None:
        _, status = os.waitpid(self._pids.pop(key), 0)
        if key in self._killed:
            self._killed.remove(key)
        else:
            self._ended[key] = os.waitstatus_to_exitcode(status)

    def _fork(self, key: bytes, end: int) -> None:
        for stream in (sys.stdout, sys.stderr):  # or what they hold is written twice
            with contextlib.suppress(Exception):
                stream.flush()
        here = os.getpid()
        pid = os.fork()
        if pid:
            os.close(end)
            self._pids[key] = pid
            with contextlib.suppress(OSError):  # it does so itself, whoever comes first
                os.setpgid(pid, pid)
            return
        try:
            self._become(here)
            control = socket.socket(fileno=end)
            os.register_at_fork(after_in_child=control.close)
            self._run(control)
        finally:
            os._exit(0)

    def _become(self, parent: int) -> None:
        """Turn what was just forked into a process that runs operators."""
        os.setpgid(0, 0)
        self._prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # gone before the kernel was told
            os._exit(0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._control.close()
        os.close(self._woken)
        os.close(self._waking)
        random = sys.modules.get("numpy.random")
        if random is not None:
            random.seed()


def _kill(pid: int) -> None:
    """Kill a process and all of its group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _let_end(pid: int) -> None:
    """Ask a process to end, which ends what it has forked; kill it if it does not."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                return
            time.sleep(0.005)
        _kill(pid)
