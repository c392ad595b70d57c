"""Operators that misbehave, at the top of a module so that another process can import them.

Limits are long enough for a call that behaves on a machine with much else to do.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import numpy as np

import tocsin

released = threading.Event()
"""Set by tests to let calls that hang in a thread end."""


@tocsin.operator(reads=["x"], isolate="process", limit=2.0)
def loops_forever(x: float) -> bool:
    """Never ends for a negative number."""
    while x < 0:
        pass
    return x > 1


@tocsin.operator(reads=["x"], isolate="process", limit=5.0)
def dies(x: float) -> bool:
    """Ends its process for a negative number."""
    if x < 0:
        import os

        os._exit(3)
    return x > 1


@tocsin.operator(reads=["x"], limit=1.0)
def sleeps(x: float) -> bool:
    """Hangs for a negative number until it is released."""
    if x < 0:
        released.wait(30)
    return x > 1


@tocsin.operator(reads=["x"], limit=1.0)
async def sleeps_kindly(x: float) -> bool:
    """Waits long for a negative number, and can be cancelled."""
    await asyncio.sleep(30 if x < 0 else 0)
    return x > 1


@tocsin.operator(reads=["x"])
def exits(x: float) -> bool:
    """Wants to end Python for a negative number."""
    if x < 0:
        sys.exit("enough")
    return x > 1


@tocsin.operator(reads=["x"], limit=20.0)
def exits_its_thread(x: float) -> bool:
    """The same, in a thread."""
    return bool(exits(x))


@tocsin.operator(reads=["x"], limit=20.0)
async def exits_its_loop(x: float) -> bool:
    """The same, in an event loop."""
    return bool(exits(x))


@tocsin.operator(reads=["x"], outputs=["n"])
def counts_too_far(x: float) -> int:
    """Returns a number beyond every double."""
    return 10**400 if x < 0 else 3


@tocsin.operator(reads=["x"], limit=1.0)
async def blocks_its_loop(x: float) -> bool:
    """Hangs for a negative number, and lets nothing else run, until it is released."""
    if x < 0:
        released.wait(30)
    return x > 1


@tocsin.operator(reads=["x"], limit=1.0)
async def will_not_be_cancelled(x: float) -> bool:
    """Waits long for a negative number, whoever cancels it."""
    until = time.monotonic() + 30
    while x < 0 and time.monotonic() < until and not released.is_set():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
    return x > 1


@tocsin.operator(reads=["x"], limit=20.0)
async def interrupts_its_loop(x: float) -> bool:
    """Raises what ends programs, for a negative number."""
    if x < 0:
        raise KeyboardInterrupt
    return x > 1


@tocsin.operator(reads=["x"], limit=20.0)
def is_cancelled(x: float) -> bool:
    """Raises what is no ordinary exception, for a negative number."""
    if x < 0:
        raise asyncio.CancelledError
    return x > 1


@tocsin.operator(reads=["x"])
def is_cancelled_here(x: float) -> bool:
    """The same, in the thread that asks."""
    return bool(is_cancelled(x))


class Unspeakable:
    """A value that can be neither shown nor compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    __eq__ = __lt__ = __gt__ = __hash__ = __repr__  # type: ignore[assignment]


class Quarrelsome(int):
    """A number that does not compare."""

    def _no(self, other: Any = None) -> Any:
        raise RuntimeError("no")

    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __hash__ = __abs__ = __float__ = __repr__ = _no  # type: ignore[assignment]


class Endless(list[int]):
    """A list that one cannot go through."""

    def __iter__(self) -> Any:
        while True:
            yield 1


@tocsin.operator(reads=["x"], outputs=["n"])
def returns_oddities(x: float) -> Any:
    """Returns things that are hard to handle."""
    return [Unspeakable(), Quarrelsome(7), Endless([3, 4]), 10**5000][int(x)]


def loads_nothing() -> Any:
    """Cannot be loaded."""
    raise OSError("no such model")


@tocsin.operator(reads=["x"], resource=loads_nothing)
def has_no_model(model: Any, x: float) -> bool:
    """Needs what cannot be loaded."""
    return x > 1


@tocsin.operator(reads=["x"], resource=loads_nothing)
async def has_no_model_either(model: Any, x: float) -> bool:
    """Needs what cannot be loaded."""
    return x > 1


class MuteError(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@tocsin.operator(reads=["x"])
def raises_mutely(x: float) -> bool:
    """Raises what cannot be told, for a negative number."""
    if x < 0:
        raise MuteError
    return x > 1


@tocsin.operator(reads=["x"])
def raises(x: float) -> bool:
    """Raises for a negative number."""
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x > 1


@tocsin.operator(reads=["x"], outputs={"n": int})
def lies(x: float) -> Any:
    """Returns a text instead of a number for a negative one."""
    return "many" if x < 0 else int(x)


@tocsin.operator(reads=["x"])
def pretends(x: float) -> Any:
    """Returns a number instead of a truth."""
    return 1 if x < 0 else x > 1


@tocsin.operator(reads=["x"], on_failure="error")
def insists(x: float) -> bool:
    """Makes its failures errors of the event."""
    if x < 0:
        raise ValueError("negative")
    return x > 1


@tocsin.operator(form="bulk", parameters=("x", "least"), limit=1.0)
def sleeps_in_bulk(asked: Any) -> Any:
    """Hangs for a negative number until it is released."""
    if (asked.columns[0] < 0).any():
        released.wait(30)
    return asked.columns[0][asked.rows] > np.array(asked.prepared.values)[asked.which, 0]


@tocsin.operator(form="bulk", parameters=("x", "least"))
def lies_in_bulk(asked: Any) -> Any:
    """Returns too little for a negative number."""
    return asked.columns[0][asked.rows][1:] > 1 if (asked.columns[0] < 0).any() else asked.columns[0][asked.rows] > 1


@tocsin.operator(form="bulk", parameters=("x", "least"))
def pretends_in_bulk(asked: Any) -> Any:
    """Returns texts instead of truths for a negative number."""
    found = asked.columns[0][asked.rows] > 1
    return found.astype(str) if (asked.columns[0] < 0).any() else found


def slow(seconds: float) -> None:
    """Wait without holding anything."""
    time.sleep(seconds)
