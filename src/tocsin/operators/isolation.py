"""Running functions that may not end in threads that are left behind; `processes` kills instead.

What is guaranteed: whoever calls waits no longer than the limit. A thread cannot be killed: one that hangs stays, and
after `MOST_LEFT` of them the operator is suspended, so that calls fail at once until one of those threads ends. The
same holds of coroutines: one that waits is cancelled, one that blocks its event loop leaves the loop behind.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tocsin.operators.channels import TooLongError
from tocsin.operators.serving import told

if TYPE_CHECKING:  # imported where it is used: most matchers have no operator that needs it
    import asyncio

MOST_LEFT = 4
GRACE = 0.25
"""Seconds in which an event loop must have begun to cancel what is too late, or it is blocked."""


class SuspendedError(Exception):
    """The operator is suspended: too many of its calls hang."""


class Threads:
    """Threads for the calls of one operator. A thread that does not answer in time is left behind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[_Thread] = []
        self._left: list[_Thread] = []
        self._lock = threading.Lock()
        self._ended = False

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Any:
        """Return what the function returns, or raise what it raises, or `TooLongError`."""
        with self._lock:
            self._left = [thread for thread in self._left if thread.busy]
            if len(self._left) >= MOST_LEFT:
                raise SuspendedError(f"{len(self._left)} calls hang")
            thread = self._idle.pop() if self._idle else _Thread(self._name)
        try:
            good, result = thread.run(function, arguments, limit)
        except BaseException:  # too long, or Ctrl-C: its answer would be taken for that of the next call
            thread.leave()
            with self._lock:
                self._left.append(thread)
            raise
        with self._lock:
            if self._ended:
                thread.leave()
            else:
                self._idle.append(thread)
        if good:
            return result
        raise result

    def end(self) -> None:
        """End the threads that wait for a call; one that runs ends with its call."""
        with self._lock:
            self._ended = True
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.leave()
        for thread in idle:
            thread.join(GRACE)


class _Thread:
    """One daemon thread that runs a function at a time."""

    def __init__(self, name: str) -> None:
        self.busy = False
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self, self._asked), name=f"tocsin-{name}", daemon=True)
        self._thread.start()

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> tuple[bool, Any]:
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self.busy = True
        self._asked.put((function, arguments, answer))
        try:
            return answer.get(timeout=limit)
        except queue.Empty:
            raise TooLongError from None

    def leave(self) -> None:
        """Have it end, with the call that it runs if there is one."""
        self._asked.put(None)

    def join(self, timeout: float) -> None:
        """Wait until it has ended, so long at most; not at all if this is the thread itself."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)


def _serve(thread: _Thread, asked: queue.SimpleQueue[Any]) -> None:
    while True:
        work = asked.get()
        if work is None:
            return
        function, arguments, answer = work
        try:
            result = True, function(*arguments)
        except Exception as error:  # handed to the caller
            result = False, error
        except BaseException as error:  # in a thread nobody has pressed Ctrl-C: it is the function's
            result = False, RuntimeError(told(error))
        thread.busy = False
        answer.put(result)
        del work, function, arguments, answer, result  # nothing of a call is kept until the next


class Loops:
    """Event loops, each in a thread of its own, for the coroutines of one operator, whatever thread asks. One that
    a coroutine blocks is left behind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: list[threading.Event] = []  # whether the loop has yet done what it was asked to do at a limit
        self._left: list[threading.Event] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def end(self) -> None:
        """End the event loop, if there is one, and wait for that, but not long."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(GRACE)

    def gather(self, calls: Sequence[Callable[[], Any]], limit: float | None) -> list[Any]:
        """Run coroutines at the same time, each within the limit; return results and, in their places, exceptions."""

        until = None if limit is None else time.monotonic() + limit
        found: list[Any] = [TooLongError()] * len(calls)
        waiting = set(range(len(calls)))
        tasks: list[asyncio.Task[None]] = []
        ended = threading.Event()

        async def one(at: int) -> None:
            try:
                result = await calls[at]()
            except Exception as error:
                result = error
            except BaseException as error:  # it would end the loop, and every call that waits there
                result = RuntimeError(told(error))
            if at in waiting:
                found[at] = result
                waiting.remove(at)
            if not waiting:
                ended.set()

        loop = self._running(until)
        loop.call_soon_threadsafe(lambda: tasks.extend(loop.create_task(one(at)) for at in range(len(calls))))
        try:
            ended.wait(None if until is None else max(0.0, until - time.monotonic()))
            return list(found)
        finally:
            if not ended.is_set():
                self._cancel(loop, tasks)

    def _cancel(self, loop: asyncio.AbstractEventLoop, tasks: list[asyncio.Task[None]]) -> None:
        free = threading.Event()

        def cancel() -> None:
            free.set()
            for task in tasks:
                task.cancel()

        with self._lock:
            if loop is self._loop:
                self._asked.append(free)
        with contextlib.suppress(RuntimeError):  # another thread has left the loop, and it has ended
            loop.call_soon_threadsafe(cancel)

    def _running(self, until: float | None) -> asyncio.AbstractEventLoop:
        """Return a loop that runs and is not blocked."""
        import asyncio

        blocked = next((free for free in self._asked if not free.is_set()), None)
        if blocked is not None:
            blocked.wait(GRACE if until is None else min(GRACE, max(0.0, until - time.monotonic())))
        with self._lock:
            self._asked = [free for free in self._asked if not free.is_set()]
            if self._loop is not None and blocked in self._asked:
                self._loop.call_soon_threadsafe(_end, self._loop)
                self._left.append(self._asked[0])
                self._loop, self._asked = None, []
            self._left = [free for free in self._left if not free.is_set()]
            if len(self._left) >= MOST_LEFT:
                raise SuspendedError(f"{len(self._left)} calls hang")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                name = f"tocsin-{self._name}"
                self._thread = threading.Thread(target=_run, args=(self._loop,), name=name, daemon=True)
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    try:
        loop.run_forever()
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending, timeout=GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """End a loop that was left behind, once it is no longer blocked."""
    import asyncio

    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(GRACE, loop.stop)
