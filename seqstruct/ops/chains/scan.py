"""Marginals of linear chains of few states by a scan, in scaled probability space, float64.

Products of neighbouring matrices up a tree, then vectors down it, both directions of the chain at once.  The matrices
of steps, and on every RESCALED-th level their products too, are divided by their greatest entry times the number of
states, so that no product exceeds 1 and none shrinks with the length of the chain.  What underflows at some place is at
most 1e-300 where all paths together, at the scale of that place, have the weight of the two vectors around it and the
matrix between them.  At no place is that weight less than it is around a step, because no divisor exceeds 1: so a row
is exact where it is above SMALLEST_TOTAL around each of its steps.

The derivative of a vector along a direction is that of the vector before it, times the matrix, plus the vector times
the derivative of the matrix: an affine recursion over the same matrices, so its scan goes over vectors alone.  With the
direction centred, so that its expectation under the marginals is 0 at every step, the partition function does not
change along it and nothing cancels; the marginals' derivative is the same.  Divisors are constants to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, level_
from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.workspace import Loan, Pool

SMALLEST_TOTAL = 1e-285
RESCALED = 3
POOL = Pool()


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is cached may be used in training later
def _orders(steps: int, device: torch.device) -> tuple[int, Tensor, Tensor, Tensor, Tensor]:
    """How the leaves of a scan of so many steps lie: P, and four lists of indices.

    P is a power of two above the number of steps, rev counts 0 .. P-1 with bits turned round.  The leaves of the two
    directions are rev and P-1-rev; the vector before step t is at rev[t], the one behind it, of the chain turned
    round, at rev[P-1-t].  At P / 2 the two directions meet: both vectors around that time are at 1.
    """
    bits = max(1, steps.bit_length())
    P = 1 << bits
    index = torch.arange(P, device=device)
    rev = sum((index >> low & 1) << bits - 1 - low for low in range(bits))
    return P, rev, P - 1 - rev, rev[:steps].clone(), rev.flip(0)[:steps].clone()


class _Tree:
    """One buffer of leaves, levels and vectors of a scan, and the views of them that are multiplied.

    leaves: C C P B in time order.  levels: 2 C C P B, both directions in bit-reversed order, so that the even and the
    odd ones of each level are its halves; then half as many, down to 2.  divisors: 2 1 1 P B, of the rescaled levels,
    of as many products as each has.  vectors: 2 C P B.
    """

    def __init__(self, buffer: Tensor, M: int, C: int, B: int) -> None:
        P, self.rev, self.turned, self.before, self.behind = _orders(M, buffer.device)
        widths = [P]
        while widths[-1] > 2:
            widths.append(widths[-1] // 2)
        rescaled = widths[RESCALED::RESCALED]
        sizes = [C * C * P * B, 2 * C * P * B]
        sizes += [2 * C * C * width * B for width in widths] + [2 * width * B for width in rescaled]
        leaves, vectors, *parts = buffer.split(sizes)
        self.all_leaves = leaves.view(C, C, P, B)
        self.leaves = self.all_leaves[:, :, :M]
        self.all_leaves.zero_()[:, :, M:].diagonal(0, 0, 1).fill_(1.0)
        self.vectors = vectors.view(2, C, P, B)
        self.two_ways = self.vectors.unbind(0)
        self.first, self.last = self.vectors[:, :, 0].unbind(0)
        self.half_way = self.vectors[:, :, 1].unbind(0)
        self.levels = [part.view(2, C, C, width, B) for part, width in zip(parts[: len(widths)], widths, strict=True)]
        self.directions = self.levels[0].unbind(0)
        divisors = parts[len(widths) :]
        self.divisors = [part.view(2, 1, 1, width, B) for part, width in zip(divisors, rescaled, strict=True)]
        self.forward_divisors = [x[0, 0, 0] for x in self.divisors]
        # For each product of levels: the result, for each inner state the even and the odd factor, and the divisors.
        self.up = []
        for depth, (level, out) in enumerate(zip(self.levels[:-1], self.levels[1:], strict=True), 1):
            even, odd = level.chunk(2, 3)
            pairs = [(even[:, :, k].unsqueeze(2), odd[:, k].unsqueeze(1)) for k in range(C)]
            self.up.append((out, pairs, None if depth % RESCALED else self.divisors[depth // RESCALED - 1]))
        self.down = _down(self.vectors, self.levels)

    @staticmethod
    def size(P: int, C: int, B: int) -> int:
        """Numbers in the buffer."""
        rescaled = sum(P >> depth for depth in range(RESCALED, P.bit_length() - 1, RESCALED))
        return B * (C * C * P + 2 * C * P + C * C * (4 * P - 4) + 2 * rescaled)

    def in_time(self, forward: Tensor, backward: Tensor) -> tuple[Tensor, Tensor]:
        """Those before each step, C 1 M B, and those behind each step, C M B, of vectors C P B of the directions."""
        return forward.index_select(1, self.before).unsqueeze(1), backward.index_select(1, self.behind)


Terms = list[tuple[Tensor, Tensor]]  # what is multiplied, for each state


def _down(vectors: Tensor, levels: list[Tensor]) -> list[tuple[Tensor, Terms]]:
    """For each level from the top: the vectors that come out, and for each state before the vector and the matrix."""
    found = []
    for depth, level in enumerate(reversed(levels)):
        h = 1 << depth
        known, matrices = vectors[:, :, :h].unbind(1), level.narrow(3, 0, h).unbind(1)
        pairs = [(v.unsqueeze(1), m) for v, m in zip(known, matrices, strict=True)]
        found.append((vectors[:, :, h : 2 * h], pairs))
    return found


class _Tangent:
    """Derivatives of the vectors of a tree, 2 C P B, and what is added to them.

    added: C P B for each direction, in time order.  levels: 2 C P B in the order of the scan, then half as many, each
    what its two halves add together.
    """

    def __init__(self, tree: _Tree, M: int) -> None:
        self.added = [torch.zeros_like(x) for x in tree.two_ways]
        self.leaves = [x[:, :M] for x in self.added]
        self.vectors = torch.zeros_like(tree.vectors)
        self.two_ways = self.vectors.unbind(0)
        self.levels = [torch.empty_like(level[:, 0]) for level in tree.levels]
        self.directions = self.levels[0].unbind(0)
        # For each level: the result, what the odd half adds, for each state what the even half adds and the matrix, and
        # the divisors of the result.
        self.up = []
        for level, matrices, out, (*_, divisor) in zip(
            self.levels[:-1], tree.levels[:-1], self.levels[1:], tree.up, strict=True
        ):
            (even, odd), after = level.chunk(2, 2), matrices.chunk(2, 3)[1].unbind(1)
            pairs = [(v.unsqueeze(1), m) for v, m in zip(even.unbind(1), after, strict=True)]
            self.up.append((out, odd, pairs, None if divisor is None else divisor.squeeze(1)))
        # For each level from the top: the vectors that come out, what is added, and the products.
        self.down = [
            (out, level.chunk(2, 2)[0], pairs, None)
            for level, (out, pairs) in zip(reversed(self.levels), _down(self.vectors, tree.levels), strict=True)
        ]


class ScanSpace:
    """The trees of a scan and of its derivative."""

    def __init__(self, M: int, C: int, B: int, device: torch.device) -> None:
        self.steps = M
        self.count = _Tree.size(_orders(M, device)[0], C, B)
        self.buffer = torch.empty(self.count, dtype=torch.float64, device=device)
        self.values = _Tree(self.buffer, M, C, B)
        self.values.last.fill_(1.0)
        self.nbytes = 8 * (self.count + 4 * self.values.vectors.numel())

    @cached_property
    def tangent(self) -> _Tangent:
        """Made when first needed."""
        with torch.inference_mode(False):
            return _Tangent(self.values, self.steps)


class KeptOfScan(NamedTuple):
    """buffer: of the tree; step: C C M B, marginals; alpha: C 1 M B, beta: C M B, vectors before and behind each
    step; inverse: M B, of the weight of all paths around it.
    """

    buffer: Tensor
    step: Tensor
    alpha: Tensor
    beta: Tensor
    inverse: Tensor


def scan(unary: Tensor, edge: Tensor, need_total: bool) -> FirstPass:
    """From log potentials unary B N C and edge B N-1 C C, N >= 2, of any floating type.

    O(B N C^3) time, O(B N C^2) memory.
    """
    B, M, C = edge.shape[:3]
    loan = POOL.borrow((M, C, B, edge.device), lambda: ScanSpace(M, C, B, edge.device))
    space, tree = loan.space, loan.space.values
    # Each kind of potentials is brought to a maximum of 0 before they meet, lest digits are lost in a great number.
    of_edges = level_(tree.leaves.copy_(edge.permute(2, 3, 1, 0)), 0, 1)  # 1 1 M B
    states = tree.leaves.new_empty(C, M, B).copy_(unary[:, 1:].permute(2, 1, 0))
    of_states = level_(states, 0)
    # Where no sum of the two is within reach of 0 nothing is left of the step, and its row is not exact.
    of_both = tree.leaves.add_(states).amax((0, 1)).clamp_(min=-LARGEST_POTENTIAL).add_(math.log(C))
    tree.leaves.sub_(of_both).exp_()
    start = unary[:, 0]
    tree.first.copy_(start.softmax(1, dtype=torch.float64).t())
    _fill(tree, C)
    alpha, beta = tree.in_time(*tree.two_ways)
    step = (tree.leaves * alpha).mul_(beta)
    around = step.sum((0, 1))  # M B
    exact = around.amin(0) >= SMALLEST_TOTAL
    log_partition = None
    if need_total:
        log_partition = torch.mul(*tree.half_way).sum(0).log() + (of_edges + of_states + of_both).sum((0, 1, 2))
        log_partition += start.double().logsumexp(1) + sum(x.log().sum(0) for x in tree.forward_divisors)
    inverse = around.clamp_(min=SMALLEST_TOTAL).reciprocal_()
    step.mul_(inverse)
    kept = KeptOfScan(space.buffer, step, alpha, beta, inverse)
    return FirstPass(_batch_first(step), log_partition, exact, kept, loan)


def _fill(tree: _Tree, states: int) -> None:
    """Levels, of which the second direction is turned round, and vectors from leaves and first vectors."""
    torch.index_select(tree.all_leaves, 2, tree.rev, out=tree.directions[0])
    torch.index_select(tree.all_leaves.transpose(0, 1), 2, tree.turned, out=tree.directions[1])
    for out, pairs, divisor in tree.up:
        _sum_of_products(pairs, out)
        if divisor is not None:
            torch.amax(out, (1, 2), keepdim=True, out=divisor)
            out.div_(divisor.mul_(states))  # no number where a row has no path
    for out, pairs in tree.down:
        _sum_of_products(pairs, out)


def _batch_first(step: Tensor) -> tuple[Tensor, Tensor]:
    """B N C and B N-1 C C: of every state what C C M B says of the step that leaves it, of the last one of the step
    before it; and of every step.
    """
    C, _, M, B = step.shape
    nodes = step.new_empty(C, M + 1, B)
    torch.sum(step, 1, out=nodes.narrow(1, 0, M))
    torch.sum(step.select(2, M - 1), 0, out=nodes.select(1, M))
    return nodes.permute(2, 1, 0), step.permute(3, 2, 0, 1)


def scan_tangent(kept: KeptOfScan, loan: Loan[ScanSpace], unary: Tensor | None, edge: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, B N C and B N-1 C C, in a direction of the log potentials; None for 0."""
    _, step, alpha, beta, inverse = kept
    tree, tangent = loan.space.values, loan.space.tangent
    direction = torch.empty_like(step).copy_(edge.permute(2, 3, 1, 0))
    if unary is not None:
        start, others = unary.permute(2, 1, 0).split([1, edge.size(1)], 1)
        direction.add_(others)
        direction.narrow(2, 0, 1).add_(start.unsqueeze(1))  # of the state that the first step leaves
    direction.sub_((direction * step).sum((0, 1)))
    change = tree.leaves * direction
    _sum_of_products(zip(alpha.unbind(0), change.unbind(0), strict=True), tangent.leaves[0])
    _sum_of_products(zip(beta.unsqueeze(1).unbind(0), change.unbind(1), strict=True), tangent.leaves[1])
    for added, order, out in zip(tangent.added, (tree.rev, tree.turned), tangent.directions, strict=True):
        torch.index_select(added, 1, order, out=out)
    for out, added, ((vector, matrix), *others), divisor in (*tangent.up, *tangent.down):
        torch.addcmul(added, vector, matrix, out=out)
        for vector, matrix in others:
            out.addcmul_(vector, matrix)
        if divisor is not None:
            out.div_(divisor)
    d_alpha, d_beta = tree.in_time(*tangent.two_ways)
    d_step = (d_alpha * beta).addcmul_(alpha, d_beta)
    d_step.mul_(tree.leaves).mul_(inverse).addcmul_(step, direction)
    return _batch_first(d_step)


def _sum_of_products(pairs: Iterable[tuple[Tensor, Tensor]], out: Tensor) -> None:
    (left, right), *others = pairs
    torch.mul(left, right, out=out)
    for left, right in others:
        out.addcmul_(left, right)
