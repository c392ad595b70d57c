"""Pictures of measurements: small PNG files that read in a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from tocsin.bench.engines import Measurement
from tocsin.bench.plan import BY_HAND

COLOURS = {
    "adaptive": "#c1272d",
    "by hand": "#000000",
    "dynamic": "#0071bc",
    "static": "#22a6b3",
    "propagation": "#7d5fff",
    "propagation-prefetch": "#b39ddb",
    "counting": "#e67e22",
    "bounds": "#f2b134",
    "bitmap": "#2e8b57",
    "scan": "#8d6e63",
    "DuckDB join": "#9e9e9e",
    "Spark SQL join": "#616161",
    "Python loop": "#c9a0a0",
}
"""One of its own for whatever may stand in a picture."""

DPI = 80


def draw_all(measurements: Sequence[Measurement], directory: Path) -> list[Path]:
    """Write every picture there are figures for; return their files."""
    directory.mkdir(parents=True, exist_ok=True)
    run = [one for one in measurements if one.was_run]
    files = [draw_rates(run, directory / "events.png")] if run else []
    if any(one.bytes_each for one in run):
        files.append(draw_memory(run, directory / "memory.png"))
    if any(one.workload == "W0" for one in run):
        files.append(draw_w0(run, directory / "w0.png"))
    return files


def draw_rates(run: Sequence[Measurement], file: Path) -> Path:
    """Draw events a second against subscriptions, a panel for each workload."""
    names = list(dict.fromkeys(one.workload for one in run))
    columns = min(4, len(names))
    lines = -(-len(names) // columns)
    figure, panels = pyplot.subplots(lines, columns, figsize=(3.4 * columns, 2.7 * lines), squeeze=False)
    for name, panel in zip(names, panels.flat, strict=False):
        _lines(panel, [one for one in run if one.workload == name], lambda one: one.events)
        panel.set_title(name, fontsize=10)
    for panel in list(panels.flat)[len(names) :]:
        panel.axis("off")
    handles = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=min(6, len(handles)), fontsize=8)
    figure.supylabel("events a second", fontsize=9)
    figure.tight_layout(rect=(0.01, 0.06, 1, 1))
    return _saved(figure, file)


def draw_memory(run: Sequence[Measurement], file: Path) -> Path:
    """Draw bytes a subscription: a group of bars for each workload at its largest size."""
    cells = {one.workload: max(m.size for m in run if m.workload == one.workload) for one in run}
    engines = list(dict.fromkeys(one.engine for one in run if one.bytes_each))
    figure, panel = pyplot.subplots(figsize=(10, 3.4))
    for place, engine in enumerate(engines):
        heights = {
            m.workload: m.bytes_each for m in run if m.engine == engine and m.bytes_each and m.size == cells[m.workload]
        }
        at = [list(cells).index(workload) + (place - len(engines) / 2) * 0.8 / len(engines) for workload in heights]
        panel.bar(at, list(heights.values()), 0.8 / len(engines), label=engine, color=COLOURS.get(engine), align="edge")
    panel.set_xticks(range(len(cells)), [f"{name}\n{size:,}" for name, size in cells.items()], fontsize=8)
    panel.set_yscale("log")
    panel.set_ylabel("bytes a subscription", fontsize=9)
    panel.legend(fontsize=8, ncols=4)
    figure.tight_layout()
    return _saved(figure, file)


def draw_w0(run: Sequence[Measurement], file: Path) -> Path:
    """Draw milliseconds for 100 events of W0, memory and load, as the paper's figure 3 does."""
    engines = [one for one in run if one.workload == "W0" and one.kind != "peer"]
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 3.2))
    _lines(panels[0], engines, lambda one: 1e5 / one.events)
    panels[0].set_title("ms for 100 events", fontsize=10)
    _lines(panels[1], engines, lambda one: one.bytes_each and one.bytes_each * one.size / 2**20)
    panels[1].set_title("memory, MB", fontsize=10)
    _lines(panels[2], engines, lambda one: one.load)
    panels[2].set_title("loading, s", fontsize=10)
    panels[0].legend(fontsize=7)
    figure.tight_layout()
    return _saved(figure, file)


def draw_drift(experiments: Sequence[dict[str, Any]], file: Path) -> Path:
    """Draw events a second over the course of each experiment: of matching alone, and, as the paper's figure 4 does,
    with the changes counted."""
    figure, panels = pyplot.subplots(2, len(experiments), figsize=(5.4 * len(experiments), 6.4), squeeze=False)
    for row, (kind, said) in enumerate((("matching", "matching alone"), ("events", "changes counted"))):
        for experiment, panel in zip(experiments, panels[row], strict=True):
            for strategy, rates in experiment[kind].items():
                engine, _, unchanged = strategy.partition(" ")
                line = "--" if unchanged else "-"
                panel.plot(experiment["replaced"], rates, line, marker=".", color=COLOURS.get(engine), label=strategy)
            for engine, rates in experiment["anew"].items() if kind == "matching" else ():
                replaced = experiment["replaced"][-len(rates) :]
                panel.plot(replaced, rates, "x", color=COLOURS.get(engine), label=f"{engine}, begun anew")
            panel.set_title(f"{experiment['experiment']}, {experiment['size']:,} subscriptions, {said}", fontsize=9)
            panel.set_xlabel("% replaced", fontsize=9)
            panel.set_yscale("log")
            panel.grid(alpha=0.3)
        panels[row, 0].set_ylabel("events a second", fontsize=9)
    panels[0, 0].legend(fontsize=7)
    figure.tight_layout()
    return _saved(figure, file)


def _lines(panel: Axes, run: Sequence[Measurement], figure_of: Any) -> None:
    for engine in dict.fromkeys(one.engine for one in run):
        points = sorted((one.size, figure_of(one)) for one in run if one.engine == engine and figure_of(one))
        if points:
            line = ":" if engine == BY_HAND else "-"
            sizes, figures = zip(*points, strict=True)
            panel.plot(sizes, figures, line, marker="o", markersize=3, label=engine, color=COLOURS.get(engine))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.tick_params(labelsize=7)
    panel.grid(alpha=0.3)


def _saved(figure: Any, file: Path) -> Path:
    figure.savefig(file, dpi=DPI, metadata={"Software": None})
    pyplot.close(figure)
    return file
