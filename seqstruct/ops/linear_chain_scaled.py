"""Marginals of linear chains in scaled probability space, float64: a scan for few states, a sweep for many.

Every matrix of a step is divided by its greatest entry.  In the scan it is further divided by the number of states, so
that no product exceeds 1 and what underflows is smaller than 1e-290 of a partition function above SMALLEST_TOTAL.
In the sweep the forward vector is divided by its sum at every step and the backward one by the same, so that their
product sums to 1; where no backward entry is above RANGE_OF_SWEEP and no sum below its inverse, nothing was lost that
matters.
`exact` says for which rows this holds.

The derivative of the marginals in a direction W is the same recursion with the product rule.  With W centred, so that
its expectation under the marginals is 0 at every step, the partition function does not change along it and nothing
cancels; the result is the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

SMALLEST_TOTAL = 1e-285
RANGE_OF_SWEEP = 1e140
MOST_STATES_OF_SCAN = 5


class ScaledChain(NamedTuple):
    """Marginals of nodes B N C and of steps B M C C, log-partition B, and for which rows they are `exact`, B bool.

    kept: the tensors that the tangent needs.
    """

    node: Tensor
    step: Tensor
    log_partition: Tensor
    exact: Tensor
    kept: tuple[Tensor, ...]


def scaled_chain(start: Tensor, steps: Tensor) -> ScaledChain:
    """From log potentials B C and B M C C, float64, M >= 1; O(B N C^3) time for few states, O(B N C^2) for many."""
    return _scan(start, steps) if start.size(1) <= MOST_STATES_OF_SCAN else _sweep(start, steps)


def scaled_chain_tangent(kept: tuple[Tensor, ...], start: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, B N C and B M C C, in a direction start B C, steps B M C C."""
    return (_scan_tangent if start.size(1) <= MOST_STATES_OF_SCAN else _sweep_tangent)(kept, start, steps)


def _scaled(log_potentials: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """exp of the log potentials less their maximum, and that maximum."""
    highest = log_potentials.amax(dims, keepdim=True).clamp_(min=-1e300)
    return (log_potentials - highest).exp_(), highest


def _centred(direction: Tensor, marginals: Tensor, dims: tuple[int, ...]) -> Tensor:
    return direction - (direction * marginals).sum(dims, keepdim=True)


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


def _scan(start: Tensor, steps: Tensor) -> ScaledChain:
    """Products of neighbours up a tree, then vectors down it, both directions of the chain at once.

    Leaves lie in bit-reversed order: the even and the odd ones of each level are its contiguous halves.
    """
    B, M, C = steps.shape[:3]
    P, rev, turned, _, _ = _orders(M, steps.device)
    matrices, highest = _scaled(steps, (2, 3))
    leaves = steps.new_zeros(C, C, P, B)
    torch.mul(matrices.permute(2, 3, 1, 0), 1 / C, out=leaves[:, :, :M])
    leaves[:, :, M:].diagonal(0, 0, 1).fill_(1.0)
    first, lowest = _scaled(start, (1,))
    total = first.sum(1, keepdim=True)
    levels = [_both_directions(leaves, rev, turned)]
    while levels[-1].size(3) > 2:
        even, odd = levels[-1].chunk(2, 3)
        levels.append((even.unsqueeze(3) * odd.unsqueeze(1)).sum(2))  # 2 C C C P B: [i, k] times [k, j]
    vectors = steps.new_empty(2, C, P, B)
    torch.div(first, total, out=vectors[0, :, 0].t())
    vectors[1, :, 0] = 1.0
    for depth, level in enumerate(reversed(levels)):
        h = 1 << depth
        before = vectors.narrow(2, 0, h).unsqueeze(2)  # 2 C 1 h B, row vectors
        torch.sum(before * level.narrow(3, 0, h), 1, out=vectors.narrow(2, h, h))
    alpha, beta = _in_time(vectors, M)
    partition = alpha[:, M].sum(0)
    inverse = partition.clamp(min=SMALLEST_TOTAL).reciprocal_()
    step = (leaves[:, :, :M] * alpha[:, :M].unsqueeze(1)).mul_(beta * inverse)
    node = torch.cat([step.sum(1), alpha[:, M:] * inverse], 1)
    scales = highest.sum((1, 2, 3)) + (lowest + total.log()).squeeze(1) + M * math.log(C)
    kept = (vectors, inverse, step, node, leaves, *levels)
    step, node = step.permute(3, 2, 0, 1), node.permute(2, 1, 0)
    return ScaledChain(node, step, partition.log() + scales, partition >= SMALLEST_TOTAL, kept)


def _scan_tangent(kept: tuple[Tensor, ...], start: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    vectors, inverse, step, node, leaves, *levels = kept
    M = steps.size(1)
    _, rev, turned, _, _ = _orders(M, steps.device)
    steps = _centred(steps.permute(2, 3, 1, 0).contiguous(), step, (0, 1))  # C C M B, as all of the scan
    d_leaves = torch.zeros_like(leaves)
    torch.mul(leaves[:, :, :M], steps, out=d_leaves[:, :, :M])
    d_levels = [_both_directions(d_leaves, rev, turned)]
    for level in levels[:-1]:
        (even, odd), (d_even, d_odd) = level.chunk(2, 3), d_levels[-1].chunk(2, 3)
        products = even.unsqueeze(3) * d_odd.unsqueeze(1)
        d_levels.append(products.addcmul_(d_even.unsqueeze(3), odd.unsqueeze(1)).sum(2))
    tangent = torch.empty_like(vectors)
    torch.mul(vectors[0, :, 0], _centred(start.t(), node[:, 0], (0,)), out=tangent[0, :, 0])
    tangent[1, :, 0] = 0.0
    for depth, (level, d_level) in enumerate(zip(reversed(levels), reversed(d_levels), strict=True)):
        h = 1 << depth
        ahead = tangent.narrow(2, 0, h).unsqueeze(2) * level.narrow(3, 0, h)
        ahead.addcmul_(vectors.narrow(2, 0, h).unsqueeze(2), d_level.narrow(3, 0, h))
        torch.sum(ahead, 1, out=tangent.narrow(2, h, h))
    alpha, beta = _in_time(vectors, M)
    d_alpha, d_beta = _in_time(tangent, M)
    d_step = (d_alpha[:, :M].unsqueeze(1) * beta).addcmul_(alpha[:, :M].unsqueeze(1), d_beta)
    d_step.mul_(leaves[:, :, :M]).mul_(inverse).addcmul_(step, steps)
    d_node = torch.cat([d_step.sum(1), d_alpha[:, M:] * inverse], 1)
    return d_node.permute(2, 1, 0), d_step.permute(3, 2, 0, 1)


def _both_directions(leaves: Tensor, rev: Tensor, turned: Tensor) -> Tensor:
    """C C P B in time order as 2 C C P B in the order of the scan, the second direction turned round."""
    both = leaves.new_empty(2, *leaves.shape)
    torch.index_select(leaves, 2, rev, out=both[0])
    torch.index_select(leaves.transpose(0, 1), 2, turned, out=both[1])
    return both


def _in_time(vectors: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Vectors 2 C P B as those before each step and at the end, C M+1 B, and those behind each step, C M B."""
    _, _, _, before, behind = _orders(steps, vectors.device)
    return vectors[0].index_select(1, before), vectors[1].index_select(1, behind)


def _sweep(start: Tensor, steps: Tensor) -> ScaledChain:
    """Forward, then backward, a batched product a step."""
    M = steps.size(1)
    matrices, highest = _scaled(steps, (2, 3))  # B M C C
    first, lowest = _scaled(start, (1,))
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
    log_partition = sums.log().sum(1) + highest.sum((1, 2, 3)) + lowest.squeeze(1)
    exact = (beta.amax((1, 2)) <= RANGE_OF_SWEEP) & (sums.amin(1) >= 1 / RANGE_OF_SWEEP)
    return ScaledChain(node, step, log_partition, exact, (matrices, alpha, beta, step, node))


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
