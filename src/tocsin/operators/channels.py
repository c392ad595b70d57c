"""Messages between a process and those that run operators for it: whole or not at all, and never beyond a deadline.

What is received from the other side is only ever plain data: a value that would run code while it is taken in is
refused, so that whatever an operator returns happens in its own process.
"""

from __future__ import annotations

import io
import pickle
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

MOST_BYTES = 1 << 28
"""The longest message that is received."""

_SIZE = struct.Struct("!Q")
_PLAIN = {
    "builtins": {"bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set"}
    | {"str", "tuple"},
    "collections": {"OrderedDict"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"UUID"},
}
_ARRAYS = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, bytes),
    (tuple, list),
    (list, list),
    (frozenset, list),
    (set, list),
    (dict, lambda found: list(found.items())),
)


class TooLongError(Exception):
    """A call did not end within its limit."""


class WrongTypeError(Exception):
    """A result is not what the operator declared."""


class ClosedError(Exception):
    """The other side is gone."""


def left(until: float | None) -> float | None:
    """Return the seconds left until a deadline, None if there is none; `TooLongError` once it has passed.

    >>> left(None) is None, left(time.monotonic() + 60) <= 60
    (True, True)
    """
    if until is None:
        return None
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise TooLongError
    return remaining


class Channel:
    """One side of a pair of sockets, for messages of bytes.

    >>> one, other = map(Channel, socket.socketpair())
    >>> one.send(pack((True, 3)))
    >>> unpack(other.receive())
    (True, 3)
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: bytes, until: float | None = None) -> None:
        """Send a message; `TooLongError` if the other side has not taken it by then, `ClosedError` if it is gone."""
        try:
            self._end.settimeout(left(until))
            self._end.sendall(_SIZE.pack(len(message)) + message)
        except TimeoutError:
            raise TooLongError from None
        except OSError:
            raise ClosedError from None

    def receive(self, until: float | None = None) -> bytes:
        """Return the next message; raise as `send` does."""
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size, until))
        if size > MOST_BYTES:
            raise WrongTypeError(f"a result of {size:,} bytes, more than {MOST_BYTES:,}")
        return self._exactly(size, until)

    def is_quiet(self) -> bool:
        """Return whether there is nothing to receive, not even the end."""
        waiting = select.poll()
        try:
            waiting.register(self._end, select.POLLIN)
        except ValueError:  # closed
            return False
        return not waiting.poll(0)

    def close(self) -> None:
        """Close this side; the other one learns of it."""
        self._end.close()

    def _exactly(self, size: int, until: float | None) -> bytes:
        held = bytearray(size)
        view, at = memoryview(held), 0
        while at < size:
            try:
                self._end.settimeout(left(until))
                got = self._end.recv_into(view[at:])
            except TimeoutError:
                raise TooLongError from None
            except OSError:
                raise ClosedError from None
            if not got:
                raise ClosedError
            at += got
        return bytes(held)


class _Pickler(pickle.Pickler):
    """Makes what derives from plain types, such as a named tuple or a member of an enumeration, plain."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type):
            return NotImplemented
        for base, plain in _BASES:
            if isinstance(value, base):
                return base, (plain(value),)
        if not type(value).__module__.startswith("numpy") and callable(getattr(value, "tolist", None)):
            return list, (list(value.tolist()),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()) or (module.split(".")[0] == "numpy" and name in _ARRAYS):
            return super().find_class(module, name)
        raise WrongTypeError(f"{module}.{name} is not taken from another process; numbers, texts, lists, tuples are")


def pack(value: Any) -> bytes:
    """Return a value as a message, what derives from plain types as these."""
    held = io.BytesIO()
    _Pickler(held, pickle.HIGHEST_PROTOCOL).dump(value)
    return held.getvalue()


def unpack(message: bytes) -> Any:
    """Return the plain value of a message; `WrongTypeError` if it is none.

    >>> import os
    >>> unpack(pickle.dumps(os.getcwd))
    Traceback (most recent call last):
        ...
    tocsin.operators.channels.WrongTypeError: posix.getcwd is not taken from another process; numbers, texts, lists, \
tuples are
    """
    try:
        return _Unpickler(io.BytesIO(message)).load()
    except WrongTypeError:
        raise
    except Exception as error:  # a message that is none
        raise WrongTypeError(f"a result that cannot be read: {type(error).__name__}") from None
