"""Marginals of projective trees by inside and outside in scaled probability space, float64.

The scores of each dependent's arcs are replaced by their softmax over heads: the marginals stay, and as each word has
one head, no value of the chart exceeds 1.  A value is the less the more arcs it has, one for each unit of width: so
where the values of some width have left MODERATE, every arc is multiplied by a factor of the row's own that brings them
back to 1, and all values so far by its powers.  A row is `exact` where values and adjoints stay in RANGE: what
underflows, at most 1e-308 of one of them, is multiplied by one of the other.  Values that were raised may have
underflowed before, so adjoints are to be less by as much.

The derivative of the marginals in a direction W is inside and outside once more with the product rule; W is centred, so
that its mean over the heads of each word is 0 under the marginals, the partition function does not change along it and
nothing cancels.

Charts are laid out as in `trees.layout`, and lent with their windows.  O(B n^3) time, O(B n^2) memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.trees.layout import Arcs, by_arc, windows_of_adjoints, windows_of_arcs, windows_of_values
from seqstruct.ops.workspace import Loan, Pool

RANGE = 1e-285, 1e285
MODERATE = 230.0  # of logarithms
LARGEST = 600.0  # logarithm of the greatest change
NARROWEST = 32  # the width that is looked at first, then at every doubling
POOL = Pool()


class _Scratch(NamedTuple):
    """Room for the products of one width, and their sums: w N-w B, 2 w N-w B, N-w B."""

    inner: Tensor
    mixed: Tensor
    halves: Tensor


class _Charts:
    """values: 2 3 N N B, halves (right, left), adjoint: the same, halves (left, right), arcs: N N B.

    What is outside of the triangles of `values` is 0.
    """

    def __init__(self, buffer: Tensor, N: int, B: int, width_zero: float) -> None:
        values, adjoint, arcs = buffer.split([6 * N * N * B, 6 * N * N * B, N * N * B])
        self.values, self.adjoint = (x.view(2, 3, N, N, B) for x in (values, adjoint))
        self.arcs = arcs.view(N, N, B)
        self.values[1, 1:, 0] = width_zero
        self.values[0, :2, N - 1] = width_zero
        self.value_windows = windows_of_values(self.values)
        self.adjoint_windows = windows_of_adjoints(self.adjoint)
        self.arc_windows = windows_of_arcs(self.arcs)
        self.of_root = self.values[1, 1, 1:, 0].unbind(0)
        self.to_root = self.adjoint[0, 1, 1:, 0].unbind(0)
        self.right = self.values[0, 0].flatten(0, 1)
        self.to_right = self.adjoint[1, 0].flatten(0, 1)

    @staticmethod
    def size(N: int, B: int) -> int:
        """Numbers in the buffer."""
        return 13 * N * N * B


class TreeSpace:
    """The charts of inside and outside, and those of their derivatives.

    through: of every width, the adjoints of its halves without an arc.  d_shares: of the arcs.
    """

    def __init__(self, N: int, B: int, device: torch.device) -> None:
        self.sizes, self.count = (N, B), _Charts.size(N, B)
        self.buffer = torch.zeros(self.count + N * N * B, dtype=torch.float64, device=device)
        self.charts = _Charts(self.buffer[: self.count], N, B, 1.0)
        self.through = [x[: N - w] for w, x in enumerate(self.buffer[self.count :].view(N, N, B).unbind(0))][1:]
        products = self.buffer.new_empty(2 * (N // 2) * (N - N // 2) * B)
        halves = self.buffer.new_empty(N, B)
        self.scratch = []
        for w in range(1, N):
            mixed = products[: 2 * w * (N - w) * B].view(2, w, N - w, B)
            self.scratch.append(_Scratch(mixed[0], mixed, halves[: N - w]))
        self.nbytes = 8 * (2 * self.count + 2 * N * N * B + products.numel())

    @cached_property
    def tangent(self) -> _Charts:
        """The arcs are those of a direction."""
        with torch.inference_mode(False):
            return _Charts(torch.empty_like(self.buffer[: self.count]), *self.sizes, 0.0)

    @cached_property
    def d_shares(self) -> tuple[Tensor, list[Arcs]]:
        """N N B, and its windows."""
        with torch.inference_mode(False):
            shares = torch.empty_like(self.charts.arcs)
        return shares, windows_of_arcs(shares)


class KeptOfTrees(NamedTuple):
    """buffer: of the charts; inverse: B, of the partition function; marginals: B N N; top: 1 B, as `_top`."""

    buffer: Tensor
    inverse: Tensor
    marginals: Tensor
    top: Tensor


@torch.no_grad()
def scaled_trees(arcs: Tensor, lengths: Tensor, single_root: bool) -> FirstPass:
    """The first pass: inside and outside.

    arcs: B N N log potentials, float64, -inf where there is no arc; lengths: B, the words of each row.
    """
    B, N = arcs.shape[:2]
    loan = POOL.borrow((N, B, arcs.device), lambda: TreeSpace(N, B, arcs.device))
    space, charts = loan.space, loan.space.charts
    scores = arcs.permute(2, 1, 0)  # dependent head B
    highest = scores.amax(1, keepdim=True).clamp_(min=-1e300)
    shares = torch.sub(scores, highest, out=charts.arcs).exp_()
    totals = shares.sum(1, keepdim=True)
    none = totals == 0
    shares.div_(totals.masked_fill_(none, 1.0))
    scale = (highest + totals.log()).masked_fill_(none, 0.0).sum((0, 1))
    factor, raised = _inside(space, single_root)
    top = _top(lengths, N)
    partition = charts.right.gather(0, top).squeeze(0)
    values, adjoint = charts.values, charts.adjoint
    exact = (partition >= RANGE[0]) & (partition <= RANGE[1])
    inverse = partition.where(exact, torch.ones_like(partition)).reciprocal_()
    adjoint.zero_()
    charts.to_right.scatter_(0, top, inverse.unsqueeze(0))
    _outside(space, single_root)
    if factor is not None:
        exact &= values.flatten(0, 2).amax(0).amax(0) <= RANGE[1]
        exact &= adjoint.flatten(0, 2).amax(0).amax(0) <= RANGE[1] * (-raised).exp()
        scale = scale - lengths * factor
    marginals = by_arc(values[1, 0] * adjoint[0, 0], values[0, 2] * adjoint[1, 2])
    kept = KeptOfTrees(space.buffer, inverse, marginals, top)
    return FirstPass((marginals,), partition.log() + scale, exact, kept, loan)


def scaled_trees_tangent(kept: KeptOfTrees, loan: Loan[TreeSpace], direction: Tensor, single_root: bool) -> Tensor:
    """The second pass: the derivative of the marginals, B N N, in a direction of the log potentials, B N N."""
    _, inverse, marginals, top = kept
    space, charts, tangent = loan.space, loan.space.charts, loan.space.tangent
    direction = direction - (direction * marginals).sum(1, keepdim=True)
    tangent.arcs.copy_(direction.permute(2, 1, 0))
    torch.mul(charts.arcs, tangent.arcs, out=space.d_shares[0])
    _inside_tangent(space, single_root)
    d_partition = tangent.right.gather(0, top)
    tangent.adjoint.zero_()
    tangent.to_right.scatter_(0, top, -d_partition * inverse * inverse)
    _outside_tangent(space, single_root)
    values, adjoint, d_values, d_adjoint = charts.values, charts.adjoint, tangent.values, tangent.adjoint
    right = torch.addcmul(d_values[1, 0] * adjoint[0, 0], values[1, 0], d_adjoint[0, 0])
    left = torch.addcmul(d_values[0, 2] * adjoint[1, 2], values[0, 2], d_adjoint[1, 2])
    return by_arc(right, left)


def _top(lengths: Tensor, N: int) -> Tensor:
    """1 B: where, in N N of `right`, the item is that spans the root and all words, complete and pointing right."""
    return ((N - 1 - lengths) * N + lengths).unsqueeze(0)


def _inside(space: TreeSpace, single_root: bool) -> tuple[Tensor | None, Tensor | float]:
    """The values, of increasing width; B, logarithms of the factor of arcs, None if widths are few, and of how much
    values were raised by it."""
    charts, factor, raised, last = space.charts, None, 0.0, len(space.scratch)
    for width, (at, arc, room, root) in enumerate(
        zip(charts.value_windows, charts.arc_windows, space.scratch, charts.of_root, strict=True), 1
    ):
        torch.mul(at.left_inner, at.right_inner, out=room.inner)
        torch.sum(room.inner, 0, out=room.halves)
        torch.mul(arc.left_right, room.halves, out=at.open_left_right)
        torch.mul(at.left_mixed, at.right_mixed, out=room.mixed)
        torch.sum(room.mixed, 1, out=at.complete_on_left)
        at.complete_on_right.copy_(at.complete_on_left)
        if single_root:
            root.zero_()
        if NARROWEST <= width < last and width & (width - 1) == 0:
            more = _multiply_arcs(charts, width, at.complete_on_left.amax((0, 1)))
            factor = more if factor is None else factor + more
            raised = raised + (more * width).clamp(min=0.0)
    return factor, raised


def _multiply_arcs(charts: _Charts, width: int, greatest: Tensor) -> Tensor:
    """Multiply arcs by one factor for each row, and values up to a width accordingly; B, its logarithm.

    greatest: B, of the complete items of that width; brought to 1 where it is not 0 and no longer moderate.
    """
    logarithm = greatest.log()
    wanted = logarithm.isfinite() & (logarithm.abs() > MODERATE)
    factor = torch.where(wanted, -logarithm.clamp(-LARGEST, LARGEST) / width, 0.0)
    powers = (torch.arange(width + 1, device=factor.device).view(-1, 1, 1) * factor).exp_()  # by width
    right, left = charts.values
    left[1:, : width + 1].mul_(powers)
    left[0, :width].mul_(powers[1:])
    powers = powers.flip(0)
    right[:2, -1 - width :].mul_(powers)
    right[2, -width:].mul_(powers[:-1])
    charts.arcs.mul_(factor.exp())
    return factor


def _outside(space: TreeSpace, single_root: bool) -> None:
    """The adjoints, of decreasing width; those of complete items are gathered in the left half."""
    charts = space.charts
    steps = zip(
        charts.value_windows, charts.adjoint_windows, charts.arc_windows, space.through, charts.to_root, strict=True
    )
    for at, to, arc, here, root in reversed(list(steps)):
        if single_root:
            root.zero_()
        to.complete_on_left.add_(to.complete_on_right)
        to.mixed.addcmul_(to.complete, at.parts_mixed)
        torch.mul(to.open_right, arc.right, out=here)
        here.addcmul_(to.open_left, arc.left)
        to.inner.addcmul_(here, at.parts_inner)


def _inside_tangent(space: TreeSpace, single_root: bool) -> None:
    charts, tangent = space.charts, space.tangent
    for at, d_at, arc, d_arc, room, root in zip(
        charts.value_windows, tangent.value_windows, charts.arc_windows, tangent.arc_windows, space.scratch,
        tangent.of_root, strict=True,
    ):
        torch.mul(at.left_inner, d_at.right_inner, out=room.inner)
        room.inner.addcmul_(d_at.left_inner, at.right_inner)
        torch.sum(room.inner, 0, out=room.halves)
        torch.mul(at.open_left_right, d_arc.left_right, out=d_at.open_left_right)
        d_at.open_left_right.addcmul_(arc.left_right, room.halves)
        torch.mul(at.left_mixed, d_at.right_mixed, out=room.mixed)
        room.mixed.addcmul_(d_at.left_mixed, at.right_mixed)
        torch.sum(room.mixed, 1, out=d_at.complete_on_left)
        d_at.complete_on_right.copy_(d_at.complete_on_left)
        if single_root:
            root.zero_()


def _outside_tangent(space: TreeSpace, single_root: bool) -> None:
    charts, tangent = space.charts, space.tangent
    steps = zip(
        charts.value_windows, tangent.value_windows, charts.adjoint_windows, tangent.adjoint_windows,
        charts.arc_windows, space.d_shares[1], space.through, space.scratch, tangent.to_root, strict=True,
    )
    for at, d_at, to, d_to, arc, d_arc, through, room, root in reversed(list(steps)):
        if single_root:
            root.zero_()
        d_to.complete_on_left.add_(d_to.complete_on_right)
        d_to.mixed.addcmul_(d_to.complete, at.parts_mixed)
        d_to.mixed.addcmul_(to.complete, d_at.parts_mixed)
        here = torch.mul(d_to.open_right, arc.right, out=room.halves)
        here.addcmul_(to.open_right, d_arc.right)
        here.addcmul_(d_to.open_left, arc.left)
        here.addcmul_(to.open_left, d_arc.left)
        d_to.inner.addcmul_(here, at.parts_inner)
        d_to.inner.addcmul_(through, d_at.parts_inner)
