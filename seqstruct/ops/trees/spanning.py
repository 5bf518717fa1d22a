"""Distributions over all directed spanning trees (non-projective dependency trees).

As `projective`, with arcs that may cross: the same potentials arcs B n+1 n+1, [b, h, m] scoring that word m takes the
head h, position 0 the root; the same padding_mask B n over the words, the same errors and results where there is no
word or no tree.  The sum over all trees is the determinant of a Laplacian (Tutte 1984); with a single arc from the root
its first row is replaced by the scores of the root's arcs (Koo et al. 2007, section 3).  Nothing is added to the
weights to make it invertible: a row whose inverse is large, where digits would be lost, is done by elimination.

Elimination is that of the Laplacian by Gauss over any semiring of pairs, kept as a graph: to eliminate word p with
total weight S_p = sum_h w[h, p] of incoming arcs, every path h -> p -> m becomes an arc, w[h, m] += w[h, p] w[p, m] /
S_p, and the sum over trees is the product of all S_p at the time of their elimination.  As weights are only added,
multiplied and divided, the result is exact to rounding for potentials of any size (the idea of Grassmann, Taksar and
Heyman 1985, for Markov chains).  For trees with a single arc from the root its weights are taken as infinitely small
and the term of first order is kept: the root's arcs count in S_p only for the last word.  The word of the greatest S_p
goes first, so that no S_p is 0 before the last as long as there is a tree.

The marginals take O(B n^3) time and O(B n^2) memory; rows done by elimination O(B n^3) memory.  The best tree is found
by contraction of cycles (Chu and Liu 1965; Edmonds 1967), on Python lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.log_potentials import LARGEST_POTENTIAL
from seqstruct.ops.marginals import by_autograd
from seqstruct.ops.rows import Rows
from seqstruct.ops.semiring import EntropySemiring, ExactLogSemiring
from seqstruct.ops.trees.compiled import compiled_spanning
from seqstruct.ops.trees.layout import BestTree, aligned_arcs, masked_arcs, refuse_arcs
from seqstruct.ops.trees.matrix_tree import log_shares, matrix_tree

Weight = tuple[int, float | Fraction]
Arcs = dict[int, dict[int, Weight]]  # by dependent, then head


def spanning_log_partition(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return _infer(arcs_in_front, rows, single_root)[0].to(arcs.dtype)


def spanning_marginals(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """B n+1 n+1, the probability that word m has the head h; each word's sum to 1; differentiable."""
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    return rows.back(_infer(arcs_in_front, rows, single_root)[1], 1, 2, root=True).to(arcs.dtype)


def spanning_entropy(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Entropy of the distribution over trees, B, in nats; differentiable; 0 where no tree is possible.

    Of the arcs' shares, not their potentials, so that large ones cost no digits; by elimination with entropies beside
    the weights where that is not exact.
    """
    rows, arcs_in_front = aligned_arcs(arcs, padding_mask)
    entropy = _infer(arcs_in_front, rows, single_root, entropy=True)[1]
    return (entropy - entropy.detach().clamp(max=0)).to(arcs.dtype)  # rounded below 0 where it is 0


def spanning_best_tree(arcs: Tensor, padding_mask: Tensor | None = None, *, single_root: bool = False) -> BestTree:
    """The tree of the greatest score, of several one, without preference; row by row on the host.  No gradient."""
    rows, scores = aligned_arcs(arcs.detach(), padding_mask)
    scores = masked_arcs(scores, rows)
    refuse_arcs(scores, rows)
    B, n = arcs.size(0), arcs.size(1) - 1
    heads = torch.full((B, n), -1)
    totals = []
    lengths = rows.lengths(B, n, arcs.device).tolist()
    for b, (row, length) in enumerate(zip(scores.tolist(), lengths, strict=True)):
        found = _best_heads(_weights([heads_row[: length + 1] for heads_row in row[: length + 1]], single_root))
        if found is None or (single_root and list(found.values()).count(0) > 1):
            totals.append(-torch.inf)
            continue
        totals.append(sum(row[found[m]][m] for m in range(1, length + 1)))
        first = 0 if rows.first is None else int(rows.first[b])
        heads[b, :length] = torch.tensor([found[m] + first if found[m] else 0 for m in range(1, length + 1)])
    return BestTree(rows.back(heads.to(arcs.device), 1), arcs.new_tensor(totals))


def _infer(arcs: Tensor, positions: Rows, single_root: bool, entropy: bool = False) -> tuple[Tensor, Tensor]:
    """Log-partition, and marginals or the entropy, of aligned arcs."""
    n = arcs.size(1) - 1
    single_root = single_root and n > 0
    log_partition, found, exact = _by_matrix(arcs, positions, single_root, entropy)
    if bool(exact.all()):
        return log_partition, found
    good, rows = exact.nonzero().squeeze(1), (~exact).nonzero().squeeze(1)
    masked = masked_arcs(arcs, positions)
    lengths = positions.lengths(len(arcs), n, arcs.device)
    results = _by_elimination(masked[rows], lengths[rows], single_root, entropy)
    if len(good):
        exactly = _by_matrix(arcs[good], positions.select(good), single_root, entropy)
        order = torch.cat([good, rows]).argsort()
        results = tuple(torch.cat(pair).index_select(0, order) for pair in zip(exactly[:2], results, strict=True))
    log_partition, found = results
    if not bool(log_partition.isfinite().all()):
        refuse_arcs(masked, positions)
    return log_partition, found


def _by_matrix(arcs: Tensor, positions: Rows, single_root: bool, entropy: bool) -> tuple[Tensor, Tensor, Tensor]:
    """As `_infer`; also which rows, B bool, it is exact for."""
    if usable(arcs) and not entropy:
        return compiled_spanning(arcs, positions.words(), single_root)
    arcs = masked_arcs(arcs, positions)
    shares, scale = log_shares(arcs, single_root)
    lengths = positions.lengths(len(arcs), arcs.size(1) - 1, arcs.device)
    log_partition, marginals, exact = matrix_tree(shares, lengths, single_root)
    if not entropy:
        return log_partition + scale, marginals, exact
    terms = marginals * shares.masked_fill(marginals.detach() == 0, 0.0)
    return log_partition + scale, log_partition - terms.sum((1, 2)), exact


def _by_elimination(arcs: Tensor, lengths: Tensor, single_root: bool, entropy: bool) -> tuple[Tensor, Tensor]:
    if entropy:
        whole, rest, found = eliminate(arcs, lengths, single_root, EntropySemiring())
        return whole + rest, found.masked_fill(whole == -torch.inf, 0.0)
    semiring = ExactLogSemiring()
    total, (marginals,) = by_autograd(lambda x: semiring.value(eliminate(x, lengths, single_root, semiring)), arcs)
    return total, torch.where((total > -torch.inf).view(-1, 1, 1), marginals, 0.0)


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
            incoming = semiring.add(incoming, root)
        word = incoming[0].detach().clamp(min=-1e300).masked_fill(~left, -torch.inf).argmax(1, keepdim=True)  # B 1
        here = position == word
        weight = _take(incoming, word, -1)  # K B 1
        total = semiring.times(total, weight.masked_fill(~left.any(1, keepdim=True), 0.0).squeeze(-1))
        onward = semiring.times(_take(weights, word.unsqueeze(2), -2), semiring.inverse(weight).unsqueeze(2))
        into = _take(weights, word.unsqueeze(2), -1)  # K B n 1
        gone = here.unsqueeze(1) | here.unsqueeze(2) | torch.eye(n, dtype=torch.bool, device=arcs.device)
        weights = torch.where(gone, zero, semiring.add(weights, semiring.times(into, onward)))
        root = semiring.add(root, semiring.times(_take(root, word, -1), onward.squeeze(2)))
        left = left & ~here
    return total


def _take(elements: Tensor, index: Tensor, dim: int) -> Tensor:
    """One place along an axis, which stays; index: B .. with 1 for the axes of places."""
    shape = list(elements.shape)
    shape[dim] = 1
    return elements.gather(dim, index.expand(shape))


def _weights(scores: Sequence[Sequence[float]], single_root: bool) -> Arcs:
    """Of scores[head][dependent], -inf where there is no arc.

    A weight is a pair, compared first by its integer, then by its number; pairs are added and subtracted part by part,
    which is all that the algorithm asks of weights.  With -1 in the arcs of the root and 0 in all others, a tree of one
    root arc beats every tree of several, exactly, however large the numbers are.  Numbers are floats, or fractions
    where some are so large that digits of others would be lost.
    """
    words = range(len(scores))
    great = any(abs(x) > LARGEST_POTENTIAL for row in scores for x in row if x > -torch.inf)
    number = Fraction if great else float
    return {
        m: {
            h: (-int(single_root and h == 0), number(scores[h][m]))
            for h in words
            if h != m and scores[h][m] > -torch.inf
        }
        for m in words[1:]
    }


def _best_heads(arcs: Arcs) -> dict[int, int] | None:
    """The head of each dependent in the tree of the greatest weight, None if there is no tree; the arcs are used up.

    O(n^3) time at worst, O(n^2) where no cycle arises.
    """
    if not all(arcs.values()):
        return None
    heads = {m: max(row, key=row.__getitem__) for m, row in arcs.items()}
    cycle = _cycle(heads)
    if not cycle:
        return heads
    # The cycle becomes one node; an arc into it is worth its gain over the arc that it replaces.
    node, into, enters, leaves = max(arcs) + 1, {}, {}, {}
    for m in cycle:
        row = arcs.pop(m)
        number, score = row[heads[m]]
        for h, weight in row.items():
            gain = (weight[0] - number, weight[1] - score)
            if h not in cycle and (h not in into or gain > into[h]):
                into[h], enters[h] = gain, m
    for m, row in arcs.items():
        choices = {u: row.pop(u) for u in cycle if u in row}
        if choices:
            leaves[m] = max(choices, key=choices.__getitem__)
            row[node] = choices[leaves[m]]
    found = _best_heads(arcs | {node: into})
    if found is None:
        return None
    head = found.pop(node)
    outside = {m: leaves[m] if h == node else h for m, h in found.items()}
    return outside | {m: heads[m] for m in cycle} | {enters[head]: head}


def _cycle(heads: dict[int, int]) -> list[int]:
    """The nodes of some cycle, in order; none if every node reaches the root."""
    try:
        TopologicalSorter({m: (h,) for m, h in heads.items()}).prepare()
    except CycleError as error:
        return error.args[1][1:]
    return []
