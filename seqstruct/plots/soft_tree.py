"""The soft tree of a gated recursive convolutional encoder (Cho et al. 2014b, fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from seqstruct.plots.figures import plain
from seqstruct.scoring.trained import load_model

FAINTEST = 0.01  # an edge that carries less is not drawn


def soft_tree_gates(
    checkpoint: str | Path, text: str, *, data: str | Path | None = None
) -> tuple[list[str], list[Any]]:
    """The symbols of a source, its end included, and the gates of each level from 1 on, (N - level) 3.

    text: symbols separated by spaces, as in the training data.  data: the data folder, if it has moved.
    Raises ValueError if the model's encoder has no tree, OSError if there is no checkpoint.
    """
    model, task = load_model(checkpoint, data)
    encoder = getattr(model, "encoder", None)
    if not hasattr(encoder, "soft_tree"):
        raise ValueError(f"{checkpoint}: expected a model with --encoder gated_convolution, whose encoder has a tree")
    sentence = task.source_dictionary.encode_line(text, add_if_not_exist=False).long()
    with torch.no_grad():
        gates = encoder.soft_tree(sentence)
    return [*text.split(), "</s>"], [level.float().numpy() for level in gates]


def shares(gates: Sequence[Any]) -> tuple[list[list[float]], list[list[float]]]:
    """What part of the top passes through each node, and what part each node makes itself; by level from the leaves up.

    gates: of levels 1 .. N-1, (N - level) rows of w_c, w_l, w_r.  The parts of the second list sum to 1: leaves hand
    all that reaches them down to their symbols.
    """
    length = len(gates) + 1
    through = [[0.0] * (length - level) for level in range(length)]
    made = [[0.0] * (length - level) for level in range(length)]
    through[-1][0] = 1.0
    for level in range(length - 1, 0, -1):
        for node, (new, left, right) in enumerate(gates[level - 1]):
            part = through[level][node]
            made[level][node] = part * float(new)
            through[level - 1][node] += part * float(left)
            through[level - 1][node + 1] += part * float(right)
    made[0] = list(through[0])
    return through, made


def soft_tree(words: Sequence[str], gates: Sequence[Any]) -> Figure:
    """Nodes as large as what they make themselves, edges as dark as what passes along them, the top node uppermost."""
    through, made = shares(gates)
    figure = Figure(figsize=(min(16.0, 2.0 + 0.6 * len(words)), min(10.0, 1.5 + 0.4 * len(words))))
    axes = figure.subplots()
    for level in range(1, len(words)):
        for node, (_, left, right) in enumerate(gates[level - 1]):
            x = node + level / 2
            for below, share in ((node, float(left)), (node + 1, float(right))):
                strength = through[level][node] * share
                if strength >= FAINTEST:
                    axes.plot([x, below + (level - 1) / 2], [level, level - 1], color="black", alpha=strength**0.5)
    places = [(node + level / 2, level, 400 * part) for level, row in enumerate(made) for node, part in enumerate(row)]
    x, y, sizes = zip(*places, strict=True)
    axes.scatter(x, y, s=sizes, zorder=2)
    axes.set_xticks(range(len(words)), map(plain, words), rotation=45, ha="right")
    axes.set_ylabel("level")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
