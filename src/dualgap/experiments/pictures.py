"""Figures as PNG files. matplotlib is imported here and nowhere else in this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runtime.errors import InputError
from .report import Figure, Panel

# Okabe and Ito's colours, which people of every colour vision can tell apart; markers say the same once more
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
BESIDE = 4  # curves, from which on the legend stands beside the axes
WIDTH, HEIGHT = 5.4, 3.8  # of one panel, in inches
LINE = 0.22  # of a legend below the panels


def _plotting() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install matplotlib, or --no-figures") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _draw(axes: Any, panel: Panel, *, legend: bool) -> None:
    for number, curve in enumerate(panel.curves):
        axes.plot(
            curve.x,
            curve.y,
            ":" if curve.dotted else "--" if curve.dashed else "-",
            color=COLOURS[(number if curve.colour is None else curve.colour) % len(COLOURS)],
            marker=curve.marker or None,
            markersize=4,
            linewidth=1.3,
            label=curve.label,
        )
    for name, value in panel.levels.items():
        axes.axhline(value, color="#555555", linewidth=0.9, linestyle=":", label=name)
    axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    axes.set_xscale(panel.xscale)
    axes.set_yscale(panel.yscale)
    if panel.top is not None:
        axes.set_ylim(0.0, panel.top)
    axes.grid(True, which="major", alpha=0.25)
    if not legend:
        return
    if len(panel.curves) > BESIDE:  # a legend of so many lines would hide some of them
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend(fontsize=8, framealpha=0.9)


def _shared(panels: Sequence[Panel]) -> bool:
    """Whether one legend, below all panels, says what so many legends beside them would."""
    names = [([curve.label for curve in panel.curves], list(panel.levels)) for panel in panels]
    return len(panels) > 1 and len(panels[0].curves) > BESIDE and all(one == names[0] for one in names)


def draw(figure: Figure, folder: Path) -> Path:
    """The figure as a file of its name."""
    plotting = _plotting()
    columns = min(len(figure.panels), 2)
    shared = _shared(figure.panels)
    rows = -(-len(figure.panels) // columns)
    height = HEIGHT * rows + (LINE * -(-len(figure.panels[0].curves) // columns) if shared else 0.0)
    made, grid = plotting.subplots(
        rows, columns, figsize=(WIDTH * columns, height), squeeze=False, layout="constrained"
    )
    for number in range(rows * columns):
        axes = grid[number // columns][number % columns]
        if number < len(figure.panels):
            _draw(axes, figure.panels[number], legend=not shared)
        else:
            axes.set_axis_off()
    if shared:
        handles, labels = grid[0][0].get_legend_handles_labels()
        made.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=columns)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.png"
    made.savefig(path, dpi=110)
    plotting.close(made)
    return path
