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

import torch
from torch import Tensor

from seqstruct.ops.dependency import BestTree
from seqstruct.ops.dependency_layout import aligned_arcs, masked_arcs, refuse_arcs
from seqstruct.ops.log_potentials import Rows, refuse_what_is_no_number
from seqstruct.ops.semiring import log_sum
from seqstruct.ops.spanning_tree_best import best_heads
from seqstruct.ops.spanning_tree_elimination import eliminate

# Rounding errors of marginals grow with the square of the inverse's entries, those of their gradient with the cube.
GREATEST_INVERSE = 200.0


def spanning_log_partition(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return _infer(arcs_in_front, rows, single_root)[0].to(arcs.dtype)


def spanning_marginals(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """B n+1 n+1, the probability that word m has the head h; each word's sum to 1; differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return rows.back(_infer(arcs_in_front, rows, single_root)[1], 1, 2, root=True).to(arcs.dtype)


def spanning_entropy(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Entropy of the distribution over trees, B, in nats; differentiable; 0 where no tree is possible."""
    rows, scores = aligned_arcs(arcs.double(), padding_mask)
    log_partition, marginals = _infer(scores, rows, single_root)
    terms = marginals * scores.masked_fill(marginals.detach() == 0, 0.0)
    entropy = log_partition - terms.sum((1, 2))
    return entropy.masked_fill(log_partition == -torch.inf, 0.0).to(arcs.dtype)


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


def _infer(arcs: Tensor, positions: Rows, single_root: bool) -> tuple[Tensor, Tensor]:
    """Log-partition B and marginals B n+1 n+1 of aligned arcs, float64."""
    arcs = masked_arcs(arcs, positions)
    B, n = arcs.size(0), arcs.size(1) - 1
    if n == 0:
        return arcs.new_zeros(B), torch.zeros_like(arcs)
    lengths = positions.lengths(B, n, arcs.device)
    log_partition, marginals, exact = _matrix_tree(arcs, lengths, single_root)
    if bool(exact.all()):
        return log_partition, marginals
    good, rows = exact.nonzero().squeeze(1), (~exact).nonzero().squeeze(1)
    exceptions = _by_elimination(arcs[rows], lengths[rows], single_root)
    if len(good):
        results = _matrix_tree(arcs[good], lengths[good], single_root)[:2]
        order = torch.cat([good, rows]).argsort()
        log_partition, marginals = (
            torch.cat(pair).index_select(0, order) for pair in zip(results, exceptions, strict=True)
        )
    else:
        log_partition, marginals = exceptions
    refuse_arcs(log_partition, arcs, positions)
    return log_partition, marginals


def _matrix_tree(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partition, marginals, and which rows (B bool) they are exact for.

    Weights are the softmax of each word's arcs over its heads, so that all columns of the Laplacian sum to 1 at most.
    """
    n = arcs.size(1) - 1
    impossible = arcs == -torch.inf
    nothing = impossible.all(1, keepdim=True)
    shares = arcs.masked_fill(nothing, 0.0).softmax(1).masked_fill(impossible, 0.0)
    root, weights = shares[:, 0, 1:], shares[:, 1:, 1:]
    padded = torch.arange(n, device=arcs.device) >= lengths.unsqueeze(1)
    diagonal = weights.sum(1) if single_root else weights.sum(1) + root
    laplacian = torch.diag_embed(diagonal.masked_fill(padded, 1.0)) - weights
    if single_root:
        first = root.masked_fill(padded, 0.0)
        first = torch.where(padded[:, :1], torch.eye(1, n, dtype=arcs.dtype, device=arcs.device), first)
        laplacian = torch.cat([first.unsqueeze(1), laplacian[:, 1:]], 1)
    inverse = torch.linalg.inv_ex(laplacian).inverse
    exact = (inverse.detach().abs().amax((1, 2)) <= GREATEST_INVERSE) & ~(nothing.squeeze(1)[:, 1:] & ~padded).any(1)
    # The derivative of log det by the entry [h, m] of the Laplacian is the entry [m, h] of its inverse.
    own, other = inverse.diagonal(dim1=1, dim2=2), inverse.transpose(1, 2)
    from_root = own
    if single_root:
        from_root = inverse[:, :, 0]
        own = torch.cat([torch.zeros_like(own[:, :1]), own[:, 1:]], 1)
        other = torch.cat([torch.zeros_like(other[:, :1]), other[:, 1:]], 1)
    by_words = torch.cat([(root * from_root).unsqueeze(1), weights * (own.unsqueeze(1) - other)], 1)
    marginals = torch.nn.functional.pad(by_words, (1, 0))
    scale = log_sum(arcs, 1)[:, 1:].masked_fill(padded, 0.0).sum(1)
    return torch.linalg.slogdet(laplacian).logabsdet + scale, marginals, exact


def _by_elimination(arcs: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    wanted = torch.is_grad_enabled() and arcs.requires_grad
    with torch.enable_grad():
        arcs = arcs if wanted else arcs.detach().requires_grad_()
        total = eliminate(arcs, lengths, single_root)
        (marginals,) = torch.autograd.grad(total.sum(), arcs, create_graph=wanted)
    possible = total.detach() > -torch.inf
    marginals = torch.where(possible.view(-1, 1, 1), marginals, 0.0)
    return (total, marginals) if wanted else (total.detach(), marginals)
