"""Trucks on a map: an uncertain position, a yard that stands, and a fence that moves with a convoy.

Run it with the file to write: ``python examples/trucks.py trucks.png``. It prints every transition as it happens.
"""

from __future__ import annotations

import math
import sys

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
            panel.annotate(f"{kind} {fence}", (x, y), (x - 4, y + 6), color=colour, fontsize=8)
    panel.annotate("convoy", (convoy(0)["x"][0] + 1, 33), color="#e67e22")
    panel.set(xlim=(0, 105), ylim=(0, 45), xlabel="km", ylabel="km", title="a truck, a yard and a convoy's fence")
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def _rectangle(fence: dict[str, tuple[float, float]], **style: object) -> Rectangle:
    (left, right), (bottom, top) = fence["x"], fence["y"]
    return Rectangle((left, bottom), right - left, top - bottom, **style)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "trucks.png")
