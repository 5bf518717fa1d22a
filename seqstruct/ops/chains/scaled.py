"""Marginals of linear chains in scaled probability space, float64: a scan for few states, a sweep for many.

The scan is `chains.scan`.  In the sweep every matrix of a step is divided by its greatest entry, the forward vector by
its sum at every step and the backward one by the same, so that their product sums to 1; where no backward entry is
above RANGE_OF_SWEEP and no sum below its inverse, nothing was lost that matters.  A row with potentials too large to be
added up without loss is not exact either.
`exact` says for which rows a form can be trusted.  Derivatives are taken along a centred direction in both.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.scan import KeptOfScan, ScanSpace, scan, scan_tangent
from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, level_
from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.workspace import Loan

RANGE_OF_SWEEP = 1e140
MOST_STATES_OF_SCAN = 5


class KeptOfSweep(NamedTuple):
    """matrices: B M C C, divided by the sums of the forward vectors that they lead to; alpha, beta: B N C, forward and
    backward vectors; step: B M C C and node: B N C, marginals.
    """

    matrices: Tensor
    alpha: Tensor
    beta: Tensor
    step: Tensor
    node: Tensor


@torch.no_grad()
def scaled_chain(unary: Tensor, edge: Tensor, need_total: bool = True) -> FirstPass:
    """The first pass, from log potentials unary B N C and edge B N-1 C C, N >= 1, of any floating type.

    need_total: whether the log-partition is wanted; without it, that field may be None.
    O(B N C^3) time for few states, O(B N C^2) for many.
    """
    if unary.size(1) == 1 or unary.size(2) > MOST_STATES_OF_SCAN:
        return _sweep(unary, edge)
    return scan(unary, edge, need_total)


def scaled_chain_tangent(
    kept: KeptOfScan | KeptOfSweep, loan: Loan[ScanSpace] | None, unary: Tensor | None, edge: Tensor
) -> tuple[Tensor, Tensor]:
    """The second pass, in a direction of the log potentials, None for 0."""
    if isinstance(kept, KeptOfScan):
        return scan_tangent(kept, loan, unary, edge)
    return _sweep_tangent(kept, unary, edge)


def _centred(direction: Tensor, marginals: Tensor, dims: tuple[int, ...]) -> Tensor:
    return direction - (direction * marginals).sum(dims, keepdim=True)


def _sweep(unary: Tensor, edge: Tensor) -> FirstPass:
    """Forward, then backward, a batched product a step."""
    M = edge.size(1)
    first, matrices, states = (x.to(torch.float64, copy=True) for x in (unary[:, 0], edge, unary[:, 1:]))
    scale = level_(first, 1).squeeze(1) + level_(matrices, 2, 3).sum((1, 2, 3)) + level_(states, 2).sum((1, 2))
    of_both = level_(matrices.add_(states.unsqueeze(2)), 2, 3).flatten(1)  # B M
    matrices.exp_()
    first.exp_()
    totals = [first.sum(1, keepdim=True)]
    forward, backward = [first / totals[0]], [torch.ones_like(first)]
    for t in range(M):
        ahead = torch.bmm(forward[t].unsqueeze(1), matrices[:, t]).squeeze(1)
        totals.append(ahead.sum(1, keepdim=True))
        forward.append(ahead / totals[-1])
        matrices[:, t].div_(totals[-1].unsqueeze(2))
    for t in range(M - 1, -1, -1):
        backward.append(torch.bmm(matrices[:, t], backward[-1].unsqueeze(2)).squeeze(2))
    alpha, beta = torch.stack(forward, 1), torch.stack(backward[::-1], 1)
    step = alpha[:, :-1].unsqueeze(3) * matrices * beta[:, 1:].unsqueeze(2)
    node = alpha * beta
    sums = torch.cat(totals, 1)
    log_partition = sums.log().sum(1) + of_both.sum(1) + scale
    exact = (beta.amax((1, 2)) <= RANGE_OF_SWEEP) & (sums.amin(1) >= 1 / RANGE_OF_SWEEP)
    exact &= (of_both >= -LARGEST_POTENTIAL).all(1)
    return FirstPass((node, step), log_partition, exact, KeptOfSweep(matrices, alpha, beta, step, node), None)


def _sweep_tangent(kept: KeptOfSweep, unary: Tensor | None, edge: Tensor) -> tuple[Tensor, Tensor]:
    matrices, alpha, beta, step, node = kept
    M, start, steps = edge.size(1), torch.zeros_like(node[:, 0]), edge.double()
    if unary is not None:
        start, steps = unary[:, 0].double(), steps + unary[:, 1:].unsqueeze(2)
    steps = _centred(steps, step, (2, 3))
    d_matrices = matrices * steps
    forward = [(alpha[:, 0] * _centred(start, node[:, 0], (1,))).unsqueeze(1)]
    backward = [torch.zeros_like(beta[:, 0]).unsqueeze(2)]
    from_left = torch.matmul(alpha[:, :-1].unsqueeze(2), d_matrices)  # B M 1 C
    from_right = torch.matmul(d_matrices, beta[:, 1:].unsqueeze(3))  # B M C 1
    for t in range(M):
        forward.append(torch.baddbmm(from_left[:, t], forward[t], matrices[:, t]))
        backward.append(torch.baddbmm(from_right[:, M - 1 - t], matrices[:, M - 1 - t], backward[t]))
    d_alpha, d_beta = torch.stack(forward, 1), torch.stack(backward[::-1], 1)  # B N 1 C, B N C 1
    around = d_alpha[:, :-1].transpose(2, 3) * beta[:, 1:].unsqueeze(2)
    around.addcmul_(alpha[:, :-1].unsqueeze(3), d_beta[:, 1:].transpose(2, 3))
    d_step = around.mul_(matrices).addcmul_(step, steps)
    return d_alpha.squeeze(2) * beta + alpha * d_beta.squeeze(3), d_step
