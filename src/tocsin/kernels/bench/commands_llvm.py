"""How compiled kernels use an index of any kind, see `commands.py`: imported only when something is compiled."""

from __future__ import annotations

from numba.extending import overload

from tocsin.kernels.bench.commands import KINDS, ask, drop, put
from tocsin.kernels.compile import for_compiler


@overload(ask)
def _overload_ask(index, rows, question, settings, live, tally):  # type: ignore[no-untyped-def]
    return for_compiler(KINDS[index.instance_class].ask)


@overload(put)
def _overload_put(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    return for_compiler(KINDS[index.instance_class].put)


@overload(drop)
def _overload_drop(index, rows, slots, settings, live):  # type: ignore[no-untyped-def]
    return for_compiler(KINDS[index.instance_class].drop)
