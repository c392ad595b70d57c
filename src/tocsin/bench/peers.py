"""What people write instead: a join in DuckDB or Spark SQL, and a Python loop over compiled lambdas.

The joins are those of someone who knows the data: conditions that every subscription has with ``=`` are join keys, the
others are nullable bounds. A workload whose expressions differ in more than their constants has no join.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.bench.loaded import boxes_of
from tocsin.bench.plan import SPARK
from tocsin.bench.timing import Answer
from tocsin.bench.workloads import Workload
from tocsin.errors import TocsinError

LAMBDAS = 2_000
"""So many lambdas are compiled at most; the loop is linear, and its rate is scaled to the size asked for."""

CELLS = 100_000_000
"""A table of bounds with more cells is not made."""

TEXT_JOIN = "e.a0 = s.w0 AND e.a1 IN (s.w1, s.w2, s.w3) AND e.a2 LIKE s.w4 AND e.a3 LIKE s.w5"


class NoPeerError(TocsinError):
    """Something that cannot be written, or not started, that way."""


class Peer(NamedTuple):
    """What answers, how long its subscriptions took to load, how many events there are to ask about, whether always
    about all of them at once, how many times as many subscriptions it stands for, and how to end it."""

    answer: Answer
    load: float
    rows: int
    at_once: bool = False
    scale: float = 1.0
    close: Callable[[], None] = lambda: None


def join_of(workload: Workload, size: int) -> tuple[pa.Table, str]:
    """Return subscriptions as a table ``s`` of constants, and the condition that joins events ``e`` to it.

    >>> from tocsin.bench.workloads import WORKLOADS
    >>> join_of(WORKLOADS["W1"], 5)[1][:70]
    'e.a0 = s.low0 AND e.a1 = s.low1 AND e.a2 BETWEEN s.low2 AND s.high2 AN'
    """
    if workload.name == "text":
        words = pc.split_pattern(workload.expressions(size)["expression"], "'")
        columns = {f"w{place}": pc.list_element(words, 2 * place + 1) for place in range(6)}
        return pa.table({"id": np.arange(size), **columns}), TEXT_JOIN
    if not workload.has_arrays:
        raise NoPeerError("the expressions differ in more than their constants; a join would be one a subscription")
    if 2 * workload.axes * size > CELLS:
        raise NoPeerError(f"the table of bounds would have {2 * workload.axes * size:,} cells")
    boxes = boxes_of(workload, size)
    kind = np.float64 if workload.fractions else np.int64  # the codes of doubles that are not negative are their bits
    owner = np.repeat(np.arange(size), np.diff(boxes.offsets))
    table: dict[str, Any] = {"id": np.arange(size)}
    keys, bounds = [], []
    for axis in np.unique(boxes.axis).tolist():
        here = np.flatnonzero(boxes.axis == axis)
        low, high = boxes.low[here], boxes.high[here]
        missing = np.ones(size, bool)
        missing[owner[here]] = False
        table[f"low{axis}"] = _column(low.view(kind), owner[here], missing)
        condition = f"e.a{axis} = s.low{axis}"
        if not np.array_equal(low, high):
            table[f"high{axis}"] = _column(high.view(kind), owner[here], missing)
            condition = f"e.a{axis} BETWEEN s.low{axis} AND s.high{axis}"
        if missing.any():
            bounds.append(f"(s.low{axis} IS NULL OR {condition})")
        else:
            keys.append(condition)
    return pa.table(table), " AND ".join(keys + bounds)


def duckdb_join(workload: Workload, size: int, rows: int) -> Peer:
    """Return a join by DuckDB with one thread, Arrow in and out."""
    subscriptions, condition = join_of(workload, size)
    events = _numbered(workload.events(rows))
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", subscriptions)
    started = time.perf_counter()
    connection.execute("CREATE TABLE s AS SELECT * FROM given")
    load = time.perf_counter() - started

    def answer(some: int) -> int:
        connection.register("e", events.slice(0, some))
        return int(connection.sql(f"SELECT e.event, s.id FROM e JOIN s ON {condition}").to_arrow_table().num_rows)

    return Peer(answer, load, rows)


def spark_join(workload: Workload, size: int, rows: int) -> Peer:
    """Return a join by Spark SQL on one core, Arrow in and out."""
    subscriptions, condition = join_of(workload, size)
    compares_all = " = " not in condition.partition("(")[0]  # no equality that every subscription has
    try:
        from tocsin.spark.session import local_session

        session = local_session(1, memory="4g", spark_sql_shuffle_partitions="1")
        _begun[:] = [session]
    except (ImportError, TocsinError) as error:
        raise NoPeerError(str(error)) from None
    rows = min(rows, 64 if compares_all else 512)
    events = _numbered(workload.events(rows))
    session.createDataFrame(subscriptions.slice(0, 1)).cache().count()  # the first of all takes longer than any other
    started = time.perf_counter()
    session.createDataFrame(subscriptions).cache().createOrReplaceTempView("s")
    session.table("s").count()
    load = time.perf_counter() - started

    def answer(some: int) -> int:
        session.createDataFrame(events.slice(0, some)).createOrReplaceTempView("e")
        return int(session.sql(f"SELECT e.event, s.id FROM e JOIN s ON {condition}").toArrow().num_rows)

    return Peer(answer, load, rows, at_once=True, close=session.catalog.clearCache)


_begun: list[Any] = []
"""The Spark session that joins use, once there is one."""


def end_spark() -> None:
    """End the session that `spark_join` began, which several use one after the other."""
    while _begun:
        _begun.pop().stop()


def python_loop(workload: Workload, size: int, rows: int) -> Peer:
    """Return a loop over compiled lambdas."""
    count = min(size, LAMBDAS)
    texts = workload.expressions(count)["expression"].to_pylist()
    started = time.perf_counter()
    accepted: list[Callable[[dict[str, Any]], bool]] = [
        eval(f"lambda e: {condition}")  # the texts are generated a few modules away
        for condition in map(to_python, texts)
    ]
    load = time.perf_counter() - started
    events = workload.events(min(rows, 1_024)).to_pylist()

    def answer(some: int) -> int:
        found = [
            (row, id) for row, event in enumerate(events[:some]) for id, holds in enumerate(accepted) if holds(event)
        ]
        return len(found)

    return Peer(answer, load, len(events), scale=size / count)


def to_python(text: str) -> str:
    """Return an expression of a workload as Python over a dictionary ``e``.

    >>> to_python("a0 = 9 AND a1 BETWEEN 0.1 AND 0.5 AND NOT a2 LIKE 'x%'")
    "e['a0'] == 9 and (e['a1'] is not None and 0.1 <= e['a1'] <= 0.5) and not e['a2'].startswith('x')"
    """
    for pattern, replacement in _PYTHON:
        text = re.sub(pattern, replacement, text)
    return text


_PYTHON = (
    (r"(a\d+) BETWEEN (\S+) AND ([^ )]+)", r"(\1 is not None and \2 <= \1 <= \3)"),
    (r"(a\d+) LIKE '%(\w+)'", r"\1.endswith('\2')"),
    (r"(a\d+) LIKE '(\w+)%'", r"\1.startswith('\2')"),
    (r" <> ", " != "),
    (r" = ", " == "),
    (r" IN ", " in "),
    (r"\bAND\b", "and"),
    (r"\bOR\b", "or"),
    (r"\bNOT\b", "not"),
    (r"\b(a\d+)\b", r"e['\1']"),
)

PEERS: dict[str, Callable[[Workload, int, int], Peer]] = {
    "DuckDB join": duckdb_join,
    SPARK: spark_join,
    "Python loop": python_loop,
}
"""What is measured beside the engines, by name."""


def _column(values: Any, owner: Any, missing: Any) -> pa.Array:
    whole = np.zeros(len(missing), values.dtype)
    whole[owner] = values
    return pa.array(whole, mask=missing)


def _numbered(events: pa.Table) -> pa.Table:
    return events.append_column("event", pa.array(np.arange(events.num_rows)))
