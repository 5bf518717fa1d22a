"""The most probable run of a nondeterministic stack on one string."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from seqstruct.plots.figures import plain
from seqstruct.plots.views import LayerView


def stacks_of(run: Any) -> list[list[tuple[int, int]]]:
    """The stack after each step, bottom first: (symbol, step that pushed the vector, -1 for the bottom vector)."""
    stack, found = [(0, -1)], []
    for transition in run.transitions:
        if transition.action == "pop":
            stack.pop()
        elif transition.action == "push":
            stack.append((transition.next_symbol, transition.vector))
        else:
            stack[-1] = (transition.next_symbol, transition.vector)
        found.append(list(stack))
    return found


def stack_runs(views: Sequence[LayerView]) -> Figure:
    """The most probable run of each nondeterministic stack: a column of cells for each step, the bottom lowest.

    A cell's colour is its stack symbol, its text the input whose vector it holds; under each column stand the input,
    the action (+ push, - pop, = replace) and the automaton's state after it.  Raises ValueError if no view has a run.
    """
    views = [view for view in views if view.run is not None]
    if not views:
        raise ValueError("no layer has a nondeterministic stack")
    signs = {"push": "+", "pop": "\u2212", "replace": "="}
    columns = [stacks_of(view.run) for view in views]
    heights = [max((len(stack) for stack in stacks), default=1) for stacks in columns]
    width = min(20.0, 2.2 + 0.36 * max(len(view.rows) for view in views))
    figure = Figure(figsize=(width, sum(1.5 + 0.3 * height for height in heights)), layout="constrained")
    panels = figure.subplots(len(views), 1, squeeze=False, height_ratios=[1.5 + 0.3 * height for height in heights])
    for axes, view, stacks, height in zip(panels[:, 0], views, columns, heights, strict=True):
        for at, stack in enumerate(stacks):
            for level, (symbol, vector) in enumerate(stack):
                axes.bar(at, 1, width=0.9, bottom=level, color=f"C{symbol}", alpha=0.55, edgecolor="white")
                text = "\u22a5" if vector < 0 else plain(view.rows[vector])
                axes.text(at, level + 0.5, text, ha="center", va="center", fontsize="small")
        labels = [
            f"{plain(name)}\n{signs[transition.action]}\n{transition.next_state}"
            for name, transition in zip(view.rows, view.run.transitions, strict=True)
        ]
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
        axes.set_xlim(-0.7, len(labels) - 0.3)
        axes.set_ylim(0, height)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel("elements")
        share = f"{math.exp(view.run.log_share):.2g} of the weight of all runs"
        axes.set_title(f"{view.title}: {share}", fontsize="medium", loc="left")
        symbols = sorted({symbol for stack in stacks for symbol, _ in stack})
        handles = [axes.bar(0, 0, color=f"C{symbol}", alpha=0.55) for symbol in symbols]
        names = [f"symbol {symbol}" for symbol in symbols]
        axes.legend(handles, names, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
