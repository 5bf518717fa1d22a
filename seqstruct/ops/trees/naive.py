"""Eisner's chart (1996) over any semiring: all projective dependency trees in O(n^3), one width after the other.

An item of width w spans the positions i .. i + w.  It is incomplete where an arc between its ends has just been added,
complete where the inner end has all its dependents; its head is at the left end (it points right) or at the right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.semiring import LogSemiring


class _Table:
    """Elements K B D N of one kind of item: by width and the end they are looked up by; latest width first or last.

    Grown by concatenation, never written in place, so that derivatives of any order can be taken.
    """

    def __init__(self, semiring: LogSemiring, items: Tensor, by_left_end: bool) -> None:
        self.semiring, self.by_left_end = semiring, by_left_end
        self.elements = items.unsqueeze(-2)

    def append(self, items: Tensor, size: int) -> None:
        """Items K B N-w of the next width, filled up with zeros of the semiring to `size`, N."""
        if items.size(-1) < size:
            shape = (*items.shape[1:-1], size - items.size(-1))
            zeros = self.semiring.zero(shape, items)
            items = torch.cat([items, zeros] if self.by_left_end else [zeros, items], -1)
        rows = [self.elements, items.unsqueeze(-2)]
        self.elements = torch.cat(rows if self.by_left_end else rows[::-1], -2)

    def latest(self, width: int, skip: int = 0) -> Tensor:
        """K B w N-w, parts of the spans of a width: left ones by increasing width, right ones by decreasing width."""
        size = self.elements.size(-1)
        rows = self.elements[..., skip : skip + width, :]
        return rows[..., : size - width] if self.by_left_end else rows[..., width:]


def projective_total(arcs: Tensor, lengths: Tensor, single_root: bool, semiring: LogSemiring) -> Tensor:
    """The sum, over all projective trees of each row, of the product of their arcs; an element K B.

    arcs: K B N N, elements of the semiring, [h, m]: m takes the head h, position 0 is the root; lengths: B, words of
    each row.  Differentiable as often as the semiring's operations are.
    """
    B, N = arcs.shape[1:3]
    ones, zeros = semiring.one((B, N), arcs), semiring.zero((B, N), arcs)
    right_by_left, right_by_right, left_by_left, left_by_right = (
        _Table(semiring, ones, by_left_end) for by_left_end in (True, False, True, False)
    )
    # Incomplete items have width 1 or more; their row of width 0 is there to be skipped.
    open_right, open_left = _Table(semiring, zeros, True), _Table(semiring, zeros, False)
    totals = [ones[..., 0]]
    for w in range(1, N):
        halves = semiring.times(right_by_left.latest(w), left_by_right.latest(w))
        halves = semiring.sum(halves, -2)
        open_right.append(semiring.times(halves, arcs.diagonal(w, -2, -1)), N)
        open_left.append(semiring.times(halves, arcs.diagonal(-w, -2, -1)), N)
        right = semiring.sum(semiring.times(open_right.latest(w, skip=1), right_by_right.latest(w)), -2)
        left = semiring.sum(semiring.times(left_by_left.latest(w), open_left.latest(w)), -2)
        totals.append(right[..., 0])
        right_by_right.append(right, N)
        left_by_left.append(left, N)
        left_by_right.append(left, N)
        if single_root:  # an item of the root that has its child cannot grow
            right = torch.cat([zeros[..., :1], right[..., 1:]], -1)
        right_by_left.append(right, N)
    stacked = torch.stack(totals, -1)
    index = lengths.view(1, B, 1).expand(stacked.size(0), B, 1)
    return stacked.gather(-1, index).squeeze(-1)
