"""Kernels compiled by Numba when they are first called, and cached on disk: where there is no native code.

Numba compares only the file of a kernel with what it has cached; here every cached kernel carries the fingerprint of
all that it is compiled from. Before Numba loads a cached kernel it imports all that it could compile with, and then the
modules of all functions that are built into it, a quarter of a second in the first call of a process. What a cached
kernel needs of that is the memory management alone; the rest, and our own modules of machine code (``*_llvm.py``), are
imported when something is compiled.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from .compile import RECORDING, Deferred, deferred_behind, fingerprint, notice

CACHED = os.environ.get("TOCSIN_NATIVE") != "build"
"""Whether kernels are kept on disk: `native/build.py` needs the compiler's own view of them, which is not kept."""


def compiled(function: Any, flags: dict[str, Any]) -> Any:
    """Return a function as a kernel that Numba compiles when it is first called."""
    made = numba.njit(boundscheck=False, **flags)(function)
    made.__class__ = _Kernel
    if CACHED:
        _enable_caching(made, Path(function.__code__.co_filename))
    return made


def _enable_caching(made: Any, file: Path) -> None:
    try:
        made.enable_caching()
    except RuntimeError:  # Numba found no place that it can write to
        notice("cache", f"kernels are compiled in memory: neither {file.parent} nor a cache folder of this user can be "
                        "written to; set NUMBA_CACHE_DIR to one that can, to keep them")  # fmt: skip
        return
    made._cache.__class__ = _Cache
    made._cache._cache_file.__class__ = _File
    made._cache._cache_file._source_stamp = f"{fingerprint(file)} {_toolchain()}"


@functools.cache
def _toolchain() -> str:
    """Return what else the code of a kernel depends on."""
    return f"{numba.__version__} {fingerprint(Path(__file__))}"


# Kernels that have native code, or had, are compiled as copies: what Numba compiles must call dispatchers, where the
# kernel's own module holds native code.


def dispatcher(deferred: Deferred) -> Any:
    """Return Numba's dispatcher of a kernel."""
    with global_compiler_lock:
        if deferred.dispatcher is None:
            function = for_compiler(deferred.function)
            if deferred.dispatcher is None:  # its own module may have asked for it meanwhile
                deferred.dispatcher = compiled(function, deferred.flags)
        return deferred.dispatcher


_globals: dict[int, dict[str, Any]] = {}
"""For each module's variables the same ones with dispatchers in the place of native kernels."""


def for_compiler(function: Any) -> Any:
    """Return a copy of a function that calls dispatchers where its module holds native kernels."""
    copied = _globals.get(id(function.__globals__))
    if copied is None:
        copied = _globals[id(function.__globals__)] = dict(function.__globals__)
        for name, value in function.__globals__.items():
            deferred = deferred_behind(value)
            if deferred is not None:
                copied[name] = dispatcher(deferred)
    copy = FunctionType(function.__code__, copied, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def call(deferred: Deferred, arguments: tuple[Any, ...]) -> Any:
    """Call a kernel that has no native code for these arguments."""
    from .native import signatures

    found = dispatcher(deferred)
    if not RECORDING:
        notice("numba", f"{deferred.name} is compiled by Numba: {deferred.why}")
    signatures.record(deferred.name, arguments, sys._getframe(2).f_globals.get("__name__", ""))
    try:
        return found(*arguments)
    except NumbaError as error:
        given = ", ".join(type(argument).__name__ for argument in arguments)
        raise TypeError(f"{deferred.name} cannot be called with {given}") from error


class _Kernel(CPUDispatcher):
    """A dispatcher that compiles one kernel for all constants, and says so when that takes long."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the type of a constant and not for its value, which makes no other code."""
        plain: Any = types.unliteral
        return super().get_call_template(tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()})

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, _clock:
            if not CACHED:
                _import_machine_code()
            return super().compile(sig)


class _Clock:
    """Counts the seconds that this process compiles, and tells about it after the first.

    Entered with Numba's lock held, once for each kernel inside another.
    """

    def __init__(self) -> None:
        self.depth, self.spent = 0, 0.0
        self.started: float | None = None
        self.timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self.depth += 1

    def begin(self) -> None:
        """Take note that a kernel is in no cache."""
        if self.depth and self.started is None:
            self.started = time.monotonic()
            text = "compiling kernels, once: about 40 s"
            self.timer = threading.Timer(max(1 - self.spent, 0), notice, ("compiling", text))
            self.timer.daemon = True
            self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.started is not None and self.timer is not None:
            self.timer.cancel()
            self.spent += time.monotonic() - self.started
            self.started = None


_clock = _Clock()
_looked_at: set[str] = set()


def _import_machine_code() -> None:
    """Import the modules that say how operations of ours are compiled: ``x_llvm`` for every ``x`` that is imported."""
    names = {name for name in sys.modules if name.startswith(f"{__package__}.")} - _looked_at
    _looked_at.update(names)
    for name in sorted(names):
        if not name.endswith("_llvm") and importlib.util.find_spec(f"{name}_llvm") is not None:
            importlib.import_module(f"{name}_llvm")


class _Unpickler(pickle.Unpickler):
    """Reads a kernel without the modules of the functions that are built into it."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return the environment of a function, as Numba's own `_rebuild_env`, but for the module's variables: only object
    mode, in which no kernel runs, looks at more than the name of the module."""
    known = Environment._memo.get(name)
    if known is None:
        known = Environment({"__name__": module})
        known.consts[:] = constants
        known.env_name = name
        Environment._memo[name] = known
    return known


class _File(IndexDataCacheFile):
    """The files of a cached kernel, read as above."""

    def _load_data(self, name: str) -> Any:
        with Path(self._data_path(name)).open("rb") as file:  # type: ignore[no-untyped-call]
            return _Unpickler(file).load()


class _Cache(FunctionCache):
    """A cache that loads kernels without what it takes to compile them."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            _clock.begin()
            _import_machine_code()
        return found
