"""Trucks on a map: an uncertain position, a yard that stands, and a fence that moves with a convoy.

Run it with the file to write: ``python examples/trucks.py trucks.png``. It prints every transition as it happens.
"""

from __future__ import annotations

import argparse
import math

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.patches import Rectangle

from tocsin import Number, Space, Subjects

YARD = {"x": (30.0, 45.0), "y": (10.0, 30.0)}
STEPS = 40


def position(step: int) -> tuple[float, float, float]:
    """Where the truck is at a step, and how far it may be from there."""
    part = step / STEPS
    return 8 + 80 * part, 20 + 12 * math.sin(5 * part), 1.0 + 2.5 * abs(math.sin(9 * part))


def convoy(step: int) -> dict[str, tuple[float, float]]:
    """The fence around the convoy at a step."""
    left = 85 - 45 * step / STEPS
    return {"x": (left, left + 14), "y": (18.0, 36.0)}


def main(file: str) -> None:
    """Move the truck and the convoy, print what enters and leaves, and draw it."""
    subjects = Subjects(Space({"x": Number(), "y": Number()}))
    subjects.subscribe("yard", YARD)
    subjects.subscribe("convoy", convoy(0))
    figure, panel = pyplot.subplots(figsize=(8, 4))
    panel.add_patch(_rectangle(YARD, color="#0071bc", alpha=0.25))
    panel.annotate("yard", (31, 11))
    seen = 0
    for step in range(STEPS + 1):
        x, y, doubt = position(step)
        here = {"x": (x - doubt, x + doubt), "y": (y - doubt, y + doubt)}
        told = [*subjects.change("convoy", convoy(step)), *subjects.put("truck", here)]
        if step % 8 == 0:
            panel.add_patch(_rectangle(convoy(step), edgecolor="#e67e22", fill=False, alpha=0.2 + 0.7 * step / STEPS))
        panel.errorbar(x, y, xerr=doubt, yerr=doubt, color="#888888", fmt="o", ms=2, lw=0.8)
        for kind, _, fence in told:
            print(f"step {step:2}: truck {'enters' if kind == 'enter' else 'leaves'} {fence}")
            colour = "#2e7d32" if kind == "enter" else "#c1272d"
            panel.plot(x, y, marker="^" if kind == "enter" else "v", ms=10, color=colour)
            panel.annotate(
                f"{step}: {kind} {fence}",
                (x, y),
                (x - 10 + 6 * (seen % 3), y + 5 + 3.5 * (seen % 3)),
                color=colour,
                fontsize=8,
                arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5},
            )
            seen += 1
    for step in (0, STEPS):
        panel.annotate(f"convoy at step {step}", (convoy(step)["x"][0] + 0.5, 16.2), color="#e67e22", fontsize=8)
    panel.annotate("the truck, bars: where it may be", (8, 20), (2, 14), color="#666666", fontsize=8)
    panel.set(xlim=(0, 105), ylim=(0, 48), xlabel="km", ylabel="km", title="a truck, a yard and a convoy's fence")
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def _rectangle(fence: dict[str, tuple[float, float]], **style: object) -> Rectangle:
    (left, right), (bottom, top) = fence["x"], fence["y"]
    return Rectangle((left, bottom), right - left, top - bottom, **style)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="trucks.png", help="the picture to write")
    main(parser.parse_args().file)
