"""All paths of a short chain, and what the definition says of them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import torch

from seqstruct.ops.chains.naive import chain_total
from seqstruct.ops.semiring import EntropySemiring, LogSemiring, MaxSemiring, RealSemiring

INF = float("inf")
OF_ALL = [  # semirings, and what they say of all structures of these scores
    (LogSemiring(), lambda scores: scores.logsumexp(0)),
    (RealSemiring(), lambda scores: scores.exp().sum()),
    (MaxSemiring(), lambda scores: scores.max()),
    (EntropySemiring(), lambda scores: torch.special.entr(scores.softmax(0)).sum()),
]


def draw(generator, B, N, C, spread=1.0, dtype=torch.float64):
    unary = spread * torch.randn(B, N, C, generator=generator, dtype=dtype)
    return unary, spread * torch.randn(B, max(0, N - 1), C, C, generator=generator, dtype=dtype)


def defined(unary, edge, semiring):
    """What a semiring says of all paths, by the definition, B."""
    return semiring.value(chain_total(semiring.lift(unary), semiring.lift(edge), semiring))


def derivatives(unary, edge, direction, semiring):
    """Log-partition, marginals and their derivatives along a direction, by the definition under autograd."""
    leaves = unary.detach().clone().requires_grad_(), edge.detach().clone().requires_grad_()
    total = defined(*leaves, semiring)
    node, pair = torch.autograd.grad(total.sum(), leaves, create_graph=True, materialize_grads=True)
    along = (node * direction[0]).sum() + (pair * direction[1]).sum()
    return total.detach(), (node.detach(), pair.detach()), torch.autograd.grad(along, leaves, materialize_grads=True)


def enumerate_paths(unary, edge):
    """All paths P N and their scores P, of one row."""
    N, C = unary.shape
    paths = torch.tensor(list(itertools.product(range(C), repeat=N)))
    scores = unary[torch.arange(N), paths].sum(1)
    return paths, scores + edge[torch.arange(N - 1), paths[:, :-1], paths[:, 1:]].sum(1)


def exactly(unary, edge):
    """All paths P N and their scores P less the greatest, of one row, added up as fractions."""
    paths = list(itertools.product(range(unary.size(1)), repeat=len(unary)))
    unary, edge = unary.tolist(), edge.tolist()

    def score(path):
        parts = [unary[t][c] for t, c in enumerate(path)]
        parts += [edge[t][i][j] for t, (i, j) in enumerate(itertools.pairwise(path))]
        return None if -INF in parts else sum(map(Fraction, parts))

    scores = [score(path) for path in paths]
    best = max(x for x in scores if x is not None)
    less = torch.tensor([-INF if x is None else float(x - best) for x in scores], dtype=torch.float64)
    return torch.tensor(paths), less, float(best)


def indicators(paths, C):
    node = torch.nn.functional.one_hot(paths, C).double()
    return node, node[:, :-1, :, None] * node[:, 1:, None, :]


def masks(lengths, N, left):
    position = torch.arange(N)
    ends = torch.tensor(lengths).unsqueeze(1)
    return (position < N - ends) if left else (position >= ends)
