"""Curves of a benchmark by length."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

Curves = Mapping[str, Mapping[int, float]]  # name in the legend -> length -> value


def length_panels(panels: Sequence[tuple[str, Curves]], title: str) -> Figure:
    """One panel for each (label of the vertical axis, curves), both axes logarithmic, with one legend."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # where the root logger shows everything
    figure = Figure(figsize=(5.0 * len(panels), 3.8))
    for axes, (label, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, points in curves.items():
            axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("length")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    handles, names = axes.get_legend_handles_labels()
    figure.suptitle(title, fontsize="medium")
    figure.tight_layout()
    figure.legend(handles, names, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4)
    return figure
