"""Pictures of `tocsin bench subjects`: the paper's figures 11 to 14, drawn anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from tocsin.bench.pictures import DPI
from tocsin.bench.subjects import PAPER, line_of

TITLES = {"insert": "figure 11: insertion", "random update": "figure 12: random updates"}
TITLES |= {"incremental update": "figure 13: incremental updates"}


def draw_figures(measured: list[dict[str, Any]], matches: list[dict[str, Any]], file: Path) -> Path:
    """Draw milliseconds against subscriptions, a line for each number of publications, and against matches."""
    figure, panels = pyplot.subplots(1, 4, figsize=(14, 3.2))
    held = sorted({one["publications"] for one in measured})
    for (operation, title), panel in zip(TITLES.items(), panels, strict=False):
        for shade, count in enumerate(held):
            line = [one for one in measured if one["operation"] == operation and one["publications"] == count]
            colour = pyplot.get_cmap("Reds")(0.35 + 0.6 * shade / max(1, len(held) - 1))
            x, y = [one["subscriptions"] for one in line], [one["thread_ms"] for one in line]
            panel.plot(x, y, marker="o", ms=3, color=colour, label=f"{count:,} publications")
        stated = [(subs, ms) for (what, _, subs), ms in PAPER.items() if what == operation]
        if stated:
            subs, ms = zip(*stated, strict=True)
            panel.plot(subs, ms, "k--", marker="s", ms=4, label="the paper, 100,000 publications")
        panel.set(xscale="log", yscale="log", xlabel="subscriptions", title=title)
        panel.legend(fontsize=7)
    panels[0].set_ylabel("ms of one call")
    x = [one["matches"] for one in matches]
    fixed, slope, _ = line_of(matches)
    panels[3].plot(x, [one["thread_ms"] for one in matches], "o", ms=4, color="#c1272d", label="updates to ranges")
    fitted = [fixed + slope * each for each in x]
    panels[3].plot(x, fitted, "k--", lw=1, label=f"{fixed:.2f} ms and {slope * 1e6:.0f} ns a match")
    panels[3].set(xlabel="matches of an update", title="figure 14: time against matches", ylim=(0, None))
    panels[3].legend(fontsize=7)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=DPI)
    pyplot.close(figure)
    return file
