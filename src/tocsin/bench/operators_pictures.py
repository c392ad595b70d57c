"""The picture of `tocsin bench operators`: figures 4 to 8 of the paper, ours and the printed counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ACROSS = {
    4: ("subscriptions", "subscriptions (uniform)"),
    5: ("subscriptions", "subscriptions (Zipf 1)"),
    6: ("predicates", "predicates (Zipf 1)"),
    7: ("longest", "longest subscription"),
    8: ("popularity", "popularity"),
}
_STYLES = {
    "naive": ("#888888", "o"),
    "sequential": ("#d08020", "s"),
    "sub-order": ("#2060c0", "^"),
    "adaptive": ("#208040", "D"),
    "hindsight": ("#000000", "_"),
}


def draw_figures(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the figures side by side; hollow marks are counts that the paper prints."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures = sorted({row["figure"] for row in rows})
    picture, panels = plt.subplots(1, len(figures), figsize=(4 * len(figures), 3.6), squeeze=False)
    for figure, panel in zip(figures, panels[0], strict=True):
        across, label = _ACROSS[figure]
        points = [row for row in rows if row["figure"] == figure]
        places = [row[across] for row in points]
        for name, (colour, mark) in _STYLES.items():
            panel.plot(places, [row[name] for row in points], color=colour, marker=mark, label=name, linewidth=1)
            printed = [(row[across], row["printed"][name]) for row in points if name in row["printed"]]
            if printed:
                x, y = zip(*printed, strict=True)
                panel.plot(x, y, mark, color=colour, markerfacecolor="none", markersize=11)
        panel.set_yscale("log")
        panel.set_title(f"figure {figure}")
        panel.set_xlabel(label)
    panels[0][0].set_ylabel("predicates evaluated an event")
    panels[0][0].legend(fontsize=7)
    picture.tight_layout()
    picture.savefig(path, dpi=120)
    plt.close(picture)
