"""How the items of Eisner's chart lie in memory, so that every width is a few operations on windows without gaps.

A chart is two halves of 3 D N B numbers, N positions (0 is the root), D = N, the batch last.  `left` is looked up by
the left end i of a span, `right` by its right end j, widths reversed:

    left[0, w-1, i]  open right    left[1, w, i]      complete right    left[2, w, i]      complete left
    right[2, D-w, j] open left     right[0, D-1-w, j] complete right    right[1, D-1-w, j] complete left

(open: incomplete, width 1 or more).  Complete items of N = 4, each the span i-j, dots never read:

    left[1] or left[2]                  right[0] or right[1]
           i=0   1     2   3                    j=0   1     2   3
         +-----------+                   w=3     .    .     .  0-3
    w=0  | 0-0  1-1  | 2-2 3-3           w=2     .    .    0-2 1-3
    w=1  | 0-1  1-2  | 2-3  .                             +---------+
         +-----------+                   w=1     .   0-1  | 1-2 2-3 |
    w=2    0-2  1-3     .   .            w=0    0-0  1-1  | 2-2 3-3 |
    w=3    0-3   .      .   .                             +---------+

The spans of width w = 2 are 0-2 and 1-3.  Their parts at the left end are the window [:w, :N-w] of `left`, those at the
right end the window [D-w:, w:] of `right`, and what lies at the same place [u, i] of both joins to i-(i+w): above 0-0
with 1-2 and 0-1 with 2-2, as 1-1 with 2-3 and 1-2 with 3-3.  So the rows of open items, that share a position with
their neighbour, are shifted by one.  The products are open right * complete right (item 0), complete right * complete
left (item 1) and complete left * open left (item 2); to go to the next row is a stride of N B numbers in both halves,
to the next span one of B, which is why a window, or those of two items or of both halves, is one strided tensor.

Scores of arcs, and all that goes by arcs, lie as [dependent, head, B].
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, refuse_what_is_no_number
from seqstruct.ops.rows import Rows
from seqstruct.ops.semiring import add_exactly


class BestTree(NamedTuple):
    """heads: B n long, the head of each word, -1 at padding and where no tree is possible; score: B, log space."""

    heads: Tensor
    score: Tensor


View = tuple[tuple[int, ...], tuple[int, ...], int]  # size, stride and offset, as `as_strided` takes them


class Values(NamedTuple):
    """Windows, of one width, of a chart 2 3 D N B whose halves are (right, left).

    `mixed` is items 0 and 2, `inner` item 1; `parts_*` are both windows side by side, 2 .. w N-w B.
    """

    left_inner: Tensor
    right_inner: Tensor
    left_mixed: Tensor
    right_mixed: Tensor
    open_left_right: Tensor
    complete_on_left: Tensor
    complete_on_right: Tensor
    parts_inner: Tensor
    parts_mixed: Tensor


class Adjoints(NamedTuple):
    """Windows, of one width, of a chart whose halves are (left, right), in the order of `Values.parts_*`.

    complete: the complete items on the left with an axis of length 1, as addends of `mixed`.
    """

    inner: Tensor
    mixed: Tensor
    open_right: Tensor
    open_left: Tensor
    complete_on_left: Tensor
    complete_on_right: Tensor
    complete: Tensor


class Arcs(NamedTuple):
    """The arcs of one width, of N N B."""

    left: Tensor
    right: Tensor
    left_right: Tensor


def _windows(chart: Tensor, views: list[View]) -> Iterator[Tensor]:
    """Offsets are counted from the first number of the chart."""
    return (chart.as_strided(size, stride, offset + chart.storage_offset()) for size, stride, offset in views)


def windows_of_values(chart: Tensor) -> list[Values]:
    """Of all widths, that of 0 left out."""
    N, B = chart.shape[-2:]
    row, item, half = N * B, N * N * B, 3 * N * N * B
    found = []
    for w in range(1, N):
        one, two, steps = (w, N - w, B), (2, w, N - w, B), (row, B, 1)
        ends, across = (2, N - w, B), (B, 1)
        right = ((N - w) * N + w) * B  # where the right window of an item begins
        on_right = (N - 1 - w) * row + w * B
        open_left = 2 * item + (N - w) * row + w * B
        views: list[View] = [
            (one, steps, half + item),
            (one, steps, item + right),
            (two, (2 * item, *steps), half),
            (two, (2 * item, *steps), right),
            (ends, (half + (w - 1) * row - open_left, *across), open_left),
            (ends, (item, *across), half + item + w * row),
            (ends, (item, *across), on_right),
            (two, (half - right, *steps), item + right),
            ((2, *two), (half - right, 2 * item, *steps), right),
        ]
        found.append(Values(*_windows(chart, views)))
    return found


def windows_of_adjoints(chart: Tensor) -> list[Adjoints]:
    """Of all widths, that of 0 left out."""
    N, B = chart.shape[-2:]
    row, item, half = N * B, N * N * B, 3 * N * N * B
    found = []
    for w in range(1, N):
        two, steps, ends, across = (2, w, N - w, B), (row, B, 1), (N - w, B), (B, 1)
        right = ((N - w) * N + w) * B
        on_right = (N - 1 - w) * row + w * B
        open_left = 2 * item + (N - w) * row + w * B
        views: list[View] = [
            (two, (half + right, *steps), item),
            ((2, *two), (half + right, 2 * item, *steps), 0),
            (ends, across, (w - 1) * row),
            (ends, across, half + open_left),
            ((2, *ends), (item, *across), item + w * row),
            ((2, *ends), (item, *across), half + on_right),
            ((2, 1, *ends), (item, item, *across), item + w * row),
        ]
        found.append(Adjoints(*_windows(chart, views)))
    return found


def windows_of_arcs(arcs: Tensor) -> list[Arcs]:
    """Of all widths, that of 0 left out; arcs: N N B."""
    N, B = arcs.shape[1:]
    across, found = ((N + 1) * B, 1), []
    for w in range(1, N):
        views: list[View] = [
            ((N - w, B), across, w * B),
            ((N - w, B), across, w * N * B),
            ((2, N - w, B), (w * (N - 1) * B, *across), w * B),
        ]
        found.append(Arcs(*_windows(arcs, views)))
    return found


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is cached may be used in training later
def _rows_of_arcs(N: int, device: torch.device) -> Tensor:
    """Where the item of the arc (head, dependent) is among open right, open left and a row of zeros; N*N long."""
    dependent = torch.arange(N, device=device)
    head = dependent.unsqueeze(1)
    right, left = (dependent - head - 1) * N + head, N * N + (N - head + dependent) * N + head
    left = left.masked_fill((head == dependent) | (dependent == 0), 2 * N * N)
    return torch.where(head < dependent, right, left).flatten()


def by_arc(open_right: Tensor, open_left: Tensor) -> Tensor:
    """B N N, [b, head, dependent], of what belongs to open items, N N B each; 0 where there is no arc."""
    N, _, B = open_right.shape
    rows = torch.cat([open_right.reshape(N * N, B), open_left.reshape(N * N, B), open_right.new_zeros(1, B)])
    return rows.index_select(0, _rows_of_arcs(N, rows.device)).t().reshape(B, N, N)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def _no_arc(N: int, device: torch.device) -> Tensor:
    """1 N N bool, [head, dependent]: the root as dependent, and arcs from a position to itself."""
    banned = torch.eye(N, dtype=torch.bool, device=device)
    banned[:, 0] = True
    return banned.unsqueeze(0)


def banned_arcs(arcs: Tensor, real: Tensor | None) -> Tensor:
    """B N N bool (B is 1 without padding), True where there is no arc.  real: B N-1 bool, words that are, or None."""
    banned = _no_arc(arcs.size(1), arcs.device)
    if real is None:
        return banned
    there = torch.nn.functional.pad(real, (1, 0), value=True)
    return banned | ~there.unsqueeze(1) | ~there.unsqueeze(2)


def aligned_arcs(arcs: Tensor, padding_mask: Tensor | None) -> tuple[Rows, Tensor]:
    """Log potentials B n+1 n+1, checked, with the padded words, as `padding_mask` B n has them, moved to the end."""
    if arcs.dim() != 3 or arcs.size(1) != arcs.size(2) or arcs.size(1) == 0 or not arcs.is_floating_point():
        raise ValueError(f"expected arcs B n+1 n+1 of a floating type, got {tuple(arcs.shape)} of {arcs.dtype}")
    rows = Rows.of(padding_mask, arcs.size(0), arcs.size(1) - 1)
    return rows, rows.to_front(arcs, 1, 2, root=True)


def masked_arcs(arcs: Tensor, rows: Rows) -> Tensor:
    """Aligned arcs in float64, -inf where there is no arc."""
    return arcs.double().masked_fill(banned_arcs(arcs, rows.real), -torch.inf)


def level_root(arcs: Tensor) -> tuple[Tensor, Tensor]:
    """Arcs with those from the root, which a tree of one root arc has once, less their maximum if it is great; that, B.

    Only where other arcs of the root lose no digits by it.
    """
    root = arcs[:, :1].detach()
    highest = root.amax(2, keepdim=True)
    lost = add_exactly(root, -highest)[1]
    wanted = highest.isfinite() & (highest.abs() > LARGEST_POTENTIAL) & (lost == 0).all(2, keepdim=True)
    highest = highest.where(wanted, torch.zeros_like(highest))
    return torch.cat([arcs[:, :1] - highest, arcs[:, 1:]], 1), highest.flatten()


def refuse_arcs(arcs: Tensor, rows: Rows) -> None:
    """Raise ValueError, naming the place, if one of masked arcs is no number."""
    refuse_what_is_no_number("arcs", rows.back(arcs, 1, 2, root=True))


def heads_of(indicators: Tensor, possible: Tensor, rows: Rows) -> Tensor:
    """Heads of words B n, as positions of the caller, from indicators of arcs; -1 at padding and where not possible."""
    heads = indicators[:, :, 1:].argmax(1)
    if rows.first is not None:
        heads = heads + rows.first.unsqueeze(1) * (heads > 0)
    heads = heads.masked_fill(~possible.unsqueeze(1), -1)
    if rows.real is not None:
        heads = heads.masked_fill(~rows.real, -1)
    return rows.back(heads, 1)
