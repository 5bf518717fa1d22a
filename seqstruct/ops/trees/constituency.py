"""Binary trees over the words of a sentence, weighted by their spans (Stern et al. 2017), by the chart of CKY.

The tree over n words has n leaves and n - 1 spans of two words or more, each of two parts that are next to each other.

    inside[i, j] = spans[i, j] sum_{i <= k < j} inside[i, k] inside[k+1, j],    inside[i, i] = spans[i, i]

and all trees over n words are inside[0, n-1].  Everywhere: spans B n n are log potentials, [b, i, j] of the span from
word i to word j inclusive, i <= j; others do not matter.  Or they are B n n L, of spans that have one of L labels each:
spans[i, j] above is then a sum over labels.  lengths: B long, words of each row, which come first.  A row without words
has one tree, the empty one; where no tree is possible the log-partition is -inf and all marginals are 0.
Raises ValueError if shapes or types do not fit, or a potential is NaN or +inf (looked for only where the log-partition
is not finite).

The marginals are found in probability space, in float64, one width after the other.  As every tree has as many spans
as words less one, a factor for each of them changes nothing: where the widths are powers of four it is chosen anew, so
that the greatest item of that width is 1.  Rows for which the range does not do go by the definition in pairs of
logarithms.  O(B (n^3 + n^2 L)) time, O(B n^2 L) memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops import marginals as inference
from seqstruct.ops.compiled import usable
from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, refuse_what_is_no_number
from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.masking import fails
from seqstruct.ops.semiring import LogSemiring, shares
from seqstruct.ops.trees.compiled import compiled_constituency
from seqstruct.ops.workspace import Loan, Pool

POOL = Pool()
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
    return inference.log_partition(_Brackets(lengths), _labelled(spans, lengths))


def constituency_marginals(spans: Tensor, lengths: Tensor) -> Tensor:
    """The probability that a span, with a label, is in the tree, in the shape of spans; differentiable once."""
    (found,) = inference.marginals(_Brackets(lengths), _labelled(spans, lengths))
    return found.view(spans.shape)


def _labelled(spans: Tensor, lengths: Tensor) -> Tensor:
    """Spans B n n L.  Raises ValueError unless spans and lengths fit."""
    square = spans.dim() in (3, 4) and spans.size(1) == spans.size(2) and 0 not in spans.shape[3:]
    if not square or not spans.is_floating_point():
        raise ValueError(f"expected spans B n n or B n n L of a floating type, got {tuple(spans.shape)} {spans.dtype}")
    expected = f"expected lengths {spans.size(0)} long from 0 to {spans.size(1)}"
    fits = lengths.shape == spans.shape[:1] and lengths.dtype == torch.long
    if not fits or fails((lengths < 0) | (lengths > spans.size(1)), expected):
        raise ValueError(f"{expected}, got {lengths}")
    return spans.unsqueeze(3) if spans.dim() == 3 else spans


class _Width(NamedTuple):
    """Of one width w, views of `_Tables`: the items, N-w B; and what they are made of, w N-w B each.

    left, right: both parts of each span; into_left, into_right: what is around them.
    """

    item_left: Tensor
    item_right: Tensor
    halves: Tensor
    weight: Tensor
    around: Tensor
    out_left: Tensor
    out_right: Tensor
    left: Tensor
    right: Tensor
    into_left: Tensor
    into_right: Tensor


class _Tables:
    """Tables n n B.  left, weight, halves, around: items, weights of spans, sums over their parts and what is around
    them, by width and left end; right: items by right end, widths falling; into_left, into_right: around parts.
    """

    def __init__(self, n: int, B: int, device: torch.device) -> None:
        self.buffer = torch.zeros(7, n, n, B, dtype=torch.float64, device=device)
        self.left, self.right, self.halves, self.weight, self.around, self.into_left, self.into_right = self.buffer
        self.widths = []
        for w in range(1, n):
            item, item_on_right = (w, slice(n - w)), (n - 1 - w, slice(w, n))
            part, part_on_right = (slice(w), slice(n - w)), (slice(n - w, n), slice(w, n))
            self.widths.append(_Width(
                self.left[item], self.right[item_on_right], self.halves[item], self.weight[item], self.around[item],
                self.into_left[item], self.into_right[item_on_right], self.left[part], self.right[part_on_right],
                self.into_left[part], self.into_right[part_on_right],
            ))


class SpanSpace:
    """Tables of values and, where they are asked for, of derivatives; room for the products of each width."""

    def __init__(self, n: int, B: int, device: torch.device) -> None:
        self.sizes = n, B, device
        self.values = _Tables(n, B, device)
        products = self.values.buffer.new_empty(n // 2 * (n - n // 2) * B)
        flows = self.values.buffer.new_empty(2, n, B)
        self.products = [products[: w * (n - w) * B].view(w, n - w, B) for w in range(1, n)]
        self.flows = [flows[:, : n - w].unbind(0) for w in range(1, n)]
        self.nbytes = 8 * (2 * self.values.buffer.numel() + products.numel() + flows.numel())

    @cached_property
    def tangent(self) -> _Tables:
        """Its weights are those of a direction."""
        with torch.inference_mode(False):
            return _Tables(*self.sizes)


class KeptOfSpans(NamedTuple):
    """buffer: of the tables of values; counts: B, spans of two words or more; shares: L B n n, of labels, if
    there are several."""

    buffer: Tensor
    counts: Tensor
    shares: Tensor | None


class _Brackets(NamedTuple):
    """All trees of rows of these lengths: the family of `ops.marginals`."""

    lengths: Tensor

    def select(self, rows: Tensor) -> _Brackets:
        return _Brackets(self.lengths.index_select(0, rows))

    def total(self, potentials: tuple[Tensor, ...], semiring: LogSemiring) -> Tensor:
        masked = potentials[0].masked_fill(~self._there(potentials[0]).unsqueeze(3), -torch.inf)
        spans = semiring.sum(semiring.lift(masked), -1)
        return semiring.value(constituency_total(spans, self.lengths, semiring))

    def refuse(self, potentials: tuple[Tensor, ...]) -> None:
        masked = potentials[0].masked_fill(~self._there(potentials[0]).unsqueeze(3), 0.0)
        refuse_what_is_no_number("spans", masked.squeeze(3))

    def _there(self, spans: Tensor) -> Tensor:
        position = torch.arange(spans.size(1), device=spans.device)
        return (position[:, None] <= position) & (position < self.lengths[:, None, None])

    def first_pass(self, potentials: tuple[Tensor, ...], need_total: bool) -> FirstPass:
        """In probability space: inside, then what is around each item."""
        if usable(*potentials):
            return compiled_constituency(*potentials, self.lengths)
        return _first_pass(*potentials, self._there(*potentials), self.lengths)

    def second_pass(
        self, kept: KeptOfSpans, loan: Loan[SpanSpace] | None, direction: tuple[Tensor | None, ...]
    ) -> tuple[Tensor, ...]:
        """Along a direction, in float64."""
        (along,) = direction
        if loan is None:
            return (torch.zeros_like(along, dtype=torch.float64),)
        if kept.shares is None:
            return (_second_pass(kept, loan.space, along.squeeze(3), self._there(along)).unsqueeze(3),)
        along = along.double().permute(3, 0, 1, 2)
        mean = (kept.shares * along).sum(0)
        found = _second_pass(kept, loan.space, mean, self._there(mean))
        marginals = _by_ends(loan.space.values.around * loan.space.values.left)
        return ((kept.shares * (found + marginals * (along - mean))).permute(1, 2, 3, 0),)


@torch.no_grad()
def _first_pass(potentials: Tensor, there: Tensor, lengths: Tensor) -> FirstPass:
    B, n, _, L = potentials.shape
    counts = (lengths - 1).clamp(min=0)
    if n == 0:
        return FirstPass((potentials.double(),), counts.double(), counts == 0, KeptOfSpans(counts, counts, None), None)
    spans, labels = potentials.squeeze(3), None
    if L > 1:  # sums over an axis in front are the fastest
        masked = potentials.double().masked_fill(~there.unsqueeze(3), -torch.inf)
        spans, labels = shares(masked.permute(3, 0, 1, 2).contiguous(), 0)
    loan = POOL.borrow((n, B, spans.device), lambda: SpanSpace(n, B, spans.device))
    tables, rows = loan.space.values, torch.arange(B, device=spans.device)
    scores = _by_width(spans, there, -torch.inf)
    leaves = scores[0].masked_fill(~there.diagonal(0, 1, 2).t(), 0.0)
    scale, raised = _inside(loan.space, scores)
    total = tables.left[counts, 0, rows].masked_fill(lengths == 0, 1.0)
    tables.into_left.zero_()[counts, 0, rows] = (1 / total).masked_fill(lengths == 0, 0.0)
    _around(loan.space)
    exact = (total > 0) & (total < torch.inf) & (scale.abs() <= LARGEST_POTENTIAL) & (leaves > -torch.inf).all(0)
    around, halves, weight = (x.amax((0, 1)) for x in (tables.around, tables.halves, tables.weight))
    exact &= (torch.maximum(around, around * halves) <= GREATEST * (-raised).exp()) & (weight <= GREATEST)
    log_partition = total.log() + scale * counts + leaves.sum(0)
    found = _by_ends(tables.around * tables.left)
    found = found.unsqueeze(3) if labels is None else (found * labels).permute(1, 2, 3, 0)
    return FirstPass((found,), log_partition, exact, KeptOfSpans(tables.buffer, counts, labels), loan)


def _second_pass(kept: KeptOfSpans, space: SpanSpace, direction: Tensor, there: Tensor) -> Tensor:
    """Along a direction B n n, made such that the partition function does not change: then nothing cancels."""
    tables, tangent = space.values, space.tangent
    along, inner = _by_width(direction, there, 0.0), tables.around * tables.left
    inner[0] = 0.0
    mean = (inner * along).sum((0, 1)) / kept.counts.clamp(min=1)
    torch.mul(along - mean, inner != 0, out=tangent.weight)
    for v, d, product in zip(tables.widths, tangent.widths, space.products, strict=True):
        torch.mul(d.left, v.right, out=product)
        product.addcmul_(v.left, d.right)
        torch.sum(product, 0, out=d.halves)
        torch.addcmul(d.halves, d.weight, v.halves, out=d.item_left)
        d.item_right.copy_(d.item_left.mul_(v.weight))
    tangent.into_left.zero_()
    tangent.into_right.zero_()
    for v, d, (flow, d_flow) in reversed(list(zip(tables.widths, tangent.widths, space.flows, strict=True))):
        torch.add(d.out_left, d.out_right, out=d.around)
        torch.addcmul(d.around, v.around, d.weight, out=d_flow)
        d_flow.mul_(v.weight)
        torch.mul(v.around, v.weight, out=flow)
        d.into_left.addcmul_(v.right, d_flow).addcmul_(d.right, flow)
        d.into_right.addcmul_(v.left, d_flow).addcmul_(d.left, flow)
    found = tangent.around * tables.left + tables.around * tangent.left
    found[0] = 0.0
    return _by_ends(found)


def _inside(space: SpanSpace, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Items and weights; B, what is taken from each span's log potential, and by how much, in logarithms, items were
    raised at most that may have underflowed before."""
    tables, (n, B, _) = space.values, space.sizes
    tables.left.zero_()
    tables.right.zero_()
    tables.left[0] = tables.right[n - 1] = (scores[0] > -torch.inf).to(scores)
    torch.exp(scores[1:2], out=tables.weight[1:2])
    scale, raised, looked_at = scores.new_zeros(B), scores.new_zeros(B), 1
    for w, (v, product) in enumerate(zip(tables.widths, space.products, strict=True), 1):
        torch.mul(v.left, v.right, out=product)
        torch.sum(product, 0, out=v.halves)
        torch.mul(v.halves, v.weight, out=v.item_left)
        v.item_right.copy_(v.item_left)
        if w == looked_at:
            looked_at *= 4
            growth = v.item_left.amax(0).log_().div_(w).nan_to_num_(0.0, 0.0, 0.0)
            scale, raised = scale + growth, raised + (-growth * w).clamp(min=0.0)
            widths = torch.arange(w + 1, dtype=scores.dtype, device=scores.device)
            powers = (widths[:, None, None] * -growth).exp_()
            tables.left[: w + 1] *= powers
            tables.right[n - 1 - w :] *= powers.flip(0)
            tables.halves[1 : w + 1] *= powers[:-1]
            tables.weight[1 : w + 1] *= powers[1]
            ahead = slice(w + 1, looked_at + 1), slice(max(0, n - w - 1))
            torch.exp(scores[ahead] - scale, out=tables.weight[ahead])
    return scale, raised


def _around(space: SpanSpace) -> None:
    """What is around each item of a tree, from what is around the root: in `into_left`, all else zero."""
    tables = space.values
    tables.into_right.zero_()
    for v, (flow, _) in zip(reversed(tables.widths), reversed(space.flows), strict=True):
        torch.add(v.out_left, v.out_right, out=v.around)
        torch.mul(v.around, v.weight, out=flow)
        v.into_left.addcmul_(v.right, flow)
        v.into_right.addcmul_(v.left, flow)
    torch.add(tables.into_left[0], tables.into_right[-1], out=tables.around[0])


def _slanted(square: Tensor) -> Tensor:
    """The numbers of n+1 n B as a view n n B by width and left end: [w, i] is [i, i + w], or where that is beyond the
    last column a place below the diagonal, or of the last row."""
    n, B = square.shape[1:]
    return square.as_strided((n, n, B), (B, (n + 1) * B, 1))


def _by_width(spans: Tensor, there: Tensor, absent: float) -> Tensor:
    """n n B float64, [w, i] of the span i .. i + w, from B n n, and `absent` where there is none."""
    B, n, _ = spans.shape
    square = torch.full((n + 1, n, B), absent, dtype=torch.float64, device=spans.device)
    square[:n].copy_(spans.permute(1, 2, 0)).masked_fill_(~there.permute(1, 2, 0), absent)
    return _slanted(square)


def _by_ends(items: Tensor) -> Tensor:
    """B n n, [i, j], from n n B, [w, i], which is 0 where there is no span."""
    n, _, B = items.shape
    square = items.new_zeros(n + 1, n, B)
    _slanted(square).copy_(items)
    return square[:n].permute(2, 0, 1)
