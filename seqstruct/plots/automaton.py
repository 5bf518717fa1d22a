"""An automaton drawn with the best path of a string: its states and arcs above, the trellis over the string below.

Also the automaton behind one feature of a trained rational recurrence, whose best path shows which words it counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from torch import Tensor

from seqstruct.ops.automata import MAX_PLUS, Path, Wfsa, best_path, interpolated_automaton, pattern_automaton
from seqstruct.ops.semiring import MaxSemiring, RealSemiring
from seqstruct.plots.figures import plain
from seqstruct.scoring.trained import load_model

BEST, OTHER = "tab:red", "0.6"
RADIUS = 0.16


def feature_automaton(layer: Any, inputs: Tensor, feature: int) -> Wfsa:
    """The automaton behind a feature of a `RationalLayer` for one string; its symbols are the positions.

    inputs: T C, what the layer reads.  In the real semiring its weights are magnitudes, so that a best path is the one
    that contributes most, of whatever sign.  No gradient.
    Raises ValueError if the layer has no such feature.
    """
    d = layer.hidden_size
    if not 0 <= feature < d:
        raise ValueError(f"feature {feature} is out of range, expected 0 .. {d - 1}")
    with torch.no_grad():
        columns = layer.project(inputs)[:, :, feature].unbind(1)
        patterns = layer.projections // 2
        gates = [columns[2 * j].sigmoid() for j in range(patterns)]
        if layer.automaton == MAX_PLUS:
            return pattern_automaton([columns[1]], [gates[0].log()], MaxSemiring())
        weights = [((1 - gates[j]) * columns[2 * j + 1]).abs() for j in range(patterns)]
        if layer.automaton != "F":
            return pattern_automaton(weights, gates, RealSemiring())
        epsilon = layer.epsilon_logits[feature].sigmoid()
        finals = list(layer.final_logits[:, feature].sigmoid())
        return interpolated_automaton(weights, gates, epsilon, finals, RealSemiring())


def automaton_figure(automaton: Wfsa, words: Sequence[str], title: str = "") -> Figure:
    """Diagram and trellis of one automaton on the string of its symbols in order, the best path in red.

    words: one for each symbol.  Weights beside the arcs of the path are the automaton's own.
    Raises ValueError if there is no path, or words and symbols do not pair up, or it is a family of automata.
    """
    if automaton.initial.dim() != 1 or automaton.arcs.dim() != 3:
        raise ValueError("expected one automaton, got a family of them")
    if len(words) != automaton.arcs.size(0):
        raise ValueError(f"{len(words)} words for {automaton.arcs.size(0)} symbols")
    (path,) = best_path(automaton)
    if path.start < 0:
        raise ValueError("no path derives the string")
    states = automaton.initial.numel()
    width = min(18.0, 3.0 + 0.95 * len(words))
    figure = Figure(figsize=(width, 2.9 + 0.75 * states), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[1.9, 0.75 * states + 0.6])
    _diagram(above, automaton, path)
    _trellis(below, automaton, path, words)
    name = "log weight" if isinstance(automaton.semiring, RealSemiring) else "score"
    head = f"{title}{': ' if title else ''}best path, {name} {path.score:.3f}"
    figure.suptitle(head, x=0.02, ha="left", fontsize="medium")
    return figure


def _zero(automaton: Wfsa) -> float:
    return 0.0 if isinstance(automaton.semiring, RealSemiring) else -math.inf


def _diagram(axes: Axes, automaton: Wfsa, path: Path) -> None:
    """States from left to right; initial ones have a thick ring, final ones two."""
    zero, Q = _zero(automaton), automaton.initial.numel()
    taken = {(i, j, position is None) for i, j, position in path.arcs}
    for i in range(Q):
        for j in range(Q):
            for epsilon, weights in ((False, automaton.arcs[:, i, j]), (True, automaton.epsilon[i, j].reshape(1))):
                if bool((weights != zero).any()):
                    _diagram_arc(axes, i, j, epsilon, BEST if (i, j, epsilon) in taken else OTHER)
    for state in range(Q):
        thick = 2.8 if float(automaton.initial[state]) != zero else 1.0
        axes.add_patch(Circle((state, 0), RADIUS, facecolor="white", edgecolor="black", linewidth=thick, zorder=3))
        if float(automaton.final[state]) != zero:
            axes.add_patch(Circle((state, 0), 0.75 * RADIUS, fill=False, edgecolor="black", zorder=4))
        axes.text(state, 0, f"$q_{{{state}}}$", ha="center", va="center", fontsize="small", zorder=5)
    axes.set_xlim(-0.6, Q - 0.4)
    axes.set_ylim(-0.3 if Q < 4 else -0.6, 0.55)
    axes.set_aspect("equal")
    axes.axis("off")


def _diagram_arc(axes: Axes, source: int, target: int, epsilon: bool, color: str) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": color, "linestyle": "--" if epsilon else "-"}
    style |= {"linewidth": 2.0 if color == BEST else 1.0, "shrinkA": 0, "shrinkB": 0}
    if source == target:
        start, end = (source - 0.09, RADIUS - 0.02), (source + 0.09, RADIUS - 0.02)
        axes.add_patch(FancyArrowPatch(start, end, connectionstyle="arc3,rad=-2.2", **style))
        return
    straight = abs(target - source) == 1
    forward = 1 if target > source else -1
    bend = 0.0 if straight and forward == 1 else 0.38 / abs(target - source) ** 0.5
    down = bool(bend)
    start = (source + forward * 0.7 * RADIUS, -0.75 * RADIUS) if down else (source + RADIUS, 0)
    end = (target - forward * 0.7 * RADIUS, -0.75 * RADIUS) if down else (target - RADIUS, 0)
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={forward * bend:.2f}", **style))
    if epsilon:
        low = -0.14 - 0.5 * bend * abs(target - source)
        axes.text((source + target) / 2, low, "ε", color=color, ha="center", va="top")


def _trellis(axes: Axes, automaton: Wfsa, path: Path, words: Sequence[str]) -> None:
    """States by position; column t holds the states after t words."""
    zero, Q, T = _zero(automaton), automaton.initial.numel(), len(words)
    for t in range(T):
        for i in range(Q):
            for j in range(Q):
                if float(automaton.arcs[t, i, j]) != zero:
                    axes.plot([t, t + 1], [i, j], color="0.85", linewidth=0.8, zorder=1)
    at = 0
    for source, target, position in path.arcs:
        end = at if position is None else position + 1
        weight = automaton.best_epsilon[source, target]
        if position is not None:
            weight = automaton.best_arcs[position, source, target]
        curve = "arc3,rad=0.35" if position is None else "arc3"
        axes.add_patch(FancyArrowPatch(
            (at, source), (end, target), arrowstyle="-|>", mutation_scale=10, color=BEST, linewidth=1.8, zorder=3,
            connectionstyle=curve, linestyle="--" if position is None else "-",
        ))
        shown = f"{'ε ' if position is None else ''}{float(weight):.2f}"
        axes.annotate(
            shown, ((at + end) / 2, (source + target) / 2), xytext=(6 if position is None else 0, 5),
            textcoords="offset points", fontsize="x-small", color=BEST, ha="left" if position is None else "center",
            va="bottom", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}, zorder=5,
        )
        at = end
    for t in range(T + 1):
        axes.plot([t] * Q, range(Q), "o", color="white", markeredgecolor="0.4", markersize=7, zorder=4)
    axes.set_xticks([t + 0.5 for t in range(T)], map(plain, words), fontsize="small", rotation=30 if T > 12 else 0)
    axes.set_yticks(range(Q), [f"$q_{{{state}}}$" for state in range(Q)])
    axes.set_ylim(Q - 0.5, -0.7)
    axes.set_xlim(-0.3, T + 0.3)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def checkpoint_figure(checkpoint: str, text: str, feature: int, data: str | None = None) -> Figure:
    """The automaton of a feature of the first layer of a trained `recurrent_lm` or `rnn_classifier`, on a text.

    data: the data folder, if it is not where it was in training.
    Raises ValueError if the model has no rational recurrence or no such feature, or the text no words; OSError if there
    is no checkpoint.
    """
    from seqstruct.layers.rational import RationalLayer

    words = text.split()
    if not words:
        raise ValueError("expected at least one word")
    model, task = load_model(checkpoint, data)
    part = getattr(model, "decoder", model)
    layer = part.rnn.layers[0] if hasattr(part, "rnn") else None
    if not isinstance(layer, RationalLayer):
        raise ValueError(f"{checkpoint}: the model has no rational recurrence")
    indices = torch.tensor([task.source_dictionary.index(word) for word in words])
    with torch.no_grad():
        automaton = feature_automaton(layer, part.embed_tokens(indices), feature)
    name = layer.automaton.replace("_max_plus", ", max-plus")
    return automaton_figure(automaton, words, f"RRNN({name}), feature {feature}")
