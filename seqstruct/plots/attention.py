"""Attention weights and stack actions of one string, as heat maps."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from seqstruct.plots.figures import plain
from seqstruct.plots.views import LayerView

ACTIONS = ("push", "pop", "keep")


def attention(views: Sequence[LayerView], title: str = "") -> Figure:
    """One panel for each layer: stack actions as a heat map over the string, or weights averaged over heads.

    The most probable structure, where there is one, is drawn as open squares.
    """
    if not views:
        raise ValueError("no layer gives actions or attention weights")
    heights = [1.0 if view.actions is not None else 4.0 for view in views]
    width = min(16.0, 2.0 + 0.28 * max(len(view.columns) for view in views))
    figure = Figure(figsize=(width, 0.8 + 1.1 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(views), 1, squeeze=False, height_ratios=heights)
    for axes, view in zip(panels[:, 0], views, strict=True):
        stack = view.actions is not None
        shown = view.actions.T if stack else view.weights.mean(0)
        most = max(1.0, float(shown.max(initial=0.0)))  # weights of segmentation sum to 2 and may be above 1
        image = axes.imshow(shown, vmin=0.0, vmax=most, cmap="Blues", aspect="auto", interpolation="nearest")
        labels = view.rows if stack else view.columns
        upright = max(map(len, labels), default=0) <= 3  # words side by side would overlap
        axes.set_xticks(range(len(labels)), map(plain, labels), fontsize="small", rotation=0 if upright else 90)
        axes.set_yticks(range(shown.shape[0]), ACTIONS if stack else map(plain, view.rows), fontsize="small")
        if view.best is not None:
            down, across = view.best.nonzero()
            axes.scatter(across, down, marker="s", s=45, facecolors="none", edgecolors="C3", linewidths=1.0)
        axes.set_title(view.title, fontsize="medium", loc="left")
        figure.colorbar(image, ax=axes, aspect=8 if stack else 20, pad=0.01)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure
