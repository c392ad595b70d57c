"""The picture of what meaning costs, as a PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # no window: these run where there is no display

from matplotlib import pyplot as plt

from tocsin.bench.meaning import Figure

INK, FILL = "#1f2a44", "#3b6fb6"


def draw_meaning(file: str | Path, figures: Sequence[Figure]) -> None:
    """Draw events a second for each kind of subscription, with second parents, and the cost of growth."""
    panels = {
        "events a second, by subscription": _bars(figures, "matching", " x ", 0),
        "events a second, by second parents": _bars(figures, "matching", "second parent", 1),
        "growth, ms": [
            (one.what.removeprefix("growth, "), one.value) for one in figures if one.what.startswith("growth")
        ],
    }
    figure, axes = plt.subplots(1, 3, figsize=(15, 4), constrained_layout=True)
    for (title, bars), panel in zip(panels.items(), axes, strict=True):
        panel.barh([label for label, _ in reversed(bars)], [value for _, value in reversed(bars)], color=FILL)
        panel.set_title(title, color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xscale("log") if title.startswith("growth") else None
        panel.xaxis.set_major_formatter(lambda value, place: f"{value:,.0f}")
    figure.savefig(file, dpi=80)
    plt.close(figure)


def _bars(figures: Sequence[Figure], what: str, sign: str, place: int) -> list[tuple[str, float]]:
    chosen = [one for one in figures if one.what == what and sign in one.part]
    return [(one.part.split(sign)[-1] if place == 0 else one.part.split(", ")[1], one.value) for one in chosen]
