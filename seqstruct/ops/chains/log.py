"""Linear chains in log space: one recursion over any semiring, and marginals that are exact for any potentials.

start: B C, steps: B M C C and entering: B M C are log potentials, M = N - 1 steps; a step that does nothing is the
identity matrix of the log semiring.  steps[b, t, i, j] + entering[b, t, j] scores state i followed by state j.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.log_potentials import choice, level_exactly
from seqstruct.ops.semiring import LogSemiring, add_exactly


def chain_total(start: Tensor, steps: Tensor, entering: Tensor, semiring: LogSemiring) -> Tensor:
    """What the semiring says of all paths, B.  O(B N C^2), one step after the other."""
    forward = semiring.lift(start)
    matrices, states = semiring.lift(steps), semiring.lift(entering)
    for t in range(steps.size(1)):
        forward = semiring.sum(semiring.times(forward.unsqueeze(-1), matrices[:, :, t]), -2)
        forward = semiring.times(forward, states[:, :, t])
    return semiring.value(semiring.sum(forward, -1))


class LogChain(NamedTuple):
    """What the second pass needs of the first, time first.

    shares: M B C C, [t, b, i, j] the probability of state i at t, given that j follows and nothing of what comes later;
    node: N B C, marginals; log_partition: B.
    """

    shares: Tensor
    node: Tensor
    log_partition: Tensor


def log_chain(start: Tensor, steps: Tensor, entering: Tensor) -> tuple[LogChain, Tensor, Tensor]:
    """Also the marginals of nodes B N C and of steps B M C C; zeros where no path is possible.

    Sums over prefixes, as the score of one path each and what all paths add to it: the scores of paths lose no digits,
    however large they are.  Then probabilities from the end on, by which all paths together have exactly 1.
    """
    path, rest, scale = level_exactly(start, 1)
    steps, of_steps, level = level_exactly(steps, 2, 3)
    entering, of_entering, levels = level_exactly(entering, 2)
    scale = scale + level.sum(1) + levels.sum(1)
    found = []
    for t in range(steps.size(1)):
        path, rest, share = choice(path.unsqueeze(2), steps[:, t], rest.unsqueeze(2) + of_steps[:, t], 1)
        path, lost = add_exactly(path, entering[:, t])
        rest = rest + (lost + of_entering[:, t])
        found.append(share)
    path, rest, share = choice(path, torch.zeros_like(path), rest, 1)
    node, pair = [share], []
    for share in reversed(found):
        pair.append(share * node[-1].unsqueeze(1))
        node.append(pair[-1].sum(2))
    nodes = torch.stack(node[::-1])
    chain = LogChain(torch.stack(found) if found else steps.transpose(0, 1), nodes, path + rest + scale)
    return chain, nodes.transpose(0, 1), torch.stack(pair[::-1], 1) if pair else torch.zeros_like(steps)


def log_chain_tangent(chain: LogChain, start: Tensor, steps: Tensor, entering: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals, B N C and B M C C, in a direction start B C, steps B M C C, entering B M C.

    The tangent of a logarithm is a mean, over what leads to it, of tangents: nothing grows and no sign is lost.
    """
    tangent, changes = start, []
    for share, step, state in zip(chain.shares, steps.unbind(1), entering.unbind(1), strict=True):
        terms = tangent.unsqueeze(2) + step
        mean = (share * terms).sum(1)
        changes.append(terms - mean.unsqueeze(1))
        tangent = mean + state
    last = chain.node[-1]
    node, pair = [last * (tangent - (last * tangent).sum(1, keepdim=True))], []
    for t in range(len(chain.shares) - 1, -1, -1):
        flow = node[-1].unsqueeze(1) + changes[t] * chain.node[t + 1].unsqueeze(1)
        pair.append(chain.shares[t] * flow)
        node.append(pair[-1].sum(2))
    return torch.stack(node[::-1], 1), torch.stack(pair[::-1], 1) if pair else torch.zeros_like(steps)
