"""Operators that another program answers, line by line, with limits on time and size."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.operators.channels import TooLongError, left
from tocsin.operators.operator import Operator, operator
from tocsin.operators.processes import START_LIMIT
from tocsin.operators.remote import MOST_BYTES, meaning

_SHORTLY = 1.0


def program_operator(
    name: str,
    command: Sequence[str],
    *,
    reads: Sequence[str] = (),
    parameters: Sequence[str] = (),
    outputs: Sequence[str] | Mapping[str, type] = (),
    limit: float = 1.0,
    **settings: Any,
) -> Operator:
    """Return an operator that a program answers: a JSON object a line on its input, a JSON answer a line on its output.

    The program is started when it is first asked, and stays. A call that has no answer within ``limit`` fails; the
    program is then killed with whatever it has started, and another is started at once. One that has never answered
    may take its time to start (`START_LIMIT`), and after that as long again as its first start: calls fail meanwhile,
    but it is not killed. It must answer each line with exactly one. When this process ends, its input does, and it is
    killed unless it ends then.

    >>> import sys
    >>> echo = "import sys\\nfor line in sys.stdin: print('true' if 'x' in line else 'false', flush=True)"
    >>> has_x = program_operator("has_x", [sys.executable, "-c", echo], reads=["name"], limit=20)
    >>> has_x("fox"), has_x("cat")
    (True, False)
    """
    program = _Program(list(command), limit)
    names = [*reads, *parameters]

    def ask(*values: Any) -> Any:
        return program.ask(json.dumps(dict(zip(names, values, strict=True)), default=str), outputs)

    return operator(
        ask, name=name, reads=list(reads), parameters=list(parameters), outputs=outputs, cost=None, **settings
    )


class _EndedError(OSError):
    """The program has ended."""


class _Running:
    """A program that runs: what it has not yet taken in, and how many answers it owes to calls that have failed."""

    def __init__(self, command: list[str]) -> None:
        self.begun, self.owner = time.monotonic(), os.getpid()
        self.has_answered = False
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # both are pipes
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._unsent, self._held, self._owed = b"", b"", 0

    def ask(self, line: bytes, until: float) -> bytes:
        """Return the answer to a line; `TooLongError` if it is late, and then still to come."""
        while self._owed:
            self._next(until)
        if self._held or self._has_more():
            raise ValueError("the program answers with more than a line")
        self._unsent += line
        self._owed += 1
        answer = self._next(until)
        if self._held:
            raise ValueError("the program answers with more than a line")
        return answer

    def kill(self) -> None:
        """End it and what it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHORTLY)
        self.forget()

    def end(self) -> None:
        """Let it end, and kill it if it does not; not if this is a fork of the process that started it."""
        if self.owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHORTLY)
        self.kill()

    def forget(self) -> None:
        """Let go of its input and output."""
        for end in (self._input, self._output):
            with contextlib.suppress(OSError):
                end.close()

    def _next(self, until: float) -> bytes:
        """Return the next line it writes, giving it what it has yet to read."""
        while b"\n" not in self._held:
            waiting = select.poll()
            waiting.register(self._output, select.POLLIN)
            if self._unsent:
                waiting.register(self._input, select.POLLOUT)
            ready = {end for end, _ in waiting.poll((left(until) or 0.0) * 1000)}
            if self._output.fileno() in ready:
                self._read()
            elif self._input.fileno() in ready:
                self._write()
        line, _, self._held = self._held.partition(b"\n")
        self._owed -= 1
        self.has_answered = True
        return line

    def _read(self) -> None:
        more = os.read(self._output.fileno(), 65_536)
        if not more:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise _EndedError(f"the program has ended with status {self._process.wait(_SHORTLY)}")
            raise _EndedError("the program has closed its output")
        self._held += more
        if len(self._held) > MOST_BYTES:
            raise ValueError(f"the answer is longer than {MOST_BYTES:,} bytes")

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._input.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it reads no more: it ends, or only answers; its output will tell
            self._unsent = b""

    def _has_more(self) -> bool:
        waiting = select.poll()
        waiting.register(self._output, select.POLLIN)
        return any(happened & select.POLLIN for _, happened in waiting.poll(0))


class _Program:
    """A program that answers line by line, started when it is needed; one caller at a time, each within its limit."""

    def __init__(self, command: list[str], limit: float) -> None:
        self._command, self._limit = command, limit
        self._lock = threading.Lock()
        self._running: list[_Running] = []  # one at most
        self._starting = START_LIMIT
        weakref.finalize(self, _end, self._running)

    def ask(self, line: str, outputs: Sequence[str] | Mapping[str, type]) -> Any:
        """Return what the program's answer to a line means."""
        until = time.monotonic() + self._limit
        if self._running and self._running[0].owner != os.getpid():
            self._running.pop().forget()
            self._lock = threading.Lock()
        if not self._lock.acquire(timeout=self._limit):
            raise TooLongError("other calls are before it")
        try:
            had = bool(self._running)
            try:
                return self._asked(line.encode() + b"\n", until, outputs)
            except _EndedError:
                if not had:
                    raise
            return self._asked(line.encode() + b"\n", until, outputs)  # it had ended before it was asked, perhaps
        finally:
            self._lock.release()

    def _asked(self, line: bytes, until: float, outputs: Sequence[str] | Mapping[str, type]) -> Any:
        if not self._running:
            self._running.append(_Running(self._command))
        running = self._running[0]
        is_first = not running.has_answered
        try:
            result = meaning(running.ask(line, until), outputs)
        except TooLongError:
            if is_first and time.monotonic() < running.begun + self._starting:
                raise TooLongError("the program is starting") from None
            self._kill()
            self._running.append(_Running(self._command))
            raise
        except BaseException:  # what it writes further would be taken for the answer to another call
            self._kill()
            raise
        if is_first:
            self._starting = 2 * (time.monotonic() - running.begun)
        return result

    def _kill(self) -> None:
        self._running.pop().kill()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Program, (self._command, self._limit)


def _end(running: list[_Running]) -> None:
    for each in running:
        each.end()
