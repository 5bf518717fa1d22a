"""Linear chains in log space: one recursion over any semiring, and marginals that are exact for any potentials.

start: B C and steps: B M C C are log potentials, M = N - 1 steps; a step that does nothing is the identity matrix of
the log semiring.  steps[b, t, i, j] scores state i followed by state j.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.semiring import LogSemiring


def chain_total(start: Tensor, steps: Tensor, semiring: LogSemiring) -> Tensor:
    """What the semiring says of all paths, B.  O(B N C^2), one step after the other."""
    forward = semiring.lift(start)
    matrices = semiring.lift(steps)
    for t in range(steps.size(1)):
        forward = semiring.sum(semiring.times(forward.unsqueeze(-1), matrices[:, :, t]), -2)
    return semiring.value(semiring.sum(forward, -1))


class LogChain(NamedTuple):
    """What the second pass needs of the first, time first.

    steps: M B C C; forward, backward: N B C, logarithms; log_partition: B.
    """

    steps: Tensor
    forward: Tensor
    backward: Tensor
    log_partition: Tensor


def log_chain(start: Tensor, steps: Tensor) -> tuple[LogChain, Tensor, Tensor]:
    """Forward-backward: also the marginals of nodes B N C and of steps B M C C; zeros where no path is possible."""
    M = steps.size(1)
    steps = steps.transpose(0, 1)
    forward, backward = [start], [torch.zeros_like(start)]
    for t in range(M):
        forward.append(torch.logsumexp(forward[t].unsqueeze(2) + steps[t], 1))
        backward.append(torch.logsumexp(backward[t].unsqueeze(1) + steps[M - 1 - t], 2))
    alpha, beta = torch.stack(forward), torch.stack(backward[::-1])
    total = alpha[M].logsumexp(1)
    chain = LogChain(steps, alpha, beta, total)
    limit = _finite(total)
    node = (alpha + beta - limit.unsqueeze(1)).exp()
    return chain, node.transpose(0, 1), _step_marginals(chain).transpose(0, 1)


def log_chain_tangent(chain: LogChain, start: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, B N C and B M C C, in a direction start B C, steps B M C C.

    The tangent of a logarithm is a mean, over what leads to it, of tangents: nothing grows and no sign is lost.
    """
    M = len(chain.steps)
    steps = steps.transpose(0, 1)
    forward, backward = [start], [torch.zeros_like(start)]
    for t in range(M):
        share = (chain.forward[t].unsqueeze(2) + chain.steps[t] - _finite(chain.forward[t + 1]).unsqueeze(1)).exp()
        forward.append((share * (forward[t].unsqueeze(2) + steps[t])).sum(1))
        s = M - 1 - t
        share = (chain.backward[s + 1].unsqueeze(1) + chain.steps[s] - _finite(chain.backward[s]).unsqueeze(2)).exp()
        backward.append((share * (backward[t].unsqueeze(1) + steps[s])).sum(2))
    alpha, beta = torch.stack(forward), torch.stack(backward[::-1])
    limit = _finite(chain.log_partition).unsqueeze(1)
    total = ((chain.forward[M] - limit).exp() * alpha[M]).sum(1).unsqueeze(1)
    node = (chain.forward + chain.backward - limit).exp() * (alpha + beta - total)
    step = _step_marginals(chain) * (alpha[:-1].unsqueeze(3) + steps + beta[1:].unsqueeze(2) - total.unsqueeze(2))
    return node.transpose(0, 1), step.transpose(0, 1)


def _step_marginals(chain: LogChain) -> Tensor:
    around = chain.forward[:-1].unsqueeze(3) + chain.backward[1:].unsqueeze(2)
    return (around + chain.steps - _finite(chain.log_partition).view(-1, 1, 1)).exp()


def _finite(logarithm: Tensor) -> Tensor:
    """With a finite number for -inf, so that -inf minus it stays -inf."""
    return logarithm.clamp(min=-1e300)
