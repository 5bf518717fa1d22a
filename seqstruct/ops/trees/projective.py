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

from seqstruct.ops.compiled import usable
from seqstruct.ops.log_potentials import leveled
from seqstruct.ops.marginals import FirstPass, entropy, log_partition, marginals, structure
from seqstruct.ops.opaque import opaque
from seqstruct.ops.rows import Rows
from seqstruct.ops.semiring import LogSemiring, MaxSemiring
from seqstruct.ops.trees.compiled import compiled_projective
from seqstruct.ops.trees.layout import BestTree, aligned_arcs, heads_of, level_root, masked_arcs, refuse_arcs
from seqstruct.ops.trees.naive import projective_total
from seqstruct.ops.trees.scaled import scaled_trees, scaled_trees_tangent


def projective_log_partition(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return log_partition(_Trees(rows, single_root), arcs)


def projective_marginals(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """B n+1 n+1, the probability that word m has the head h; each word's sum to 1; differentiable once."""
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return rows.back(*marginals(_Trees(rows, single_root), arcs), 1, 2, root=True)


def projective_entropy(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Entropy of the distribution over trees, B, in nats; differentiable; 0 where no tree is possible.

    By the definition for all rows, where no term is negative: large potentials cost no digits.
    """
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return entropy(_Trees(rows, single_root), arcs)


def projective_best_tree(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> BestTree:
    """The tree of the greatest score; of several one, without preference.  No gradient."""
    return BestTree(*_best_tree(arcs, padding_mask, single_root))


def _fake_best_tree(arcs: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    shape = arcs.size(0), arcs.size(1) - 1
    return arcs.new_empty(shape, dtype=torch.long), arcs.new_empty(shape[:1])


@opaque(_fake_best_tree)
def _best_tree(arcs: Tensor, padding_mask: Tensor | None, single_root: bool) -> tuple[Tensor, Tensor]:
    rows, scores = aligned_arcs(arcs, padding_mask)
    indicators, found = structure(_Trees(rows, single_root), MaxSemiring(), scores)
    return heads_of(indicators, found > -torch.inf, rows), found.to(arcs.dtype)


def projective_total_of(
    arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False, semiring: LogSemiring
) -> Tensor:
    """What a semiring says of all trees (`trees.naive`), B, from potentials in float64; differentiable as it is."""
    rows, arcs = aligned_arcs(arcs, padding_mask)
    return _Trees(rows, single_root).total((arcs,), semiring)


class _Trees(NamedTuple):
    """All projective trees of rows whose padding comes last: the family of `ops.marginals`."""

    rows: Rows
    single_root: bool

    def select(self, rows: Tensor) -> _Trees:
        return _Trees(self.rows.select(rows), self.single_root)

    def total(self, potentials: tuple[Tensor, ...], semiring: LogSemiring) -> Tensor:
        """The arcs of a word are brought to a maximum of 0 before they meet, lest digits are lost in a great number."""
        arcs, lengths, scale = self._masked(*potentials)
        if arcs.size(1) == 1:
            return semiring.value(semiring.one(lengths.shape, arcs)) + arcs[:, 1:].sum((1, 2))
        elements, levels = leveled(arcs, semiring, 1)
        found = projective_total(elements, lengths, self.single_root, semiring)
        return semiring.value(semiring.times(found, semiring.lift(scale + levels.sum(1))))

    def first_pass(self, potentials: tuple[Tensor, ...], need_total: bool) -> FirstPass:
        """In scaled probability space."""
        if usable(*potentials):
            return compiled_projective(*potentials, self.rows.words(), self.single_root)
        arcs, lengths, scale = self._masked(*potentials)
        done = scaled_trees(arcs, lengths, self.single_root)
        return done._replace(log_partition=done.log_partition + scale) if self.single_root else done

    def second_pass(self, kept, loan, direction: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
        """Along a direction, in float64."""
        return (scaled_trees_tangent(kept, loan, direction[0].double(), self.single_root),)

    def refuse(self, potentials: tuple[Tensor, ...]) -> None:
        """Look where there are arcs."""
        refuse_arcs(masked_arcs(*potentials, self.rows), self.rows)

    def _masked(self, arcs: Tensor) -> tuple[Tensor, Tensor, Tensor | float]:
        """`masked_arcs`, the words of each row, B, and what was taken from all trees, B or 0."""
        arcs, lengths = masked_arcs(arcs, self.rows), self.rows.lengths(len(arcs), arcs.size(1) - 1, arcs.device)
        arcs, scale = level_root(arcs) if self.single_root else (arcs, 0.0)
        return arcs, lengths, scale
