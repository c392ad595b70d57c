"""The threads that a matcher spreads the batches of a table over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Pool:
    """Threads that run the tasks of several calls. A call inside one of those tasks (an operator that matches a table
    itself) runs its tasks in its own thread as long as others have all of these: it waits for none that wait for it.

    >>> run = Pool(2).run()
    >>> [task.result() for task in [run.submit(lambda: 1), run.submit(lambda: 2)]]
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tocsin-match")
        self._lock = threading.Lock()
        self._running = 0

    def run(self) -> Run:
        """Return the tasks of one call, which are yet to be submitted."""
        return Run(self)


class Run:
    """The tasks of one call."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._own = 0

    def submit(self, function: Callable[[], T]) -> Task[T]:
        """Have a function run by one of the threads."""
        return Task(self, function)

    def counted(self, function: Callable[[], T]) -> T:
        """Run a function, counted among the tasks that run now."""
        pool = self._pool
        with pool._lock:
            pool._running, self._own = pool._running + 1, self._own + 1
        try:
            return function()
        finally:
            with pool._lock:
                pool._running, self._own = pool._running - 1, self._own - 1

    def others_run(self) -> bool:
        """Return whether tasks of another call run now."""
        with self._pool._lock:
            return self._pool._running > self._own


class Task(Generic[T]):
    """A function that one of the threads is to run."""

    def __init__(self, run: Run, function: Callable[[], T]) -> None:
        self._run, self._function = run, function
        self._future = run._pool._executor.submit(run.counted, function)

    def result(self) -> T:
        """Return what the function returns; one that no thread has begun with is run here if others have them."""
        if self._run.others_run() and self._future.cancel():
            return self._function()
        return self._future.result()
