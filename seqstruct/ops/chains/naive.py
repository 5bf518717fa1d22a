"""The sum over all paths of a linear chain, as a recurrence over any semiring."""

from __future__ import annotations

from torch import Tensor

from seqstruct.ops.semiring import LogSemiring


def chain_total(unary: Tensor, edge: Tensor, semiring: LogSemiring) -> Tensor:
    """The sum, over all paths z, of the product of unary[t, z_t] and edge[t, z_t, z_{t+1}]; an element K B.

        alpha_0(j) = unary[0, j]
        alpha_{t+1}(j) = (sum_i alpha_t(i) edge[t, i, j]) unary[t+1, j]

    unary: K B N C and edge: K B N-1 C C, elements of the semiring, N >= 1.
    O(B N C^2), one step after the other; differentiable as often as the semiring's operations are.
    """
    alpha, *states = unary.unbind(-2)
    for matrix, state in zip(edge.unbind(-3), states, strict=True):
        alpha = semiring.sum(semiring.times(alpha.unsqueeze(-1), matrix), -2)
        alpha = semiring.times(alpha, state)
    return semiring.sum(alpha, -1)
