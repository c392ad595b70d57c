"""The picture of a run of the marketplace, as a PNG file."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")  # no window: these run where there is no display

from matplotlib import pyplot as plt
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, FILL, LIGHT, GRID = "#1f2a44", "#3b6fb6", "#d9e4f2", "#e6e9ef"


def draw_marketplace(
    file: str | Path, title: str, told: list[tuple[str, float]], items: list[tuple[str, int]], rates: list[float]
) -> None:
    """Draw a run of the marketplace: how many searches an offer rings, what is wanted, and how fast it went."""
    layout = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.15)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), layout=layout)
    figure.suptitle(title, color=INK, fontsize=14, fontweight="bold", x=0.015, ha="left")
    bars = left.bar([label for label, _ in told], [100 * share for _, share in told], color=FILL, width=0.85)
    left.bar_label(bars, fmt=lambda value: f"{value:.0f}" if value >= 1 else "", color=INK, fontsize=9, padding=2)
    left.set(title="searches that an offer rings", ylabel="% of offers", xlabel="searches")
    bars = middle.barh([name for name, _ in reversed(items)], [count for _, count in reversed(items)], color=FILL)
    middle.bar_label(bars, fmt=short, color=INK, fontsize=9, padding=3)
    middle.set(title="matches by item", xticks=[])
    middle.margins(x=0.14)
    steps = range(1, len(rates) + 1)
    right.plot(steps, rates, marker="o", color=FILL, linewidth=2)
    right.fill_between(steps, rates, color=LIGHT)
    right.set(
        title="offers matched a second", xlabel="batch", xticks=list(steps), ylim=(0, 1.15 * max(rates, default=1))
    )
    right.yaxis.set_major_formatter(lambda value, place: short(value))
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        name = axes.get_title()
        axes.set_title("")
        axes.set_title(name, color=INK, loc="left", pad=10)
        axes.tick_params(length=0, labelcolor=INK)
        axes.set_axisbelow(True)
    middle.spines["bottom"].set_visible(False)
    for axes in (left, right):
        axes.grid(axis="y", color=GRID)
        axes.spines["left"].set_visible(False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def short(number: float) -> str:
    """Return a number in few letters.

    >>> short(1_600_000), short(61_200), short(0)
    ('1.6 M', '61 K', '0')
    """
    if number >= 1e6:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f} K" if number >= 1e3 else f"{number:.0f}"
