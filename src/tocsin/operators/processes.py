"""Running functions in processes that are killed at their limit: this side of it; `serving` is the other.

Starting Python and importing an operator takes seconds, so it is done once: that process runs no call itself but forks
those that do, within milliseconds and sharing what it has loaded. One that exceeds its limit is killed and the next is
there at once; each thread that calls has one of its own. Where a process cannot be forked (other systems than Linux,
modules that start threads when they are imported, `isolate="fresh"`) each starts anew, and a call for which none is
ready by its limit fails. Only the very first start is not counted against a limit.

Any thread may call. `_Held.lock` guards the taking of processes and what is read from the one that forks; what is
written to it is a single small message, which needs no lock.
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
from typing import Any

from tocsin.errors import OperatorError
from tocsin.operators.channels import Channel, ClosedError, TooLongError, WrongTypeError, left, unpack
from tocsin.operators.operator import Operator
from tocsin.operators.serving import ENDED, FORK, KILL, LIED, READY, RESULT, THREADED, Work

START_LIMIT = 120.0
"""Seconds that a process may take to start, and to load what it needs."""

PAUSE = 10.0
"""Seconds for which nothing is started after something could not be."""

AGAIN = "its process is being started again"

_SHORTLY = 1.0


class ElsewhereError(Exception):
    """What a function raised in another process, in words."""


class _Interpreter:
    """A Python that was started: one that forks, or one that runs calls itself."""

    def __init__(self, work: Work, forks: bool) -> None:
        self.begun = time.monotonic()
        self.is_ready = False
        self.end, theirs = socket.socketpair()
        self.channel = Channel(self.end)
        source = f"import sys; sys.path[:] = {sys.path!r}; from tocsin.operators.serving import main; main"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{source}({theirs.fileno()}, {forks})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for whoever calls
            )
        prepared = None
        if work.module == "__main__":
            from multiprocessing import spawn

            prepared = spawn.get_preparation_data("tocsin")
            prepared.pop("authkey")  # may be passed on by multiprocessing only
        with contextlib.suppress(ClosedError):  # seen when it should be ready
            self.channel.send(pickle.dumps((work, prepared)))

    def wait(self, until: float) -> str:
        """Return what it says when it has started; `TooLongError` if that is not yet."""
        try:
            return self.channel.receive(until).decode()
        except ClosedError:
            return f"it ends while it starts{self.how(until)}"

    def how(self, until: float) -> str:
        """Return how it ended."""
        try:
            return _ending(self._process.wait(max(0.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            return ""

    def drop(self) -> None:
        """Kill it with all of its group."""
        self.channel.close()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHORTLY)

    def stop(self) -> None:
        """Let it end, so that it ends what it has forked; kill it if it does not."""
        self.channel.close()
        try:
            self._process.wait(_SHORTLY)
        except subprocess.TimeoutExpired:
            self.drop()


class _Forked:
    """A process that was forked, known by a key to the one that forked it."""

    is_ready = True

    def __init__(self, forker: _Interpreter, number: int) -> None:
        self._forker, self._key = forker, number.to_bytes(8, "big")
        end, theirs = socket.socketpair()
        self.channel = Channel(end)
        with theirs:
            passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [theirs.fileno()]))]
            try:
                forker.end.sendmsg([FORK + self._key], passed, socket.MSG_DONTWAIT)
            except BaseException:
                end.close()
                raise

    def drop(self) -> None:
        """Have it killed with all of its group; the one that forked it goes too if it cannot be told."""
        self.channel.close()
        try:
            self._forker.end.send(KILL + self._key, socket.MSG_DONTWAIT)
        except OSError:
            self._forker.drop()

    def how(self, until: float) -> str:
        """Return how it ended, which only the one that forked it knows; the lock must be held."""
        self.channel.close()
        with contextlib.suppress(OSError, TooLongError, ClosedError):
            self._forker.end.send(ENDED + self._key, socket.MSG_DONTWAIT)
            while True:
                said = self._forker.channel.receive(until)
                if said[:8] == self._key:  # another may have come too late for whoever asked
                    return _ending(int(said[8:]))
        return ""


class _Held:
    """All that ends with the `Processes` it belongs to."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.forker: _Interpreter | None = None
        self.others: weakref.WeakSet[_Interpreter] = weakref.WeakSet()
        self.idle: list[_Interpreter | _Forked] = []

    def stop(self) -> None:
        """End everything, unless this is a fork of the process that began it: then only let go of it."""
        for worker in self.idle:
            worker.channel.close()
        if self.owner != os.getpid():
            if self.forker is not None:
                self.forker.channel.close()
            return
        if self.forker is not None:
            self.forker.stop()
        for each in list(self.others):
            each.drop()


class Processes:
    """The processes that run one function, for any number of threads."""

    def __init__(self, name: str, work: Work, fresh: bool) -> None:
        self._name, self._work = name, work
        self._forks = not fresh and sys.platform == "linux"
        self._numbers = itertools.count()
        self._begin()

    def call(self, arguments: tuple[Any, ...], limit: float | None) -> Any:
        """Return what the function returns, or raise what it raises, or `TooLongError`."""
        message = pickle.dumps(arguments, pickle.HIGHEST_PROTOCOL)
        self.prepare()
        until = None if limit is None else time.monotonic() + limit
        worker = self._taken(until)
        try:
            worker.channel.send(message, until)
            what, result = unpack(worker.channel.receive(until))
        except ClosedError:
            raise ElsewhereError(f"its process died{self._died(worker, until)}") from None
        except BaseException:  # Ctrl-C too: its answer would be taken for that of the next call
            self._replace(worker)
            raise
        self._held.idle.append(worker)
        if what == RESULT:
            return result
        raise WrongTypeError(result) if what == LIED else ElsewhereError(result)

    def prepare(self) -> None:
        """Wait until the first process has started, or cannot be."""
        if self._held.owner != os.getpid():
            self._held.stop()
            self._begin()
        if not self._has_started and self._refused is None:
            with contextlib.suppress(OperatorError, TooLongError):  # told by the call
                self._held.idle.append(self._taken(time.monotonic() + START_LIMIT + _SHORTLY))

    def _begin(self) -> None:
        self._held = _Held()
        self._has_started = False
        self._refused: tuple[float, str] | None = None
        weakref.finalize(self, self._held.stop)

    def _taken(self, until: float | None) -> _Interpreter | _Forked:
        """Return a process that is ready; `TooLongError` if there is none by the deadline."""
        held = self._held
        try:
            remaining = left(until)
            if not held.lock.acquire(timeout=-1 if remaining is None else remaining):
                raise TooLongError
            try:
                worker = self._idle() or self._made(until)
            finally:
                held.lock.release()
            if isinstance(worker, _Interpreter) and not worker.is_ready:
                try:
                    self._await(worker, until)
                except TooLongError:
                    held.idle.append(worker)
                    raise
            return worker
        except TooLongError:
            raise TooLongError(AGAIN) from None

    def _idle(self) -> _Interpreter | _Forked | None:
        """Return a process that waits for a call, or one that starts; one that died meanwhile is let go."""
        while self._held.idle:
            worker = self._held.idle.pop()
            if not worker.is_ready or worker.channel.is_quiet():
                return worker
            worker.drop()
        return None

    def _made(self, until: float | None) -> _Interpreter | _Forked:
        """Return a process made anew: forked, if there is one that forks or it starts by the deadline."""
        if self._work.module == "__mp_main__":  # imported by such a process, for something else that stands there
            reason = (
                "the script starts it whenever it is imported; what it does belongs under if __name__ == '__main__'"
            )
            raise OperatorError(f"{self._name} cannot run in a process of its own: {reason}")
        if self._refused is not None:
            since, reason = self._refused
            if time.monotonic() < since + PAUSE:
                raise OperatorError(reason)
            self._refused = None
        held = self._held
        for _ in range(2):  # the one that forks may be found dead
            if not self._forks:
                break
            if held.forker is None:
                held.forker = _Interpreter(self._work, forks=True)
            if not held.forker.is_ready:
                self._await(held.forker, until)
            if self._forks:
                try:
                    return _Forked(held.forker, next(self._numbers))
                except OSError:
                    held.forker.drop()
                    held.forker = None
        worker = _Interpreter(self._work, forks=False)
        held.others.add(worker)
        return worker

    def _await(self, started: _Interpreter, until: float | None) -> None:
        """Wait until an interpreter is ready; refuse to start others for a while if it cannot be."""
        latest = started.begun + START_LIMIT
        try:
            said = started.wait(latest if until is None else min(until, latest))
        except TooLongError:
            if time.monotonic() < latest:
                raise
            said = f"it does not start within {START_LIMIT:g} seconds"
        if said == READY:
            started.is_ready = self._has_started = True
            return
        started.drop()
        if started is self._held.forker:
            self._held.forker = None
        if said == THREADED:
            self._forks = False
            return
        reason = f"{self._name} cannot run in a process of its own: {said}"
        self._refused = time.monotonic(), reason
        raise OperatorError(reason)

    def _replace(self, worker: _Interpreter | _Forked) -> None:
        """Kill a process; another one gets ready meanwhile."""
        worker.drop()
        held = self._held
        with contextlib.suppress(OSError):  # seen when it is needed
            if isinstance(worker, _Forked):
                if held.forker is not None:
                    held.idle.append(_Forked(held.forker, next(self._numbers)))
            else:
                started = _Interpreter(self._work, forks=False)
                held.others.add(started)
                held.idle.append(started)

    def _died(self, worker: _Interpreter | _Forked, until: float | None) -> str:
        """Return how a process ended, if that is known soon."""
        soon = time.monotonic() + _SHORTLY
        soon = soon if until is None else min(soon, until)
        how = ""
        if self._held.lock.acquire(timeout=max(0.0, soon - time.monotonic())):
            try:
                how = worker.how(soon)
            finally:
                self._held.lock.release()
        self._replace(worker)
        return how


def _ending(status: int) -> str:
    """Return an exit status in words.

    >>> _ending(3), _ending(-11)
    (', with status 3', ', by signal 11')
    """
    return f", with status {status}" if status >= 0 else f", by signal {-status}"


_known: weakref.WeakValueDictionary[tuple[str, Work, bool], Processes] = weakref.WeakValueDictionary()
_finding = threading.Lock()


def processes_of(operator: Operator) -> Processes | None:
    """Return what runs an operator in processes of its own, if it is to be: the same for all matchers of this process.

    They end when nobody holds them any more.
    """
    if operator.isolate == "none":
        return None
    function, loads = operator.function, operator.resource
    resource = None if loads is None else (loads.__module__, loads.__qualname__)
    key = operator.name, Work(function.__module__, function.__qualname__, resource), operator.isolate == "fresh"
    with _finding:
        found = _known.get(key)
        if found is None:
            found = _known[key] = Processes(*key)
        return found
