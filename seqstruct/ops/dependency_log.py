"""Marginals of projective trees in log space: exact for any potentials, and slower.

The loops are those of `dependency_scaled`, with logarithms of inside values and, in place of adjoints, expected counts
of items.  A part's count is that of the whole times its share exp(left + right - whole), which is at most 1, and the
tangent of a logarithm is a mean of tangents: nothing overflows and nothing needs a sign.  An impossible item is -inf.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.dependency_layout import arcs_of_width, by_arc, left_window, right_window


class LogTrees(NamedTuple):
    """What the second pass needs of the first.

    left, right, halves: 3 N N B twice, and N N B, logarithms, `halves` by width and left end;
    count_left, count_right: expected counts, complete items gathered on the left; log_partition: B; lengths: B.
    """

    left: Tensor
    right: Tensor
    halves: Tensor
    count_left: Tensor
    count_right: Tensor
    log_partition: Tensor
    lengths: Tensor


def log_trees(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[LogTrees, Tensor]:
    """Inside and outside; also the marginals, B N N, zero where no tree is possible.

    arcs: B N N log potentials, float64, -inf where there is no arc; lengths: B, the words of each row.
    """
    scores = arcs.permute(2, 1, 0).contiguous()  # dependent head B
    N, _, B = scores.shape
    left, right, count_left, count_right = (scores.new_full((3, N, N, B), -torch.inf) for _ in range(4))
    halves = scores.new_full((N, N, B), -torch.inf)
    left[1:, 0] = 0.0
    right[:2, N - 1] = 0.0
    for w in range(1, N):
        A, Z = left_window(left, w), right_window(right, w)
        halves[w, : N - w] = (A[1] + Z[1]).logsumexp(0)
        to_left, to_right = arcs_of_width(scores, w)
        left[0, w - 1, : N - w] = halves[w, : N - w] + to_right
        right[2, N - w, w:] = halves[w, : N - w] + to_left
        complete = (A[0::2] + Z[0::2]).logsumexp(1)
        left[1:, w, : N - w] = complete
        right[:2, N - 1 - w, w:] = complete
        if single_root:
            left[1, w, 0] = -torch.inf
    rows = torch.arange(B, device=arcs.device)
    total = right[0, N - 1 - lengths, lengths, rows]
    trees = LogTrees(left, right, halves, count_left.zero_(), count_right.zero_(), total, lengths)
    count_right[0, N - 1 - lengths, lengths, rows] = (total > -torch.inf).to(total.dtype)
    for w in range(N - 1, 0, -1):
        if single_root:
            count_left[1, w, 0] = 0.0
        complete = count_left[1:, w, : N - w].add_(count_right[:2, N - 1 - w, w:])
        share, share_open = _shares(trees, w)
        flow = share * complete.unsqueeze(1)
        left_window(count_left, w)[0::2] += flow
        right_window(count_right, w)[0::2] += flow
        flow = share_open * (count_left[0, w - 1, : N - w] + count_right[2, N - w, w:])
        left_window(count_left, w)[1] += flow
        right_window(count_right, w)[1] += flow
    return trees, by_arc(count_left[0], count_right[2])


def log_trees_tangent(trees: LogTrees, direction: Tensor, single_root: bool) -> Tensor:
    """Derivative of the marginals, B N N, in a direction of the log potentials, B N N."""
    direction = direction.permute(2, 1, 0).contiguous()
    N = direction.size(0)
    count_left, count_right = trees.count_left, trees.count_right
    left, right, d_left, d_right = (torch.zeros_like(trees.left) for _ in range(4))
    halves = torch.zeros_like(trees.halves)
    for w in range(1, N):
        A, Z = left_window(left, w), right_window(right, w)
        share, share_open = _shares(trees, w)
        halves[w, : N - w] = (share_open * (A[1] + Z[1])).sum(0)
        to_left, to_right = arcs_of_width(direction, w)
        left[0, w - 1, : N - w] = halves[w, : N - w] + to_right
        right[2, N - w, w:] = halves[w, : N - w] + to_left
        complete = (share * (A[0::2] + Z[0::2])).sum(1)
        left[1:, w, : N - w] = complete
        right[:2, N - 1 - w, w:] = complete
    for w in range(N - 1, 0, -1):
        if single_root:
            d_left[1, w, 0] = 0.0
        d_complete = d_left[1:, w, : N - w].add_(d_right[:2, N - 1 - w, w:])
        A, Z = left_window(left, w), right_window(right, w)
        share, share_open = _shares(trees, w)
        change = A[0::2] + Z[0::2] - right[:2, N - 1 - w, w:].unsqueeze(1)
        flow = share * (d_complete.unsqueeze(1) + change * count_left[1:, w, : N - w].unsqueeze(1))
        left_window(d_left, w)[0::2] += flow
        right_window(d_right, w)[0::2] += flow
        count = count_left[0, w - 1, : N - w] + count_right[2, N - w, w:]
        d_count = d_left[0, w - 1, : N - w] + d_right[2, N - w, w:]
        flow = share_open * (d_count + (A[1] + Z[1] - halves[w, : N - w]) * count)
        left_window(d_left, w)[1] += flow
        right_window(d_right, w)[1] += flow
    return by_arc(d_left[0], d_right[2])


def _shares(trees: LogTrees, width: int) -> tuple[Tensor, Tensor]:
    """Shares of the parts of complete items, 2 w N-w B, and of halves, w N-w B."""
    N = trees.left.size(1)
    A, Z = left_window(trees.left, width), right_window(trees.right, width)
    complete, halves = trees.right[:2, N - 1 - width, width:], trees.halves[width, : N - width]
    share = (A[0::2] + Z[0::2] - complete.clamp(min=-1e300).unsqueeze(1)).exp_()
    return share, (A[1] + Z[1] - halves.clamp(min=-1e300)).exp_()
