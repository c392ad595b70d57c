"""A run of `tocsin bench meaning` as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.bench.meaning import Figure
from tocsin.bench.report import machine_line, markdown_table
from tocsin.bench.targets import Target

_GUIDE = """\
Everything is asked through `Matcher`: subscriptions are texts, events an Arrow table, answers ids. Rates are of one
core, in processor time, the median of five; growth is in elapsed time. Second parents are measured with a tenth of the
subscriptions. Matches are part of the work: where an event has hundreds, they are most of it. The engines and the older
strategies are compared by arrays alone in [concepts](concepts-benchmark.md).
"""


def page(about: dict[str, Any], found: Sequence[Figure], held: Sequence[Target], picture: str) -> str:
    """Return the page; the picture is named as seen from it.

    >>> about = {"command": "tocsin bench meaning", "date": "", "seed": 6, "revision": "", "processor": "", "cores": 2}
    >>> about |= {"memory_gb": 1, "system": "", "python": "", "packages": {}, "load": 0}
    >>> print(page(about, [Figure("units", "texts", 1e6, "values/s")], [], "meaning.png").splitlines()[-1])
    | texts | 1,000,000 values/s |
    """
    marks = {True: "yes", False: "**no**", None: ""}
    parts = [
        "# Meaning: what it costs\n",
        f"This page is written by `{about['command']}`; the same command writes it anew.\n",
        machine_line(about),
        _GUIDE,
        markdown_table(("target", "measured", "met?"), [(one.target, one.measured, marks[one.met]) for one in held]),
        f"![meaning]({picture})\n",
    ]
    for part in dict.fromkeys(one.part for one in found):
        rows = [(one.what, f"{_figure(one.value)} {one.unit}".strip()) for one in found if one.part == part]
        parts.append(f"## {part[:1].upper()}{part[1:]}\n\n" + markdown_table(("measured", "figure"), rows))
    return "\n".join(parts)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
