"""The chart of abilities as a heat map: mechanisms down, tasks across, at the lengths of training and beyond them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqstruct.data.abilities.chart import CHART
from seqstruct.data.abilities.tasks import FAMILIES
from seqstruct.harness.abilities import TASKS, Chart, Reached

HEADINGS = {"memory": "memory", "tracking": "state tracking", "nesting": "nesting"}
PANELS = {False: "as long as in training", True: "about twice as long"}
COLOURS = "viridis"
DARK = 0.6  # beyond this share, and where there is none, letters are black


def heat_map(chart: Chart) -> Figure:
    """Cells have the percentage of right answers; their colour says how far that is from what a simple rule reaches.

    The rows are in the chart's order with the simple rule below; what was not run is blank, and what broke in training
    is crossed, its reason below the picture.
    """
    rows = list(chart.rows)
    figure = Figure(figsize=(14.5, 2.8 + 0.235 * (len(rows) + 1)), layout="constrained")
    figure.suptitle("What can a mechanism learn?  Two layers of size 64 on ten small tasks, percent of right answers",
                    fontsize=13)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, beyond in zip(panels, PANELS, strict=True):
        image = _panel(axes, chart, rows, beyond)
    bar = figure.colorbar(image, ax=panels, location="bottom", shrink=0.45, aspect=45, pad=0.01)
    bar.set_ticks([0, 0.5, 1], labels=["no better than a simple rule", "halfway", "no error"])
    told = [f"{CHART[task].title}: {CHART[task].asks}" for task in TASKS]
    reasons = [
        f"× {row}, {CHART[task].title}: {found.broken}"
        for row in rows for task, found in chart.rows[row].items() if found.broken
    ]
    lines = ["   ·   ".join(told[:3]), "   ·   ".join(told[3:7]), "   ·   ".join(told[7:]), *reasons]
    if chart.missing(TASKS):
        lines.append("blank: not yet run")
    figure.supxlabel("\n".join(lines), fontsize=8.5)
    return figure


def _panel(axes: Axes, chart: Chart, rows: Sequence[str], beyond: bool) -> object:
    shares = [[_clipped(chart.skill(row, task, beyond)) for task in TASKS] for row in rows]
    image = axes.imshow([*shares, [0.0] * len(TASKS)], cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    for y, found in enumerate([*(chart.rows[row] for row in rows), chart.rule]):
        for x, task in enumerate(TASKS):
            text, share = _text(found.get(task), beyond), shares[y][x] if y < len(rows) else 0.0
            axes.text(x, y, text, ha="center", va="center", fontsize=7.5,
                      color="white" if share <= DARK else "black")
    axes.set_yticks(range(len(rows) + 1), [*rows, "best simple rule"], fontsize=8)
    axes.set_xticks(range(len(TASKS)), [CHART[task].title for task in TASKS], fontsize=8.5)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.axhline(len(rows) - 0.5, color="white", linewidth=3)
    start = 0
    for family, name in HEADINGS.items():
        width = sum(task in FAMILIES[family] for task in TASKS)
        axes.text(start + width / 2 - 0.5, -1.9, name, ha="center", fontsize=9.5, fontstyle="italic")
        start += width
        if start < len(TASKS):
            axes.axvline(start - 0.5, color="white", linewidth=3)
    axes.set_title(f"sequences {PANELS[beyond]}", fontsize=11, pad=40)
    axes.spines[:].set_visible(False)
    return image


def _clipped(share: float | None) -> float:
    return float("nan") if share is None else min(1.0, max(0.0, share))


def _text(found: Reached | None, beyond: bool) -> str:
    if found is None:
        return ""
    value = found.mean(beyond)
    return ("×" if found.broken else "") if value is None else f"{value:.0f}"
