"""The sum over all directed spanning trees by elimination of words in log space, without any subtraction.

Gaussian elimination of the Laplacian of the matrix-tree theorem, kept as a graph: to eliminate word p with total weight
S_p = sum_h w[h, p] of incoming arcs, every path h -> p -> m becomes an arc, w[h, m] += w[h, p] w[p, m] / S_p, and the
sum over trees is the product of all S_p at the time of their elimination.  As weights are only added, multiplied and
divided, the result is exact to rounding for potentials of any size (the idea of Grassmann, Taksar and Heyman 1985, for
Markov chains).

For trees with a single arc from the root its weights are taken as infinitely small and the term of first order is kept:
the root's arcs count in S_p only for the last word.  The word of the greatest S_p goes first, so that no S_p is 0
before the last as long as there is a tree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.semiring import ExactLogSemiring


def eliminate(arcs: Tensor, lengths: Tensor, single_root: bool, semiring: ExactLogSemiring) -> Tensor:
    """The element K B of all trees, from log potentials B n+1 n+1, -inf where there is no arc; lengths: B, words.

    O(n) steps of O(B n^2); differentiable any number of times by autograd, at O(B n^3) memory.
    """
    n = arcs.size(1) - 1
    elements = semiring.lift(arcs)
    root, weights = elements[..., 0, 1:], elements[..., 1:, 1:]  # K B n, K B n n
    position = torch.arange(n, device=arcs.device)
    left = position < lengths.unsqueeze(1)
    total = semiring.one(lengths.shape, arcs)
    zero = semiring.zero((1, 1, 1), arcs)
    for _ in range(n):
        incoming = semiring.sum(weights, -2)
        if single_root:
            incoming = torch.where(left.sum(1, keepdim=True) == 1, root, incoming)
        else:
            incoming = _add(semiring, incoming, root)
        word = incoming[0].detach().clamp(min=-1e300).masked_fill(~left, -torch.inf).argmax(1, keepdim=True)  # B 1
        here = position == word
        weight = _take(incoming, word, -1)  # K B 1
        total = semiring.times(total, weight.masked_fill(~left.any(1, keepdim=True), 0.0).squeeze(-1))
        onward = semiring.times(_take(weights, word.unsqueeze(2), -2), semiring.inverse(weight).unsqueeze(2))
        into = _take(weights, word.unsqueeze(2), -1)  # K B n 1
        gone = here.unsqueeze(1) | here.unsqueeze(2) | torch.eye(n, dtype=torch.bool, device=arcs.device)
        weights = torch.where(gone, zero, _add(semiring, weights, semiring.times(into, onward)))
        root = _add(semiring, root, semiring.times(_take(root, word, -1), onward.squeeze(2)))
        left = left & ~here
    return total


def _take(elements: Tensor, index: Tensor, dim: int) -> Tensor:
    """One place along an axis, which stays; index: B .. with 1 for the axes of places."""
    shape = list(elements.shape)
    shape[dim] = 1
    return elements.gather(dim, index.expand(shape))


def _add(semiring: ExactLogSemiring, x: Tensor, y: Tensor) -> Tensor:
    return semiring.sum(torch.stack([x, y], -1), -1)
