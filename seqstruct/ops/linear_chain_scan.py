"""Marginals of linear chains of few states by a scan, in scaled probability space, float64.

Products of neighbouring matrices up a tree, then vectors down it, both directions of the chain at once.  Matrices are
divided by their greatest entry and by the number of states, so that no product exceeds 1; what underflows is below
1e-290 of a partition function above SMALLEST_TOTAL.

The derivative of a vector along a direction is that of the vector before it, times the matrix, plus the vector times
the derivative of the matrix: an affine recursion over the same matrices, so its scan goes over vectors alone.  With the
direction centred, so that its expectation under the marginals is 0 at every step, the partition function does not
change along it and nothing cancels; the marginals' derivative is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.workspace import Loan, Pool

SMALLEST_TOTAL = 1e-285
POOL = Pool()


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is cached may be used in training later
def _orders(steps: int, device: torch.device) -> tuple[int, Tensor, Tensor, Tensor, Tensor]:
    """How the leaves of a scan of so many steps lie: P, and four lists of indices.

    P is a power of two above the number of steps, rev counts 0 .. P-1 with bits turned round.  The leaves of the two
    directions are rev and P-1-rev; the vector before step t is at rev[t], the one behind it, of the chain turned
    round, at rev[P-1-t].
    """
    bits = max(1, steps.bit_length())
    P = 1 << bits
    rev = torch.tensor([int(format(p, f"0{bits}b")[::-1], 2) for p in range(P)], device=device)
    return P, rev, P - 1 - rev, rev[: steps + 1].clone(), rev.flip(0)[:steps].clone()


class _Tree:
    """One buffer of leaves, levels and vectors of a scan, and the views of them that are multiplied.

    leaves: C C P B in time order.  levels: 2 C C P B, both directions in bit-reversed order, so that the even and the
    odd ones of each level are its halves; then half as many, down to 2.  vectors: 2 C P B.
    """

    def __init__(self, buffer: Tensor, M: int, C: int, B: int) -> None:
        P, self.rev, self.turned, self.before, self.behind = _orders(M, buffer.device)
        widths = [P]
        while widths[-1] > 2:
            widths.append(widths[-1] // 2)
        sizes = [C * C * P * B, 2 * C * P * B, *(2 * C * C * width * B for width in widths)]
        parts = buffer.split(sizes)
        self.all_leaves = parts[0].view(C, C, P, B)
        self.leaves = self.all_leaves[:, :, :M]
        self.all_leaves.zero_()[:, :, M:].diagonal(0, 0, 1).fill_(1.0)
        self.vectors = parts[1].view(2, C, P, B)
        self.first, self.last = self.vectors[0, :, 0], self.vectors[1, :, 0]
        self.levels = [part.view(2, C, C, width, B) for part, width in zip(parts[2:], widths, strict=True)]
        self.directions = self.levels[0].unbind(0)
        # For each product of levels: the result, and for each inner state the even and the odd factor.
        self.up = []
        for level, out in zip(self.levels[:-1], self.levels[1:], strict=True):
            even, odd = level.chunk(2, 3)
            self.up.append((out, [(even[:, :, k].unsqueeze(2), odd[:, k].unsqueeze(1)) for k in range(C)]))
        self.down = _down(self.vectors, self.levels)

    @staticmethod
    def size(P: int, C: int, B: int) -> int:
        """Numbers in the buffer."""
        return B * (C * C * P + 2 * C * P + C * C * (4 * P - 4))

    def leaves_to_levels(self) -> None:
        """The leaves in the order of the scan, the second direction turned round."""
        torch.index_select(self.all_leaves, 2, self.rev, out=self.directions[0])
        torch.index_select(self.all_leaves.transpose(0, 1), 2, self.turned, out=self.directions[1])

    def in_time(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Those before each step and at the end, C M+1 B, and those behind each step, C M B, of vectors 2 C P B."""
        return vectors[0].index_select(1, self.before), vectors[1].index_select(1, self.behind)


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
        self.added = [torch.zeros_like(tree.vectors[0]) for _ in range(2)]
        self.leaves = [x[:, :M] for x in self.added]
        self.vectors = torch.zeros_like(tree.vectors)
        self.first = self.vectors[0, :, 0]
        self.levels = [torch.empty_like(level[:, 0]) for level in tree.levels]
        self.directions = self.levels[0].unbind(0)
        # For each level: the result, what the odd half adds, and for each state what the even half adds and the matrix.
        self.up = []
        for level, matrices, out in zip(self.levels[:-1], tree.levels[:-1], self.levels[1:], strict=True):
            (even, odd), after = level.chunk(2, 2), matrices.chunk(2, 3)[1].unbind(1)
            pairs = [(v.unsqueeze(1), m) for v, m in zip(even.unbind(1), after, strict=True)]
            self.up.append((out, odd, pairs))
        # For each level from the top: the vectors that come out, what is added, and the products.
        self.down = [
            (out, level.chunk(2, 2)[0], pairs)
            for level, (out, pairs) in zip(reversed(self.levels), _down(self.vectors, tree.levels), strict=True)
        ]


class ScanSpace:
    """The trees of a scan and of its derivative."""

    def __init__(self, M: int, C: int, B: int, device: torch.device) -> None:
        self.sizes = M, C, B
        self.count = _Tree.size(_orders(M, device)[0], C, B)
        self.buffer = torch.empty(self.count, dtype=torch.float64, device=device)
        self.values = _Tree(self.buffer, M, C, B)
        self.values.last.fill_(1.0)
        self.nbytes = 8 * (self.count + 4 * self.values.vectors.numel())

    @cached_property
    def tangent(self) -> _Tangent:
        """Made when first needed."""
        with torch.inference_mode(False):
            return _Tangent(self.values, self.sizes[0])


class Scan(NamedTuple):
    """node: C N B and step: C C M B, marginals; partition: B; highest: M B, log of what matrices were divided by.

    loan: holds the tree; kept: tensors that the tangent needs.
    """

    node: Tensor
    step: Tensor
    partition: Tensor
    highest: Tensor
    loan: Loan[ScanSpace]
    kept: tuple[Tensor, ...]


def scan(start: Tensor, steps: Tensor, entering: Tensor | None = None) -> Scan:
    """From log potentials start B C, steps B M C C and entering B M C, M >= 1, of any floating type.

    entering: of the state that each step leads to, to be added to the steps, or None.
    O(B M C^3) time, O(B M C^2) memory.
    """
    B, M, C = steps.shape[:3]
    loan = POOL.borrow((M, C, B, steps.device), lambda: ScanSpace(M, C, B, steps.device))
    space, tree = loan.space, loan.space.values
    _by_time(steps, entering, tree.leaves)
    highest = tree.leaves.amax((0, 1)).clamp_(min=-1e300).add_(math.log(C))  # M B
    tree.leaves.sub_(highest).exp_()
    tree.first.copy_(start.softmax(1, dtype=torch.float64).t())
    tree.leaves_to_levels()
    for out, pairs in (*tree.up, *tree.down):
        _sum_of_products(pairs, out)
    alpha, beta = tree.in_time(tree.vectors)
    end = alpha.select(1, M)
    partition = end.sum(0)
    inverse = partition.clamp(min=SMALLEST_TOTAL).reciprocal_()
    beta.mul_(inverse)  # and with it, below, its derivative
    step = (tree.leaves * alpha.narrow(1, 0, M).unsqueeze(1)).mul_(beta)
    node = alpha.new_empty(C, M + 1, B)
    torch.sum(step, 1, out=node.narrow(1, 0, M))
    torch.mul(end, inverse, out=node.select(1, M))
    return Scan(node, step, partition, highest, loan, (space.buffer, step, node, alpha, beta, inverse))


def scan_tangent(
    loan: Loan[ScanSpace],
    kept: tuple[Tensor, ...],
    start: Tensor | None,
    steps: Tensor,
    entering: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, C N B and C C M B, in a direction start B C (or None for 0), steps and entering as
    in `scan`.
    """
    _, step, node, alpha, beta, inverse = kept
    tree, tangent = loan.space.values, loan.space.tangent
    M, C, B = loan.space.sizes
    direction = _by_time(steps, entering, step.new_empty(C, C, M, B))
    direction.sub_((direction * step).sum((0, 1)))
    change = tree.leaves * direction
    _sum_of_products(zip(alpha.narrow(1, 0, M).unsqueeze(1), change, strict=True), tangent.leaves[0])
    _sum_of_products(zip(beta.unsqueeze(1), change.unbind(1), strict=True), tangent.leaves[1])
    if start is None:
        tangent.first.zero_()
    else:
        start = start.t().double()
        torch.mul(tree.first, start - (start * node.select(1, 0)).sum(0), out=tangent.first)
    for added, order, out in zip(tangent.added, (tree.rev, tree.turned), tangent.directions, strict=True):
        torch.index_select(added, 1, order, out=out)
    for out, added, ((vector, matrix), *others) in (*tangent.up, *tangent.down):
        torch.addcmul(added, vector, matrix, out=out)
        for vector, matrix in others:
            out.addcmul_(vector, matrix)
    d_alpha, d_beta = tree.in_time(tangent.vectors)
    d_step = (d_alpha.narrow(1, 0, M).unsqueeze(1) * beta).addcmul_(alpha.narrow(1, 0, M).unsqueeze(1), d_beta)
    d_step.mul_(tree.leaves).addcmul_(step, direction)
    d_node = alpha.new_empty(alpha.shape)
    torch.sum(d_step, 1, out=d_node.narrow(1, 0, M))
    torch.mul(d_alpha.select(1, M), inverse, out=d_node.select(1, M))
    return d_node, d_step


def _sum_of_products(pairs: Iterable[tuple[Tensor, Tensor]], out: Tensor) -> None:
    (left, right), *others = pairs
    torch.mul(left, right, out=out)
    for left, right in others:
        out.addcmul_(left, right)


def _by_time(steps: Tensor, entering: Tensor | None, out: Tensor) -> Tensor:
    """steps B M C C and what is to be added to each state that they lead to, B M C, as out C C M B."""
    out.copy_(steps.permute(2, 3, 1, 0))
    return out if entering is None else out.add_(entering.permute(2, 1, 0))


def log_scale(start: Tensor, highest: Tensor) -> Tensor:
    """B: log of what the partition function of a scan has to be multiplied by."""
    return start.double().logsumexp(1) + highest.sum(0)
