"""Starting the processes that run operators, this side of it; `serving` is the other.

There are three generations. The *root*, one for all operators of this process, has imported Tocsin. It forks a *forker*
for each operator, which imports that operator's module and loads its resource, and this forks the *workers* that run
calls. Only workers run what may not end. Where that cannot be, a worker is an interpreter started anew.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from array import array
from pathlib import Path

from tocsin.operators.channels import Channel, ClosedError, TooLongError, left
from tocsin.operators.serving import ENDED, FORK, KILL, READY, Start, Work

SHORTLY = 1.0
"""Seconds in which a process ends that is asked to, or tells what it knows."""

_numbers = itertools.count()


class Interpreter:
    """A Python that was started: the root if it has no work, or a worker of its own."""

    def __init__(self, work: Work | None) -> None:
        self.begun = time.monotonic()
        self.is_ready = False
        self.lock = threading.Lock()  # for whoever reads what it says
        self.end, theirs = socket.socketpair()
        self.channel = Channel(self.end)
        source = f"import sys; sys.path[:] = {sys.path!r}; from tocsin.operators.serving import main; main"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{source}({theirs.fileno()}, {work is None})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for whoever calls
            )
        self._end = weakref.finalize(self, _stop, self._process, self.channel, os.getpid(), is_root=work is None)
        if work is not None:
            _tell(self.channel, work)

    def has_ended(self) -> bool:
        """Return whether it has ended."""
        return self._process.poll() is not None

    def how(self, until: float) -> str:
        """Return how it ended."""
        try:
            return _ending(self._process.wait(max(0.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            return ""

    def drop(self) -> None:
        """Kill it with all of its group."""
        self._end.detach()
        self.channel.close()
        _kill(self._process)

    def let_go(self) -> None:
        """Forget it in a fork of the process that started it."""
        self._end.detach()
        self.channel.close()


class Forked:
    """A process that was forked, known by a key to the one that forked it: a forker if it has work, or a worker."""

    def __init__(self, parent: Interpreter | Forked, work: Work | None = None) -> None:
        self.begun = time.monotonic()
        self.is_ready = work is None
        self.lock = threading.Lock()  # for whoever reads what it says
        self._parent, self._key = parent, next(_numbers).to_bytes(8, "big")
        self.end, theirs = socket.socketpair()
        self.channel = Channel(self.end)
        with theirs:
            passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [theirs.fileno()]))]
            try:
                parent.end.sendmsg([FORK + self._key], passed, socket.MSG_DONTWAIT)
            except BaseException:
                self.end.close()
                raise
        if work is not None:
            _tell(self.channel, work)

    def drop(self) -> None:
        """Have it killed with all of its group; the one that forked it goes too if it cannot be told."""
        self.channel.close()
        try:
            self._parent.end.send(KILL + self._key, socket.MSG_DONTWAIT)
        except OSError:
            self._parent.drop()

    def let_go(self) -> None:
        """Forget it, so that it ends, or in a fork of the process that started it."""
        self.channel.close()

    def how(self, until: float) -> str:
        """Return how it ended, which only the one that forked it knows."""
        self.channel.close()
        if not self._parent.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return ""
        try:
            self._parent.end.send(ENDED + self._key, socket.MSG_DONTWAIT)
            while True:
                said = self._parent.channel.receive(until)
                if said[:8] == self._key:  # another may have come too late for whoever asked
                    return _ending(int(said[8:]))
        except (OSError, TooLongError, ClosedError):
            return ""
        finally:
            self._parent.lock.release()


Started = Interpreter | Forked


def said_by(started: Started, until: float) -> str:
    """Return what a process says when it has started; `TooLongError` if that is not yet."""
    try:
        return started.channel.receive(until).decode()
    except ClosedError:
        return f"it ends while it starts{started.how(until)}"


_root: weakref.ref[Interpreter] | None = None
_root_starts: list[Interpreter] = []  # which nobody holds yet
_root_owner = os.getpid()
_rooting = threading.Lock()


def root(until: float) -> Interpreter:
    """Return the root, started if there is none; `TooLongError` if it is not ready by the deadline. It ends when nobody
    holds it any more."""
    global _root, _root_owner, _rooting
    if _root_owner != os.getpid():  # this is a fork
        _root_starts.clear()
        _root, _root_owner, _rooting = None, os.getpid(), threading.Lock()
    if not _rooting.acquire(timeout=left(until) or 0.0):
        raise TooLongError
    try:
        found = _root() if _root is not None else None
        if found is None or found.has_ended():
            found = Interpreter(None)
            _root, _root_starts[:] = weakref.ref(found), [found]
        if not found.is_ready:
            said = said_by(found, until)
            _root_starts.clear()
            if said != READY:
                raise OSError(said)
            found.is_ready = True
        return found
    finally:
        _rooting.release()


def _tell(channel: Channel, work: Work) -> None:
    """Tell a process what it is to run, and where."""
    prepared = None
    if work.module == "__main__":
        from multiprocessing import spawn

        prepared = spawn.get_preparation_data("tocsin")
        prepared.pop("authkey")  # may be passed on by multiprocessing only
    with contextlib.suppress(ClosedError):  # seen when it should be ready
        channel.send(pickle.dumps(Start(work, prepared, sys.path, dict(os.environ), _folder())))


def _folder() -> str | None:
    with contextlib.suppress(OSError):
        return str(Path.cwd())
    return None


def _stop(process: subprocess.Popen[bytes], channel: Channel, owner: int, is_root: bool) -> None:
    """Let it end, so that it ends what it has forked; kill it if it does not, or if it runs calls itself."""
    channel.close()
    if owner != os.getpid():
        return
    if is_root:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(3 * SHORTLY)
            return
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SHORTLY)


def _ending(status: int) -> str:
    """Return an exit status in words.

    >>> _ending(3), _ending(-11)
    (', with status 3', ', by signal 11')
    """
    return f", with status {status}" if status >= 0 else f", by signal {-status}"
