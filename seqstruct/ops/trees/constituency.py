"""Binary trees over the words of a sentence, weighted by their spans (Stern et al. 2017), by the chart of CKY.

The tree over n words has n leaves and n - 1 spans of two words or more, each of two parts that are next to each other.

    inside[i, j] = spans[i, j] sum_{i <= k < j} inside[i, k] inside[k+1, j],    inside[i, i] = spans[i, i]

and all trees over n words are inside[0, n-1].  Everywhere: spans B n n are log potentials, [b, i, j] of the span from
word i to word j inclusive, i <= j; others do not matter.  lengths: B, words of each row.  A row without words has one
tree, the empty one; where no tree is possible the log-partition is -inf and all marginals are 0.

The marginals are found in probability space, in float64, one width after the other.  As every tree has as many spans
as words less one, a factor for each of them changes nothing: where the widths are powers of two it is chosen anew, so
that the greatest item of that width is 1.  Rows for which the range does not do go by the definition in pairs of
logarithms.  O(B n^3) time, O(B n^2) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops import marginals as inference
from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, refuse_what_is_no_number
from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.semiring import LogSemiring

GREATEST = 1e250  # what is around an item that underflowed, less than 1e-300, is no greater where a row is exact


def constituency_total(spans: Tensor, lengths: Tensor, semiring: LogSemiring) -> Tensor:
    """The definition: an element K B from elements K B n n, of any semiring; differentiable as its operations are."""
    n = spans.size(-1)
    totals = [semiring.one(lengths.shape, spans)]
    by_left = by_right = spans.diagonal(0, -2, -1).unsqueeze(-2)  # K B w n-w+1, widths falling in the second
    for w in range(1, n + 1):
        item = by_left[..., -1, :]
        totals.append(item[..., 0])
        if w < n:
            halves = semiring.sum(semiring.times(by_left[..., :-1], by_right[..., 1:]), -2)
            item = semiring.times(halves, spans.diagonal(w, -2, -1)).unsqueeze(-2)
            by_left = torch.cat([by_left[..., :-1], item], -2)
            by_right = torch.cat([item, by_right[..., 1:]], -2)
    index = lengths.expand(len(spans), -1).unsqueeze(-1)
    return semiring.sum(torch.stack(totals, -1).gather(-1, index), -1)  # of one term: no derivatives where it is zero


def constituency_log_partition(spans: Tensor, lengths: Tensor) -> Tensor:
    """Logarithm of the sum over all trees of exp(score), B, in nats; twice differentiable."""
    return inference.log_partition(_Brackets(lengths), spans)


def constituency_marginals(spans: Tensor, lengths: Tensor) -> Tensor:
    """B n n, the probability that a span is in the tree; differentiable once."""
    return inference.marginals(_Brackets(lengths), spans)[0]


class KeptOfSpans(NamedTuple):
    """Tables n n B: left and right, of items by left end and width, and by right end and width falling; weight and
    halves, of spans by width and left end; around: what is around an item.  counts: 1 1 B, spans of a tree.
    """

    left: Tensor
    right: Tensor
    weight: Tensor
    halves: Tensor
    around: Tensor
    counts: Tensor


class _Brackets(NamedTuple):
    """All trees of rows of these lengths: the family of `ops.marginals`."""

    lengths: Tensor

    def select(self, rows: Tensor) -> _Brackets:
        return _Brackets(self.lengths.index_select(0, rows))

    def total(self, potentials: tuple[Tensor, ...], semiring: LogSemiring) -> Tensor:
        masked = potentials[0].masked_fill(~self._there(potentials[0]), -torch.inf)
        return semiring.value(constituency_total(semiring.lift(masked), self.lengths, semiring))

    def refuse(self, potentials: tuple[Tensor, ...]) -> None:
        refuse_what_is_no_number("spans", potentials[0].masked_fill(~self._there(potentials[0]), 0.0))

    def _there(self, spans: Tensor) -> Tensor:
        position = torch.arange(spans.size(1), device=spans.device)
        return (position[:, None] <= position) & (position < self.lengths[:, None, None])

    def first_pass(self, potentials: tuple[Tensor, ...], need_total: bool) -> FirstPass:
        """In probability space: inside, then what is around each item."""
        (spans,) = potentials
        n, there = spans.size(1), self._there(potentials[0])
        scores = _by_width(spans.double().masked_fill(~there, -torch.inf), -torch.inf)  # n n B, [w, i]
        leaves = scores[0].masked_fill(~there.diagonal(0, 1, 2).t(), 0.0) if n else scores.sum(0)
        counts = (self.lengths - 1).clamp(min=0).double()
        left, right, halves, scale = _inside(scores)
        weight = (scores - scale).exp_()
        root = (self.lengths - 1).clamp(min=0)
        rows = torch.arange(len(spans), device=spans.device)
        total = left[root, 0, rows] if n else counts + 1
        total = total.masked_fill(self.lengths == 0, 1.0)
        around = _around(left, right, weight, self.lengths, 1 / total) if n else torch.zeros_like(left)
        found = around * left
        exact = (total > 0) & (total < torch.inf) & (scale.abs() <= LARGEST_POTENTIAL) & (leaves > -torch.inf).all(0)
        for greatest in (around, around * halves, weight[1:]) if n > 1 else ():
            exact &= greatest.amax((0, 1)) <= GREATEST
        log_partition = total.log() + scale * counts + leaves.sum(0)
        kept = KeptOfSpans(left, right, weight, halves, around, counts.view(1, 1, -1))
        return FirstPass((_by_ends(found),), log_partition, exact, kept, None)

    def second_pass(self, kept: KeptOfSpans, loan: None, direction: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
        """Along a direction, made such that the partition function does not change: then nothing cancels."""
        left, right, weight, halves, around, counts = kept
        n = left.size(0)
        along = _by_width(direction[0].double(), 0.0)
        inner = (around * left)[1:]
        mean = (inner * along[1:]).sum((0, 1), keepdim=True) / counts.clamp(min=1)
        along = torch.cat([torch.zeros_like(along[:1]), (along[1:] - mean).masked_fill(inner == 0, 0.0)])
        d_left, d_right = torch.zeros_like(left), torch.zeros_like(right)
        for w in range(1, n):
            one, two = (slice(w), slice(n - w)), (slice(n - w, n), slice(w, n))
            change = (d_left[one] * right[two]).addcmul_(left[one], d_right[two]).sum(0)
            change.addcmul_(along[w, : n - w], halves[w, : n - w]).mul_(weight[w, : n - w])
            d_left[w, : n - w] = d_right[n - 1 - w, w:] = change
        into_left, into_right = torch.zeros_like(left), torch.zeros_like(right)
        d_around = torch.zeros_like(left)
        for w in range(n - 1, 0, -1):
            one, two = (slice(w), slice(n - w)), (slice(n - w, n), slice(w, n))
            d_here = d_around[w, : n - w] = into_left[w, : n - w] + into_right[n - 1 - w, w:]
            here = around[w, : n - w]
            d_flow = (d_here + here * along[w, : n - w]) * weight[w, : n - w]
            flow = here * weight[w, : n - w]
            into_left[one] += (right[two] * d_flow).addcmul_(d_right[two], flow)
            into_right[two] += (left[one] * d_flow).addcmul_(d_left[one], flow)
        found = d_around * left + around * d_left
        found[:1] = 0.0
        return (_by_ends(found),)


def _inside(scores: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """left, right and halves as of `KeptOfSpans`, and what is taken from each span's log potential, B."""
    n, _, B = scores.shape
    left, right, halves = (torch.zeros_like(scores) for _ in range(3))
    scale = scores.new_zeros(B)
    left[:1] = right[n - 1 :] = (scores[:1] > -torch.inf).to(scores)
    for w in range(1, n):
        inner = (left[:w, : n - w] * right[n - w :, w:]).sum(0)
        item = (scores[w, : n - w] - scale).exp_().mul_(inner)
        halves[w, : n - w], left[w, : n - w], right[n - 1 - w, w:] = inner, item, item
        if w & (w - 1) == 0:
            highest = item.amax(0)
            growth = highest.log().div_(w).nan_to_num_(0.0, 0.0, 0.0)
            scale = scale + growth
            widths = torch.arange(w + 1, dtype=scores.dtype, device=scores.device)
            powers = (-widths[:, None] * growth).exp().unsqueeze(1)  # w+1 1 B
            left[: w + 1] *= powers
            right[n - 1 - w :] *= powers.flip(0)
            halves[1 : w + 1] *= powers[:-1]
    return left, right, halves, scale


def _around(left: Tensor, right: Tensor, weight: Tensor, lengths: Tensor, root: Tensor) -> Tensor:
    """What is around each item of a tree, divided by all trees, n n B."""
    n, _, B = left.shape
    into_left, into_right, found = (torch.zeros_like(left) for _ in range(3))
    some = (lengths > 0).nonzero().squeeze(1)
    into_left[lengths[some] - 1, 0, some] = root[some]
    for w in range(n - 1, -1, -1):
        here = found[w, : n - w] = into_left[w, : n - w] + into_right[n - 1 - w, w:]
        if w:
            one, two = (slice(w), slice(n - w)), (slice(n - w, n), slice(w, n))
            flow = here * weight[w, : n - w]
            into_left[one].addcmul_(right[two], flow)
            into_right[two].addcmul_(left[one], flow)
    return found


def _by_width(spans: Tensor, absent: float) -> Tensor:
    """n n B, [w, i] of the span i .. i + w, from B n n."""
    n = spans.size(1)
    position = torch.arange(n, device=spans.device)
    ends = position[:, None] + position  # [w, i]
    found = spans[:, position.expand(n, n), ends.clamp(max=max(0, n - 1))].permute(1, 2, 0)
    return found.masked_fill((ends >= n).unsqueeze(2), absent).contiguous()


def _by_ends(items: Tensor) -> Tensor:
    """B n n, [i, j], from n n B, [w, i]; 0 where there is no span."""
    n = items.size(0)
    position = torch.arange(n, device=items.device)
    widths = position - position[:, None]  # [i, j]
    found = items[widths.clamp(min=0), position[:, None].expand(n, n)].permute(2, 0, 1)
    return found.masked_fill(widths < 0, 0.0)
