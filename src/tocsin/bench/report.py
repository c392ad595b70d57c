"""A run as a page: Markdown with the machine, the targets, the figures and the pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tocsin.bench.engines import MEASURED, Measurement
from tocsin.bench.targets import Target

COLUMNS = (
    "engine",
    "events/s",
    "±",
    "pairs/s",
    "p50 µs",
    "p99 µs",
    "load s",
    "bytes each",
    "2 threads",
    "note",
)


def page(
    about: dict[str, Any],
    measurements: Sequence[Measurement],
    extras: dict[str, Any],
    found: Sequence[Target],
    pictures: Sequence[Path],
    beside: Path,
) -> str:
    """Return the page; ``beside`` is the folder it will be in, from which pictures are named."""
    parts = [
        "# Benchmarks\n",
        f"This page is written by `{about['command']}` in {about['minutes']} minutes; the same writes it anew.\n",
        machine_line(about),
        _GUIDE,
        "## Targets\n\n"
        + markdown_table(("target", "measured", "met?"), [(t.target, t.measured, _met(t)) for t in found]),
        "\n".join(f"![{file.stem}]({_relative(file, beside)})" for file in pictures) + "\n",
    ]
    for name, size in dict.fromkeys((one.workload, one.size) for one in measurements):
        rows = [cells(one) for one in measurements if (one.workload, one.size) == (name, size)]
        matches = next(
            (m.pairs_an_event for m in measurements if (m.workload, m.size) == (name, size) and m.was_run), None
        )
        said = f", {matches:,.4g} matches an event" if matches is not None else ""
        parts.append(
            f"## {name}, {size:,} subscriptions\n\n{MEASURED[name].about}{said}.\n\n" + markdown_table(COLUMNS, rows)
        )
    parts += [
        f"## {title}\n\n{_EXPLAINED.get(key, '')}"
        + markdown_table(tuple(extras[key][0]), [tuple(map(_cell, row.values())) for row in extras[key]])
        for key, title in _EXTRAS.items()
        if extras.get(key)
    ]
    return "\n".join(parts)


def cells(one: Measurement) -> tuple[str, ...]:
    """Return a measurement as the cells of a line.

    >>> cells(Measurement("W0", 10, "scan", "engine", note="not tried"))
    ('scan', 'not run', '', '', '', '', '', '', '', 'not tried')
    """
    if not one.was_run:
        return (one.engine, "not run", *[""] * 7, one.note)
    return (
        one.engine,
        _figure(one.events),
        f"{one.spread:.0%}",
        _figure(one.pairs),
        _figure(one.p50),
        _figure(one.p99),
        _figure(one.load),
        _figure(one.bytes_each),
        _figure(one.two_threads),
        one.note,
    )


_GUIDE = """\
- `events/s` and `pairs/s`: `Matcher.match_batch`, Arrow in and out, one thread; the median of the repetitions. `±`:
  half their range over the median.
- `p50`, `p99`: single calls of `Matcher.match` with a dictionary. `2 threads`: two threads ask one matcher.
- `load`: how long the engine takes to take in the boxes; reading expressions takes the same for every engine and is
  measured by `tocsin bench load`. `bytes each`: memory a subscription beyond its id and text.
- `by hand`: a kernel written for that one workload, asked with codes: no Arrow, no ids.
- Peers: one join over all subscriptions, or a loop over lambdas, as one would write them without Tocsin.
- `foretold`: by a smaller size, as if both loading and an event took as many times longer as there are more
  subscriptions. Who is five times slower than the best is measured twice only, unless a target asks for it.
"""

_EXTRAS = {
    "first": "The first match of a process, kernels on disk",
    "saved": "Saved indexes, and one call over two threads",
    "churn": "Matching beside change",
    "leaves": "Memory by the width of expressions",
}

_EXPLAINED = {
    "leaves": "There are more than 50,000 boxes: up to those the index remembers 200 bytes each, to find equal ones, "
    "beyond that\nof one in 256. Boxes hold a few alternatives; programs verify the rest.\n\n",
}
"""What must be known to read a table."""


def machine_line(about: dict[str, Any]) -> str:
    """Return what a run was made on, from `machine.describe`."""
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    return (
        f"{about['date']}, revision {about['revision']}, seed {about['seed']}. {about['processor']}, "
        f"{about['cores']} cores, {about['memory_gb']} GB, {about['system']}; Python {about['python']}, {versions}. "
        f"Load average when it began: {about['load']}.\n"
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown.

    >>> print(markdown_table(("a",), [("1",)]), end="")
    | a |
    |---|
    | 1 |
    """
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _met(target: Target) -> str:
    return "" if target.met is None else "yes" if target.met else "**no**"


def _relative(file: Path, beside: Path) -> str:
    return Path(os.path.relpath(file, beside)).as_posix()
