"""Running functions that may not end: in threads that are left behind, or in processes that are killed.

What is guaranteed: whoever calls waits no longer than the limit. A thread cannot be killed: one that hangs stays, and
after `MOST_LEFT` of them the operator is suspended, so that calls fail at once until one of those threads ends. A
process is killed at the limit, and another is started at once, while whoever called goes on; the next call of that
operator waits until it is ready, however short its limit, `START_LIMIT` seconds at most.
"""

from __future__ import annotations

import atexit
import importlib
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tocsin.errors import OperatorError

if TYPE_CHECKING:  # imported where they are used: most matchers have no operator that needs them
    import asyncio
    from multiprocessing.connection import Connection

MOST_LEFT = 4
START_LIMIT = 60.0


class TooLongError(Exception):
    """A call did not end within its limit."""


class SuspendedError(Exception):
    """The operator is suspended: too many of its calls hang."""


def told(error: BaseException) -> str:
    """Return what an exception says, even one that cannot say it.

    >>> told(ZeroDivisionError("by zero"))
    'ZeroDivisionError: by zero'
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


class Threads:
    """Threads for the calls of one operator. A thread that does not answer in time is left behind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[_Thread] = []
        self._left: list[_Thread] = []
        self._lock = threading.Lock()

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Any:
        """Return what the function returns, or raise what it raises, or `TooLongError`."""
        with self._lock:
            self._left = [thread for thread in self._left if thread.busy]
            if len(self._left) >= MOST_LEFT:
                raise SuspendedError(f"{len(self._left)} calls hang")
            thread = self._idle.pop() if self._idle else _Thread(self._name)
        try:
            good, result = thread.run(function, arguments, limit)
        except TooLongError:
            with self._lock:
                self._left.append(thread)
            raise
        with self._lock:
            self._idle.append(thread)
        if good:
            return result
        raise result


class _Thread:
    """One daemon thread that runs a function at a time."""

    def __init__(self, name: str) -> None:
        self.busy = False
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name=f"tocsin-{name}", daemon=True).start()

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> tuple[bool, Any]:
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self.busy = True
        self._asked.put((function, arguments, answer))
        try:
            return answer.get(timeout=limit)
        except queue.Empty:
            self._asked.put(None)  # it ends with the call that hangs
            raise TooLongError from None

    def _serve(self) -> None:
        while True:
            asked = self._asked.get()
            if asked is None:
                return
            function, arguments, answer = asked
            try:
                result = True, function(*arguments)
            except (Exception, SystemExit) as error:  # handed to the caller
                result = False, error
            self.busy = False
            answer.put(result)


class Process:
    """A process for the calls of one operator; it is killed when a call takes too long, and with this process."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._module, self._path = function.__module__, function.__qualname__
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._is_ready = False
        atexit.register(self.stop)

    def call(self, arguments: tuple[Any, ...], limit: float | None) -> Any:
        """Return what the function returns, or raise what it raises, or `TooLongError`."""
        with self._lock:
            pipe = self._started()
            try:
                pipe.send(arguments)
                if not pipe.poll(limit):
                    self._begin()
                    raise TooLongError
                good, result = pipe.recv()
            except (EOFError, OSError):
                self._begin()
                raise RuntimeError("its process died") from None
        if good:
            return result
        raise RuntimeError(result)

    def stop(self) -> None:
        """Kill the process, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.join(5.0)
            self._process = self._pipe = None

    def _begin(self) -> None:
        """Start a process in place of what there is; whoever calls next waits until it is ready."""
        self.stop()
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._module, self._path), daemon=True)
        self._process.start()
        theirs.close()
        self._is_ready = False

    def _started(self) -> Connection:
        if self._pipe is None or not self._process.is_alive():
            self._begin()
        pipe: Connection = self._pipe  # type: ignore[assignment]
        if not self._is_ready:
            try:
                ready = pipe.recv() if pipe.poll(START_LIMIT) else "it does not start"
            except (EOFError, OSError):
                ready = "it ends while it starts"
            if ready != "ready":
                self.stop()
                raise OperatorError(f"{self._name} cannot run in a process of its own: {ready}")
            self._is_ready = True
        return pipe


def _serve(pipe: Connection, module: str, path: str) -> None:
    """Answer calls in the other process."""
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        function = getattr(found, "function", found)
    except Exception as error:  # told to the parent
        pipe.send(f"{module}.{path} cannot be imported there: {error!r}; define it at the top of a module")
        return
    pipe.send("ready")
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = True, function(*arguments)
        except (Exception, SystemExit) as error:  # told to the parent
            answer = False, told(error)
        try:
            pipe.send(answer)
        except Exception as error:  # what it returned cannot be sent
            pipe.send((False, told(error)))


class Loop:
    """An event loop in a thread of its own, for coroutines, whatever thread or loop they are asked from."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def gather(self, calls: list[Callable[[], Any]], limit: float | None) -> list[Any]:
        """Run coroutines at the same time, each within the limit; return results and, in their places, exceptions."""
        import asyncio

        async def without_exit(call: Callable[[], Any]) -> Any:
            try:
                return await call()
            except SystemExit as error:  # it would end the loop, and every call that waits there
                raise RuntimeError(told(error)) from None

        async def one(call: Callable[[], Any]) -> Any:
            try:
                return await asyncio.wait_for(without_exit(call), limit)
            except TimeoutError:
                raise TooLongError from None

        async def everything() -> list[Any]:
            return list(await asyncio.gather(*map(one, calls), return_exceptions=True))

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="tocsin-async", daemon=True).start()
        future = asyncio.run_coroutine_threadsafe(everything(), self._loop)
        patience = None if limit is None else limit * 2 + 1.0  # a coroutine may block the loop
        try:
            return future.result(patience)
        except TimeoutError:
            self._loop = None  # that loop is blocked; the next calls get another
            return [TooLongError()] * len(calls)


LOOP = Loop()
