"""Many readers or one writer: how engines that change their arrays in place keep their promise to concurrent
readers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """A lock held by any number of readers or by one writer; a writer that waits goes before new readers.

    >>> lock = ReadWriteLock()
    >>> with lock.reading():
    ...     pass
    >>> with lock.writing():
    ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writing = False
        self._waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writing and not self._waiting)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._writing and not self._readers)
            self._waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
