"""Distributions over projective dependency trees as layers, after Kim et al. (2017, section 3.2), by Eisner (1996).

Position 0 is the root symbol, the words are 1 .. n.  Each word has one head, a word or the root; arcs do not cross, and
every word hangs on the root in the end.  The score of a tree is the sum of its arcs' log potentials, its probability in
proportion to exp(score).  The root has any number of dependents, as in Figure 6 of the paper, or with `single_root`
exactly one.

Everywhere: arcs B n+1 n+1 are log potentials, real numbers or -inf (impossible); [b, h, m] scores that word m takes the
head h; column 0 and the diagonal do not matter.  padding_mask B n, over the words, True = padding, before or after the
words of a row, or None; what padded positions hold does not matter.  A row without words has one tree, the empty one;
where no tree is possible the log-partition is -inf and all marginals are 0.  Calculations are in float64, results in
the type of `arcs`.  Raises ValueError if the shapes do not fit, padding stands between words, or a potential is NaN or
+inf (looked for only where the log-partition is not finite).

The marginals take O(B n^3) time and O(B n^2) memory, their backward pass about twice the time.  The paper runs it in a
signed logarithm (Table 1, Figure 7); here it is a derivative along a direction, in ordinary numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.log_potentials import Rows, finite_sum, level_
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, SamplingSemiring
from seqstruct.ops.trees.chart import projective_total
from seqstruct.ops.trees.layout import aligned_arcs, heads_of, level_of_root, masked_arcs, refuse_arcs
from seqstruct.ops.trees.log import LogTrees, log_trees, log_trees_tangent
from seqstruct.ops.trees.scaled import TreeSpace, scaled_trees, scaled_trees_tangent
from seqstruct.ops.workspace import Loan

FIELDS_OF_LOG_TREES = len(LogTrees._fields)


class BestTree(NamedTuple):
    """heads: B n long, the head of each word, -1 at padding and where no tree is possible; score: B, log space."""

    heads: Tensor
    score: Tensor


def projective_log_partition(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return _LogPartition.apply(arcs, rows, single_root)


def projective_marginals(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """B n+1 n+1, the probability that word m has the head h; each word's sum to 1; differentiable once."""
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return rows.back(_Marginals.apply(arcs, rows, single_root), 1, 2, root=True)


def projective_entropy(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Entropy of the distribution over trees, B, in nats; differentiable once; 0 where no tree is possible.

    In log space for all rows, where no term is negative: large potentials cost no digits.
    """
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return _Entropy.apply(arcs, rows, single_root)


def projective_best_tree(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> BestTree:
    """The tree of the greatest score; of several one, without preference.  No gradient."""
    return BestTree(*_structure(arcs, padding_mask, single_root, MaxSemiring()))


def projective_sample(
    arcs: Tensor,
    padding_mask: Tensor | None = None,
    *,
    count: int,
    generator: torch.Generator,
    single_root: bool = False,
) -> Tensor:
    """Heads of trees drawn independently from the distribution, count B n long; -1 as in `BestTree`.  No gradient.

    generator: the source of random numbers, on the device of `arcs`.  Raises ValueError unless count is 1 or more.
    """
    if count < 1:
        raise ValueError(f"expected 1 or more samples, got {count}")
    copies = (x if x is None else x.repeat(count, *[1] * (x.dim() - 1)) for x in (arcs, padding_mask))
    heads, _ = _structure(*copies, single_root, SamplingSemiring(generator))
    return heads.unflatten(0, (count, arcs.size(0)))


def _structure(
    arcs: Tensor, padding_mask: Tensor | None, single_root: bool, semiring: LogSemiring
) -> tuple[Tensor, Tensor]:
    """The tree that the gradient of a semiring's total points out, heads B n, and that total, B."""
    rows, scores = aligned_arcs(arcs.detach(), padding_mask)
    if arcs.size(1) == 1:
        return arcs.new_zeros(arcs.size(0), 0, dtype=torch.long), arcs.new_zeros(arcs.size(0))
    masked, lengths, scale = _masked(scores, rows, single_root)
    # Arcs of a word are brought to a maximum of 0 before they meet, lest digits are lost in a great number.
    scores = masked.clone()
    scale = scale + finite_sum(level_(scores, 1))
    with torch.enable_grad():
        total = projective_total(scores.requires_grad_(), lengths, single_root, semiring)
        (indicator,) = torch.autograd.grad(total.sum(), scores)
    total = total.detach() + scale
    refuse_arcs(total, masked, rows)
    return heads_of(indicator, total > -torch.inf, rows), total.to(arcs.dtype)


def _masked(arcs: Tensor, positions: Rows, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """`masked_arcs`, the words of each row, B, and what was taken from all trees, B."""
    arcs = masked_arcs(arcs, positions)
    scale = arcs.new_zeros(len(arcs))
    if single_root:
        scale = level_of_root(arcs)
        arcs[:, 0] -= scale.unsqueeze(1)
    return arcs, positions.lengths(len(arcs), arcs.size(1) - 1, arcs.device), scale


class _Pass(NamedTuple):
    """Marginals and log-partition of a batch, float64, and all that the tangent needs, as tensors.

    rows: which rows the scaled form could not do, R long; kept: first what log space keeps of these rows, if there are
    any, then what the scaled form keeps, some of which the loan holds.
    """

    marginals: Tensor
    log_partition: Tensor
    rows: Tensor
    kept: tuple[Tensor, ...]
    loan: Loan[TreeSpace]


def _infer(arcs: Tensor, positions: Rows, single_root: bool) -> _Pass:
    arcs, lengths, scale = _masked(arcs, positions, single_root)
    marginals, log_partition, exact, kept, loan = scaled_trees(arcs, lengths, single_root)
    rows = (~exact).nonzero().squeeze(1)
    if len(rows):
        trees, exceptions = log_trees(arcs[rows], lengths[rows], single_root)
        marginals = marginals.index_copy(0, rows, exceptions)
        log_partition = log_partition.index_copy(0, rows, trees.log_partition)
        refuse_arcs(log_partition, arcs, positions)
        kept = (*trees, *kept)
    return _Pass(marginals, log_partition + scale, rows, kept, loan)


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx, arcs: Tensor, positions: Rows, single_root: bool) -> Tensor:
        done = _infer(arcs, positions, single_root)
        ctx.single_root, ctx.loan = single_root, done.loan
        ctx.save_for_backward(done.rows, *done.kept)
        return done.marginals.to(arcs.dtype)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        rows, *kept = ctx.saved_tensors
        direction = grad.double()
        scaled = kept[FIELDS_OF_LOG_TREES:] if len(rows) else kept
        tangent = scaled_trees_tangent(scaled, ctx.loan, direction, ctx.single_root)
        if len(rows):
            trees = LogTrees(*kept[:FIELDS_OF_LOG_TREES])
            tangent = tangent.index_copy(0, rows, log_trees_tangent(trees, direction[rows], ctx.single_root))
        return tangent.to(grad.dtype), None, None


class _LogPartition(torch.autograd.Function):
    """Its gradient is the marginals, as a function of the potentials where a second derivative is wanted."""

    @staticmethod
    def forward(ctx, arcs: Tensor, positions: Rows, single_root: bool) -> Tensor:
        done = _infer(arcs, positions, single_root)
        ctx.positions, ctx.single_root = positions, single_root
        ctx.save_for_backward(arcs, done.marginals.to(arcs.dtype))
        return done.log_partition.to(arcs.dtype)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        arcs, marginals = ctx.saved_tensors
        if torch.is_grad_enabled():
            marginals = _Marginals.apply(arcs, ctx.positions, ctx.single_root)
        return marginals * grad.view(-1, 1, 1), None, None


class _Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, arcs: Tensor, positions: Rows, single_root: bool) -> Tensor:
        masked, lengths, _ = _masked(arcs, positions, single_root)
        trees, _ = log_trees(masked, lengths, single_root)
        refuse_arcs(trees.log_partition, masked, positions)
        ctx.single_root = single_root
        ctx.save_for_backward(*trees)
        return trees.entropy.to(arcs.dtype)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        tangent = log_trees_tangent(LogTrees(*ctx.saved_tensors), None, ctx.single_root)
        return tangent.mul_(grad.view(-1, 1, 1)).to(grad.dtype), None, None
