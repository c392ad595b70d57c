"""A run of `tocsin bench concepts` as a page and pictures, beside what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from tocsin.bench.concepts import ENGINES, PAPER_SIZES, WAYS, Measured
from tocsin.bench.pictures import DPI
from tocsin.bench.report import machine_line, markdown_table
from tocsin.bench.targets import Target

COLOURS = {
    "bitmap": "#0071bc",
    "adaptive": "#c1272d",
    "walk": "#000000",
    "expand events": "#e67e22",
    "expand subscriptions": "#7d5fff",
}

SAID = (
    ("figure 7 (a), height 1: expanding subscriptions runs out of memory beyond 8,500 of them (8 GB)", "MIC, Java"),
    ("figure 7 (b), height 5: under 3 MB at 10,000 subscriptions; less than walking the tree takes", "CTPS, G-ToPSS"),
    ("height 4: expanding subscriptions takes 1,000 of them, height 5 fewer than 500", "MIC"),
    ("figure 8 (b) and (c): the time of walking grows with the height, that of bit arrays does not", "G-ToPSS, CTPS"),
    ("figure 8 (c), height 5: bit arrays are about 70 times as fast as walking the tree", "CTPS, G-ToPSS"),
    ("figure 8 (d): the time of bit arrays grows slowly with the share of matching subscriptions", "CTPS"),
)
"""What the text of the paper says of its figures, and of which systems."""


def page(about: dict[str, Any], run: Sequence[Measured], held: Sequence[Target], pictures: Sequence[str]) -> str:
    """Return the page; pictures are named as seen from it."""
    marks = {True: "yes", False: "**no**", None: ""}
    parts = [
        "# Concepts: the older strategies, bit arrays, and `adaptive`\n",
        f"This page is written by `{about['command']}`; the same command writes it anew.\n",
        machine_line(about),
        _GUIDE,
        markdown_table(("target", "measured", "met?"), [(one.target, one.measured, marks[one.met]) for one in held]),
        "What the paper says (JDK 1.8, Intel i5-6200, 8 GB):\n",
        markdown_table(("statement", "of"), SAID),
        "\n".join(f"![{Path(name).stem}]({name})" for name in pictures) + "\n",
    ]
    plain = [one for one in run if not one.broad]
    for height in sorted({one.height for one in plain}):
        here = [one for one in plain if one.height == height]
        parts.append(f"## Height {height}\n\nMicroseconds an event:\n\n" + _by_size(here, lambda one: one.micros))
        parts.append("Megabytes:\n\n" + _by_size(here, lambda one: one.bytes / 1e6 if one.bytes else None))
    parts.append("## Match rate, 10,000 subscriptions, height 5\n\n" + _by_rate(run))
    notes = dict.fromkeys(f"- {one.way}, height {one.height}, {one.size:,}: {one.note}." for one in run if one.note)
    if notes:
        parts.append("## Not run\n\n" + "\n".join(notes) + "\n")
    return "\n".join(parts)


_GUIDE = """\
Table 1 of the paper: six attributes, four with a tree of concepts (two children a node), two numeric; each subscription
constrains all six, each event has all six. Concepts are drawn evenly from the whole tree. Numeric intervals are a third
of the range at height 5, and as wide at other heights as gives the same number of matches, about five in a million: the
paper does not say how wide its are. Everything is asked with codes in arrays, 1,000 events in a batch up to 10,000
subscriptions and 8,192 beyond; times are those of the processor for the one thread. All ways find the same pairs, or
the run stops. `walk` is G-ToPSS, `expand events` S-ToPSS, `expand subscriptions` MIC (`bench/concept_strategies.py`).
"""


def _by_size(run: Sequence[Measured], figure: Callable[[Measured], float | None]) -> str:
    sizes = sorted({one.size for one in run})
    rows = []
    for way in WAYS:
        mine = {one.size: figure(one) for one in run if one.way == way}
        if mine:
            rows.append((way, *(_figure(mine.get(size)) for size in sizes)))
    return markdown_table(("way", *(f"{size:,}" for size in sizes)), rows)


def _by_rate(run: Sequence[Measured]) -> str:
    here = [one for one in run if one.height == 5 and one.size == PAPER_SIZES[-1] and one.way in ENGINES]
    shares = sorted({one.broad for one in here})
    rows = [
        (way, *(_figure(next((m.micros for m in here if (m.way, m.broad) == (way, share)), None)) for share in shares))
        for way in ENGINES
    ]
    return markdown_table(("µs an event", *(f"{share:.0%}" for share in shares)), rows)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw_figures(run: Sequence[Measured], directory: Path) -> list[Path]:
    """Write figures 7 and 8, and what lies beyond the paper's sizes; return their files."""
    directory.mkdir(parents=True, exist_ok=True)
    plain = [one for one in run if not one.broad]
    return [
        _figure_7([one for one in plain if one.size <= PAPER_SIZES[-1]], directory / "concepts-figure-7.png"),
        _figure_8(run, directory / "concepts-figure-8.png"),
        _beyond([one for one in plain if one.height == 5], directory / "concepts-large.png"),
    ]


def _figure_7(run: Sequence[Measured], file: Path) -> Path:
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.4))
    for panel, height, letter in zip(panels, (1, 5), "ab", strict=True):
        here = [one for one in run if one.height == height]
        _lines(panel, here, lambda one: one.size, lambda one: one.bytes / 1e6 if one.bytes else None)
        _name(panel, f"7 ({letter}) memory, height {height}", "subscriptions", "MB")
        panel.set_yscale("log")
    panels[0].legend(fontsize=7)
    return _saved(figure, file)


def _figure_8(run: Sequence[Measured], file: Path) -> Path:
    figure, panels = pyplot.subplots(2, 2, figsize=(10, 6.4))
    plain = [one for one in run if not one.broad]
    for panel, height, letter in ((panels[0, 0], 1, "a, b"), (panels[0, 1], 5, "c")):
        here = [one for one in plain if one.height == height and one.size <= PAPER_SIZES[-1]]
        _lines(panel, here, lambda one: one.size, lambda one: one.micros)
        _name(panel, f"8 ({letter}) 1,000 events, height {height}", "subscriptions", "ms")
        panel.set_yscale("log")
    rates = [one for one in run if one.way in ENGINES and one.height == 5 and one.size == PAPER_SIZES[-1]]
    _lines(panels[1, 0], rates, lambda one: one.broad * 100, lambda one: one.micros)
    _name(panels[1, 0], "8 (d) 10,000 subscriptions, height 5", "% of subscriptions that match", "ms")
    heights = [one for one in plain if one.size == PAPER_SIZES[-1]]
    _lines(panels[1, 1], heights, lambda one: one.height, lambda one: one.micros)
    _name(panels[1, 1], "10,000 subscriptions by height", "height", "ms")
    panels[1, 1].set_yscale("log")
    panels[0, 0].legend(fontsize=7)
    return _saved(figure, file)


def _beyond(run: Sequence[Measured], file: Path) -> Path:
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.4))
    _lines(panels[0], run, lambda one: one.size, lambda one: one.micros)
    _name(panels[0], "height 5", "subscriptions", "µs an event")
    _lines(panels[1], run, lambda one: one.size, lambda one: one.bytes / 1e6 if one.bytes else None)
    _name(panels[1], "height 5", "subscriptions", "MB")
    for panel in panels:
        panel.set_xscale("log")
        panel.set_yscale("log")
    panels[0].legend(fontsize=7)
    return _saved(figure, file)


def _lines(
    panel: Axes, run: Sequence[Measured], across: Callable[[Measured], float], up: Callable[[Measured], Any]
) -> None:
    for way in WAYS:
        points = sorted((across(one), up(one)) for one in run if one.way == way and up(one) is not None)
        if points:
            panel.plot(*zip(*points, strict=True), marker="o", markersize=3, label=way, color=COLOURS[way])


def _name(panel: Axes, title: str, across: str, up: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(across, fontsize=8)
    panel.set_ylabel(up, fontsize=8)
    panel.tick_params(labelsize=7)
    panel.grid(alpha=0.3)


def _saved(figure: Any, file: Path) -> Path:
    figure.tight_layout()
    figure.savefig(file, dpi=DPI, metadata={"Software": None})
    pyplot.close(figure)
    return file
