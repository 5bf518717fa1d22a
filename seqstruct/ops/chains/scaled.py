"""Marginals of linear chains in scaled probability space, float64: a scan for few states, a sweep for many.

The scan is `linear_chain_scan`.  In the sweep every matrix of a step is divided by its greatest entry, the forward
vector by its sum at every step and the backward one by the same, so that their product sums to 1; where no backward
entry is above RANGE_OF_SWEEP and no sum below its inverse, nothing was lost that matters.  A row with potentials too
large to be added up without loss is not exact either.
`exact` says for which rows a form can be trusted.  Derivatives are taken along a centred direction in both.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.log_potentials import LARGEST_POTENTIAL, level_
from seqstruct.ops.chains.tiles import ScanSpace, scan, scan_tangent
from seqstruct.ops.workspace import Loan

RANGE_OF_SWEEP = 1e140
MOST_STATES_OF_SCAN = 5


class ScaledChain(NamedTuple):
    """Marginals of nodes B N C and of steps B M C C, log-partition B, and for which rows they are `exact`, B bool.

    kept, loan: the tensors that the tangent needs, and what holds those of them that are borrowed.
    """

    node: Tensor
    step: Tensor
    log_partition: Tensor
    exact: Tensor
    kept: tuple[Tensor, ...]
    loan: Loan[ScanSpace] | None


def scaled_chain(start: Tensor, steps: Tensor, entering: Tensor, need_total: bool = True) -> ScaledChain:
    """From log potentials start B C, steps B M C C, M >= 1, and, to be added to these, entering B M C.

    need_total: whether the log-partition is wanted; without it, that field may say nothing.
    O(B N C^3) time for few states, O(B N C^2) for many.
    """
    if start.size(1) > MOST_STATES_OF_SCAN:
        return _sweep(start, steps, entering)
    node, step, exact, log_partition, loan, kept = scan(start, steps, entering, need_total)
    return ScaledChain(node.permute(2, 1, 0), step.permute(3, 2, 0, 1), log_partition, exact, kept, loan)


def scaled_chain_tangent(
    kept: tuple[Tensor, ...],
    loan: Loan[ScanSpace] | None,
    start: Tensor | None,
    steps: Tensor,
    entering: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, B N C and B M C C, in a direction start, steps and entering, None for 0."""
    if loan is None:
        start = steps.new_zeros(len(steps), steps.size(2)) if start is None else start
        steps = steps.double() if entering is None else steps.double() + entering.unsqueeze(2)
        return _sweep_tangent(kept, start.double(), steps)
    node, step = scan_tangent(loan, kept, start, steps, entering)
    return node.permute(2, 1, 0), step.permute(3, 2, 0, 1)


def _centred(direction: Tensor, marginals: Tensor, dims: tuple[int, ...]) -> Tensor:
    return direction - (direction * marginals).sum(dims, keepdim=True)


def _sweep(start: Tensor, steps: Tensor, entering: Tensor) -> ScaledChain:
    """Forward, then backward, a batched product a step."""
    M = steps.size(1)
    first, matrices, states = (x.to(torch.float64, copy=True) for x in (start, steps, entering))
    scale = level_(first, 1) + level_(matrices, 2, 3).sum(1) + level_(states, 2).sum(1)
    of_both = level_(matrices.add_(states.unsqueeze(2)), 2, 3)  # B M
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
    exact &= of_both.amin(1) >= -LARGEST_POTENTIAL
    return ScaledChain(node, step, log_partition, exact, (matrices, alpha, beta, step, node), None)


def _sweep_tangent(kept: tuple[Tensor, ...], start: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    matrices, alpha, beta, step, node = kept
    M = steps.size(1)
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
