"""Distributions over the trees of a sentence: dependencies, projective or not, and labelled binary brackets.

Dependency trees have potentials and events * n+1 n+1: [h, m] of the arc from the head h to the word m, where 0 is the
root symbol and words are 1 .. n; column 0 and the diagonal do not matter.  lengths: *, words of each row.  The root has
any number of dependents, or with `single_root` one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from seqstruct.distributions.base import Parts, StructuredDistribution, before
from seqstruct.ops.gpu import host_may_look
from seqstruct.ops.log_potentials import refuse_what_is_no_number
from seqstruct.ops.semiring import LogSemiring
from seqstruct.ops.trees import (
    constituency_log_partition,
    constituency_marginals,
    constituency_total,
    projective_entropy,
    projective_log_partition,
    projective_marginals,
    projective_total_of,
    spanning_best_tree,
    spanning_entropy,
    spanning_log_partition,
    spanning_marginals,
)

ROUNDING = 1e-6  # far above that of marginals


class DependencyTree(StructuredDistribution):
    """What both kinds of dependency trees have in common.  sums: their log-partition, marginals and entropy."""

    kinds = ("arcs",)
    sums: ClassVar[tuple[Callable[..., Tensor], ...]]

    def __init__(self, arcs: Tensor, *, lengths: Tensor | None = None, single_root: bool = False) -> None:
        if arcs.dim() < 2 or arcs.size(-1) != arcs.size(-2) or arcs.size(-1) == 0:
            raise ValueError(f"expected arcs * n+1 n+1, got {tuple(arcs.shape)}")
        super().__init__(arcs, lengths=lengths)
        self.single_root = single_root

    @staticmethod
    def event(heads: Tensor) -> Tensor:
        """Arcs .. n+1 n+1 of trees by the head of each word, .. n long; -1, as at padding: none."""
        arcs = one_hot(heads + 1, heads.size(-1) + 2)[..., 1:]  # .. n n+1, [m, h]
        return pad(arcs, (0, 0, 1, 0)).transpose(-1, -2)

    def greatest_length(self) -> int:
        return self.potentials[0].size(1) - 1

    def mask(self) -> Parts:
        there = pad(before(self.lengths, self.greatest_length()), (1, 0), value=True)
        found = there.unsqueeze(1) & there.unsqueeze(2)
        found.diagonal(0, 1, 2).fill_(False)
        found[:, :, 0] = False
        return (found,)

    def _within(self, other: DependencyTree) -> bool:
        return self.single_root or not other.single_root

    def _log_partition(self) -> Tensor:
        return self.sums[0](*self.potentials, self._padding(), single_root=self.single_root)

    def _marginals(self) -> Parts:
        return (self.sums[1](*self.potentials, self._padding(), single_root=self.single_root),)

    def _entropy(self) -> Tensor:
        return self.sums[2](*self._masked(), self._padding(), single_root=self.single_root)


class ProjectiveTree(DependencyTree):
    """Trees whose arcs do not cross (Eisner 1996), by `seqstruct.ops.trees`.  O(B n^3) for each operation."""

    sums = projective_log_partition, projective_marginals, projective_entropy

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        return projective_total_of(*potentials, self._padding(), single_root=self.single_root, semiring=semiring)


class NonProjectiveTree(DependencyTree):
    """All trees (McDonald et al. 2005; Koo et al. 2007), by the matrix-tree theorem in `seqstruct.ops.trees`.

    O(B n^3) for sums and, row by row on the host, the best tree; the k best by partition of what is left (Lawler 1972),
    O(k n) best trees; max-marginals take O(n^2) best trees; samples word by word, n times the marginals.
    """

    sums = spanning_log_partition, spanning_marginals, spanning_entropy

    def _marginals_beside(self, other: DependencyTree) -> Parts:
        """Of arcs that no tree has rounding may leave a little: it does not count where the other excludes them.

        Only rows are looked at in which this alone would make an expectation infinite, their arcs one by one.
        """
        (found,), (own,), (others,) = self._marginals(), self._masked(), other._masked()
        counted = (found.detach() != 0) & (own > -torch.inf) & (others == -torch.inf)
        if not host_may_look(counted):
            return (found,)
        certain = (counted & (found.detach() > ROUNDING)).flatten(1).any(1)
        rows, heads, words = (counted & ~certain[:, None, None]).nonzero().unbind(1)
        if not len(rows):
            return (found,)
        padding, place = self._padding(), torch.arange(len(rows), device=rows.device)
        arcs = own.detach()[rows]
        arcs[place, :, words] = -torch.inf
        arcs[place, heads, words] = own.detach()[rows, heads, words]
        best = spanning_best_tree(arcs, None if padding is None else padding[rows], single_root=self.single_root)
        never = torch.zeros_like(counted)
        never[rows, heads, words] = best.score == -torch.inf
        return (found.masked_fill(never, 0.0),)

    def _best(self) -> Tensor:
        return spanning_best_tree(*self._masked(), self._padding(), single_root=self.single_root).score

    def _argmax(self) -> Parts:
        best = spanning_best_tree(*self._masked(), self._padding(), single_root=self.single_root)
        return (self.event(best.heads),)

    def _draw(self, generator: torch.Generator) -> Parts:
        """Each word's head from its marginals given those before it."""
        (arcs,), padding = self._masked(), self._padding()
        heads = torch.full((len(arcs), self.greatest_length()), -1, device=arcs.device)
        for m in range(heads.size(1)):
            shares = spanning_marginals(arcs, padding, single_root=self.single_root)[:, :, m + 1]
            cumulated = shares.cumsum(1)
            draw = 1 - torch.rand(len(arcs), 1, dtype=arcs.dtype, device=arcs.device, generator=generator)
            drawn = (cumulated < draw * cumulated[:, -1:]).sum(1).clamp(max=arcs.size(1) - 1)
            heads[:, m] = drawn.masked_fill(cumulated[:, -1] == 0, -1)
            arcs = _fixed(arcs, m, drawn)
        return (self.event(heads),)

    def _topk(self, k: int) -> tuple[Parts, Tensor]:
        (arcs,) = self._masked()
        refuse_what_is_no_number("arcs", arcs)  # rows are looked at one by one
        found = [self._best_of_row(arcs[b].detach(), int(self.lengths[b]), k) for b in range(len(arcs))]
        heads = torch.full((k, len(arcs), self.greatest_length()), -1, device=arcs.device)
        scores = arcs.new_full((k, len(arcs)), -torch.inf)
        for b, trees in enumerate(found):
            for r, (score, tree) in enumerate(trees):
                heads[r, b, : len(tree)] = torch.tensor(tree, device=arcs.device)
                scores[r, b] = score
        return (self.event(heads),), scores

    def _best_of_row(self, arcs: Tensor, length: int, k: int) -> list[tuple[float, list[int]]]:
        """Scores and heads: the best is taken, and what is left is parted by the first word with another head."""
        arcs = arcs[: length + 1, : length + 1]
        queue: list = []

        def offer(problems: Tensor, first: int) -> None:
            trees = spanning_best_tree(problems, single_root=self.single_root)
            for i, (heads, score) in enumerate(zip(trees.heads.tolist(), trees.score.tolist(), strict=True)):
                if score > -torch.inf:
                    heapq.heappush(queue, (-score, len(queue), heads, first + i, problems[i]))

        offer(arcs.unsqueeze(0), 0)
        found: list[tuple[float, list[int]]] = []
        while queue and len(found) < k:
            score, _, heads, first, problem = heapq.heappop(queue)
            found.append((-score, heads))
            problems = []
            for m in range(first, length):
                other = problem.clone()
                other[heads[m], m + 1] = -torch.inf
                problems.append(other)
                problem = _fixed(problem.unsqueeze(0), m, torch.tensor(heads[m : m + 1], device=problem.device))[0]
            if problems:
                offer(torch.stack(problems), first)
        return found

    def _max_marginals(self) -> Parts:
        (arcs,), padding = self._masked(), self._padding()
        found = torch.full_like(arcs, -torch.inf)
        for m in range(arcs.size(1) - 1):
            for h in range(arcs.size(1)):
                one = _fixed(arcs.detach(), m, torch.full_like(self.lengths, h))
                found[:, h, m + 1] = spanning_best_tree(one, padding, single_root=self.single_root).score
        return (found.masked_fill(~self.mask()[0], -torch.inf),)


class ConstituencyTree(StructuredDistribution):
    """Binary trees over n words whose spans have one of L labels each (Stern et al. 2017): labelled CKY.

    spans: * n n L, log potentials and event, [i, j, l] of the span from word i to word j inclusive with the label l,
    words 0 .. n-1; i > j does not matter.  Single words are spans, and the whole.  O(B (n^3 + n^2 L)).
    """

    kinds, ranks = ("spans",), (3,)

    def __init__(self, spans: Tensor, *, lengths: Tensor | None = None) -> None:
        if spans.dim() < 3 or spans.size(-2) != spans.size(-3) or spans.size(-1) == 0:
            raise ValueError(f"expected spans * n n L, got {tuple(spans.shape)}")
        super().__init__(spans, lengths=lengths)

    def mask(self) -> Parts:
        n = self.greatest_length()
        position = torch.arange(n, device=self.lengths.device)
        return ((before(self.lengths, n).unsqueeze(1) & (position[:, None] <= position)).unsqueeze(3),)

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        spans = semiring.sum(semiring.lift(potentials[0]), -1)
        return semiring.value(constituency_total(spans, self.lengths, semiring))

    def _log_partition(self) -> Tensor:
        return constituency_log_partition(*self.potentials, self.lengths)

    def _marginals(self) -> Parts:
        return (constituency_marginals(*self.potentials, self.lengths),)


def _fixed(arcs: Tensor, word: int, heads: Tensor) -> Tensor:
    """Arcs B n+1 n+1 without the other heads of word `word` + 1 than `heads`, B."""
    other = torch.arange(arcs.size(1), device=arcs.device) != heads.unsqueeze(1)
    found = arcs.clone()
    found[:, :, word + 1].masked_fill_(other, -torch.inf)
    return found
