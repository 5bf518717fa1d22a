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

from seqstruct.ops.dependency_layout import by_arc, views_by_width

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
    values[1, 1:, 0] = 1.0
    values[0, :2, N - 1] = 1.0
    for w, at in enumerate(views_by_width(N, B)[1:], 1):
        halves = (values.as_strided(*at.left_inner) * values.as_strided(*at.right_inner)).sum(0)
        torch.mul(shares.as_strided(*at.arc_left_right), halves, out=values.as_strided(*at.open_left_right))
        items = values.as_strided(*at.left_mixed) * values.as_strided(*at.right_mixed)
        complete = torch.sum(items, 1, out=values.as_strided(*at.complete_on_left))
        values.as_strided(*at.complete_on_right).copy_(complete)
        if single_root:
            values[1, 1, w, 0] = 0.0
    return values


def _outside(
    values: Tensor, shares: Tensor, lengths: Tensor, seed: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """Adjoints of the chart, halves (left, right), and of its halves without an arc, N N B by width.

    Those of complete items are gathered in the left half.
    """
    N, _, B = shares.shape
    adjoint = torch.zeros_like(values)
    through = torch.empty_like(shares)
    adjoint[1, 0].flatten(0, 1).scatter_(0, _top(lengths, N), seed.unsqueeze(0))
    for w, at in enumerate(reversed(views_by_width(N, B)[1:]), 1):
        if single_root:
            adjoint[0, 1, N - w, 0] = 0.0
        complete = adjoint.as_strided(*at.to_complete_on_left)
        complete.add_(adjoint.as_strided(*at.to_complete_on_right))
        adjoint.as_strided(*at.to_mixed).addcmul_(complete.unsqueeze(1), values.as_strided(*at.parts_mixed))
        here = through.as_strided(*at.row)
        torch.mul(adjoint.as_strided(*at.to_open_right), shares.as_strided(*at.arc_right), out=here)
        here.addcmul_(adjoint.as_strided(*at.to_open_left), shares.as_strided(*at.arc_left))
        adjoint.as_strided(*at.to_inner).addcmul_(here, values.as_strided(*at.parts_inner))
    return adjoint, through


def _inside_tangent(values: Tensor, shares: Tensor, direction: Tensor, single_root: bool) -> Tensor:
    N, _, B = shares.shape
    tangent = torch.empty_like(values)
    tangent[1, 1:, 0] = 0.0
    tangent[0, :2, N - 1] = 0.0
    for w, at in enumerate(views_by_width(N, B)[1:], 1):
        halves = values.as_strided(*at.left_inner) * tangent.as_strided(*at.right_inner)
        halves.addcmul_(tangent.as_strided(*at.left_inner), values.as_strided(*at.right_inner))
        items = tangent.as_strided(*at.open_left_right)
        torch.mul(values.as_strided(*at.open_left_right), direction.as_strided(*at.arc_left_right), out=items)
        items.addcmul_(shares.as_strided(*at.arc_left_right), halves.sum(0))
        items = values.as_strided(*at.left_mixed) * tangent.as_strided(*at.right_mixed)
        items.addcmul_(tangent.as_strided(*at.left_mixed), values.as_strided(*at.right_mixed))
        complete = torch.sum(items, 1, out=tangent.as_strided(*at.complete_on_left))
        tangent.as_strided(*at.complete_on_right).copy_(complete)
        if single_root:
            tangent[1, 1, w, 0] = 0.0
    return tangent


def _outside_tangent(
    kept: tuple[Tensor, ...], d_values: Tensor, d_shares: Tensor, seed: Tensor, single_root: bool
) -> Tensor:
    shares, values, adjoint, through, _, _, lengths = kept
    N, _, B = shares.shape
    tangent = torch.zeros_like(values)
    tangent[1, 0].flatten(0, 1).scatter_(0, _top(lengths, N), seed.unsqueeze(0))
    for w, at in enumerate(reversed(views_by_width(N, B)[1:]), 1):
        if single_root:
            tangent[0, 1, N - w, 0] = 0.0
        complete = tangent.as_strided(*at.to_complete_on_left)
        complete.add_(tangent.as_strided(*at.to_complete_on_right))
        to = tangent.as_strided(*at.to_mixed)
        to.addcmul_(complete.unsqueeze(1), values.as_strided(*at.parts_mixed))
        complete = adjoint.as_strided(*at.to_complete_on_left).unsqueeze(1)
        to.addcmul_(complete, d_values.as_strided(*at.parts_mixed))
        share_left, share_right = shares.as_strided(*at.arc_left), shares.as_strided(*at.arc_right)
        here = tangent.as_strided(*at.to_open_right) * share_right
        here.addcmul_(adjoint.as_strided(*at.to_open_right), d_shares.as_strided(*at.arc_right))
        here.addcmul_(tangent.as_strided(*at.to_open_left), share_left)
        here.addcmul_(adjoint.as_strided(*at.to_open_left), d_shares.as_strided(*at.arc_left))
        to = tangent.as_strided(*at.to_inner)
        to.addcmul_(here, values.as_strided(*at.parts_inner))
        to.addcmul_(through.as_strided(*at.row), d_values.as_strided(*at.parts_inner))
    return tangent
