"""First-order semantic dependency graphs: the best graph under determinism constraints (Peng 2022, section 2.4.1).

A graph says which words are predicates (heads), which arcs leave them, and the label of each arc.  Its score is the sum
of the scores of its heads, arcs and labeled arcs; a word is a head exactly if an arc leaves it, and an arc has exactly
one label.  No head has two arcs with the same deterministic label.

Nothing but the head couples two arcs, so each head is decoded alone, and exactly: without the constraints each
dependent takes its best label, and where two of a head's arcs then share a deterministic label, a matching of largest
gain decides which of them has it.  The source runs AD3 (Martins et al. 2015) on all parts at once, which may end in a
fractional solution.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def best_graph(
    heads: Tensor, arcs: Tensor, labels: Tensor, possible: Tensor, deterministic: Tensor | None = None
) -> Tensor:
    """The label of each arc of the best graph, B N N long: [b, h, m] from head h to dependent m, -1 without an arc.

    heads: B N, arcs: B N N, labels: B N N L, scores.  possible: B N N L bool, the labeled arcs that may be taken.
    deterministic: L bool, or None for no constraints.  O(B N^2 L), and for each head with a conflict a matching of its
    dependents with the deterministic labels.
    Raises ValueError if the shapes do not fit.
    """
    B, N, _, L = labels.shape
    if heads.shape != (B, N) or arcs.shape != (B, N, N) or possible.shape != labels.shape:
        raise ValueError(
            f"expected heads {(B, N)}, arcs {(B, N, N)} and possible {(B, N, N, L)} for labels {(B, N, N, L)}, got "
            f"{tuple(heads.shape)}, {tuple(arcs.shape)} and {tuple(possible.shape)}"
        )
    if L == 0 or N == 0:
        return torch.full((B, N, N), -1, device=labels.device)
    scores = (arcs.unsqueeze(-1) + labels).masked_fill(~possible, -torch.inf)  # B N N L
    value, label = scores.max(-1)  # B N N
    if deterministic is not None:
        value, label = _without_conflicts(scores, value, label, deterministic)
    # a head without an arc above 0 may still pay for its best one
    first = value == value.amax(-1, keepdim=True)
    first = first & (first.cumsum(-1) == 1)
    taken = (value > 0) | (first & ~(value > 0).any(-1, keepdim=True) & value.isfinite())
    total = heads + value.masked_fill(~taken, 0.0).sum(-1)  # B N
    return label.masked_fill(~taken | (total <= 0).unsqueeze(-1), -1)


def _without_conflicts(scores: Tensor, value: Tensor, label: Tensor, deterministic: Tensor) -> tuple[Tensor, Tensor]:
    """Values and labels B N N after each head's conflicts are solved; arcs that lose get what is left for them."""
    taken = torch.nn.functional.one_hot(label, scores.size(-1)).bool() & (value > 0).unsqueeze(-1)
    conflict = ((taken.sum(2) > 1) & deterministic).any(-1)  # B N
    if not bool(conflict.any()):
        return value, label
    value, label = value.clone(), label.clone()
    chosen = deterministic.nonzero().squeeze(-1).tolist()
    for b, h in conflict.nonzero().tolist():
        free = scores[b, h].masked_fill(deterministic, -torch.inf)  # N L
        rest, rest_label = free.max(-1)
        gains = scores[b, h][:, deterministic] - rest.clamp(min=0).unsqueeze(-1)  # N D
        rows = (gains > 0).any(-1).nonzero().squeeze(-1).tolist()
        value[b, h], label[b, h] = rest, rest_label
        for row, column in zip(rows, best_matching(gains[rows].tolist()), strict=True):
            if column >= 0:
                label[b, h, row] = chosen[column]
                value[b, h, row] = scores[b, h, row, chosen[column]]
    return value, label


def best_matching(gains: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row, or -1, so that no column is taken twice and the sum of the gains taken is largest
    (Kuhn 1955; Munkres 1957).

    gains: n rows of m numbers; only those above 0 are ever taken.  Shortest augmenting paths with potentials, one
    row after another (Jonker and Volgenant 1987): O(n^2 (n + m)), in plain Python, for small matrices.
    """
    n = len(gains)
    m = len(gains[0]) if n else 0
    # columns m .. m + n - 1 stand for "none", at no cost
    cost = [[-max(float(gain), 0.0) for gain in row] + [0.0] * n for row in gains]
    width = m + n
    row_potential, column_potential = [0.0] * (n + 1), [0.0] * (width + 1)
    row_of = [n] * (width + 1)  # n: free
    for start in range(n):
        free, best, before = width, [float("inf")] * (width + 1), [width] * (width + 1)
        used = [False] * (width + 1)
        row_of[width] = start
        while row_of[free] != n:
            used[free] = True
            row, delta, nearest = row_of[free], float("inf"), width
            for column in range(width):
                if used[column]:
                    continue
                reduced = cost[row][column] - row_potential[row] - column_potential[column]
                if reduced < best[column]:
                    best[column], before[column] = reduced, free
                if best[column] < delta:
                    delta, nearest = best[column], column
            for column in range(width + 1):
                if used[column]:
                    row_potential[row_of[column]] += delta
                    column_potential[column] -= delta
                else:
                    best[column] -= delta
            free = nearest
        while free != width:
            row_of[free] = row_of[before[free]]
            free = before[free]
    taken = [-1] * n
    for column in range(m):
        row = row_of[column]
        if row != n and gains[row][column] > 0:
            taken[row] = column
    return taken


def graph_parts(chosen: Tensor, labels: int) -> tuple[Tensor, Tensor, Tensor]:
    """A graph as 0/1 parts, float: heads B N, arcs B N N and labeled arcs B N N L; chosen: as from `best_graph`."""
    labeled = torch.nn.functional.one_hot(chosen.clamp(min=0), max(labels, 1)).float()[..., :labels]
    labeled = labeled * (chosen >= 0).unsqueeze(-1)
    arcs = labeled.sum(-1)
    return arcs.amax(-1) if arcs.size(-1) else arcs.sum(-1), arcs, labeled
