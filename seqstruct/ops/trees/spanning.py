"""Distributions over all directed spanning trees (non-projective dependency trees) by the matrix-tree theorem.

As `dependency`, with arcs that may cross: the same potentials arcs B n+1 n+1, [b, h, m] scoring that word m takes the
head h, position 0 the root; the same padding_mask B n over the words, the same errors and results where there is no
word or no tree.  The sum over all trees is the determinant of a Laplacian (Tutte 1984); with a single arc from the root
its first row is replaced by the scores of the root's arcs (Koo et al. 2007, section 3).  Nothing is added to the
weights to make it invertible: a row whose inverse is large, where digits would be lost, is done by elimination in log
space instead.

The marginals take O(B n^3) time and O(B n^2) memory; rows done by elimination O(B n^3) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.log_potentials import Rows, refuse_what_is_no_number
from seqstruct.ops.semiring import EntropySemiring, ExactLogSemiring, log_sum
from seqstruct.ops.trees import BestTree
from seqstruct.ops.trees.elimination import eliminate
from seqstruct.ops.trees.layout import aligned_arcs, level_of_root, masked_arcs, refuse_arcs
from seqstruct.ops.trees.spanning_best import best_heads

# Rounding errors of marginals grow with the square of the inverse's entries, those of their gradient with the cube.
GREATEST_INVERSE = 200.0


def spanning_log_partition(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return _infer(arcs_in_front, rows, single_root, MARGINALS)[0].to(arcs.dtype)


def spanning_marginals(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """B n+1 n+1, the probability that word m has the head h; each word's sum to 1; differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return rows.back(_infer(arcs_in_front, rows, single_root, MARGINALS)[1], 1, 2, root=True).to(arcs.dtype)


def spanning_entropy(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Entropy of the distribution over trees, B, in nats; differentiable; 0 where no tree is possible.

    Of the arcs' shares, not their potentials, so that large ones cost no digits; by elimination with entropies beside
    the weights where that is not exact.
    """
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    entropy = _infer(arcs_in_front, rows, single_root, ENTROPY)[1]
    return (entropy - entropy.detach().clamp(max=0)).to(arcs.dtype)  # rounded below 0 where it is 0


def spanning_best_tree(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> BestTree:
    """The tree of the greatest score, of several one, without preference; row by row on the host.  No gradient."""
    rows, scores = aligned_arcs(arcs.detach(), padding_mask)
    scores = masked_arcs(scores, rows)
    refuse_what_is_no_number("arcs", rows.back(scores, 1, 2, root=True))
    B, n = arcs.size(0), arcs.size(1) - 1
    heads = torch.full((B, n), -1)
    totals = []
    lengths = rows.lengths(B, n, arcs.device).tolist()
    for b, (row, length) in enumerate(zip(scores.tolist(), lengths, strict=True)):
        found = best_heads([heads_row[: length + 1] for heads_row in row[: length + 1]], single_root)
        totals.append(-torch.inf if found is None else sum(row[h][m] for m, h in enumerate(found, 1)))
        if found:
            first = 0 if rows.first is None else int(rows.first[b])
            heads[b, :length] = torch.tensor([h + first if h else 0 for h in found])
    return BestTree(rows.back(heads.to(arcs.device), 1), arcs.new_tensor(totals))


class _Forms(NamedTuple):
    """Two ways to the log-partition B and something else, from masked arcs, lengths and single_root.

    The first also returns which rows, B bool, it is exact for.
    """

    by_matrix: Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor, Tensor]]
    by_elimination: Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor]]


def _infer(arcs: Tensor, positions: Rows, single_root: bool, forms: _Forms) -> tuple[Tensor, Tensor]:
    """Log-partition and what else the forms say of aligned arcs, float64."""
    arcs = masked_arcs(arcs, positions)
    n = arcs.size(1) - 1
    single_root = single_root and n > 0
    lengths = positions.lengths(len(arcs), n, arcs.device)
    log_partition, found, exact = forms.by_matrix(arcs, lengths, single_root)
    if bool(exact.all()):
        return log_partition, found
    good, rows = exact.nonzero().squeeze(1), (~exact).nonzero().squeeze(1)
    results = forms.by_elimination(arcs[rows], lengths[rows], single_root)
    if len(good):
        exactly = forms.by_matrix(arcs[good], lengths[good], single_root)
        order = torch.cat([good, rows]).argsort()
        results = tuple(torch.cat(pair).index_select(0, order) for pair in zip(exactly[:2], results, strict=True))
    log_partition, found = results
    refuse_arcs(log_partition, arcs, positions)
    return log_partition, found


def _log_shares(arcs: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Log potentials of the same distribution, those of each word less their logsumexp; and what was subtracted, B.

    With a single arc from the root, of which each tree has one, first its arcs less their maximum, if that is great.
    """
    scale = arcs.new_zeros(len(arcs))
    if single_root:
        scale = level_of_root(arcs.detach())
        arcs = torch.cat([arcs[:, :1] - scale.view(-1, 1, 1), arcs[:, 1:]], 1)
    impossible = arcs == -torch.inf
    nothing = impossible.all(1, keepdim=True)
    shares = arcs.masked_fill(nothing, 0.0).log_softmax(1).masked_fill(impossible, -torch.inf)
    return shares, scale + log_sum(arcs, 1).masked_fill(nothing.squeeze(1), 0.0).sum(1)


def _marginals_by_matrix(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    shares, scale = _log_shares(arcs, single_root)
    log_partition, marginals, exact = _matrix_tree(shares, lengths, single_root)
    return log_partition + scale, marginals, exact


def _entropy_by_matrix(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    shares, scale = _log_shares(arcs, single_root)
    log_partition, marginals, exact = _matrix_tree(shares, lengths, single_root)
    terms = marginals * shares.masked_fill(marginals.detach() == 0, 0.0)
    return log_partition + scale, log_partition - terms.sum((1, 2)), exact


def _matrix_tree(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partition, marginals, and which rows (B bool) they are exact for.

    arcs: `_log_shares`; all columns of the Laplacian sum to 1 at most.
    """
    n = arcs.size(1) - 1
    nothing = (arcs[:, :, 1:] == -torch.inf).all(1)
    shares = arcs.exp()
    root, weights = shares[:, 0, 1:], shares[:, 1:, 1:]
    padded = torch.arange(n, device=arcs.device) >= lengths.unsqueeze(1)
    diagonal = weights.sum(1) if single_root else weights.sum(1) + root
    laplacian = torch.diag_embed(diagonal.masked_fill(padded, 1.0)) - weights
    if single_root:
        first = root.masked_fill(padded, 0.0)
        first = torch.where(padded[:, :1], torch.eye(1, n, dtype=arcs.dtype, device=arcs.device), first)
        laplacian = torch.cat([first.unsqueeze(1), laplacian[:, 1:]], 1)
    inverse = torch.linalg.inv_ex(laplacian).inverse
    exact = (inverse.detach().abs().flatten(1) <= GREATEST_INVERSE).all(1) & ~(nothing & ~padded).any(1)
    # The derivative of log det by the entry [h, m] of the Laplacian is the entry [m, h] of its inverse.
    own, other = inverse.diagonal(dim1=1, dim2=2), inverse.transpose(1, 2)
    from_root = own
    if single_root:
        from_root = inverse[:, :, 0]
        own = torch.cat([torch.zeros_like(own[:, :1]), own[:, 1:]], 1)
        other = torch.cat([torch.zeros_like(other[:, :1]), other[:, 1:]], 1)
    by_words = torch.cat([(root * from_root).unsqueeze(1), weights * (own.unsqueeze(1) - other)], 1)
    return torch.linalg.slogdet(laplacian).logabsdet, torch.nn.functional.pad(by_words, (1, 0)), exact


def _marginals_by_elimination(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    wanted = torch.is_grad_enabled() and arcs.requires_grad
    with torch.enable_grad():
        arcs = arcs if wanted else arcs.detach().requires_grad_()
        semiring = ExactLogSemiring()
        total = semiring.value(eliminate(arcs, lengths, single_root, semiring))
        (marginals,) = torch.autograd.grad(total.sum(), arcs, create_graph=wanted)
    possible = total.detach() > -torch.inf
    marginals = torch.where(possible.view(-1, 1, 1), marginals, 0.0)
    return (total, marginals) if wanted else (total.detach(), marginals)


def _entropy_by_elimination(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    whole, rest, entropy = eliminate(arcs, lengths, single_root, EntropySemiring())
    return whole + rest, entropy.masked_fill(whole == -torch.inf, 0.0)


MARGINALS = _Forms(_marginals_by_matrix, _marginals_by_elimination)
ENTROPY = _Forms(_entropy_by_matrix, _entropy_by_elimination)
