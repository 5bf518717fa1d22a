"""Marginals of projective trees by inside and outside in scaled probability space, float64.

The scores of each dependent's arcs are replaced by their softmax over heads: the marginals stay, and as each word has
one head, no value of the chart exceeds 1.  What underflows is below 1e-290 of a partition function above
SMALLEST_TOTAL; `exact` says for which rows that holds.  The derivative of the marginals in a direction W is inside and
outside once more with the product rule; W is centred, so that its mean over the heads of each word is 0 under the
marginals, the partition function does not change along it and nothing cancels.

Charts are laid out as in `dependency_layout`.  O(B n^3) time, O(B n^2) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.dependency_layout import (
    arcs_of_width,
    by_arc,
    left_window,
    open_items,
    right_window,
    windows_left_right,
    windows_right_left,
)

SMALLEST_TOTAL = 1e-285


class ScaledTrees(NamedTuple):
    """marginals: B N N; log_partition: B; exact: B bool; kept: the tensors that the tangent needs."""

    marginals: Tensor
    log_partition: Tensor
    exact: Tensor
    kept: tuple[Tensor, ...]


def scaled_trees(arcs: Tensor, lengths: Tensor, single_root: bool) -> ScaledTrees:
    """Inside and outside.

    arcs: B N N log potentials, float64, -inf where there is no arc; lengths: B, the words of each row.
    """
    scores = arcs.permute(2, 1, 0)  # dependent head B
    highest = scores.amax(1, keepdim=True).clamp_(min=-1e300)
    shares = (scores - highest).exp_()
    totals = shares.sum(1, keepdim=True)
    none = totals == 0
    shares = (shares / totals.masked_fill_(none, 1.0)).contiguous()
    scale = (highest + totals.log()).masked_fill_(none, 0.0).sum((0, 1))
    values = _inside(shares, single_root)
    partition = values[0, 0].flatten(0, 1).gather(0, _top(lengths, arcs.size(1))).squeeze(0)
    exact = partition >= SMALLEST_TOTAL
    inverse = partition.where(exact, torch.ones_like(partition)).reciprocal_()
    adjoint, through = _outside(values, shares, lengths, inverse, single_root)
    marginals = by_arc(values[1, 0] * adjoint[0, 0], values[0, 2] * adjoint[1, 2])
    kept = (shares, values, adjoint, through, inverse, marginals, lengths)
    return ScaledTrees(marginals, partition.log() + scale, exact, kept)


def scaled_trees_tangent(kept: tuple[Tensor, ...], direction: Tensor, single_root: bool) -> Tensor:
    """Derivative of the marginals, B N N, in a direction of the log potentials, B N N."""
    shares, values, adjoint, through, inverse, marginals, lengths = kept
    direction = direction - (direction * marginals).sum(1, keepdim=True)
    direction = direction.permute(2, 1, 0).contiguous()
    d_values = _inside_tangent(values, shares, direction, single_root)
    d_partition = d_values[0, 0].flatten(0, 1).gather(0, _top(lengths, values.size(3)))
    seed = -d_partition.squeeze(0) * inverse * inverse
    d_adjoint = _outside_tangent(kept, d_values, shares * direction, seed, single_root)
    right = torch.addcmul(d_values[1, 0] * adjoint[0, 0], values[1, 0], d_adjoint[0, 0])
    left = torch.addcmul(d_values[0, 2] * adjoint[1, 2], values[0, 2], d_adjoint[1, 2])
    return by_arc(right, left)


def _top(lengths: Tensor, N: int) -> Tensor:
    """1 B: where, in D N of `right`, the item is that spans the root and all words, complete and pointing right."""
    return ((N - 1 - lengths) * N + lengths).unsqueeze(0)


def _inside(shares: Tensor, single_root: bool) -> Tensor:
    """The chart 2 3 N N B, halves (right, left); what is outside of its triangles is never read."""
    N, _, B = shares.shape
    values = shares.new_empty(2, 3, N, N, B)
    right, left = values
    left[1:, 0] = 1.0
    right[:2, N - 1] = 1.0
    for w in range(1, N):
        A, Z = left_window(left, w), right_window(right, w)
        halves = (A[1] * Z[1]).sum(0)
        torch.mul(arcs_of_width(shares, w), halves, out=open_items(values, w))
        complete = left[1:, w, : N - w]
        torch.sum(A[0::2] * Z[0::2], 1, out=complete)
        right[:2, N - 1 - w, w:] = complete
        if single_root:
            left[1, w, 0] = 0.0
    return values


def _outside(
    values: Tensor, shares: Tensor, lengths: Tensor, seed: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """Adjoints of the chart, halves (left, right), and of its halves without an arc, N N B by width.

    Those of complete items are gathered in the left half.
    """
    N, _, B = shares.shape
    adjoint = torch.zeros_like(values)
    through = torch.zeros_like(shares)
    left, right = adjoint
    right[0].flatten(0, 1).scatter_(0, _top(lengths, N), seed.unsqueeze(0))
    for w in range(N - 1, 0, -1):
        if single_root:
            left[1, w, 0] = 0.0
        complete = left[1:, w, : N - w].add_(right[:2, N - 1 - w, w:])
        to, parts = windows_left_right(adjoint, w), windows_right_left(values, w)
        to[:, 0::2].addcmul_(complete.unsqueeze(1), parts[:, 0::2])
        share_left, share_right = arcs_of_width(shares, w)
        here = torch.mul(left[0, w - 1, : N - w], share_right, out=through[w, : N - w])
        here.addcmul_(right[2, N - w, w:], share_left)
        to[:, 1].addcmul_(here, parts[:, 1])
    return adjoint, through


def _inside_tangent(values: Tensor, shares: Tensor, direction: Tensor, single_root: bool) -> Tensor:
    N = shares.size(0)
    d_values = torch.empty_like(values)
    (right, left), (d_right, d_left) = values, d_values
    d_left[1:, 0] = 0.0
    d_right[:2, N - 1] = 0.0
    for w in range(1, N):
        A, Z, dA, dZ = left_window(left, w), right_window(right, w), left_window(d_left, w), right_window(d_right, w)
        halves = (A[1] * dZ[1]).addcmul_(dA[1], Z[1]).sum(0)
        items = torch.mul(open_items(values, w), arcs_of_width(direction, w), out=open_items(d_values, w))
        items.addcmul_(arcs_of_width(shares, w), halves)
        complete = d_left[1:, w, : N - w]
        torch.sum((A[0::2] * dZ[0::2]).addcmul_(dA[0::2], Z[0::2]), 1, out=complete)
        d_right[:2, N - 1 - w, w:] = complete
        if single_root:
            d_left[1, w, 0] = 0.0
    return d_values


def _outside_tangent(
    kept: tuple[Tensor, ...], d_values: Tensor, d_shares: Tensor, seed: Tensor, single_root: bool
) -> Tensor:
    shares, values, adjoint, through, _, _, lengths = kept
    N = shares.size(0)
    d_adjoint = torch.zeros_like(values)
    (left, right), (d_left, d_right) = adjoint, d_adjoint
    d_right[0].flatten(0, 1).scatter_(0, _top(lengths, N), seed.unsqueeze(0))
    for w in range(N - 1, 0, -1):
        if single_root:
            d_left[1, w, 0] = 0.0
        d_complete = d_left[1:, w, : N - w].add_(d_right[:2, N - 1 - w, w:])
        to = windows_left_right(d_adjoint, w)
        parts, d_parts = windows_right_left(values, w), windows_right_left(d_values, w)
        to[:, 0::2].addcmul_(d_complete.unsqueeze(1), parts[:, 0::2])
        to[:, 0::2].addcmul_(left[1:, w, : N - w].unsqueeze(1), d_parts[:, 0::2])
        (share_left, share_right), (d_share_left, d_share_right) = (arcs_of_width(x, w) for x in (shares, d_shares))
        here = d_left[0, w - 1, : N - w] * share_right
        here.addcmul_(left[0, w - 1, : N - w], d_share_right)
        here.addcmul_(d_right[2, N - w, w:], share_left)
        here.addcmul_(right[2, N - w, w:], d_share_left)
        to[:, 1].addcmul_(here, parts[:, 1])
        to[:, 1].addcmul_(through[w, : N - w], d_parts[:, 1])
    return d_adjoint
