"""Marginals of projective trees in log space: exact for any potentials, and slower.

The loops are those of `dependency_scaled`, with logarithms of inside values and, in place of adjoints, expected counts
of items.  A part's count is that of the whole times its share of the whole, which is at most 1, and the tangent of a
logarithm is a mean of tangents: nothing overflows and nothing needs a sign.  An impossible item is -inf.

A tree is chosen from the top by the shares of parts, so its entropy is the sum of those of all choices, each times the
expected count of what is chosen from: no term is negative.  Its derivative is the tangent of the marginals in the
direction of the choices' own surprisals.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.log_potentials import choice, finite_sum, level_exactly
from seqstruct.ops.semiring import add_exactly
from seqstruct.ops.trees.layout import arcs_of_width, by_arc, left_window, right_window


class LogTrees(NamedTuple):
    """What the second pass needs of the first, and what it is asked for.

    left, right: 2 3 N N B, logarithms as the score of one tree and what all others add to it; count_left, count_right:
    3 N N B, expected counts, complete items gathered on the left; log_partition, entropy: B.
    """

    left: Tensor
    right: Tensor
    count_left: Tensor
    count_right: Tensor
    log_partition: Tensor
    entropy: Tensor


def log_trees(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[LogTrees, Tensor]:
    """Inside and outside; also the marginals, B N N, zero where no tree is possible.

    arcs: B N N log potentials, float64, -inf where there is no arc; lengths: B, the words of each row.
    """
    scores, lost, levels = level_exactly(arcs.permute(2, 1, 0).contiguous(), 1)  # dependent head B
    N, _, B = scores.shape
    left, right = _inside(scores, lost, single_root)
    rows = torch.arange(B, device=arcs.device)
    total = right[:, 0, N - 1 - lengths, lengths, rows].sum(0)
    count_left, count_right = torch.zeros_like(left[0]), torch.zeros_like(right[0])
    count_right[0, N - 1 - lengths, lengths, rows] = (total > -torch.inf).to(total.dtype)
    entropy = torch.zeros_like(total)
    for w in range(N - 1, 0, -1):
        if single_root:
            count_left[1, w, 0] = 0.0
        complete = count_left[1:, w, : N - w].add_(count_right[:2, N - 1 - w, w:]).unsqueeze(1)
        share = _wholes(left, right, w)[2]
        entropy += (complete * torch.special.entr(share)).sum((0, 1, 2))
        left_window(count_left, w)[0::2] += share * complete
        right_window(count_right, w)[0::2] += share * complete
        opened = count_left[0, w - 1, : N - w] + count_right[2, N - w, w:]
        share = _halves(left, right, w)[2]
        entropy += (opened * torch.special.entr(share)).sum((0, 1))
        left_window(count_left, w)[1] += share * opened
        right_window(count_right, w)[1] += share * opened
    total = total + finite_sum(levels.t())
    return LogTrees(left, right, count_left, count_right, total, entropy), by_arc(count_left[0], count_right[2])


def log_trees_tangent(trees: LogTrees, direction: Tensor | None, single_root: bool) -> Tensor:
    """Derivative of the marginals, B N N, in a direction of the log potentials, B N N; None: that of the entropy."""
    count_left, count_right = trees.count_left, trees.count_right
    N, B = count_left.shape[2:]
    arcs = count_left.new_zeros(N, N, B) if direction is None else direction.permute(2, 1, 0).contiguous()
    left, right, d_left, d_right = (torch.zeros_like(count_left) for _ in range(4))
    halves = torch.zeros_like(arcs)

    def terms(share: Tensor, parts: Tensor) -> Tensor:
        return parts if direction is not None else parts - share.log().masked_fill_(share == 0, 0.0)

    for w in range(1, N):
        A, Z = left_window(left, w), right_window(right, w)
        share = _halves(trees.left, trees.right, w)[2]
        halves[w, : N - w] = (share * terms(share, A[1] + Z[1])).sum(0)
        to_left, to_right = arcs_of_width(arcs, w)
        left[0, w - 1, : N - w] = halves[w, : N - w] + to_right
        right[2, N - w, w:] = halves[w, : N - w] + to_left
        share = _wholes(trees.left, trees.right, w)[2]
        complete = (share * terms(share, A[0::2] + Z[0::2])).sum(1)
        left[1:, w, : N - w] = complete
        right[:2, N - 1 - w, w:] = complete
    for w in range(N - 1, 0, -1):
        if single_root:
            d_left[1, w, 0] = 0.0
        d_complete = d_left[1:, w, : N - w].add_(d_right[:2, N - 1 - w, w:])
        A, Z = left_window(left, w), right_window(right, w)
        share = _wholes(trees.left, trees.right, w)[2]
        change = terms(share, A[0::2] + Z[0::2]) - right[:2, N - 1 - w, w:].unsqueeze(1)
        flow = share * (d_complete.unsqueeze(1) + change * count_left[1:, w, : N - w].unsqueeze(1))
        left_window(d_left, w)[0::2] += flow
        right_window(d_right, w)[0::2] += flow
        count = count_left[0, w - 1, : N - w] + count_right[2, N - w, w:]
        d_count = d_left[0, w - 1, : N - w] + d_right[2, N - w, w:]
        share = _halves(trees.left, trees.right, w)[2]
        flow = share * (d_count + (terms(share, A[1] + Z[1]) - halves[w, : N - w]) * count)
        left_window(d_left, w)[1] += flow
        right_window(d_right, w)[1] += flow
    return by_arc(d_left[0], d_right[2])


def _inside(scores: Tensor, lost: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Both halves of the chart, 2 3 N N B each."""
    N, _, B = scores.shape
    left, right = (scores.new_zeros(2, 3, N, N, B) for _ in range(2))
    left[0], right[0] = -torch.inf, -torch.inf
    left[0, 1:, 0] = 0.0
    right[0, :2, N - 1] = 0.0
    for w in range(1, N):
        best, rest, _ = _halves(left, right, w)
        opened, more = add_exactly(best, arcs_of_width(scores, w))  # left, right
        right[0, 2, N - w, w:], left[0, 0, w - 1, : N - w] = opened
        right[1, 2, N - w, w:], left[1, 0, w - 1, : N - w] = rest + (more + arcs_of_width(lost, w))
        complete = torch.stack(_wholes(left, right, w)[:2])
        left[:, 1:, w, : N - w] = complete
        right[:, :2, N - 1 - w, w:] = complete
        if single_root:
            left[0, 1, w, 0] = -torch.inf
    return left, right


def _halves(left: Tensor, right: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs of complete items under an arc that is still to come: N-w B twice, and the shares w N-w B."""
    A, Z = left_window(left, width)[:, 1], right_window(right, width)[:, 1]
    return choice(A[0], Z[0], A[1] + Z[1], 0)


def _wholes(left: Tensor, right: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Complete items that point right and left: 2 N-w B twice, and the shares 2 w N-w B."""
    A, Z = left_window(left, width)[:, 0::2], right_window(right, width)[:, 0::2]
    return choice(A[0], Z[0], A[1] + Z[1], 1)
