"""Pictures of covering: the paper's figures 8 to 12, and a forest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from tocsin.bench.pictures import COLOURS, DPI
from tocsin.covering import Tree

LINES = {**COLOURS, "kd": "#0071bc", "zcurve": "#22a6b3", "adaptive in bulk": "#7b1fa2"}

DEEPEST = 12
"""Levels of a forest that are drawn."""

THINNEST = 0.0005
"""What is narrower than this share of the whole is not drawn."""


def draw_all(found: dict[str, list[dict[str, Any]]], directory: Path) -> list[Path]:
    """Write every picture there are figures for; return their files."""
    files = []
    if found.get("modes"):
        files.append(draw_modes(found["modes"], directory / "covering-k.png"))
    if found.get("comparison"):
        files.append(draw_comparison(found["comparison"], directory / "covering-indexes.png"))
    return files


def draw_modes(rows: Sequence[dict[str, Any]], file: Path) -> Path:
    """Draw time by k (figure 8) and queries of unsubscribes by k (figure 9)."""
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.2))
    for load in dict.fromkeys(row["load"] for row in rows):
        for index in dict.fromkeys(row["index"] for row in rows):
            some = [row for row in rows if (row["load"], row["index"]) == (load, index)]
            style = "-" if load == "heavy" else "--"
            ks = [row["k"] for row in some]
            panels[0].plot(ks, [row["seconds"] for row in some], style, color=LINES[index], label=f"{index}, {load}")
            if index == "kd":
                asked = [row["queries_unsubscribe"] for row in some]
                panels[1].plot(ks, asked, style, color=LINES[index], label=load)
    panels[0].set_ylabel("seconds", fontsize=9)
    panels[1].set_ylabel("queries of unsubscribes", fontsize=9)
    panels[1].set_yscale("symlog")
    for panel in panels:
        panel.set_xlabel("k", fontsize=9)
        panel.set_ylim(bottom=0)
        panel.legend(fontsize=8)
    return _saved(figure, file)


def draw_comparison(rows: Sequence[dict[str, Any]], file: Path) -> Path:
    """Draw total time by commands, a panel for each dimension (figures 10 to 12)."""
    dimensions = list(dict.fromkeys(row["dimensions"] for row in rows))
    figure, panels = pyplot.subplots(1, len(dimensions), figsize=(3.6 * len(dimensions), 3.2), squeeze=False)
    for dimension, panel in zip(dimensions, panels.flat, strict=True):
        here = [row for row in rows if row["dimensions"] == dimension]
        for index in dict.fromkeys(row["index"] for row in here):
            some = [row for row in here if row["index"] == index]
            places, seconds = [row["commands"] for row in some], [row["seconds"] for row in some]
            panel.plot(places, seconds, "." if len(some) == 1 else ".-", color=LINES.get(index), label=index)
        panel.set_title(f"{dimension} dimensions", fontsize=10)
        panel.set_xlabel("commands", fontsize=9)
        panel.set_yscale("log")
    panels[0, 0].set_ylabel("seconds", fontsize=9)
    panels[0, 0].legend(fontsize=8)
    return _saved(figure, file)


def draw_forest(trees: Sequence[Tree], file: Path) -> Path:
    """Draw a forest from the top down: a node is as wide as its tree is large."""
    total = max(1, sum(tree.size for tree in trees))
    figure, panel = pyplot.subplots(figsize=(10, 3.6))
    begin = 0.0
    waiting: list[tuple[Tree, float, int, int]] = []
    for colour, tree in enumerate(trees):
        waiting.append((tree, begin, 0, colour))
        begin += tree.size / total
    shades = matplotlib.colormaps["tab20"]
    while waiting:
        tree, left, depth, colour = waiting.pop()
        wide = tree.size / total
        if wide < THINNEST or depth >= DEEPEST:
            continue
        panel.barh(-depth, wide, 0.9, left, color=shades(colour % 20), edgecolor="white", alpha=1 - depth / 16)
        if wide > 0.04:
            named = str(tree.owners[0]) + (f" +{len(tree.owners) - 1}" if len(tree.owners) > 1 else "")
            panel.text(left + wide / 2, -depth, f"{named[:24]}\n{tree.size:,}", ha="center", va="center", fontsize=7)
        inner = left + len(tree.owners) / total
        for child in tree.children:
            waiting.append((child, inner, depth + 1, colour))
            inner += child.size / total
    panel.set_xlim(0, 1)
    panel.axis("off")
    return _saved(figure, file)


def _saved(figure: Any, file: Path) -> Path:
    figure.tight_layout()
    figure.savefig(file, dpi=DPI)
    pyplot.close(figure)
    return file
