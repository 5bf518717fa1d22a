"""Figures 4.2, 4.3, 4.4 and 5.1 of Peng (2022), drawn from records."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure

from seqstruct.harness.records import Record, latest
from seqstruct.plots.curves import log_panels, values_of
from seqstruct.plots.figures import one_panel

AXES = {
    "decoding_speed": "tokens per second", "beam_decoding_speed": "tokens per second, beam search",
    "state_memory": "state, MB",
}


def draw(name: str, records: Sequence[Record]) -> Figure:
    """One of these figures, from its records in the order of their rows.

    Decoding: tokens per second, greedily and in beam search, and megabytes of state by length; a panel without records
    is left out.  Figure 4.4: training loss by update, and the softmax model's as a dashed line.  All are means over
    seeds.  Raises ValueError if no record has any of these.
    """
    drawn, found = ["training_loss"] if name == "figure-4.4" else AXES, latest(records)
    if not any(record.points(metric) for record in found for metric in drawn):
        raise ValueError(f"no records of {name} at this scale; its script in recipes/peng_thesis makes them")
    title = f"{name.replace('-', ' ').capitalize()}, scale {records[0].scale}"
    if name == "figure-4.4":
        return transfer(found, title)
    panels = [(label, series(found, metric)) for metric, label in AXES.items()]
    return log_panels([panel for panel in panels if panel[1]], title)


def series(records: Sequence[Record], metric: str) -> dict[str, dict[float, float]]:
    """By row, in the order of the records, the mean over seeds at each point of a metric that is split up."""
    found = values_of(records, metric)
    return {row: {x: fmean(values) for x, values in sorted(points.items())} for row, points in found.items()}


def transfer(records: Sequence[Record], title: str) -> Figure:
    figure, axes = one_panel("updates", "training loss, bits")
    for row, points in series(records, "training_loss").items():
        axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=row)
    softmax = [
        r.metrics["training_loss"]["value"] for r in records if r.row == "softmax" and "training_loss" in r.metrics
    ]
    if softmax:
        axes.axhline(fmean(softmax), color="black", linestyle="--", linewidth=1.0, label="softmax, trained")
    axes.set_title(title, fontsize="medium")
    axes.legend(fontsize="small")
    return figure
