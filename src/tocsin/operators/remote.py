"""Operators that live elsewhere: behind HTTP, or in a program of their own, with limits on time and size."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.errors import OperatorError
from tocsin.operators.channels import TooLongError
from tocsin.operators.operator import Operator, operator

MOST_BYTES = 1_000_000
"""The longest answer that is read."""


def http_operator(
    name: str,
    url: str,
    *,
    reads: Sequence[str] = (),
    parameters: Sequence[str] = (),
    outputs: Sequence[str] | Mapping[str, type] = (),
    limit: float = 1.0,
    headers: Mapping[str, str] | None = None,
    **settings: Any,
) -> Operator:
    """Return an operator that asks a service: the arguments by name go as a JSON object in a POST, the answer is JSON.

    The answer means what a Python function's result means: a truth, a value, a list of values; a tuple is a list of
    lists. A status other than 200, a longer answer than `MOST_BYTES` or a longer wait than ``limit`` is a failure.

    >>> http_operator("sentiment", "http://127.0.0.1:9/", reads=["text"], outputs=["score"]).limit
    1.0
    """
    if not url.startswith(("http://", "https://")):
        raise OperatorError(f"{name}: a URL begins with http:// or https://, not {url!r}")
    names = [*reads, *parameters]
    sent = {"Content-Type": "application/json", **(headers or {})}

    def ask(*values: Any) -> Any:
        body = json.dumps(dict(zip(names, values, strict=True)), default=str).encode()
        request = urllib.request.Request(url, body, sent, method="POST")
        with urllib.request.urlopen(request, timeout=limit) as answer:
            text = answer.read(MOST_BYTES + 1)
        return _answer(text, outputs)

    return operator(
        ask,
        name=name,
        reads=list(reads),
        parameters=list(parameters),
        outputs=outputs,
        limit=limit,
        **settings,
    )


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

    The program is started when it is first asked and stays; one that takes longer than ``limit`` is killed, and the
    next call starts another.

    >>> import sys
    >>> echo = "import sys\\nfor line in sys.stdin: print('true' if 'x' in line else 'false', flush=True)"
    >>> has_x = program_operator("has_x", [sys.executable, "-c", echo], reads=["name"], limit=20)
    >>> has_x("fox"), has_x("cat")
    (True, False)
    """
    program = _Program(list(command), limit)
    names = [*reads, *parameters]

    def ask(*values: Any) -> Any:
        return _answer(program.ask(json.dumps(dict(zip(names, values, strict=True)), default=str)), outputs)

    return operator(
        ask, name=name, reads=list(reads), parameters=list(parameters), outputs=outputs, cost=None, **settings
    )


class _Program:
    """A running program that answers line by line; one caller at a time."""

    def __init__(self, command: list[str], limit: float) -> None:
        self._command, self._limit = command, limit
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, line: str) -> bytes:
        with self._lock:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None  # both are pipes
            try:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                return self._line(process.stdout.fileno())
            except (TooLongError, OSError, ValueError):
                process.kill()
                process.wait()
                process.stdin.close()
                process.stdout.close()
                self._process = None
                raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def _line(self, output: int) -> bytes:
        until, held = time.monotonic() + self._limit, b""
        while not held.endswith(b"\n"):
            ready, _, _ = select.select([output], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TooLongError
            more = os.read(output, 65_536)
            if not more:
                raise OSError("the program ended")
            held += more
            if len(held) > MOST_BYTES:
                raise ValueError(f"the answer is longer than {MOST_BYTES:,} bytes")
        return held

    def __reduce__(self) -> tuple[Any, ...]:
        return _Program, (self._command, self._limit)


def _answer(text: bytes, outputs: Sequence[str] | Mapping[str, type]) -> Any:
    """Return what an answer means; of several outputs each list inside is one binding."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"the answer is longer than {MOST_BYTES:,} bytes")
    found = json.loads(text)
    if len(outputs) > 1 and isinstance(found, list):
        return [tuple(each) if isinstance(each, list) else each for each in found]
    return found
