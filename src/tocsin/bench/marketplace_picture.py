"""The picture of a run of the marketplace, as a PNG file."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")  # no window: these run where there is no display

from matplotlib import pyplot as plt

INK, FILL, LIGHT = "#1f2a44", "#3b6fb6", "#d9e4f2"


def draw_marketplace(
    file: str | Path, title: str, told: list[tuple[str, float]], items: list[tuple[str, int]], rates: list[float]
) -> None:
    """Draw a run of the marketplace: how many searches an offer rings, what is wanted, and how fast it went."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), constrained_layout=True)
    figure.suptitle(title, color=INK)
    left.bar([label for label, _ in told], [100 * share for _, share in told], color=FILL)
    left.set(title="searches that an offer rings", ylabel="% of offers", xlabel="searches")
    middle.barh([name for name, _ in reversed(items)], [count for _, count in reversed(items)], color=FILL)
    middle.set(title="matches by item", xlabel="matches")
    middle.xaxis.set_major_formatter(lambda value, place: f"{value / 1000:,.0f} K" if value else "0")
    right.yaxis.set_major_formatter(lambda value, place: f"{value / 1000:,.0f} K" if value else "0")
    right.plot(range(1, len(rates) + 1), rates, marker="o", color=FILL)
    right.fill_between(range(1, len(rates) + 1), rates, color=LIGHT)
    right.set(title="offers matched a second", xlabel="batch", ylim=(0, None))
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_color(INK)
    figure.savefig(file, dpi=110)
    plt.close(figure)
