"""Running functions in processes that are killed at their limit.

Starting Python and importing an operator takes seconds, so it is done once: that process runs no call itself but forks
those that do, within milliseconds and sharing what it has loaded (see `starting`). One that exceeds its limit is killed
and the next is there at once; each thread that calls has one of its own. Where a process cannot be forked (other
systems than Linux, modules that start threads when they are imported, `isolate="fresh"`) each starts anew, and a call
for which none is ready by its limit fails. Only the very first start is not counted against a limit.

Any thread may call. `_Held.lock` guards the taking of processes; what is written to one that forks is a single small
message, which needs no lock.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
import weakref
from typing import Any

from tocsin.errors import OperatorError
from tocsin.operators.channels import ClosedError, TooLongError, WrongTypeError, left, unpack
from tocsin.operators.operator import Operator
from tocsin.operators.serving import LIED, READY, RESULT, THREADED, Work
from tocsin.operators.starting import SHORTLY, Forked, Interpreter, Started, root, said_by

START_LIMIT = 120.0
"""Seconds that a process may take to start, and to load what it needs."""

PAUSE = 10.0
"""Seconds for which nothing is started after something could not be."""

AGAIN = "its process is being started again"


class ElsewhereError(Exception):
    """What a function raised in another process, in words."""


class _Held:
    """All that ends with the `Processes` it belongs to."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.forker: Forked | None = None
        self.others: weakref.WeakSet[Interpreter] = weakref.WeakSet()
        self.idle: list[Started] = []

    def stop(self) -> None:
        """End everything, or in a fork of the process that began it only let go of it."""
        started: list[Started] = [*self.idle, *self.others]
        for each in started if self.forker is None else [self.forker, *started]:
            if self.owner == os.getpid() and (isinstance(each, Interpreter) or not each.is_ready):
                each.drop()
            else:
                each.let_go()  # what is forked ends by that, and a forker ends what it has forked


class Processes:
    """The processes that run one function, for any number of threads."""

    def __init__(self, name: str, work: Work, fresh: bool) -> None:
        self._name, self._work = name, work
        self._forks = not fresh and sys.platform == "linux"
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
                self._held.idle.append(self._taken(time.monotonic() + START_LIMIT + SHORTLY))

    def _begin(self) -> None:
        self._held = _Held()
        self._has_started = False
        self._refused: tuple[float, str] | None = None
        weakref.finalize(self, self._held.stop)

    def _taken(self, until: float | None) -> Started:
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
            if isinstance(worker, Interpreter) and not worker.is_ready:
                try:
                    self._await(worker, until)
                except TooLongError:
                    held.idle.append(worker)
                    raise
            return worker
        except TooLongError:
            raise TooLongError(AGAIN) from None

    def _idle(self) -> Started | None:
        """Return a process that waits for a call, or one that starts; one that died meanwhile is let go."""
        while self._held.idle:
            worker = self._held.idle.pop()
            if not worker.is_ready or worker.channel.is_quiet():
                return worker
            worker.drop()
        return None

    def _made(self, until: float | None) -> Started:
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
            try:
                if held.forker is None:
                    held.forker = Forked(root(time.monotonic() + START_LIMIT if until is None else until), self._work)
                if not held.forker.is_ready:
                    self._await(held.forker, until)
                if self._forks:
                    return Forked(held.forker)
            except OSError:
                if held.forker is not None:
                    held.forker.drop()
                held.forker = None
        worker = Interpreter(self._work)
        held.others.add(worker)
        return worker

    def _await(self, started: Started, until: float | None) -> None:
        """Wait until an interpreter is ready; refuse to start others for a while if it cannot be."""
        latest = started.begun + START_LIMIT
        try:
            said = said_by(started, latest if until is None else min(until, latest))
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

    def _replace(self, worker: Started) -> None:
        """Kill a process; another one gets ready meanwhile."""
        worker.drop()
        held = self._held
        with contextlib.suppress(OSError):  # seen when it is needed
            if isinstance(worker, Forked):
                if held.forker is not None:
                    held.idle.append(Forked(held.forker))
            else:
                started = Interpreter(self._work)
                held.others.add(started)
                held.idle.append(started)

    def _died(self, worker: Started, until: float | None) -> str:
        """Return how a process ended, if that is known soon."""
        soon = time.monotonic() + SHORTLY
        how = worker.how(soon if until is None else min(soon, until))
        self._replace(worker)
        return how


_known: weakref.WeakValueDictionary[tuple[str, str, Work, bool], Processes] = weakref.WeakValueDictionary()
_finding = threading.Lock()


def processes_of(operator: Operator) -> Processes | None:
    """Return what runs an operator in processes of its own, if it is to be: the same for all matchers of this process,
    and for this version of it only.

    They end when nobody holds them any more.
    """
    if operator.isolate == "none":
        return None
    function, loads = operator.function, operator.resource
    resource = None if loads is None else (loads.__module__, loads.__qualname__)
    work = Work(function.__module__, function.__qualname__, resource)
    key = operator.name, operator.version, work, operator.isolate == "fresh"
    with _finding:
        found = _known.get(key)
        if found is None:
            found = _known[key] = Processes(operator.name, work, operator.isolate == "fresh")
        return found
