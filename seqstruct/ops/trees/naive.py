"""The sum over all projective dependency trees, by Eisner's chart (1996) over any semiring.

An item spans the positions i .. j.  It is open where an arc between its ends has just been added, complete where the
inner end has all its dependents; its head is at the left end, so that it points right, or at the right end.

    halves[i, j]     = sum_{i <= k < j}  right[i, k] left[k+1, j]
    open_right[i, j] = halves[i, j] arc[i -> j]
    open_left[i, j]  = halves[i, j] arc[j -> i]
    right[i, j]      = sum_{i < k <= j}  open_right[i, k] right[k, j]
    left[i, j]       = sum_{i <= k < j}  left[i, k] open_left[k, j]

with right[i, i] = left[i, i] = 1; all trees over the words 1 .. n are right[0, n].
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.semiring import LogSemiring


def projective_total(arcs: Tensor, lengths: Tensor, single_root: bool, semiring: LogSemiring) -> Tensor:
    """The sum, over all projective trees of each row, of the product of their arcs; an element K B.

    arcs: K B N N, elements of the semiring, [h, m]: m takes the head h, position 0 is the root; lengths: B, words of
    each row.  Differentiable as often as the semiring's operations are.  O(B N^3), one width after the other.
    """
    # Tables K B w N-w+1 at width w, a row for each width below it and a column for each end that a span of that width
    # may have: `by_left` their left ends, rows by increasing width, `by_right` their right ends, by decreasing width.
    # What lies at one place of two of them, their columns cut to N-w, is then next to each other.
    ones = semiring.one(arcs.shape[1:3], arcs).unsqueeze(-2)
    right_by_left = right_by_right = left_by_left = left_by_right = ones
    open_right, open_left = ones[..., :0, :], ones[..., :0, :]
    totals = [ones[..., 0, 0]]
    for w in range(1, arcs.size(-1)):
        halves = semiring.sum(semiring.times(right_by_left[..., :-1], left_by_right[..., 1:]), -2)
        open_right = _by_left(open_right, semiring.times(halves, arcs.diagonal(w, -2, -1)))
        open_left = _by_right(open_left, semiring.times(halves, arcs.diagonal(-w, -2, -1)))
        right = semiring.sum(semiring.times(open_right, right_by_right[..., 1:]), -2)
        left = semiring.sum(semiring.times(left_by_left[..., :-1], open_left), -2)
        totals.append(right[..., 0])
        right_by_right, left_by_right = _by_right(right_by_right, right), _by_right(left_by_right, left)
        if single_root:  # an item of the root that has its child cannot grow
            right = torch.cat([semiring.zero((len(lengths), 1), arcs), right[..., 1:]], -1)
        right_by_left, left_by_left = _by_left(right_by_left, right), _by_left(left_by_left, left)
    index = lengths.expand(len(arcs), -1).unsqueeze(-1)
    return torch.stack(totals, -1).gather(-1, index).squeeze(-1)


def _by_left(table: Tensor, items: Tensor) -> Tensor:
    return torch.cat([table[..., :-1], items.unsqueeze(-2)], -2)


def _by_right(table: Tensor, items: Tensor) -> Tensor:
    return torch.cat([items.unsqueeze(-2), table[..., 1:]], -2)
